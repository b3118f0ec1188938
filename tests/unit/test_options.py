"""Options of an analysis: subsets, missing scores, corrections; from Python and on the command line."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import ComperdialError
from comperdial.evaluation.options import Options, analysed, subset
from comperdial.evaluation.samples import Tables
from comperdial.report.ranking import corrected
from comperdial.stats.multiple import benjamini_hochberg
from ratedtables import rating_rows, score_rows

SYSTEMS, DIALOGUES, TURNS = "abcdef", 8, 2
GAPS = {("d0-0", "f"), ("d3-1", "f"), ("d5-0", "e")}


def tables(gaps=()):
    """Six systems, eight dialogues of two turns; metrics good and poor; `gaps` are (context, system) without a good."""
    rng = np.random.default_rng(5)
    units = [(f"d{d}-{t}", s) for s in SYSTEMS for d in range(DIALOGUES) for t in range(TURNS)]
    wholes = [(f"d{d}", s) for s in SYSTEMS for d in range(DIALOGUES)]
    truth = [SYSTEMS.index(s) + rng.normal() for _, s in units]
    good = {unit: value + rng.normal() for unit, value in zip(units, truth, strict=True) if unit not in gaps}
    same = {"dataset": "mine", "dimension": "overall"}
    means = [SYSTEMS.index(s) + rng.normal() for _, s in wholes]
    ratings = [rating_rows(units, truth, **same), rating_rows(wholes, means, level="dialogue", **same)]
    scores = [
        score_rows(good, good.values(), "good", dataset="mine"),
        score_rows(units, rng.normal(size=len(units)), "poor", dataset="mine"),
    ]
    contexts = [("mine", f"d{d}-{t}", f"d{d}", t) for d in range(DIALOGUES) for t in range(TURNS)]
    systems = [("mine", name, "agent", "1" if name in "abcd" else "2") for name in SYSTEMS]
    return Tables(
        schema.validate(pd.concat(scores), "scores"),
        schema.validate(pd.concat(ratings), "ratings"),
        pd.DataFrame(contexts, columns=["dataset", "context_id", "dialogue_id", "turn"]),
        pd.DataFrame(systems, columns=["dataset", "system_id", "kind", "track"]),
    )


def same(found, expected):
    assert [one.key for one in found] == [one.key for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert (one.names, one.units, one.coverage, one.cut) == (other.names, other.units, other.coverage, other.cut)
        np.testing.assert_array_equal(one.scores, other.scores)
        np.testing.assert_array_equal(one.ratings, other.ratings)


def of(samples, level, against="turn"):
    return next(one for one in samples if (one.level, one.against) == (level, against))


def test_full_subset_and_worst_without_gaps_change_nothing():
    mine = tables()
    for options in (Options(subset=(("track", "1"), ("track", "2"))), Options(missing="worst")):
        same(analysed(mine, options)[0], mine.samples())


def test_command_takes_and_reports_options(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    units = [(str(c), s) for c in range(12) for s in SYSTEMS]
    ratings = np.tile(np.arange(len(SYSTEMS)), 12) + np.random.default_rng(1).normal(size=len(units))
    frame = pd.DataFrame(units, columns=["context_id", "system_id"]).assign(rating=ratings, reference="says")
    frame["response"] = frame["system_id"] + " says " + frame["context_id"]
    frame["topic"] = np.where(frame["context_id"].astype(int) < 6, "tea", "sea")
    frame.to_csv("mine.csv", index=False)
    # The scores lack four responses.
    weights = (("good", 1), ("fair", 2), ("poor", -1))
    pd.concat(score_rows(units[4:], sign * ratings[4:], metric, dataset="mine") for metric, sign in weights).to_csv(
        "scores.csv", index=False
    )
    command = ["compare", "mine.csv", "--scores", "scores.csv", "--resamples", "20", "--coefficient", "pearson"]
    assert main([*command, "--subset", "topic=tea", "--missing", "worst", "--correction", "fdr"]) == 0
    text = capsys.readouterr().out
    for part in ("Only topic=tea", "36 of 72 rated responses", "|missing:worst", "rank (FDR)", "89%"):
        assert part in text
    assert main([*command, "--subset", "topic"]) == 1
    capsys.readouterr()


def test_subset_matches_manually_filtered_tables():
    mine = tables()
    found, notes = analysed(mine, Options(subset=(("track", "1"), ("turn", "0"))))
    rows, scored = (
        frame["system_id"].isin([*"abcd"]) & frame["item_id"].str.endswith("-0")
        for frame in (mine.ratings, mine.scores)
    )
    same(found, Tables(mine.scores[scored], mine.ratings[rows], mine.contexts, mine.systems).samples())
    # No dialogue consists of first turns alone.
    assert {(one.level, one.against) for one in found} == {("turn", "turn"), ("system", "turn")}
    assert "32 of 96 rated responses" in notes[0] and "0 of 48 rated dialogues" in notes[1]
    assert found[0].signatures[0] == "good|v:1|subset:track=1|subset:turn=0"


def test_attribute_selects_responses_and_complete_dialogues():
    mine = tables()
    rows = mine.ratings[mine.ratings["level"] == "turn"][["dataset", "item_id", "system_id"]]
    topics = rows.assign(topic=rows["item_id"].isin(["d0-0", "d0-1", "d1-0"]).map({True: "tea", False: "sea"}))
    found = analysed(replace(mine, attributes=topics), Options(subset=(("topic", "tea"),)))[0]
    assert {unit[0] for unit in of(found, "turn").units} == {"d0-0", "d0-1", "d1-0"}
    assert {unit[0] for unit in of(found, "dialogue", "dialogue").units} == {"d0"}
    # A response with two values is in no subset.
    both = pd.concat([topics, topics.assign(topic="rain").iloc[:1]])
    found = analysed(replace(mine, attributes=both), Options(subset=(("topic", "tea"),)))[0]
    assert tuple(rows.iloc[0, 1:]) not in of(found, "turn").units and len(of(found, "turn").units) == 17


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([("tracks", "1")], r"unknown column 'tracks'.*Did you mean 'track'"),
        ([("track", "3")], "no row has track=3; expected one of: 1, 2"),
        ([("track", "1"), ("system_id", "f")], "no unit has track = 1, system_id = f"),
    ],
)
def test_unknown_value_error_lists_known_values(wanted, message):
    with pytest.raises(ComperdialError, match=message):
        subset(tables(), wanted)


def test_worst_fills_missing_scores_with_the_lowest():
    mine = tables(GAPS)
    plain = mine.samples()
    found, notes = analysed(mine, Options(missing="worst"))
    lowest = mine.scores.loc[mine.scores["metric"] == "good", "value"].min()
    before, after = of(plain, "turn"), of(found, "turn")
    lost = np.isnan(before.scores)
    assert {before.units[place] for place in np.flatnonzero(lost[0])} == GAPS and not lost[1].any()
    np.testing.assert_array_equal(after.scores, np.where(lost, lowest, before.scores))
    # The mean of a dialogue is made of the turn that has a score and the one that has the lowest.
    place = of(plain, "dialogue").units.index(("d0", "f"))
    own = [of(samples, "dialogue").scores[0][place] for samples in (plain, found)]
    assert own[1] == pytest.approx((own[0] + lowest) / 2)
    assert [one.coverage for one in found] == [one.coverage for one in plain]
    assert "counts as the lowest score" in notes[0] and found[0].signatures[0].endswith("|missing:worst")
    part = analysed(mine, Options(subset=(("track", "2"),), missing="worst"))[0]
    assert of(part, "turn").scores[0].min() == lowest
    assert mine.scores.query("metric == 'good' and system_id in ['e', 'f']")["value"].min() > lowest


def test_corrections_change_only_adjusted_p():
    row = {"dataset": "d", "level": "turn", "against": "turn", "target": "t", "grouping": "pooled", "test": "t"}
    table = pd.DataFrame(
        row | {"coefficient": name, "metric_a": a, "output_a": "o", "metric_b": b, "output_b": "o", "p": p * factor}
        for name, factor in (("pearson", 1), ("kendall", 10))
        for a, b, p in (("a", "b", 0.001), ("a", "c", 0.02), ("b", "c", 0.03))
    )
    fdr = [*benjamini_hochberg([0.001, 0.02, 0.03]), *benjamini_hochberg([0.01, 0.2, 0.3])]
    holm = [0.003, 0.04, 0.04, 0.03, 0.4, 0.4]
    for rule, expected in (("holm", holm), ("fdr", fdr), ("none", table["p"])):
        frame = corrected(table, rule)
        pd.testing.assert_frame_equal(frame[table.columns], table)
        np.testing.assert_allclose(frame["p_adjusted"], expected)
