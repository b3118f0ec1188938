"""Options of an analysis: subsets, missing scores, corrections; from Python and on the command line."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from comperdial import evaluation, schema
from comperdial.cli import main
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.evaluation.options import Options, analysed, subset
from comperdial.evaluation.samples import Tables
from comperdial.report.ranking import corrected
from comperdial.stats.multiple import benjamini_hochberg
from ratedtables import rating_rows, score_rows

SYSTEMS = "abcdef"
DIALOGUES = 8
TURNS = 2


def tables(gaps=(), rate=lambda system, dialogue, turn, noise: system + noise, per_dialogue=False):
    """Six systems, eight dialogues of two turns; metrics good and poor; `gaps` are (context, system) without a good."""
    rng = np.random.default_rng(5)
    places = [(s, d, t) for s in range(len(SYSTEMS)) for d in range(DIALOGUES) for t in range(TURNS)]
    units = [(f"d{d}-{t}", SYSTEMS[s]) for s, d, t in places]
    rated = [rate(*place, rng.normal()) for place in places]
    good = {unit: value + rng.normal() for unit, value in zip(units, rated, strict=True) if unit not in gaps}
    wholes = [(f"d{d}", system) for system in SYSTEMS for d in range(DIALOGUES)]
    ratings = [rating_rows(units, rated, dataset="mine", dimension="overall")]
    if per_dialogue:
        means = [SYSTEMS.index(system) + rng.normal() for _, system in wholes]
        ratings.append(rating_rows(wholes, means, level="dialogue", dataset="mine", dimension="overall"))
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
        np.testing.assert_array_equal(one.items, other.items)


def of(samples, level, against="turn"):
    return next(one for one in samples if (one.level, one.against) == (level, against))


def test_defaults_a_subset_of_everything_and_worst_of_nothing_change_nothing():
    mine = tables(per_dialogue=True)
    plain = mine.samples()
    found, notes = analysed(mine, Options())
    assert not notes and [one.signatures for one in found] == [one.signatures for one in plain]
    same(found, plain)
    same(analysed(mine, Options(subset=(("track", "1"), ("track", "2"))))[0], plain)
    same(analysed(mine, Options(missing="worst"))[0], plain)


def test_a_subset_is_what_the_tables_cut_by_hand_give():
    mine = tables(per_dialogue=True)
    found, notes = analysed(mine, Options(subset=(("track", "1"), ("turn", "0"))))
    rows = mine.ratings["system_id"].isin(list("abcd")) & mine.ratings["item_id"].str.endswith("-0")
    scored = mine.scores["system_id"].isin(list("abcd")) & mine.scores["item_id"].str.endswith("-0")
    same(found, Tables(mine.scores[scored], mine.ratings[rows], mine.contexts, mine.systems).samples())
    # No dialogue consists of first turns alone.
    assert {(one.level, one.against) for one in found} == {("turn", "turn"), ("system", "turn")}
    assert "32 of 96 rated responses" in notes[0] and "0 of 48 rated dialogues" in notes[1]
    assert found[0].signatures[0] == "good|v:1|subset:track=1|subset:turn=0"
    some = analysed(mine, Options(subset=(("dialogue_id", "d1"), ("dialogue_id", "d2"))))[0]
    assert {unit[0] for unit in of(some, "dialogue", "dialogue").units} == {"d1", "d2"}
    assert of(some, "turn").scores.shape == (2, 24)


def test_an_attribute_chooses_responses_and_the_dialogues_that_are_wholly_in_it():
    mine = tables(per_dialogue=True)
    rows = mine.ratings[mine.ratings["level"] == "turn"][["dataset", "item_id", "system_id"]]
    topics = rows.assign(topic=rows["item_id"].isin(["d0-0", "d0-1", "d1-0"]).map({True: "tea", False: "sea"}))
    found = analysed(replace(mine, attributes=topics), Options(subset=(("topic", "tea"),)))[0]
    assert {unit[0] for unit in of(found, "turn").units} == {"d0-0", "d0-1", "d1-0"}
    assert {unit[0] for unit in of(found, "dialogue", "dialogue").units} == {"d0"}
    # A response with two values is in no subset; an empty cell says nothing.
    both = pd.concat([topics, topics.assign(topic="rain").iloc[:1], topics.assign(topic="").iloc[1:2]])
    found = analysed(replace(mine, attributes=both), Options(subset=(("topic", "tea"),)))[0]
    first = rows.iloc[0]
    assert (first["item_id"], first["system_id"]) not in of(found, "turn").units
    assert of(found, "turn").scores.shape[1] == 3 * len(SYSTEMS) - 1


def test_what_no_table_has_is_an_error_that_lists_what_there_is():
    with pytest.raises(UnknownNameError, match=r"unknown column 'tracks'.*Did you mean 'track'"):
        subset(tables(), [("tracks", "1")])
    with pytest.raises(ConfigError, match="no row has track=3; expected one of: 1, 2"):
        subset(tables(), [("track", "3")])
    with pytest.raises(ConfigError, match="no unit has track = 1, system_id = f"):
        subset(tables(), [("track", "1"), ("system_id", "f")])


GAPS = {("d0-0", "f"), ("d3-1", "f"), ("d5-0", "e")}


def test_worst_gives_what_is_missing_the_lowest_score_and_says_so():
    mine = tables(GAPS, per_dialogue=True)
    plain = mine.samples()
    found, notes = analysed(mine, Options(missing="worst"))
    lowest = mine.scores.loc[mine.scores["metric"] == "good", "value"].min()
    before, after = of(plain, "turn"), of(found, "turn")
    lost = np.isnan(before.scores)
    assert {before.units[place] for place in np.flatnonzero(lost[0])} == GAPS and not lost[1].any()
    assert (after.scores[lost] == lowest).all()
    np.testing.assert_array_equal(after.scores[~lost], before.scores[~lost])
    # The mean of a dialogue is made of the turn that has a score and the one that has the lowest.
    own = of(plain, "dialogue").scores[0], of(found, "dialogue").scores[0]
    place = of(plain, "dialogue").units.index(("d0", "f"))
    assert own[1][place] == pytest.approx((own[0][place] + lowest) / 2)
    assert [one.coverage for one in found] == [one.coverage for one in plain]
    assert of(plain, "turn").coverage[0] == pytest.approx(1 - 3 / 96)
    assert "counts as the lowest score" in notes[0]
    assert found[0].signatures[0].endswith("|missing:worst")


def test_worst_punishes_a_metric_that_leaves_out_good_responses_and_touches_no_other():
    # Those left out are the best rated.
    rated = tables().ratings.sort_values("rating").iloc[-12:]
    mine = tables({*zip(rated["item_id"], rated["system_id"], strict=True)})
    values = [
        evaluation.correlations(analysed(mine, Options(missing=policy))[0])
        .query("level == 'turn' and coefficient == 'spearman'")
        .set_index("metric")["value"]
        for policy in ("left-out", "worst")
    ]
    assert values[1]["good"] < values[0]["good"] - 0.1
    assert values[1]["poor"] == values[0]["poor"]


def test_the_lowest_score_is_the_data_set_s_not_the_subset_s():
    mine = tables(GAPS)
    found, _ = analysed(mine, Options(subset=(("track", "2"),), missing="worst"))
    good = mine.scores[mine.scores["metric"] == "good"]
    assert of(found, "turn").scores[0].min() == good["value"].min()
    assert good.loc[good["system_id"].isin(["e", "f"]), "value"].min() > good["value"].min()


def test_corrections_change_only_the_adjusted_p_and_the_ranks_that_follow():
    pairs = [("a", "b", 0.001), ("a", "c", 0.02), ("b", "c", 0.03)]
    table = pd.DataFrame(
        {"dataset": "d", "level": "turn", "against": "turn", "target": "t", "grouping": "pooled"}
        | {"coefficient": coefficient, "metric_a": a, "output_a": "o", "metric_b": b, "output_b": "o", "p": p * factor}
        | {"test": "t"}
        for coefficient, factor in (("pearson", 1), ("kendall", 10))
        for a, b, p in pairs
    )
    holm, fdr, none = corrected(table), corrected(table, "fdr"), corrected(table, "none")
    for frame in (holm, fdr, none):
        pd.testing.assert_frame_equal(frame[table.columns], table)
    np.testing.assert_allclose(holm["p_adjusted"][:3], [0.003, 0.04, 0.04])
    # Each coefficient by itself.
    np.testing.assert_allclose(fdr["p_adjusted"][:3], benjamini_hochberg([0.001, 0.02, 0.03]))
    np.testing.assert_allclose(fdr["p_adjusted"][3:], benjamini_hochberg([0.01, 0.2, 0.3]))
    np.testing.assert_array_equal(none["p_adjusted"], table["p"])


# On the command line


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A file with a column of its own, and ready-made scores of it that lack two responses."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    units = [(str(c), s) for c in range(12) for s in SYSTEMS]
    ratings = np.tile(np.arange(len(SYSTEMS)), 12) + rng.normal(size=len(units))
    frame = pd.DataFrame(units, columns=["context_id", "system_id"]).assign(rating=ratings, reference="says")
    frame["response"] = frame["system_id"] + " says " + frame["context_id"]
    frame["topic"] = np.where(frame["context_id"].astype(int) < 6, "tea", "sea")
    frame.to_csv("mine.csv", index=False)
    scores = [
        score_rows(units, ratings * weight + rng.normal(size=len(units)), metric, dataset="mine")
        for metric, weight in (("good", 1), ("fair", 0.5), ("poor", 0))
    ]
    scores = pd.concat(scores)
    lost = (scores["metric"] == "fair") & (scores["item_id"] == "0") & scores["system_id"].isin(["a", "b"])
    scores[~lost].to_csv("scores.csv", index=False)
    command = "compare mine.csv --scores scores.csv --resamples 50 --coefficient pearson --level turn"
    return command.split()


def run(capsys, arguments):
    status = main(arguments)
    found = capsys.readouterr()
    return found.out if status == 0 else found.err


def test_compare_takes_a_column_of_the_file_and_says_it(mine, capsys):
    text = run(capsys, [*mine, "--subset", "topic=tea"])
    assert "Only topic=tea. 50 resamples" in text and "36 of 72 rated responses" in text
    everything = run(capsys, [*mine, "--subset", "topic=tea", "--subset", "topic=sea", "--format", "csv"])
    assert pd.read_csv(io.StringIO(everything)).equals(
        pd.read_csv(io.StringIO(run(capsys, [*mine, "--format", "csv"])))
    )
    assert "unknown column 'topics'" in run(capsys, [*mine, "--subset", "topics=tea"])
    assert "no row has topic=rain; expected one of: sea, tea" in run(capsys, [*mine, "--subset", "topic=rain"])
    assert "expected COLUMN=VALUE" in run(capsys, [*mine, "--subset", "topic"])


def test_a_subset_by_one_s_own_column_knows_responses_with_the_same_text_apart(tmp_path, monkeypatch, capsys):
    """Files without context_id: what was said before a response tells which one a row is of."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"system": s, "history": f"question {c}", "response": "i don't know" if s == "a" else f"{s} {c}"}
        | {"reference": f"a {c}", "rating": 1 + (c * 7 + place * 3) % 5, "topic": "tea" if c < 6 else "sea"}
        for c in range(12)
        for place, s in enumerate(SYSTEMS)
    ]
    pd.DataFrame(rows).to_csv("said.csv", index=False)
    command = ["compare", "said.csv", "--metrics", "f1", "--resamples", "50", "--level", "turn"]
    assert "36 of 72 rated responses" in run(capsys, [*command, "--subset", "topic=tea"])


def test_compare_says_what_it_did_with_missing_scores_and_corrections(mine, capsys):
    plain, worst = (run(capsys, [*mine, *more]) for more in ([], ["--missing", "worst"]))
    assert "rank (Holm)" in plain and "Holm's correction" in plain and "97%" in plain
    assert "A rated unit without a score counts as the lowest score" in worst
    assert "97%" in worst and "|missing:worst" in worst
    fdr = run(capsys, [*mine, "--correction", "fdr"])
    assert "rank (FDR)" in fdr and "(FDR: " in fdr and "Benjamini and Hochberg" in fdr and "Holm" not in fdr
    none = run(capsys, [*mine, "--correction", "none"])
    assert "rank (not corrected)" in none and "Holm" not in none and "FDR" not in none


def test_correlate_takes_the_same_options_and_records_them(mine, capsys):
    pd.read_csv("mine.csv")[["context_id", "system_id", "rating"]].to_csv("ratings.csv", index=False)
    command = ["correlate", "scores.csv", "--ratings", "ratings.csv", "--resamples", "50", "--output", "found.csv"]
    systems = [part for name in "abc" for part in ("--subset", f"system_id={name}")]
    assert main([*command, "--missing", "worst", *systems]) == 0
    assert "Subset system_id = a or b or c: 36 of 72 rated responses" in capsys.readouterr().err
    found = pd.read_csv("found.csv")
    assert found["signature"].str.endswith("|subset:system_id=c|missing:worst").all()
