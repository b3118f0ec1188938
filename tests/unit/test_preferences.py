"""Preferences: readers, statistics and the analysis, against published counts and independent computations."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import SchemaError
from comperdial.core.files import write_table
from comperdial.data.catalogue import load_catalogue
from comperdial.data.preferences import read_dialogues
from comperdial.data.preferences import read_preferences as read_votes
from comperdial.evaluation.preferences import metric_choices, strengths, votes_of, win_matrix
from comperdial.stats.bradley_terry import strengths as bradley_terry
from comperdial.stats.win_rate import flip_p, votes_needed

MIRROR = os.environ.get("COMPERDIAL_MIRROR")
needs_mirror = pytest.mark.skipif(not MIRROR, reason="COMPERDIAL_MIRROR is not set")


def real(root, name, read=read_votes):
    files = load_catalogue(root / "data/sources.yaml").dataset(name).files
    at = {role: Path(str(MIRROR)) / source.relative for role, source in files.items()}
    return read(name, catalogue=root / "data/sources.yaml", files=at)


def test_the_planner_s_numbers():
    assert [votes_needed(rate) for rate in (0.55, 0.6, 0.65, 0.7, 0.75, 0.8)] == [820, 210, 97, 54, 35, 23]


def test_votes_of_a_cluster_stand_or_fall_together():
    assert flip_p([1] * 9 + [-1] * 3) == pytest.approx(binomtest(9, 12).pvalue)
    assert flip_p([3, 3, 3]) == pytest.approx(0.25)


def test_strengths_of_two():
    result = bradley_terry([[0, 3], [1, 0]])
    assert result[0] - result[1] == pytest.approx(np.log(3))
    with pytest.raises(ValueError, match="finite strengths do not exist"):
        bradley_terry([[0, 3], [0, 0]])


HEADER = (
    "dataset,pair_id,annotator_id,question,first_dialogue_id,first_system_id,second_dialogue_id,second_system_id,"
    "choice,source"
)
VOTES = [
    "mine,p1,ann,overall,d1,kind,d2,rude,first,human",
    "mine,p1,bob,overall,d1,kind,d2,rude,tie,human",
    "mine,p2,ann,overall,d3,rude,d4,kind,second,human",
    "mine,p3,bob,overall,d3,rude,d1,kind,first,human",
]


def preferences(folder, votes, *options):
    path = folder / "votes.csv"
    path.write_text("\n".join([HEADER, *votes]) + "\n", encoding="utf-8")
    return main(["preferences", str(path), "--resamples", "20", *map(str, options)])


def test_the_command_analyses_a_csv(tmp_path, capsys):
    assert preferences(tmp_path, VOTES) == 0
    printed = capsys.readouterr().out
    assert "4 votes of 2 annotators on 2 systems" in printed
    # Of two annotators on p1 one preferred a system, the other neither.
    assert next(line for line in printed.splitlines() if line.startswith("agreement")).endswith(" 0.000")
    rows = [line.split()[:6] for line in printed.splitlines()]
    assert ["kind", "rude", "2", "1", "1", "0.667"] in rows


def test_the_command_says_how_often_a_metric_s_higher_score_is_preferred(tmp_path, capsys):
    rows = [("d1", "kind", 5), ("d2", "rude", 1), ("d3", "rude", 2), ("d4", "kind", 3)]
    lines = ["dataset,level,item_id,system_id,metric,output,value,signature"]
    lines += [f"mine,dialogue,{name},{system},words,words,{value},x" for name, system, value in rows]
    scores = tmp_path / "scores.csv"
    scores.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert preferences(tmp_path, VOTES, "--scores", scores, "--output", tmp_path / "out") == 0
    result = pd.read_csv(tmp_path / "out/metrics.csv").set_index("of").loc["all"]
    # Of three votes for one of the two, p3's is for the dialogue with the lower score.
    assert (result["n"], result["value"]) == (3, pytest.approx(2 / 3, abs=1e-6))
    scores.write_text("\n".join([lines[0], lines[1].replace("d1", "d9")]) + "\n", encoding="utf-8")
    assert preferences(tmp_path, VOTES, "--scores", scores) == 1
    assert "--scores: no vote compares two dialogues with scores" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("votes", "options", "message"),
    [
        ([*VOTES[:3], VOTES[3].replace(",first,human", ",left,human")], (), "record 4 .* 'choice' holds 'left'"),
        ([*VOTES, VOTES[0]], (), "record 5 .* the same key a second time"),
        (VOTES, ("--contexts", "contexts.parquet"), "--contexts: given without scores"),
        (VOTES, ("--question", "fun"), "unknown question 'fun'; expected one of overall"),
        (VOTES[1:2], (), "no vote is for one of two systems; expected votes .* not all ties"),
    ],
)
def test_bad_preferences_get_one_message(votes, options, message, tmp_path, capsys):
    assert preferences(tmp_path, votes, *options) == 1
    error = capsys.readouterr().err
    assert re.search(message, error) and "unexpected" not in error


def test_a_data_set_that_is_none_is_named(root, capsys):
    assert main(["preferences", "--data", "nosuch", "--catalogue", str(root / "data/sources.yaml")]) == 1
    assert "unknown data set of preferences 'nosuch'" in capsys.readouterr().err


def test_planning_from_the_command_line(capsys):
    assert main(["plan-preferences", "--win-rate", ".8", "--ties", ".2"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("23 votes for one of the two")
    assert "29 votes in all" in printed
    assert main(["plan-preferences", "--win-rate", "80"]) == 1
    assert "--win-rate: 80.0; expected a share between 0 and 1" in capsys.readouterr().err


@needs_mirror
def test_ieval(root):
    votes = votes_of(real(root, "ieval"))
    assert ((votes["won"] != 0.5).sum(), len(votes)) == (2125, 2880)
    p = win_matrix(votes).set_index(["a", "b"])["p"]
    known = {("Green", "Pink"): 0.676, ("Green", "Yellow"): 0.138, ("Pink", "Yellow"): 0.092}
    assert {pair: round(p[pair], 3) for pair in known} == known
    scores = pd.DataFrame(
        {"metric": "words", "output": "words", "dialogue_id": one.dialogue_id, "system_id": one.system_id,
         "value": len(" ".join(one.judged_texts()).split())}
        for one in real(root, "ieval", read_dialogues)
    )  # fmt: skip
    result = metric_choices(votes, scores, dominant="Purple").set_index("of")
    assert result.loc["all", "value"] == pytest.approx(0.731, abs=5e-4)
    assert result.loc["others", "value"] == pytest.approx(0.520, abs=5e-4)


def test_one_vote_is_one_vote(tmp_path, capsys):
    (tmp_path / "votes.csv").write_text(f"{HEADER}\n{VOTES[0]}\n")
    assert main(["preferences", str(tmp_path / "votes.csv"), "--resamples", "2"]) == 0
    assert "source human; 1 vote of 1 annotator on 2 systems." in capsys.readouterr().out


@needs_mirror
def test_spot_the_bot(root, caplog):
    caplog.set_level(logging.INFO, "comperdial")
    count = strict = 0
    for domain in ("convai2", "dailydialog", "empathetic"):
        votes = votes_of(real(root, f"spot_the_bot_{domain}"), question="humanness")
        count, strict = count + len(votes), strict + (votes["won"] != 0.5).sum()
        assert votes["annotator_id"].str.fullmatch(r"\d+").all()
        if domain == "convai2":
            table = win_matrix(votes)
            assert [int((table[p] < 0.05).sum()) for p in ("p", "p_holm", "p_dialogue")] == [13, 12, 12]
    people = sum(map(int, re.findall(r"(\d+) of \d+ judgements are of two people", caplog.text)))
    assert (count + people, count, strict) == (10_217, 8_210, 2_615)


@needs_mirror
def test_llmfao_s_strengths_are_evalica_s(root):
    votes = votes_of(real(root, "llmfao"))
    assert (len(votes), votes["pair_id"].nunique()) == (8_931, 2_139)
    result = strengths(votes).set_index("system")["strength"]
    golden = pd.read_csv(Path(str(MIRROR)) / "dustalov/evalica/llmfao-golden.csv")
    golden = golden[golden["algorithm"] == "bradley_terry"].set_index("item")["score"]
    ours = np.exp(result) / np.exp(result).sum()
    assert np.abs(ours - golden.reindex(ours.index)).max() < 1e-9


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("left_out", [(), ("left", "control", "reason", "seconds")])
def test_columns_that_may_be_empty_may_be_missing_in_every_form(tmp_path, suffix, left_out):
    row = {
        "dataset": "d", "pair_id": "p", "first_dialogue_id": "1", "first_system_id": "x", "second_dialogue_id": "2",
        "second_system_id": "y", "annotator_id": "1", "question": "overall", "choice": "first", "left": "second",
        "control": None, "reason": None, "seconds": 2.5, "source": "human",
    }  # fmt: skip
    frame = pd.DataFrame([{name: value for name, value in row.items() if name not in left_out}])
    path = tmp_path / f"votes.{suffix}"
    write_table(path, frame)
    read = schema.read(path, "preferences")
    assert list(read.columns) == schema.table("preferences").columns
    assert read["choice"].tolist() == ["first"]
    assert read["left"].isna().all() == ("left" in left_out)


def test_preferences_that_go_in_circles_are_counted(tmp_path, capsys):
    many(tmp_path, [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("b", "d"), ("c", "d")])
    circles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("circles")]
    assert circles[0].split()[-2:] == ["1", "0"]


def many(folder, rows, *options):
    """Analyse votes given as (winner, loser), each of its own annotator and dialogues, and return the strengths."""
    lines = [
        f"m,p{at},r{at},overall,d{at}a,{winner},d{at}b,{loser},{'tie' if tied else 'first'},human"
        for at, (winner, loser, *tied) in enumerate(rows)
    ]
    assert preferences(folder, lines, "--output", folder / "out", *options) == 0
    return pd.read_csv(folder / "out/strengths.csv").set_index("system")


def test_two_unanimous_votes_leave_a_wide_interval_and_no_ranks(tmp_path):
    result = many(tmp_path, [("new", "old"), ("new", "old")])
    assert result["rank"].tolist() == [1, 1]
    # Equal strengths, which two votes cannot rule out, lie well inside; the p of the pair is .5.
    assert (result["low"] < -2).all() and (result["high"] > 2).all()
    assert (result["low"] < result["strength"]).all() and (result["strength"] < result["high"]).all()


@pytest.mark.parametrize(("votes", "ranks"), [(2, [1, 1, 1]), (12, [1, 2, 3])])
def test_unanimity_on_three_systems_is_ranked_where_its_pairs_differ(tmp_path, votes, ranks):
    result = many(tmp_path, [("a", "b"), ("b", "c"), ("a", "c")] * votes)
    assert result.loc[["a", "b", "c"], "rank"].tolist() == ranks
    assert (result["high"] - result["low"] > 1).all()
    assert np.isfinite(result[["low", "high"]]).all(axis=None)


def test_votes_that_share_a_dialogue_are_less_evidence_even_where_they_are_unanimous(tmp_path):
    shared = [f"m,p{at},r{at},overall,d{at % 2}a,a,d{at % 2}b,b,first,human" for at in range(8)]
    alone = [f"m,p{at},r{at},overall,d{at}a,a,d{at}b,b,first,human" for at in range(8)]
    width, rank = [], []
    for lines in (shared, alone):
        assert preferences(tmp_path, lines, "--output", tmp_path / "out") == 0
        result = pd.read_csv(tmp_path / "out/strengths.csv")
        width.append((result["high"] - result["low"]).iloc[0])
        rank.append(result["rank"].max())
    assert width[0] > 2 * width[1]
    assert rank == [1, 2]


def test_ranks_differ_only_where_the_pair_s_test_rejects():
    rng = np.random.default_rng(3)
    ranked = 0
    for _ in range(60):
        strength = dict(zip("abcd", rng.normal(0, 2.5, 4), strict=True))
        rows = []
        for at in range(int(rng.integers(3, 300))):
            one, other = rng.choice(list(strength), 2, replace=False)
            wins = rng.random() < 1 / (1 + np.exp(strength[other] - strength[one]))
            choice = "tie" if rng.random() < 0.2 else "first" if wins else "second"
            rows.append((f"p{at}", f"r{at % 15}", one, other, choice))
        table = pd.DataFrame(rows, columns=["pair_id", "annotator_id", "first_system_id", "second_system_id", "choice"])
        table = table.assign(
            dataset="m", question="q", source="human", control=None, left=None, seconds=np.nan,
            first_dialogue_id=table["pair_id"] + "x", second_dialogue_id=table["pair_id"] + "y",
        )  # fmt: skip
        votes = votes_of(table)
        if votes[["a", "b"]].stack().nunique() < 4 or (votes["won"] != 0.5).sum() < 2:
            continue
        try:
            result = strengths(votes).set_index("system")
        except SchemaError:
            continue
        pairs = win_matrix(votes)
        for row in pairs.to_dict("records"):
            apart = result["rank"][row["a"]] != result["rank"][row["b"]]
            assert not apart or max(row["p_holm"], row["p_annotator_holm"]) < 0.05
            assert not apart or (row["wins"] > row["losses"]) == (result["rank"][row["a"]] < result["rank"][row["b"]])
            ranked += apart
        assert (result["low"] < result["high"]).all()
    assert ranked > 10


def test_intervals_of_strengths_cover_where_one_nearly_always_wins():
    from comperdial.stats.bradley_terry import Ballots, uncertainty

    for votes in (12, 20, 40):
        covered = 0.0
        for wins in range(votes + 1):
            none = np.zeros(votes, dtype=np.intp)
            one = Ballots(none, none + 1, (np.arange(votes) < wins).astype(float), np.arange(votes))
            low, high, _ = uncertainty(one)
            if low[0] <= np.log(9) / 2 <= high[0]:
                covered += binom.pmf(wins, votes, 0.9)
        assert 0.93 < covered < 0.98


def test_systems_that_never_met_are_ranked_by_what_links_them(tmp_path):
    result = many(tmp_path, [("a", "b")] * 40 + [("b", "a")] * 4 + [("b", "c")] * 40 + [("c", "b")] * 4)
    assert result.loc[["a", "b", "c"], "rank"].tolist() == [1, 2, 3]


def test_groups_that_no_vote_links_are_analysed_one_by_one(tmp_path, capsys):
    result = many(tmp_path, [("a", "b")] * 12 + [("b", "a")] + [("x", "y"), ("y", "z")])
    assert result["group"].to_dict() == {"x": 1, "y": 1, "z": 1, "a": 2, "b": 2}
    assert result.loc[["a", "b"], "rank"].tolist() == [1, 2]
    assert result.loc[["x", "y", "z"], "rank"].tolist() == [1, 1, 1]
    assert "No vote links these groups, so strengths and ranks only compare" in capsys.readouterr().out


def agreement(folder, content, *options):
    (folder / "votes.csv").write_text(content)
    assert main(["preferences", str(folder / "votes.csv"), "--output", str(folder / "out"), *options]) == 0
    return pd.read_csv(folder / "out/judges.csv").set_index("source")


def test_judges_are_rows_next_to_people(tmp_path, capsys):
    """Whether they are columns, or rows of another rater with the two systems in another order."""
    people = {"1": "AAB", "2": "ABt", "3": "BBB", "4": "ttt", "5": "AAA"}
    judge = {"1": "A", "2": "t", "3": "A", "4": "t", "5": "A"}
    said = {"A": "model_a", "B": "model_b", "t": "tie"}
    wide = ["question_id,model_a,model_b,rater1_choice,rater2_choice,rater3_choice,gpt4_choice"]
    wide += [f"{n},x,y,{','.join(said[one] for one in [*people[n], judge[n]])}" for n in people]
    result = agreement(tmp_path, "\n".join(wide))
    # Majorities: A, tie (no choice has most votes), B, tie, A.
    assert result.loc["gpt4", ["votes", "pairs", "strict"]].tolist() == [5, 5, 3]
    assert result.loc["gpt4", "accuracy"] == pytest.approx(2 / 3, abs=1e-6)
    assert result.loc["gpt4", "accuracy_ties"] == pytest.approx(4 / 5)
    # Expected by chance: (2 * 3 + 2 * 2 + 1 * 0) / 25.
    assert result.loc["gpt4", "kappa"] == pytest.approx((0.8 - 0.4) / 0.6, abs=1e-6)
    assert result.loc["human", "votes"] == 15
    assert result.loc["gpt4", "kappa_low"] <= result.loc["gpt4", "kappa"] <= result.loc["gpt4", "kappa_high"]
    assert "people, each and the others" in capsys.readouterr().out
    other = {"A": "model_b", "B": "model_a", "t": "tie"}
    long = ["question_id,model_a,model_b,winner,judge"]
    long += [f"{n},x,y,{said[one]},r{at}" for n in people for at, one in enumerate(people[n])]
    long += [f"{n},y,x,{other[judge[n]]},gpt-4" for n in people]
    again = agreement(tmp_path, "\n".join(long))
    assert np.allclose(again.loc["gpt-4"], result.loc["gpt4"])


def test_weights_count_in_strengths_and_shares(tmp_path, capsys, caplog):
    caplog.set_level(logging.INFO, "comperdial")
    rows = "\n".join(f"p{n},x,y,{1 + weight}" for n, weight in enumerate([0.25, 0.5, 0.0, 0.75, 0.1]))
    (tmp_path / "votes.csv").write_text(f"prompt,generator_1,generator_2,preference\n{rows}\n")
    assert main(["preferences", str(tmp_path / "votes.csv"), "--output", str(tmp_path / "out")]) == 0
    result = pd.read_csv(tmp_path / "out/strengths.csv").set_index("system")["won"]
    assert result.to_dict() == pytest.approx({"x": 0.68, "y": 0.32})
    assert "weighted: strengths and shares use the weights" in caplog.text
    assert ["x", "y", "3", "1", "1"] in [line.split()[:5] for line in capsys.readouterr().out.splitlines()]
