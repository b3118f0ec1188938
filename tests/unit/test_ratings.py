import math

import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.evaluation import ratings
from comperdial.stats.agreement import krippendorff_alpha
from ratedtables import rating_rows

RATERS = ["r1", "r2", "r3"]
AGENTS = ["s1", "s2", "s3", "s4"]
TURNS = 2


def turn_table(values, level="turn", **more):
    """Return ratings: {(context, system): one rating a rater, None for none}."""
    frames = [
        rating_rows(values, [row[place] for row in values.values()], rater, level, **more)
        for place, rater in enumerate(RATERS)
    ]
    return schema.validate(pd.concat(frames).dropna(subset="rating"), "ratings")


def dialogue_table(values):
    """Return dialogue ratings: {(dialogue, system): one a rater}, and marks on two axes, of which nobody made any."""
    whole = dict.fromkeys(values, (1.0, 1.0, 1.0))
    axes = [turn_table(whole, "dialogue", dimension=axis) for axis in ("Engagingness", "Fluency")]
    return both(turn_table(values, "dialogue"), *axes)


def both(*frames):
    return pd.concat(frames, ignore_index=True)


def of_turns(made):
    return made[0][made[0]["level"] == "turn"], made[1]


def make_contexts(dialogues):
    names = [("d", f"{dialogue}-{turn}", dialogue) for dialogue in dialogues for turn in range(TURNS)]
    return pd.DataFrame(names, columns=["dataset", "context_id", "dialogue_id"])


DIALOGUES = ["x", "y"]
CONTEXTS = make_contexts(DIALOGUES)
SYSTEMS = pd.DataFrame({"dataset": "d", "system_id": [*AGENTS, "person"], "kind": ["agent"] * 4 + ["human"]})
EVERYBODY = [(d, s) for d in DIALOGUES for s in [*AGENTS, "person"]]
# Dialogue minus turn: in x s1 -2, s2 -1, s3 -1, s4 0; in y s1 -2.5, s2 0, s3 0, s4 0; the person is lowest of all in x.
DIFFERENCES = {("x", "s1"): -2, ("x", "s2"): -1, ("x", "s3"): -1, ("x", "person"): -3, ("y", "s1"): -2.5}
TURN = turn_table({(f"{d}-{t}", s): (3, 4, 5) for d, s in EVERYBODY for t in range(TURNS)})
EQUAL = dialogue_table(dict.fromkeys(EVERYBODY, (3, 4, 5)))
DIALOGUE = dialogue_table({(d, s): [4 + DIFFERENCES.get((d, s), 0)] * 3 for d, s in EVERYBODY})
BOTH = both(TURN, DIALOGUE)


def simulated(seed=0):
    rng = np.random.default_rng(seed)
    dialogues = [f"d{n}" for n in range(6)]
    contexts = make_contexts(dialogues)
    values = {}
    for context in contexts["context_id"]:
        for system in AGENTS:
            row = list(np.clip(np.round(rng.normal(3, 1) + rng.normal(0, 0.7, 3)), 1, 5))
            values[context, system] = [None if rng.random() < 0.2 else value for value in row]
    dialogue = {
        (d, s): np.clip(np.round(rng.normal(3, 1) + rng.normal(0, 0.7, 3)), 1, 5) for d in dialogues for s in AGENTS
    }
    return both(turn_table(values), dialogue_table(dialogue)), contexts, values


class TestAlphas:
    def test_each_row_is_the_statistic_of_its_ratings(self):
        rated, contexts, values = simulated()
        found = ratings.alphas(rated, contexts, seed=3, resamples=50)
        assert list(found.columns) == ratings.ALPHA_COLUMNS
        key = ["dataset", "level", "dimension", "metric"]
        assert not found.duplicated(key).any()
        assert list(found["level"].unique()) == ["turn", "dialogue"]
        assert set(found["dimension"]) == {"Overall", "Engagingness", "Fluency"}
        table = np.array([[math.nan if v is None else v for v in row] for row in values.values()])
        kept = table[(~np.isnan(table)).sum(axis=1) >= 2]
        for metric in ("ordinal", "interval"):
            row = found.set_index(key).loc["d", "turn", "Overall", metric]
            assert row["value"] == pytest.approx(krippendorff_alpha(table, metric), abs=1e-12)
            assert row["low"] < row["value"] < row["high"]
            assert (row["items"], row["ratings"]) == (len(kept), (~np.isnan(kept)).sum())
            assert (row["annotators"], row["clusters"], row["resamples"]) == (3, 6 * 4, 50)
        row = found.set_index(key).loc["d", "dialogue", "Overall", "interval"]
        assert (row["items"], row["clusters"], row["ratings"]) == (24, 24, 72)
        # Nobody marked an axis: no variation, no alpha.
        assert found.loc[found["dimension"] == "Fluency", ["value", "low", "high"]].isna().all(axis=None)

    def test_turns_are_resampled_by_dialogue_and_system(self):
        turn, contexts = of_turns(simulated())
        row = ratings.alphas(turn, contexts, seed=3, resamples=5).iloc[0]
        units = {(context.split("-")[0], system) for context, system in turn[["item_id", "system_id"]].to_numpy()}
        assert row["clusters"] == len(units) < row["items"]

    def test_the_seed_decides_and_a_dimension_more_changes_nothing(self):
        rated, contexts, _ = simulated()
        found = ratings.alphas(rated, contexts, seed=3, resamples=30)
        pd.testing.assert_frame_equal(found, ratings.alphas(rated, contexts, seed=3, resamples=30))
        assert not found.equals(ratings.alphas(rated, contexts, seed=4, resamples=30))
        alone = ratings.alphas(rated[rated["dimension"] == "Overall"], contexts, seed=3, resamples=30)
        overall = found[found["dimension"] == "Overall"].reset_index(drop=True)
        pd.testing.assert_frame_equal(alone, overall)

    def test_judges_do_not_mix_with_people(self):
        turn, contexts = of_turns(simulated())
        judge = turn.assign(source="judge", annotator_id="j" + turn["annotator_id"], rating=1.0)
        both = pd.concat([turn, judge], ignore_index=True)
        pd.testing.assert_frame_equal(
            ratings.alphas(both, contexts, seed=3, resamples=5),
            ratings.alphas(turn, contexts, seed=3, resamples=5),
        )
        with pytest.raises(UnknownNameError, match="unknown source of ratings 'robot'"):
            ratings.alphas(both, contexts, seed=3, source="robot")

    def test_an_unknown_context_is_named(self):
        turn, contexts = of_turns(simulated())
        with pytest.raises(SchemaError, match="rated context 'd0-0' of data set 'd' is unknown"):
            ratings.alphas(turn, contexts[1:], seed=3)


class TestBias:
    def test_against_numbers_by_hand(self):
        table = turn_table(
            {
                ("x-0", "s1"): (1, 2, None),
                ("x-0", "s2"): (3, 2, 4),
                ("x-0", "s3"): (5, 4, None),
                ("x-1", "s1"): (2, None, None),
            }
        )
        found = ratings.annotator_bias(table).set_index("annotator_id")
        first = found.loc["r1"]
        # The others' means are 2, 3, 4; the item that r1 alone rated does not count.
        assert (first["n"], first["mean"], first["bias"]) == (3, 3.0, 0.0)
        # Own variance 4; of the others r2's squares are 8/3 with 2 degrees, r3's none with 0.
        assert first["spread"] == pytest.approx(math.sqrt(4 / (8 / 3 / 2)))
        assert first["spearman"] == pytest.approx(1)
        third = found.loc["r3"]
        assert (third["n"], third["bias"]) == (1, 1.5)
        assert math.isnan(third["spread"])
        assert math.isnan(third["spearman"])
        assert found.loc["r2", "bias"] == pytest.approx((1 - 1.5 - 1) / 3)

    def test_a_constant_bias_is_found_and_the_spread_does_not_see_it(self):
        rng = np.random.default_rng(2)
        truth = rng.normal(0, 0.3, (40, 1))
        table = turn_table({(f"x-{n}", "s"): 3 + row + [1, 0, 0] for n, row in enumerate(np.repeat(truth, 3, axis=1))})
        found = ratings.annotator_bias(table).set_index("annotator_id")
        assert list(found["bias"]) == pytest.approx([1, -0.5, -0.5])
        assert list(found["spread"]) == pytest.approx([1, 1, 1])
        assert list(found["spearman"]) == pytest.approx([1, 1, 1])

    def test_dialogues(self):
        found = ratings.annotator_bias(DIALOGUE)
        assert list(found.columns) == ratings.BIAS_COLUMNS
        assert set(found["level"]) == {"dialogue"}
        assert len(found) == 3 * len(RATERS)


class TestTable13:
    def test_the_dialogue_whose_systems_are_lowest_together(self):
        # y has the lowest single system, x the lowest three.
        cases = ratings.table13_cases(BOTH, CONTEXTS, systems=SYSTEMS)
        assert list(cases["system_id"]) == ["s1", "s2", "s3"]
        assert list(cases["difference"]) == [-2, -1, -1] and set(cases["turns"]) == {TURNS}
        assert set(cases["dialogue_id"]) == {"x"}
        one = ratings.table13_cases(BOTH, CONTEXTS, systems=SYSTEMS, count=1)
        assert list(zip(one["dialogue_id"], one["system_id"], strict=True)) == [("y", "s1")]
        same = ratings.table13_cases(both(TURN, EQUAL), CONTEXTS, count=2)
        assert list(zip(same["dialogue_id"], same["system_id"], strict=True)) == [("x", "person"), ("x", "s1")]
        assert len(ratings.table13_cases(BOTH, CONTEXTS, count=9)) == 5, "as many as there are"

    def test_turns_count_alike_however_many_rated_them(self):
        turn = turn_table({("x-0", "s1"): (1, None, None), ("x-1", "s1"): (4, 5, 3)})
        dialogue = dialogue_table({("x", "s1"): (2, 2, 2)})
        case = ratings.table13_cases(both(turn, dialogue), CONTEXTS).iloc[0]
        assert (case["turn_rating"], case["dialogue_rating"], case["difference"]) == (2.5, 2, -0.5)

    def test_what_is_lacking_is_named(self):
        with pytest.raises(SchemaError, match="no dialogue of a system has ratings at both levels"):
            ratings.table13_cases(
                both(TURN[TURN["item_id"].str.startswith("x")], DIALOGUE[DIALOGUE["item_id"] == "y"]), CONTEXTS
            )
        with pytest.raises(SchemaError, match="rated context"):
            ratings.table13_cases(BOTH, CONTEXTS[1:])


def test_agreement_by_position_needs_positions():
    table = turn_table({(f"x-{n}", "s1"): (n % 3 + 1, n % 3 + 2, None) for n in range(6)})
    table["position"] = table["annotator_id"].map({"r1": 0, "r2": 1})
    found = ratings.agreement(table)
    assert found["value"].tolist() == pytest.approx([1.0, 1.0]) and found["n"].tolist() == [6, 6]
    with pytest.raises(SchemaError, match="the positions of dimension 'Overall' are not one a rater"):
        ratings.agreement(table.assign(position=None))
