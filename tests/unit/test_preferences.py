"""Preferences: the command on a user's votes, the analysis of published votes, and the study of public sets."""

import itertools
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest

from comperdial import schema
from comperdial.cli import main
from comperdial.config import load_yaml
from comperdial.core.files import write_table
from comperdial.data.catalogue import load_catalogue
from comperdial.data.files import read_file
from comperdial.data.preferences import read_dialogues
from comperdial.data.preferences import read_preferences as read_votes
from comperdial.data.votes import read_votes as own_votes
from comperdial.evaluation.preferences import agreement_with_people, metric_choices, strengths, votes_of, win_matrix
from comperdial.report.plots import style
from comperdial.stats.bradley_terry import Ballots, uncertainty
from comperdial.stats.bradley_terry import strengths as bradley_terry
from comperdial.stats.win_rate import flip_p, votes_needed
from comperdial.studies import acute_eval
from ratedtables import score_rows

MIRROR = os.environ.get("COMPERDIAL_MIRROR")
needs_mirror = pytest.mark.skipif(not MIRROR, reason="COMPERDIAL_MIRROR is not set")

# Statistics


def test_exact_tests_and_strengths():
    assert [votes_needed(rate) for rate in (0.55, 0.6, 0.65, 0.7, 0.75, 0.8)] == [820, 210, 97, 54, 35, 23]
    assert flip_p([1] * 9 + [-1] * 3) == pytest.approx(binomtest(9, 12).pvalue)
    # Votes of a cluster stand or fall together.
    assert flip_p([3, 3, 3]) == pytest.approx(0.25)
    result = bradley_terry([[0, 3], [1, 0]])
    assert result[0] - result[1] == pytest.approx(np.log(3))
    with pytest.raises(ValueError, match="finite strengths do not exist"):
        bradley_terry([[0, 3], [0, 0]])


def test_strength_intervals_cover_with_a_dominant_system():
    covered, votes, none = 0.0, 20, np.zeros(20, dtype=np.intp)
    for wins in range(votes + 1):
        won = (np.arange(votes) < wins).astype(float)
        low, high, p = uncertainty(Ballots(none, none + 1, won, np.arange(votes)))
        covered += binom.pmf(wins, votes, 0.9) * (low[0] <= np.log(9) / 2 <= high[0])
        # Of two systems the interval of the strength leaves out 0 just where their test rejects.
        assert (low[0] > 0 or high[0] < 0) == (p[0, 1] < 0.05)
    assert 0.93 < covered < 0.98


# Published votes


def real(root, name, read=read_votes):
    files = load_catalogue(root / "data/sources.yaml").dataset(name).files
    at = {role: Path(str(MIRROR)) / source.relative for role, source in files.items()}
    return read(name, catalogue=root / "data/sources.yaml", files=at)


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


@needs_mirror
def test_spot_the_bot(root):
    votes = votes_of(real(root, "spot_the_bot_convai2"), question="humanness")
    assert votes["annotator_id"].str.fullmatch(r"\d+").all()
    table = win_matrix(votes)
    assert [int((table[p] < 0.05).sum()) for p in ("p", "p_holm", "p_dialogue")] == [13, 12, 12]


@needs_mirror
def test_llmfao_strengths_match_evalica(root):
    votes = votes_of(real(root, "llmfao"))
    assert (len(votes), votes["pair_id"].nunique()) == (8_931, 2_139)
    won = votes.groupby(["a", "b"])["won"].agg(["sum", "count"]).reset_index()
    systems = sorted({*won["a"], *won["b"]})
    wins = pd.DataFrame(0.0, systems, systems)
    for a, b, first, count in won.itertuples(index=False):
        wins.loc[a, b], wins.loc[b, a] = first, count - first
    ours = np.exp(bradley_terry(wins))
    golden = pd.read_csv(Path(str(MIRROR)) / "dustalov/evalica/llmfao-golden.csv")
    golden = golden[golden["algorithm"] == "bradley_terry"].set_index("item")["score"]
    np.testing.assert_allclose(ours / ours.sum(), golden.reindex(systems), rtol=0, atol=1e-9)


# A user's own votes


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


def preferences(folder, lines, *options):
    path = folder / "votes.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return main(["preferences", str(path), "--resamples", "20", *map(str, options)])


def test_the_command_analyses_votes_and_how_often_a_metric_predicts_them(tmp_path, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr(style, "save", lambda figure, frame, stem: drawn.append(stem.name))
    rows = {("d1", "kind"): 5, ("d2", "rude"): 1, ("d3", "rude"): 2, ("d4", "kind"): 3}
    score_rows(rows, rows.values(), level="dialogue", dataset="mine").to_csv(tmp_path / "scores.csv", index=False)
    assert preferences(tmp_path, VOTES, "--scores", tmp_path / "scores.csv", "--output", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert "4 votes of 2 annotators on 2 systems" in printed and drawn == ["matrix", "strengths"]
    # Of two annotators on p1 one preferred a system, the other neither.
    assert next(line for line in printed.splitlines() if line.startswith("agreement")).endswith(" 0.000")
    assert ["kind", "rude", "2", "1", "1", "0.667"] in [line.split()[:6] for line in printed.splitlines()]
    result = pd.read_csv(tmp_path / "out/metrics.csv").set_index("of").loc["all"]
    # Of three votes for one of the two, p3's is for the dialogue with the lower score.
    assert (result["n"], result["value"]) == (3, pytest.approx(2 / 3, abs=1e-6))


@pytest.mark.parametrize(
    ("votes", "options", "message"),
    [
        ([*VOTES[:3], VOTES[3].replace(",first,human", ",left,human")], (), "record 4 .* 'choice' holds 'left'"),
        ([*VOTES, VOTES[0]], (), "record 5 .* the same key a second time"),
        (VOTES, ("--question", "fun"), "unknown question 'fun'; expected one of overall"),
        (VOTES[1:2], (), "no vote is for one of two systems; expected votes .* not all ties"),
    ],
)
def test_invalid_preferences_give_one_message(votes, options, message, tmp_path, capsys):
    assert preferences(tmp_path, votes, *options) == 1
    assert re.search(message, capsys.readouterr().err)


def test_planning_from_the_command_line(capsys):
    assert main(["plan-preferences", "--win-rate", ".8", "--ties", ".2"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("23 votes for one of the two") and "29 votes in all" in printed
    assert main(["plan-preferences", "--win-rate", "80"]) == 1


def table_of(lines):
    table = pd.DataFrame([line.split(",") for line in lines], columns=HEADER.split(","))
    return schema.validate(table.reindex(columns=schema.table("preferences").columns), "preferences")


def ranked(pairs, shared=False):
    """Return the strengths by votes given as (winner, loser), each of its own annotator and, if not shared, dialogues."""
    rows = [
        f"m,p{at},r{at},overall,d{at % 2 if shared else at}a,{winner},d{at % 2 if shared else at}b,{loser},first,human"
        for at, (winner, loser) in enumerate(pairs)
    ]
    return strengths(votes_of(table_of(rows))).set_index("system")


@pytest.mark.parametrize(
    ("pairs", "ranks"),
    [
        # Two unanimous votes have p = .5.
        ([("a", "b")] * 2, {"a": 1, "b": 1}),
        ([("a", "b"), ("b", "c"), ("a", "c")] * 12, {"a": 1, "b": 2, "c": 3}),
        # Systems that never met are ranked by what links them, groups that nothing links by themselves.
        ([("a", "b")] * 12 + [("b", "a"), ("x", "y"), ("y", "z")], {"a": 1, "b": 2, "x": 1, "y": 1, "z": 1}),
        ([("a", "b"), ("b", "c")] * 40 + [("b", "a"), ("c", "b")] * 4, {"a": 1, "b": 2, "c": 3}),
    ],
)
def test_ranks_differ_where_pair_tests_reject(pairs, ranks):
    result = ranked(pairs)
    assert result["rank"].to_dict() == ranks
    assert "group" not in result or result["group"].nunique() == 2
    assert (result["high"] - result["low"] > 1).any() and (result["low"] < result["strength"]).all()


def test_votes_that_share_a_dialogue_are_less_evidence():
    shared, alone = (ranked([("a", "b")] * 8, one) for one in (True, False))
    width = [(result["high"] - result["low"]).iloc[0] for result in (shared, alone)]
    assert width[0] > 2 * width[1]
    assert (shared["rank"].max(), alone["rank"].max()) == (1, 2)


def own(folder, header, rows):
    """Return votes in a form of one's own as table `preferences`."""
    write_table(folder / "votes.csv", pd.DataFrame(rows, columns=header.split()))
    return own_votes(read_file(folder / "votes.csv"), folder / "votes.csv")[0]


def test_judges_and_people_have_separate_rows(tmp_path):
    """Whether they are columns, or rows of another rater with the two systems in another order."""
    people = {"1": "AAB", "2": "ABt", "3": "BBB", "4": "ttt", "5": "AAA"}
    judge = {"1": "A", "2": "t", "3": "A", "4": "t", "5": "A"}
    said, other = ({"A": f"model_{a}", "B": f"model_{b}", "t": "tie"} for a, b in ("ab", "ba"))
    wide = [(n, "x", "y", *(said[one] for one in [*people[n], judge[n]])) for n in people]
    table = own(tmp_path, "question_id model_a model_b rater1_choice rater2_choice rater3_choice gpt4_choice", wide)
    found = agreement_with_people(table, resamples=20).set_index("source")
    result = found.loc["gpt4"]
    # Majorities: A, tie (no choice has most votes), B, tie, A.
    assert result[["votes", "pairs", "strict"]].tolist() == [5, 5, 3] and found.loc["human", "votes"] == 15
    assert (result["accuracy"], result["accuracy_ties"]) == pytest.approx((2 / 3, 4 / 5), abs=1e-6)
    # Expected by chance: (2 * 3 + 2 * 2 + 1 * 0) / 25.
    assert result["kappa"] == pytest.approx((0.8 - 0.4) / 0.6, abs=1e-6)
    long = [(n, "x", "y", said[one], f"r{at}") for n in people for at, one in enumerate(people[n])]
    long += [(n, "y", "x", other[judge[n]], "gpt-4") for n in people]
    again = agreement_with_people(own(tmp_path, "question_id model_a model_b winner judge", long), resamples=20)
    pd.testing.assert_series_equal(again.set_index("source").loc["gpt-4"], result, check_names=False)


def test_strengths_use_weights(tmp_path):
    rows = [(f"p{n}", "x", "y", 1 + weight) for n, weight in enumerate([0.25, 0.5, 0.0, 0.75, 0.1])]
    votes = votes_of(own(tmp_path, "prompt generator_1 generator_2 preference", rows))
    assert strengths(votes).set_index("system")["won"].to_dict() == pytest.approx({"x": 0.68, "y": 0.32})


def test_study_tables(tmp_path, root):
    """Sixty workers talk to three bots; X writes most and always wins, Y and Z share their votes."""
    pairs, lines = [("X", "Y"), ("X", "Z"), ("Y", "Z")], []
    for at, (a, b) in itertools.product(range(60), pairs):
        choice = "first" if a == "X" or at % 2 else "second"
        lines.append(f"ieval,{at}-{a}-{b},{at},overall,{at},{a},{at},{b},{choice},human")
    dialogues = pd.DataFrame(itertools.product(map(str, range(60)), "XYZ"), columns=["dialogue_id", "system_id"])
    dialogues = dialogues.assign(annotator_id=dialogues["dialogue_id"], likert=3.0, seconds=360)
    dialogues["words"] = dialogues["system_id"].map({"X": 9.0, "Y": 3.0, "Z": 3.0})
    (tmp_path / "ieval").mkdir()
    for name, frame in (("preferences", table_of(lines).assign(seconds=36.0)), ("rated_dialogues", dialogues)):
        frame.to_parquet(tmp_path / f"ieval/{name}.parquet")
    inputs = {
        "votes": [tmp_path / "ieval/preferences.parquet"],
        "dialogues": [tmp_path / "ieval/rated_dialogues.parquet"],
    }
    inputs["statements"] = [root / "studies/acute_eval/statements.csv"]
    study = load_yaml(root / "studies/acute_eval/study.yaml")
    entry = {"sets": {"ieval": {"title": "Set", "question": "overall"}}, "title": "T", "caption": "C.", "notes": "N"}
    of = study | {"resamples": 50, "entry": entry}
    # What holds of the dominant system does not choose among the others.
    result = acute_eval.metrics(inputs, of).frame.set_index(["metric", "of"])
    assert result.loc[("words", "all"), "value"] == pytest.approx((120 + 30) / 180)
    assert result.loc[("words", "others"), "value"] == 0.5
    matrix, votes, ranks, _ = (section.frame for section in acute_eval.preferences(inputs, of).sections)
    assert matrix.iloc[0].dropna().tolist() == ["X", "1.00***", "1.00***"]
    assert votes["Votes for", "A"].tolist() == ["60", "60", "30"]
    assert ranks["All", "rank"].tolist() == ["#1", "#2", "#2"]
    table = acute_eval.overview(inputs, of | {"entry": study["tables"]["acute_eval"] | {"sets": entry["sets"]}})
    assert table.frame[["pairs", "binomial", "holm"]].values.tolist() == [[3, 2, 2]]
