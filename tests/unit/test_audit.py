"""The audit of a judge: its sentences and numbers on data whose truth is known, from ratings and from votes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import comperdial
from comperdial.cli import main
from comperdial.core.errors import ComperdialError
from comperdial.stats.chance_agreement import gwet_ac, weighted_kappa
from comperdial.stats.corrected_means import corrected_difference, corrected_mean

ROWS = 400


def rated(*, labelled: float = 1.0, noise: float = 0.8, raters: int = 3, seed: int = 0, **judge: float) -> pd.DataFrame:
    """Return four systems' responses to 100 questions; ``judge`` has how much it gives a system too much."""
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


def votes(turned: bool = False, favour: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """Return votes of two people and a judge on pairs of three systems, each of which may be shown the other way round."""
    rng = np.random.default_rng(seed)
    pairs = [("a", "b"), ("a", "c"), ("b", "c")] * 60
    strength = {"a": 0.0, "b": 0.5, "c": 1.0}
    rows = []
    for place, (one, other) in enumerate(pairs):
        gap = strength[one] - strength[other] + rng.normal()
        names = [one if gap + rng.normal() * 0.3 > 0 else other for _ in range(2)]
        judge = one if gap + rng.normal() * 0.8 + favour * ((one == "c") - (other == "c")) > 0 else other
        sides = (other, one) if turned else (one, other)
        rows.append({"question_id": place // 3, "model_a": sides[0], "model_b": sides[1]}
                    | {f"winner_{n}": "model_a" if name == sides[0] else "model_b" for n, name in enumerate(names, 1)}
                    | {"gpt4_winner": "model_a" if judge == sides[0] else "model_b"})  # fmt: skip
    return pd.DataFrame(rows)


def value(audit: comperdial.Audit, what: str) -> float:
    """Return one number of an audit."""
    return audit.table.set_index("what").loc[what, "value"]


def sentences(audit: comperdial.Audit, title: str) -> str:
    """Return the sentences of a section."""
    return " ".join(audit.section(title).sentences)


def test_a_judge_as_good_as_people_may_stand_in_for_one():
    audit = comperdial.audit(rated(noise=0.5), scale=[1, 5])
    assert audit.verdict.startswith(
        "Yes, gpt4_score may stand in for one of your raters: in the alternative annotator test it wins"
    )
    assert audit.alternative is not None and audit.alternative.passed
    assert audit.failures(["alt-test", "pearson=0.5"]) == []


def test_a_poor_judge_may_not():
    audit = comperdial.audit(rated(noise=2.5), scale=[1, 5])
    assert audit.verdict.startswith("Not shown that gpt4_score may stand in")
    assert len(audit.failures(["alt-test", "pearson=0.9", "kappa=0.9"])) == 3


def test_a_test_that_a_constant_judge_passes_shows_nothing():
    frame = rated(noise=0.5)
    rng = np.random.default_rng(1)
    for name in ("rater_1", "rater_2", "rater_3", "gpt4_score"):
        frame[name] = np.where(rng.random(ROWS) < 0.97, 5, 4)
    audit = comperdial.audit(frame, scale=[1, 5])
    assert audit.alternative is not None and audit.alternative.passed
    assert "always saying 5 wins against 3 of 3" in audit.verdict
    assert "Always saying 5 passes the test" in sentences(audit, "A constant judge")


def test_items_of_one_dialogue_do_not_count_as_independent():
    frame = rated(noise=0.5)
    many = pd.concat([frame[:40].assign(question=f"copy {n}", dialogue_id=frame.index[:40]) for n in range(8)])
    alone = comperdial.audit(many.drop(columns="dialogue_id"), scale=[1, 5], clusters="none")
    together = comperdial.audit(many, scale=[1, 5])
    width = [one.section("Agreement").number("Pearson with people's mean") for one in (alone, together)]
    assert width[0]["value"] == pytest.approx(width[1]["value"])
    assert width[1]["high"] - width[1]["low"] > 2 * (width[0]["high"] - width[0]["low"])


def test_the_measures_of_one_rater_are_those_of_the_library():
    frame = rated(raters=1).rename(columns={"rater_1": "rating"})
    audit = comperdial.audit(frame, human="rating", judge="gpt4_score", scale=[1, 5])
    pair = frame["rating"], frame["gpt4_score"]
    assert value(audit, "Weighted kappa of the judge with a rater") == pytest.approx(weighted_kappa(*pair, range(1, 6)))
    assert value(audit, "Gwet's AC2 of the judge with a rater") == pytest.approx(
        gwet_ac(pair, range(1, 6), "quadratic")
    )
    assert value(audit, "Pearson with people's mean") == pytest.approx(np.corrcoef(*pair)[0, 1])
    assert "cannot be tested" in audit.verdict and "one rater correlates with the others' mean" in audit.verdict


def test_whom_a_judge_favours_is_named():
    audit = comperdial.audit(rated(c=1.0), scale=[1, 5])
    assert "It favours c +" in sentences(audit, "Systems")
    assert "significantly" in sentences(comperdial.audit(rated(seed=3), scale=[1, 5]), "Systems")


def test_corrected_means_are_those_of_the_statistics():
    frame = rated(labelled=0.3, raters=1).rename(columns={"rater_1": "rating"})
    audit = comperdial.audit(frame, scale=[1, 5])

    def parts(kept: pd.Series) -> tuple[np.ndarray, ...]:
        own, rest = frame[kept & frame["rating"].notna()], frame[kept & frame["rating"].isna()]
        return own["rating"], own["gpt4_score"], rest["gpt4_score"], own["question"], rest["question"]

    whole = corrected_mean(*parts(frame["model"] != ""))
    numbers = audit.section("Corrected numbers").number("all: corrected")
    assert (numbers["value"], numbers["low"]) == pytest.approx((whole.value, whole.low))
    apart = corrected_difference(parts(frame["model"] == "a"), parts(frame["model"] == "d"))
    numbers = audit.section("Corrected numbers").number("a − d: corrected")
    assert (numbers["value"], numbers["low"], numbers["high"]) == pytest.approx((apart.value, apart.low, apart.high))
    assert value(audit, "all: labels alone") == pytest.approx(frame["rating"].mean())
    assert value(audit, "all: judge alone") == pytest.approx(frame["gpt4_score"].mean())


def test_answers_that_failed_are_not_dropped():
    frame = rated(labelled=0.3).rename(columns={"gpt4_score": "score"})
    frame.loc[::10, "score"] = np.nan
    audit = comperdial.audit(frame, judge="score", scale=[1, 5])
    assert "40 responses have no label of the judge: each counts as its mean" in sentences(audit, "Corrected numbers")


def test_labels_that_are_no_random_sample_are_noticed():
    frame = rated(raters=1).rename(columns={"rater_1": "rating"})
    frame.loc[frame["gpt4_score"] < 4, "rating"] = np.nan
    assert "which they do not seem to be" in sentences(comperdial.audit(frame, scale=[1, 5]), "Corrected numbers")
    frame = rated(raters=1).rename(columns={"rater_1": "rating"})
    frame.loc[100:, "rating"] = np.nan
    assert "they are the first 100 of the file" in sentences(comperdial.audit(frame, scale=[1, 5]), "Corrected numbers")


def test_more_labels_are_drawn_at_random_within_systems():
    frame = rated(labelled=0.3)
    audit = comperdial.audit(frame, scale=[1, 5])
    assert "labels in all" in sentences(comperdial.audit(frame, scale=[1, 5], half_width=0.12), "How many labels more")
    assert "do not suffice" in sentences(comperdial.audit(frame, scale=[1, 5], half_width=0.01), "How many labels more")
    drawn = audit.next_labels(40)
    unlabelled = frame[frame["rater_1"].isna()]
    assert {*drawn["response"]} <= {*unlabelled["response"]} and not drawn.duplicated().any()
    expected = unlabelled["model"].value_counts(normalize=True) * 40
    assert ((drawn["system_id"].value_counts() - expected).abs() <= 1.5).all()


def test_pairs_shown_the_other_way_round_have_the_same_numbers():
    one, other = (comperdial.audit(votes(turned)) for turned in (False, True))
    for what in ("winning rate", "Pearson with people's mean", "offset of c", "Weighted kappa of two raters"):
        assert value(one, what) == pytest.approx(value(other, what), abs=1e-9)
    assert value(one, "share for the first, judge") == pytest.approx(1 - value(other, "share for the first, judge"))
    assert "It favours c +" in sentences(comperdial.audit(votes(favour=1.5)), "Systems")


def test_win_rates_are_corrected():
    frame = votes()
    frame.loc[90:, ["winner_1", "winner_2"]] = None
    audit = comperdial.audit(frame)
    labelled = frame[:90].query("model_a == 'b' and model_b == 'c'")
    wins = (labelled[["winner_1", "winner_2"]] == "model_a").to_numpy().mean()
    assert value(audit, "b against c: labels alone") == pytest.approx(wins)
    # Systems' names are in the order of the alphabet, whichever was shown first.
    assert 0 <= value(audit, "c: corrected") <= 1 and value(audit, "c: corrected") > value(audit, "a: corrected")


def test_both_orders_show_a_preference_for_a_position():
    frame = votes()
    again = votes(turned=True).assign(gpt4_winner=frame["gpt4_winner"])
    audit = comperdial.audit(pd.concat([frame, again], ignore_index=True))
    assert value(audit, "same answer in both orders") == 0


def test_a_baseline_shows_a_shift():
    now, before = rated(), rated().assign(gpt4_score=lambda frame: (frame["gpt4_score"] + 1).clip(1, 5))
    audit = comperdial.audit(now, baseline=before, scale=[1, 5])
    apart = now["gpt4_score"] - before["gpt4_score"]
    assert value(audit, "shift") == pytest.approx(apart.mean())
    assert value(audit, "flip rate") == pytest.approx((apart != 0).mean())
    assert len(audit.failures(["no-shift", "flips=0.1"])) == 2
    same = comperdial.audit(now, baseline=now, scale=[1, 5])
    assert same.failures(["no-shift", "flips=0.1"]) == []


def test_a_judge_on_another_scale_is_not_subtracted():
    frame = rated().assign(gpt4_score=lambda frame: (frame["gpt4_score"] - 1) * 25)
    audit = comperdial.audit(frame, scale=[1, 5])
    assert "--judge-scale LOW HIGH maps the judge's to it" in audit.verdict
    assert audit.section("Systems").reason
    mapped = comperdial.audit(frame, scale=[1, 5], judge_scale=[0, 100])
    assert value(mapped, "winning rate") == value(comperdial.audit(rated(), scale=[1, 5]), "winning rate")


def test_drift_family_and_length_are_seen():
    frame = rated().assign(created_at=range(ROWS))
    frame["model"] = frame["model"].map({"a": "gpt-3.5", "b": "gpt-4", "c": "llama-2", "d": "mistral-7b"})
    frame["gpt4_score"] = (frame["gpt4_score"] + frame["model"].str.startswith("gpt")).clip(1, 5)
    frame["response"] = [f"{n} " + "word " * int(score) for n, score in enumerate(frame["gpt4_score"])]
    text = sentences(comperdial.audit(frame, scale=[1, 5]), "Bias")
    assert "Systems of OpenAI, the judge's maker: favours them" in text
    assert "it likes them more than people do" in text and "Over time, judge − people: no clear change" in text
    version = comperdial.audit(
        frame.drop(columns="created_at").assign(version=["v1", "v2"] * (ROWS // 2)), scale=[1, 5]
    )
    assert "by version: v1 +" in sentences(version, "Bias")


def test_several_judges_each_have_a_verdict():
    frame = rated().assign(claude_score=rated(noise=3)["gpt4_score"])
    audit = comperdial.audit(frame, scale=[1, 5])
    assert audit.judged.judge_name == "gpt4_score" and [*audit.others] == ["claude_score, rating"]
    assert comperdial.audit(frame, "claude_score", scale=[1, 5]).judged.judge_name == "claude_score"


def test_few_labels_may_be_in_a_file_of_their_own(tmp_path, capsys):
    frame = rated(raters=1).rename(columns={"model": "system_id"}).assign(context_id=np.repeat(range(100), 4))
    frame.drop(columns="rater_1").to_csv(tmp_path / "judged.csv", index=False)
    few = frame.sample(120, random_state=0)[["context_id", "system_id", "rater_1"]]
    few.rename(columns={"rater_1": "rating"}).to_csv(tmp_path / "people.csv", index=False)
    arguments = ["audit", str(tmp_path / "judged.csv"), "--ratings", str(tmp_path / "people.csv")]
    outputs = [str(tmp_path / f"audit{suffix}") for suffix in (".html", ".json", ".csv", ".md", ".txt")]
    more = ["--output", *outputs, "--next", str(tmp_path / "next.csv"), "--count", "7", "--require", "pearson=0.99"]
    assert main([*arguments, *more]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith(
        "gpt4_score as a judge of rating: 400 responses; people labelled 120, the judge 400, both 120"
    )
    assert "not met: Pearson with people's mean is not shown to reach 0.99" in printed.err
    made = json.loads((tmp_path / "audit.json").read_text())
    assert " ".join(made["verdict"].split()) in " ".join(printed.out.split())
    assert (tmp_path / "audit.txt").read_text() == printed.out
    assert "<h2>Corrected numbers</h2>" in (tmp_path / "audit.html").read_text()
    assert len(pd.read_csv(tmp_path / "next.csv")) == 7
    assert main([*arguments, "--require", "pearson=0.3"]) == 0


def test_the_example_is_real_and_as_in_the_readme(capsys):
    assert main(["audit", "--example"]) == 0
    text = capsys.readouterr().out
    assert "it wins\n    against 0 of 3 raters (average advantage probability 0.76)" in text


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (rated().drop(columns="gpt4_score"), {}, "no judge beside people's ratings"),
        (rated(labelled=0.01), {}, "responses with a label by people and one by gpt4_score; expected 10 or more"),
        (rated().assign(gpt4_score=3), {}, "the same label for all"),
        (rated(), {"judge": "gpt5"}, "gpt5"),
        (rated(), {"clusters": "town"}, "town"),
        (votes().drop(columns="gpt4_winner"), {}, "votes by human alone"),
        (rated(), {"level": "dialogue"}, "no ratings of level dialogue"),
    ],
)
def test_what_is_missing_is_one_message(frame, options, message):
    with pytest.raises(ComperdialError, match=message):
        comperdial.audit(frame, **options)


def test_a_requirement_must_be_known_and_have_what_it_needs():
    audit = comperdial.audit(rated(), scale=[1, 5])
    for wrong in ("agreement", "pearson=high", "no-shift"):
        with pytest.raises(ComperdialError):
            audit.failures([wrong])


def test_labels_without_texts_are_enough():
    frame = rated(labelled=0.3)
    expected = comperdial.audit(frame, scale=[1, 5], clusters="none")
    for own in (
        frame.drop(columns=["response", "question"]),
        frame.drop(columns="response").assign(question=range(ROWS)),
    ):
        audit = comperdial.audit(own.rename(columns={"question": "doc_id"}), scale=[1, 5])
        assert audit.table["value"].tolist() == pytest.approx(
            [row.value for row in expected.table.itertuples() if "length" not in row.what], nan_ok=True
        )
        assert audit.judged.noun == "items" and audit.judged.texts is None


def test_people_and_judge_may_be_in_two_files_of_one_form(tmp_path):
    frame = votes()
    people = frame.drop(columns="gpt4_winner").melt(
        ["question_id", "model_a", "model_b"], var_name="worker", value_name="winner"
    )
    people.to_csv(tmp_path / "crowd.csv", index=False)
    judge = frame.rename(columns={"gpt4_winner": "winner"})[["question_id", "model_a", "model_b", "winner"]]
    judge.to_csv(tmp_path / "gpt4-votes.csv", index=False)
    expected = comperdial.audit(frame)
    audit = comperdial.audit(tmp_path / "gpt4-votes.csv", ratings=tmp_path / "crowd.csv")
    assert audit.judged.judge_name == "gpt4-votes"
    for what in ("winning rate", "Pearson with people's mean", "offset of c"):
        assert value(audit, what) == pytest.approx(value(expected, what))
    frame = rated(raters=2)
    nested = {name: dict(enumerate(frame[name].tolist())) for name in ("rater_1", "rater_2", "gpt4_score")}
    judges = {"gpt-4": nested.pop("gpt4_score"), "llama-3": nested["rater_1"]}
    (tmp_path / "llm.json").write_text(json.dumps(judges))
    (tmp_path / "human.json").write_text(json.dumps(nested))
    audit = comperdial.audit(tmp_path / "llm.json", "gpt-4", ratings=tmp_path / "human.json", scale=[1, 5])
    alone = comperdial.audit(frame.drop(columns=["question", "model"]), scale=[1, 5])
    assert value(audit, "winning rate") == value(alone, "winning rate")


def test_longer_answers_are_counted():
    frame = votes().assign(response_a="a short one", response_b=[f"a longer one, number {n}" for n in range(180)])
    audit = comperdial.audit(frame)
    second = (frame["gpt4_winner"] == "model_b").mean()
    assert value(audit, "win rate of the longer, judge") == pytest.approx(second)
    assert "Longer answers" in sentences(audit, "Bias")


def test_labels_and_baselines_are_joined_by_what_they_are_of_not_by_place():
    frame = rated(raters=3).drop(columns="question")
    judged, people = frame.drop(columns=["rater_1", "rater_2", "rater_3"]), frame.drop(columns="gpt4_score")
    expected = comperdial.audit(frame.assign(rater_1=frame["rater_1"]), scale=[1, 5], clusters="none")
    few = people.sample(frac=1, random_state=0)
    audit = comperdial.audit(judged, ratings=few, scale=[1, 5], clusters="none")
    assert value(audit, "Pearson with people's mean") == pytest.approx(value(expected, "Pearson with people's mean"))
    assert value(audit, "winning rate") == value(expected, "winning rate")
    before = frame.assign(gpt4_score=(frame["gpt4_score"] + (frame["model"] == "a")).clip(1, 5))
    apart = (frame["gpt4_score"] != before["gpt4_score"]).mean()
    for earlier in (
        before,
        before.sample(frac=1, random_state=1),
        before.drop(columns=["rater_1", "rater_2", "rater_3"]),
    ):
        audit = comperdial.audit(frame, baseline=earlier, scale=[1, 5])
        assert value(audit, "flip rate") == pytest.approx(apart)
    with pytest.raises(ComperdialError, match="none of the rated responses is among the judged ones"):
        comperdial.audit(judged, ratings=people.assign(response=[f"other {n}" for n in range(ROWS)]), scale=[1, 5])


def test_what_was_drawn_and_labelled_can_be_read_back(tmp_path):
    frame = rated(labelled=0.3, raters=1).rename(columns={"rater_1": "rating"}).drop(columns="question")
    drawn = comperdial.audit(frame, scale=[1, 5]).next_labels(60)
    answers = rated(raters=1).set_index("response")["rater_1"]
    drawn = drawn.assign(rating=answers[drawn["response"]].to_numpy())
    audit = comperdial.audit(frame.drop(columns="rating").sample(frac=1, random_state=0), ratings=drawn, scale=[1, 5])
    assert int(audit.judged.labelled.sum()) == 60
    both = audit.judged.people.mean(axis=1).dropna()
    texts = audit.judged.texts[both.index]
    assert (both.to_numpy() == answers[texts].to_numpy()).all()


def test_people_who_use_a_part_of_the_scale_have_the_judges():
    frame = rated().assign(**{name: rated()[name].clip(2, 5) for name in ("rater_1", "rater_2", "rater_3")})
    assert comperdial.audit(frame).judged.scale == (1, 5)
    assert comperdial.audit(frame.assign(gpt4_score=frame["gpt4_score"] * 20)).judged.scale == (2, 5)


def test_columns_of_votes_that_are_named_after_people():
    frame = votes().rename(columns={"winner_1": "ann_vote", "winner_2": "bob_vote", "gpt4_winner": "gpt4_vote"})
    expected = comperdial.audit(votes())
    for options in ({}, {"columns": {"annotator_id": ["ann_vote", "bob_vote", "gpt4_vote"]}}):
        assert value(comperdial.audit(frame, **options), "winning rate") == value(expected, "winning rate")
    with pytest.raises(ComperdialError):
        comperdial.audit(frame, target="ann")


def test_text_labels_of_people_and_judge_have_the_same_numbers():
    frame = rated().assign(verdict=np.where(rated()["gpt4_score"] > 3, "good", "bad"))
    for name in ("rater_1", "rater_2", "rater_3"):
        frame[name] = np.where(frame[name] > 3, "good", "bad")
    audit = comperdial.audit(frame.drop(columns="gpt4_score"), judge="verdict", labels={"good": 1, "bad": 0})
    assert 0.5 < value(audit, "Exact agreement of the judge with a rater") < 1


def test_intervals_stay_within_what_is_possible():
    table = comperdial.audit(rated()[:12], scale=[1, 5]).table.set_index("what")
    measures = [name for name in table.index if name.startswith(("Exact", "Weighted", "Gwet"))]
    assert (table.loc[measures, "high"].fillna(1) <= 1).all() and (table.loc[measures, "low"].fillna(-1) >= -1).all()
