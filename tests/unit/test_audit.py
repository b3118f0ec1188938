"""The audit of a judge: its verdict and numbers on data whose truth is known."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

import comperdial
from comperdial.auditing.dataset import audits
from comperdial.cli import main
from comperdial.core.errors import ComperdialError
from comperdial.stats.chance_agreement import gwet_ac, weighted_kappa
from comperdial.stats.corrected_means import corrected_difference, corrected_mean
from ratedtables import score_rows

ROWS = 400
PEARSON = "Pearson with people's mean"
RATERS = ["rater_1", "rater_2", "rater_3"]


KINDS = ["complaint", "praise", "question"]


def rated(labelled=1.0, noise=0.8, raters=3, seed=0, **judge):
    """Return four systems' responses to 100 questions; ``judge`` is how much it overrates each system."""
    rng = np.random.default_rng(seed)
    system = np.tile([*"abcd"], ROWS // 4)
    quality = rng.normal(size=ROWS) + np.tile([-0.6, -0.2, 0.2, 0.6], ROWS // 4)
    question = np.repeat([f"question {n}?" for n in range(ROWS // 4)], 4)
    frame = pd.DataFrame({"question": question, "model": system, "response": [f"answer {n}" for n in range(ROWS)]})
    given = rng.random(ROWS) < labelled
    for place in range(raters):
        labels = np.clip(np.round(3 + quality + rng.normal(size=ROWS) * 0.6), 1, 5)
        frame[f"rater_{place + 1}"] = np.where(given, labels, np.nan)
    offset = pd.Series(system).map(judge).fillna(0).to_numpy()
    return frame.assign(gpt4_score=np.clip(np.round(3 + quality + offset + rng.normal(size=ROWS) * noise), 1, 5))


def votes(turned=False, favour=0.0):
    """Return votes of two people and a judge on pairs of three systems, each possibly reversed."""
    rng, rows = np.random.default_rng(0), []
    strength = {"a": 0.0, "b": 0.5, "c": 1.0}
    for place, (one, other) in enumerate([("a", "b"), ("a", "c"), ("b", "c")] * 60):
        gap = strength[one] - strength[other] + rng.normal()
        names = [one if gap + rng.normal() * 0.3 > 0 else other for _ in range(2)]
        judge = one if gap + rng.normal() * 0.8 + favour * ((one == "c") - (other == "c")) > 0 else other
        sides = (other, one) if turned else (one, other)
        voted = ["model_a" if name == sides[0] else "model_b" for name in (*names, judge)]
        rows.append((place // 3, *sides, *voted))
    return pd.DataFrame(rows, columns=["question_id", "model_a", "model_b", "winner_1", "winner_2", "gpt4_winner"])


def labels():
    """Return names, without an order, given to 120 posts by two raters and a judge."""
    rng = np.random.default_rng(1)
    true = rng.choice(KINDS, 120)

    def given(right):
        return np.where(rng.random(120) < right, true, rng.choice(KINDS, 120))

    columns = {"rater_1": given(0.8), "rater_2": given(0.8), "gpt4_label": given(0.9)}
    return pd.DataFrame({"post_id": [f"p{n}" for n in range(120)], "system": rng.choice(["a", "b"], 120), **columns})


def value(audit, what):
    return audit.table.set_index("what").loc[what, "value"]


def sentences(audit, title):
    return " ".join(audit.section(title).sentences)


def audited(frame, *args, **options):
    return comperdial.audit(frame, *args, scale=[1, 5], **options)


@cache
def plain():
    return audited(rated())


@cache
def of_votes():
    return comperdial.audit(votes())


# The verdict


@pytest.mark.parametrize(
    ("noise", "verdict", "failed"), [(0.5, "Yes, gpt4_score may stand in", 0), (2.5, "Not shown", 3)]
)
def test_judge_as_good_as_people_may_replace_one(noise, verdict, failed):
    audit = audited(rated(noise=noise))
    assert audit.verdict.startswith(verdict) and audit.alternative.passed == (failed == 0)
    assert len(audit.failures(["alt-test", "pearson=0.5", "kappa=0.6"])) == failed
    with pytest.raises(ComperdialError):
        audit.failures(["pearson=high"])


def test_single_rater_measures_match_statistics():
    frame = rated(raters=1).rename(columns={"rater_1": "rating"})
    audit = audited(frame, human="rating", judge="gpt4_score")
    pair = frame["rating"], frame["gpt4_score"]
    assert value(audit, "Weighted kappa of the judge with a rater") == pytest.approx(weighted_kappa(*pair, range(1, 6)))
    ac = gwet_ac(pair, range(1, 6), "quadratic")
    assert value(audit, "Gwet's AC2 of the judge with a rater") == pytest.approx(ac)
    assert value(audit, PEARSON) == pytest.approx(np.corrcoef(*pair)[0, 1])
    assert "cannot be tested" in audit.verdict


def test_the_judge_and_each_rater_are_compared_with_the_other_raters():
    frame, others = rated(), {name: [other for other in RATERS if other != name] for name in RATERS}
    rest = np.concatenate([frame[names].mean(axis=1) for names in others.values()])
    for what, values in (
        ("Pearson of the judge with all raters but one", np.tile(frame["gpt4_score"], 3)),
        ("Pearson of that rater with the same", np.concatenate([frame[name] for name in RATERS])),
    ):
        assert value(plain(), what) == pytest.approx(np.corrcoef(values, rest)[0, 1])


def test_items_in_one_dialogue_are_not_independent():
    frame = rated(noise=0.5)
    many = pd.concat([frame[:40].assign(question=f"copy {n}", dialogue_id=frame.index[:40]) for n in range(8)])
    alone, together = (
        one.section("Agreement").number(PEARSON)
        for one in (audited(many.drop(columns="dialogue_id"), clusters="none"), audited(many))
    )
    assert alone["value"] == pytest.approx(together["value"])
    assert together["high"] - together["low"] > 2 * (alone["high"] - alone["low"])


# Corrected numbers


def test_corrected_means_match_statistics():
    frame = rated(labelled=0.3, raters=1).rename(columns={"rater_1": "rating"})
    audit = audited(frame)

    def parts(kept):
        own, rest = frame[kept & frame["rating"].notna()], frame[kept & frame["rating"].isna()]
        return own["rating"], own["gpt4_score"], rest["gpt4_score"], own["question"], rest["question"]

    whole = corrected_mean(*parts(frame["model"] != ""))
    apart = corrected_difference(parts(frame["model"] == "a"), parts(frame["model"] == "d"))
    for name, expected in (("all: corrected", whole), ("a − d: corrected", apart)):
        numbers = audit.section("Corrected numbers").number(name)
        found = numbers["value"], numbers["low"], numbers["high"]
        assert found == pytest.approx((expected.value, expected.low, expected.high))
    assert value(audit, "all: labels alone") == pytest.approx(frame["rating"].mean())
    assert value(audit, "all: judge alone") == pytest.approx(frame["gpt4_score"].mean())


def test_win_rates_are_corrected():
    frame = votes()
    frame.loc[90:, ["winner_1", "winner_2"]] = None
    audit = comperdial.audit(frame)
    labelled = frame[:90].query("model_a == 'b' and model_b == 'c'")
    wins = (labelled[["winner_1", "winner_2"]] == "model_a").to_numpy().mean()
    assert value(audit, "b against c: labels alone") == pytest.approx(wins)
    assert 0 <= value(audit, "a: corrected") < value(audit, "c: corrected") <= 1


@pytest.mark.parametrize(
    ("labelled", "options", "title", "text"),
    [
        (lambda frame: frame["gpt4_score"] >= 4, {}, "Corrected numbers", "which they do not seem to be"),
        (lambda frame: frame.index < 100, {}, "Corrected numbers", "they are the first 100 of the file"),
        (lambda frame: frame.index % 3 == 0, {"half_width": 0.13}, "How many labels more", "labels in all"),
        (lambda frame: frame.index % 3 == 0, {"half_width": 0.01}, "How many labels more", "do not suffice"),
    ],
)
def test_limitations_are_reported(labelled, options, title, text):
    frame = rated(raters=1).rename(columns={"rater_1": "rating"})
    frame["rating"] = frame["rating"].where(labelled(frame))
    assert text in sentences(audited(frame, **options), title)


def test_label_sample_is_stratified_by_system_and_readable():
    frame = rated(labelled=0.3, raters=1).rename(columns={"rater_1": "rating"}).drop(columns="question")
    drawn = audited(frame).next_labels(60)
    unlabelled = frame[frame["rating"].isna()]
    assert {*drawn["response"]} <= {*unlabelled["response"]} and not drawn.duplicated().any()
    expected = unlabelled["model"].value_counts(normalize=True) * 60
    assert ((drawn["system_id"].value_counts() - expected).abs() <= 1.5).all()
    answers = rated(raters=1).set_index("response")["rater_1"]
    drawn = drawn.assign(rating=answers[drawn["response"]].to_numpy())
    audit = audited(frame.drop(columns="rating").sample(frac=1, random_state=0), ratings=drawn)
    people = audit.judged.people.mean(axis=1).dropna()
    assert len(people) == 60 and (people.to_numpy() == answers[audit.judged.texts[people.index]].to_numpy()).all()


# Bias


def test_reversed_pairs_give_the_same_numbers():
    other = comperdial.audit(votes(turned=True))
    for what in ("winning rate", PEARSON, "offset of c", "Weighted kappa of two raters"):
        assert value(of_votes(), what) == pytest.approx(value(other, what), abs=1e-9)
    title = "Systems on the labelled items"
    pd.testing.assert_frame_equal(*(one.section("Systems").frames[title] for one in (of_votes(), other)))
    what = "share for the first, judge"
    assert value(of_votes(), what) == pytest.approx(1 - value(other, what))
    assert "It favours c +" in sentences(comperdial.audit(votes(favour=1.5)), "Systems")


def test_position_and_length_bias_are_detected():
    frame = votes().assign(response_a="short", response_b=[f"a longer one, number {n}" for n in range(180)])
    second = (frame["gpt4_winner"] == "model_b").mean()
    assert value(comperdial.audit(frame), "win rate of the longer, judge") == pytest.approx(second)
    again = votes(turned=True).assign(gpt4_winner=frame["gpt4_winner"])
    audit = comperdial.audit(pd.concat([votes(), again], ignore_index=True))
    assert value(audit, "same answer in both orders") == 0


def test_baseline_shift_is_detected_on_matched_items():
    now = rated().drop(columns="question")
    before = now.assign(gpt4_score=lambda frame: (frame["gpt4_score"] + 1).clip(1, 5))
    apart = now["gpt4_score"] - before["gpt4_score"]
    audit = audited(now, baseline=before.sample(frac=1, random_state=1).drop(columns=RATERS))
    assert value(audit, "shift") == pytest.approx(apart.mean())
    assert value(audit, "flip rate") == pytest.approx((apart != 0).mean())
    assert len(audit.failures(["no-shift", "flips=0.1"])) == 2
    assert audited(now, baseline=now).failures(["no-shift", "flips=0.1"]) == []


def test_drift_family_length_and_version_are_reported():
    frame = rated().assign(created_at=range(ROWS))
    frame["model"] = frame["model"].map({"a": "gpt-3.5", "b": "gpt-4", "c": "llama-2", "d": "mistral-7b"})
    frame["gpt4_score"] = (frame["gpt4_score"] + frame["model"].str.startswith("gpt")).clip(1, 5)
    frame["response"] = [f"{n} " + "word " * int(score) for n, score in enumerate(frame["gpt4_score"])]
    text = sentences(audited(frame), "Bias")
    assert "Systems of OpenAI, the judge's maker: favours them" in text
    assert "it likes them more than people do" in text and "Over time, judge − people: no clear change" in text
    frame = frame.drop(columns="created_at").assign(version=["v1", "v2"] * (ROWS // 2))
    assert "by version: v1 +" in sentences(audited(frame), "Bias")


# What the file may look like


def test_judge_scale_is_mapped_on_request():
    frame = rated().assign(gpt4_score=lambda frame: (frame["gpt4_score"] - 1) * 25)
    assert audited(frame).section("Systems").reason
    assert value(audited(frame, judge_scale=[0, 100]), "winning rate") == value(plain(), "winning rate")


def test_labels_of_other_responses_are_an_error():
    frame = rated().drop(columns="question")
    other = frame.drop(columns="gpt4_score").assign(response=[f"other {n}" for n in range(ROWS)])
    with pytest.raises(ComperdialError, match="none of the rated responses is among the judged ones"):
        audited(frame.drop(columns=RATERS), ratings=other)


def test_the_command_writes_every_form(tmp_path, capsys):
    frame = rated(raters=1).rename(columns={"model": "system_id"}).assign(context_id=np.repeat(range(100), 4))
    frame.drop(columns="rater_1").to_csv(tmp_path / "judged.csv", index=False)
    few = frame.sample(120, random_state=0)[["context_id", "system_id", "rater_1"]]
    few.rename(columns={"rater_1": "rating"}).to_csv(tmp_path / "people.csv", index=False)
    outputs = [str(tmp_path / f"audit{suffix}") for suffix in (".html", ".json", ".csv", ".md", ".txt")]
    more = ["--output", *outputs, "--next", str(tmp_path / "next.csv"), "--count", "7", "--require", "pearson=0.99"]
    assert main(["audit", str(tmp_path / "judged.csv"), "--ratings", str(tmp_path / "people.csv"), *more]) == 1
    printed = capsys.readouterr()
    assert "400 responses; people labelled 120, the judge 400, both 120" in printed.out
    assert "not met: Pearson with people's mean is not shown to reach 0.99" in printed.err
    made = json.loads((tmp_path / "audit.json").read_text())
    assert " ".join(made["verdict"].split()) in " ".join(printed.out.split())
    assert (tmp_path / "audit.txt").read_text() == printed.out
    assert len(pd.read_csv(tmp_path / "next.csv")) == 7


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (rated().drop(columns="gpt4_score"), {}, "no judge beside people's ratings"),
        (rated(labelled=0.01), {}, "responses with a label by people and one by gpt4_score; expected 10 or more"),
        (rated().assign(gpt4_score=3), {}, "the same label for all"),
        (rated(), {"judge": "gpt5"}, "gpt5"),
        (rated(), {"human": "fluency"}, "fluency"),
        (votes().drop(columns="gpt4_winner"), {}, "votes by human alone"),
        (labels().drop(columns="gpt4_label"), {}, "--nominal"),
        (labels()[["post_id"]], {"nominal": True}, "no column of labels"),
    ],
)
def test_missing_input_gives_one_message(frame, options, message):
    with pytest.raises(ComperdialError, match=message):
        comperdial.audit(frame, **options)


# Columns of raters and judges


@pytest.mark.parametrize(("human", "raters"), [("rater_1,rater_2", 2), ("rater_1", 1), ("rater_2,rater_1", 2)])
def test_human_option_takes_one_or_several_columns(human, raters):
    data = rated().drop(columns="question")
    audit = audited(data, human=human)
    assert audit.judged.people.shape[1] == raters
    people = data[human.split(",")].mean(axis=1)
    assert value(audit, PEARSON) == pytest.approx(np.corrcoef(people, data["gpt4_score"])[0, 1])


# Names without an order


def test_labels_are_compared_as_strings():
    frame = labels()
    audit = comperdial.audit(frame, nominal=True)
    raters = pd.concat([frame["rater_1"], frame["rater_2"]])
    judge = pd.concat([frame["gpt4_label"]] * 2)
    assert value(audit, "Exact agreement of the judge with a rater") == pytest.approx((raters == judge).mean())
    kappa = cohen_kappa_score(raters, judge)
    assert value(audit, "Cohen's kappa of the judge with a rater") == pytest.approx(kappa)
    for kind in KINDS:
        difference = (frame["gpt4_label"] == kind).mean() - (raters == kind).mean()
        assert value(audit, f"share of {kind}, judge − people") == pytest.approx(difference)
    assert "Pearson" not in str(audit)
    assert (len(audit.failures(["kappa=0.4"])), len(audit.failures(["kappa=0.9"]))) == (0, 1)
    # Other names of the labels and of the raters change nothing.
    renamed = frame.replace({"complaint": "z", "praise": "question", "question": "praise"})
    for other in (renamed, frame.rename(columns={"rater_1": "ann", "rater_2": "ben"})):
        again = comperdial.audit(other, nominal=True).table["value"].dropna()
        np.testing.assert_allclose(sorted(again), sorted(audit.table["value"].dropna()))


# The judges of a data set, on its page


def test_each_judge_is_audited_on_its_own_scale():
    rng = np.random.default_rng(3)
    quality = rng.integers(1, 6, 60)
    raters = {name: np.clip(quality + rng.integers(-1, 2, 60), 1, 5) for name in RATERS}
    columns = {"response": [f"text {n}" for n in range(60)], "system": ["a", "b"] * 30}
    read = comperdial.read(pd.DataFrame(columns | raters), scale=[1, 5])
    units = read.responses[["context_id", "system_id"]].to_numpy()
    own = score_rows(units, (quality - 1) * 2.5, "llm", output="overall")
    scores = pd.concat([own, own.assign(output="fluency"), own.head(5).assign(metric="few")], ignore_index=True)
    tables = {"responses": read.responses, "contexts": read.contexts, "ratings": read.ratings}
    judges = {"llm": {"output": "overall", "scale": [0.0, 10.0]}, "few": {"output": "overall"}}
    about = {
        "judged": ["llm", "few"],
        "recorded_judges": ["recorded"],
        "labels": {"llm": "An LLM"},
        "main_target": None,
    }
    about |= {"judges": judges | {"recorded": {"format": "gpt4"}}, "source": "human"}
    made = list(audits(tables, scores, about | {"target": read.ratings["dimension"].iloc[0]}))
    assert [(one["judge"], one["level"]) for one in made] == [("An LLM", "turn"), ("few", "turn")]
    assert made[0]["short"].startswith("yes: wins against 3")
    assert [title for title, _, _ in made[0]["sections"]][:2] == ["Verdict", "Agreement"]
    assert made[1]["short"].startswith("no audit: 5 ") and not made[1]["sections"]
