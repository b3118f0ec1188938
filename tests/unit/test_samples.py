"""The join of scores and ratings, and the files that they are read from."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from comperdial import evaluation, schema
from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.evaluation import aggregate
from ratedtables import rating_rows, score_rows


def correlated(*tables, **choice):
    return evaluation.correlations(evaluation.samples(*tables, **choice))


def tables(values, gaps=(), raters=("ann", "bob")):
    """Return scores and ratings of len(values) systems x len(values[0]) contexts; a rating depends on score and rater."""
    units = {(f"c{c}", f"s{s}"): value for s, row in enumerate(values) for c, value in enumerate(row)}
    scored = {unit: value for unit, value in units.items() if (int(unit[1][1:]), int(unit[0][1:])) not in gaps}
    ratings = [
        rating_rows(units, [(value * 7) % 5 + bias for value in units.values()], rater)
        for bias, rater in enumerate(raters)
    ]
    return score_rows(scored, scored.values()), pd.concat(ratings, ignore_index=True)


VALUES = [[0.1, 0.5, 0.3], [0.9, 0.2, 0.8], [0.4, 0.4, 0.7], [0.0, 0.6, 1.0]]


def pick(found, level, coefficient="pearson"):
    return found[(found["level"] == level) & (found["coefficient"] == coefficient)].iloc[0]


def test_both_levels_against_numpy():
    found = correlated(*tables(VALUES))
    x = np.array(VALUES)
    y = (x * 7) % 5 + 0.5
    turn = pick(found, "turn")
    assert turn["value"] == pytest.approx(np.corrcoef(x.ravel(), y.ravel())[0, 1])
    assert (turn["n"], turn["coverage"]) == (12, 1.0)
    system = pick(found, "system")
    assert system["value"] == pytest.approx(np.corrcoef(x.mean(1), y.mean(1))[0, 1])
    assert system["n"] == 4
    tau = pick(found, "turn", "kendall")
    expected = stats.kendalltau(x.ravel(), y.ravel())
    assert (tau["value"], tau["p"]) == pytest.approx((expected.statistic, expected.pvalue))


def test_a_missing_score_is_missing_on_both_sides_and_counted():
    found = correlated(*tables(VALUES, gaps={(0, 0), (1, 2), (3, 1)}))
    x = np.array(VALUES)
    y = (x * 7) % 5 + 0.5
    for s, c in ((0, 0), (1, 2), (3, 1)):
        x[s, c] = y[s, c] = np.nan
    turn, system = pick(found, "turn"), pick(found, "system")
    assert (turn["n"], turn["coverage"]) == (9, 0.75)
    assert system["value"] == pytest.approx(np.corrcoef(np.nanmean(x, 1), np.nanmean(y, 1))[0, 1])


def test_a_system_without_any_score_counts_against_coverage_unless_it_is_a_reference():
    scores, ratings = tables(VALUES)
    scores = scores[scores["system_id"] != "s3"]
    without = pick(correlated(scores, ratings), "turn")
    assert (without["n"], without["coverage"]) == (9, 0.75)
    systems = pd.DataFrame({"dataset": "d", "system_id": ["s0", "s3"], "kind": ["agent", "reference"]})
    known = pick(correlated(scores, ratings, systems=systems), "turn")
    assert (known["n"], known["coverage"]) == (9, 1.0)


def test_cut_inputs_are_counted_where_they_are_scored_and_rated():
    scores, ratings = tables(VALUES, gaps={(0, 0)})
    # Tokens, not responses: what is counted is how many were cut, not how much.
    scores["cut"] = scores["item_id"].map({"c0": 0, "c1": 40, "c2": 1})
    found = correlated(scores, ratings)
    assert set(found["cut"]) == {8}
    assert set(found["level"]) == {"turn", "system"}
    # The reference and a response that nobody rated are cut too, and stand behind no coefficient.
    unrated = ratings[(ratings["system_id"] != "s1") | (ratings["item_id"] != "c1")]
    assert set(correlated(scores, unrated)["cut"]) == {7}
    systems = pd.DataFrame({"dataset": "d", "system_id": ["s0", "s3"], "kind": ["agent", "reference"]})
    assert set(correlated(scores, unrated, systems=systems)["cut"]) == {5}
    # A response without a score has no cut, whatever its input was.
    assert set(correlated(scores[scores["item_id"] != "c2"], unrated)["cut"]) == {3}
    assert set(correlated(scores.assign(cut=0), ratings)["cut"]) == {0}


def test_cuts_of_metrics_outputs_data_sets_and_dimensions_stay_apart():
    scores, ratings = tables(VALUES)
    cut = scores["item_id"] == "c1"
    parts = [
        scores,
        scores.assign(metric="n", cut=cut * 3),
        scores.assign(output="p", cut=(cut & (scores["system_id"] == "s0")) * 3),
        scores.assign(dataset="e", cut=9),
    ]
    # One response was rated in one dimension only.
    other = ratings[(ratings["item_id"] != "c1") | (ratings["system_id"] != "s0")].assign(dimension="Natural")
    everything = pd.concat([ratings, other, ratings.assign(dataset="e")])
    found = correlated(pd.concat(parts), everything)
    counts = found.set_index(["dataset", "metric", "output", "target"])["cut"].groupby(level=[0, 1, 2, 3]).unique()
    assert counts.map(list).to_dict() == {
        ("d", "m", "o", "Overall"): [0],
        ("d", "m", "o", "Natural"): [0],
        ("d", "n", "o", "Overall"): [4],
        ("d", "n", "o", "Natural"): [3],
        ("d", "m", "p", "Overall"): [1],
        ("d", "m", "p", "Natural"): [0],
        ("e", "m", "o", "Overall"): [12],
    }


def test_scores_of_a_file_that_does_not_say_what_was_cut(tmp_path):
    scores, ratings = tables(VALUES)
    scores.drop(columns="cut").to_csv(tmp_path / "scores.csv", index=False)
    found = correlated(aggregate.read_scores([tmp_path / "scores.csv"]), ratings)
    assert set(found["cut"]) == {0}
    assert pick(found, "turn")["coverage"] == 1


def test_data_sets_are_not_mixed():
    scores, ratings = tables(VALUES)
    other = ratings.assign(dataset="other", rating=0.0)
    both = pd.concat([ratings, other])
    pd.testing.assert_frame_equal(correlated(scores, both), correlated(scores, ratings))
    with pytest.raises(SchemaError, match="the same dataset, item_id and system_id"):
        correlated(scores, other)


def test_scores_of_another_level_are_no_turn_scores():
    scores, ratings = tables(VALUES)
    with pytest.raises(SchemaError, match="nothing to correlate at the levels"):
        correlated(scores.assign(level="system"), ratings)


def test_judges_and_people_are_never_mixed():
    scores, ratings = tables(VALUES)
    judge = ratings.assign(source="gpt", annotator_id="gpt", rating=1.0)
    both = pd.concat([ratings, judge])
    pd.testing.assert_frame_equal(correlated(scores, both), correlated(scores, ratings))
    with pytest.raises(UnknownNameError, match=r"unknown source of ratings 'gtp'.*Did you mean 'gpt'"):
        correlated(scores, both, source="gtp")


def test_wrong_target_and_unrelated_ratings():
    scores, ratings = tables(VALUES)
    with pytest.raises(UnknownNameError, match=r"unknown dimension 'overall'.*Did you mean 'Overall'"):
        correlated(scores, ratings, targets=["overall"])
    with pytest.raises(SchemaError, match="no score of metric 'm' belongs to a rated response"):
        correlated(scores.assign(item_id="x" + scores["item_id"]), ratings)


@given(st.permutations(range(12)))
@settings(max_examples=20)
def test_row_order_changes_nothing(order):
    scores, ratings = tables(VALUES)
    shuffled = scores.iloc[list(order)]
    pd.testing.assert_frame_equal(correlated(shuffled, ratings[::-1]), correlated(scores, ratings))


def test_contexts_that_say_their_dialogue_and_no_more(tmp_path):
    path = tmp_path / "contexts.csv"
    path.write_text("context_id,dialogue_id\n01,1\n02,1\n")
    found = aggregate.read_contexts(path, dataset="d")
    assert found.to_numpy().tolist() == [["d", "01", "1"], ["d", "02", "1"]]
    path.write_text("context_id,dialogue_id\n01,1\n01,2\n")
    with pytest.raises(SchemaError, match="context '01' is in two rows"):
        aggregate.read_contexts(path)
    path.write_text("context_id\n01\n")
    with pytest.raises(SchemaError, match="no column 'dialogue_id'"):
        aggregate.read_contexts(path)


@pytest.mark.parametrize(
    ("head", "level"),
    [
        ("context_id", "turn"),
        ("dialogue_id", "dialogue"),
        ("item_id", "turn"),
        # Of a response the dialogue may be named too.
        ("context_id,dialogue_id", "turn"),
        ("level,item_id", "dialogue"),
    ],
)
def test_short_files_of_ratings_name_what_was_rated_in_one_of_three_ways(tmp_path, head, level):
    path = tmp_path / "ratings.csv"
    item = {"context_id,dialogue_id": "1,d", "level,item_id": "dialogue,1"}.get(head, "1")
    path.write_text(f"{head},system_id,rating\n{item},s,4\n")
    found = aggregate.read_ratings(path, dataset="d", scale=(1, 5))
    assert found.iloc[0][["level", "item_id", "system_id", "rating", "source"]].tolist() == [
        level,
        "1",
        "s",
        4,
        "human",
    ]
    path.write_text("system_id,rating\ns,4\n")
    with pytest.raises(SchemaError, match="no column 'context_id'"):
        aggregate.read_ratings(path)


def test_ratings_are_added_to_a_challenge_s_tables(tmp_path, caplog):
    contexts = [("d", f"c{c}", "whole", c, [], [], []) for c in range(2)]
    responses = [("d", f"c{c}", "s0", "yes") for c in range(2)]
    for name, rows in (("contexts", contexts), ("responses", responses)):
        schema.write(tmp_path / f"{name}.parquet", pd.DataFrame(rows, columns=schema.table(name).columns), name)
    (tmp_path / "submissions.json").write_text('{"failed": {"lost": "no responses"}}')
    turn, dialogue = tmp_path / "turn.csv", tmp_path / "dialogue.csv"
    turn.write_text("context_id,system_id,rating\nc0,s0,4\nc1,s0,5\nc1,lost,1\n")
    dialogue.write_text("dialogue_id,system_id,rating\nwhole,s0,3\n")
    aggregate.add_ratings(tmp_path, turn=turn, dialogue=dialogue)
    found = schema.read(tmp_path / "ratings.parquet", "ratings")
    assert found[["level", "item_id", "rating"]].to_numpy().tolist() == [
        ["dialogue", "whole", 3],
        ["turn", "c0", 4],
        ["turn", "c1", 5],
    ]
    assert set(found["dimension"]) == {"Overall"} and set(found["scale_max"]) == {5}
    assert "1 ratings are of submissions that were left out" in caplog.text
    with pytest.raises(SchemaError, match=r"2 rated items are in no table, the first: d, c0, s0"):
        aggregate.add_ratings(tmp_path, dialogue=turn)
