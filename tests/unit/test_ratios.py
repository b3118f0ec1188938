"""Robustness ratios of pairs, and shares with intervals."""

import argparse
import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from comperdial import schema
from comperdial.cli import dimensions as command
from comperdial.core.errors import ConfigError, FileError, SchemaError, UnknownNameError
from comperdial.evaluation.ratios import PairSet, bounds_of, ratios
from comperdial.stats.proportions import share


@dataclass(frozen=True)
class Aim:
    level: str
    dimensions: tuple[str, ...]
    threshold: float


AIMS = {
    "dullness": Aim("turn", ("interestingness", "specificity"), 0.2),
    "order_shuffle": Aim("dialogue", ("coherence",), 0.2),
}
BOUNDS = {("judge", "interestingness"): (1.0, 5.0), ("judge", "specificity"): (1.0, 5.0), ("len", "o"): (0.0, 10.0)}


def made(drops, perturbation="dullness", texts=None, turns=1):
    """Return the tables of pairs whose judge and whose metric `len` fall from 4 and from 8 by some number."""
    contexts, responses, scores = [], [], []
    for k, drop in enumerate(drops):
        pair = f"{perturbation}-{k:04d}"
        for system in ("original", "perturbed"):
            for t in range(turns):
                item = f"{pair}-{system}-{t}"
                text = texts[k] if texts else f"text {k}"
                contexts.append(("p", item, pair, t, [{"speaker": "A", "text": text}], [], []))
                responses.append(("p", item, system, "yes"))
                fall = 0.0 if system == "original" else drop
                outputs = [("judge", "interestingness"), ("judge", "specificity"), ("judge", "overall"), ("len", "o")]
                for metric, output in outputs:
                    start = 4.0 if metric == "judge" else 8.0
                    scores.append(("p", "turn", item, system, metric, output, start - fall, 0, f"{metric}|v:1"))
    return tuple(
        schema.validate(pd.DataFrame(rows, columns=schema.table(name).columns), name)
        for name, rows in (("contexts", contexts), ("responses", responses), ("scores", scores))
    )


def found(drops, bounds=BOUNDS, change=None, **how):
    contexts, responses, scores = made(drops, **how)
    pairs = PairSet.of("p", contexts, responses)
    return ratios([pairs], {"p": change(scores) if change else scores}, AIMS, bounds=bounds)


def one(frame, **which):
    for column, value in which.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def test_ratio_ties_and_interval_of_pairs():
    # On a scale of 1 to 5 a drop of 0.8 is just the threshold of 0.2: no drop of more.
    frame = found([0, 0, -1, 0.4, 0.8, 1, 2])
    any_drop = one(frame, metric="judge", dimension="specificity", threshold=0.0)
    assert (any_drop["ratio"], any_drop["ties"], any_drop["n"], any_drop["coverage"]) == (
        pytest.approx(4 / 7), pytest.approx(2 / 7), 7, 1.0,
    )  # fmt: skip
    wilson = stats.binomtest(4, 7).proportion_ci(method="wilson")
    assert (any_drop["low"], any_drop["high"]) == (pytest.approx(wilson.low), pytest.approx(wilson.high))
    assert one(frame, metric="judge", dimension="specificity", threshold=0.2)["ratio"] == pytest.approx(2 / 7)
    assert one(frame, metric="len", dimension="specificity", threshold=0.2)["ratio"] == 0


def test_a_judge_has_its_own_output_a_metric_all_and_no_bounds_mean_any_drop_only():
    frame = found([1, 0], bounds={})
    assert set(frame["threshold"]) == {0.0}
    rows = set(frame[["dimension", "metric", "output"]].itertuples(index=False, name=None))
    assert rows == {
        ("interestingness", "judge", "interestingness"), ("specificity", "judge", "specificity"),
        ("interestingness", "len", "o"), ("specificity", "len", "o"),
    }  # fmt: skip


def test_a_dialogues_score_is_the_mean_of_those_that_are_there():
    def without(scores):
        lost = (scores["item_id"] == "order_shuffle-0000-perturbed-2") | (
            scores["item_id"].str.startswith("order_shuffle-0002-perturbed")
        )
        changed = scores[~lost].copy()
        # One of three turns falls: the mean falls by a third of it, above rounding and no tie.
        changed.loc[changed["item_id"] == "order_shuffle-0001-perturbed-0", "value"] -= 3
        return changed

    frame = found([0, 0, 1], perturbation="order_shuffle", turns=3, change=without, bounds={("len", "o"): (0, 10)})
    row = one(frame, metric="len", dimension="coherence", threshold=0.0)
    assert (row["level"], row["n"], row["coverage"]) == ("dialogue", 2, pytest.approx(2 / 3))
    assert (row["ratio"], row["ties"]) == (0.5, 0.5)
    assert one(frame, metric="len", dimension="coherence", threshold=0.2)["ratio"] == 0


def test_scores_of_dialogues_are_taken_as_they_are():
    def whole(scores):
        rows = scores[scores["metric"] == "len"].copy()
        rows["item_id"] = rows["item_id"].str.rsplit("-", n=2).str[0]
        return rows.assign(level="dialogue").drop_duplicates(["item_id", "system_id"])

    row = one(found([1, 0, 0, 0], perturbation="order_shuffle", change=whole), threshold=0.0)
    assert (row["ratio"], row["n"]) == (0.25, 4)


def test_pairs_of_one_original_are_no_independent_pairs():
    drops = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0] * 4
    alone = one(found(drops), metric="len", dimension="specificity", threshold=0.0)
    together = one(
        found(drops, texts=[f"t{k // 5}" for k in range(40)]), metric="len", dimension="specificity", threshold=0.0
    )
    assert alone["ratio"] == together["ratio"] == 0.5
    assert together["high"] - together["low"] > 1.5 * (alone["high"] - alone["low"])


def test_no_complete_pair_is_no_ratio():
    frame = found([1, 1], change=lambda scores: scores[scores["system_id"] == "original"])
    assert (frame["n"] == 0).all()
    assert frame[["ratio", "low", "high", "ties"]].isna().all(axis=None)


_drops = st.lists(st.floats(-3, 3, width=16), min_size=1, max_size=8)


@settings(max_examples=15)
@given(_drops, st.sampled_from([0.01, 0.1, 0.3, 0.7]), st.sampled_from([0.5, 2.0, 8.0]))
def test_ratios_are_shares_fall_with_the_threshold_and_do_not_depend_on_the_scale(drops, threshold, factor):
    contexts, responses, scores = made(drops)
    pairs = PairSet.of("p", contexts, responses)
    scores = scores[scores["metric"] == "len"]
    aims = {"dullness": Aim("turn", ("specificity",), threshold)}
    frame = ratios([pairs], {"p": scores}, aims, bounds={("len", "o"): (0, 11)})
    low, high = frame.sort_values("threshold")["ratio"]
    assert 0 <= high <= low <= 1
    assert (frame["low"] <= frame["ratio"]).all() and (frame["ratio"] <= frame["high"]).all()
    scaled = scores.assign(value=scores["value"] * np.float32(factor))
    again = ratios([pairs], {"p": scaled}, aims, bounds={("len", "o"): (0, 11 * factor)})
    pd.testing.assert_frame_equal(frame, again)


def test_wrong_pairs_scores_and_bounds_are_named():
    contexts, responses, scores = made([1, 0])
    pairs = PairSet.of("p", contexts, responses)
    with pytest.raises(SchemaError, match="dialogue 'dullness-0000' has responses of perturbed; expected a pair"):
        PairSet.of("p", contexts, responses[responses["context_id"] != "dullness-0000-original-0"])
    with pytest.raises(UnknownNameError, match=r"dataset 'p': unknown perturbation 'dullness'.*'dulness'"):
        ratios([pairs], {"p": scores}, {"dulness": AIMS["dullness"]})
    with pytest.raises(SchemaError, match="dullness, len:o: a score of 8, outside its bounds; expected 0 to 7"):
        ratios([pairs], {"p": scores}, AIMS, bounds={("len", "o"): (0.0, 7.0)})
    with pytest.raises(SchemaError, match="no score of metric 'judge' belongs to a pair"):
        ratios([pairs], {"p": scores.assign(item_id=[f"x{k}" for k in range(len(scores))])}, AIMS)
    with pytest.raises(SchemaError, match="context 'lost' is not in the table"):
        PairSet.of("p", contexts, responses.assign(context_id="lost").iloc[:1])


@pytest.mark.parametrize("pair", [[1, 1], [1], "ab", [0, float("nan")], [False, True], [5, 1]])
def test_what_are_no_bounds_is_refused(pair):
    with pytest.raises(ConfigError, match=r"bounds, m, o: .*low below high"):
        bounds_of({"m": {"o": pair}})
    with pytest.raises(ConfigError, match="bounds, m: no object"):
        bounds_of({"m": pair})


def test_the_command(tmp_path):
    contexts, responses, scores = made([1, 0, 2])
    for name, frame in (("contexts", contexts), ("responses", responses)):
        schema.write(tmp_path / f"{name}.parquet", frame, name)
    schema.write(tmp_path / "scores.parquet", scores, "scores")
    parser = argparse.ArgumentParser()
    command.add_commands(parser.add_subparsers())

    def call(folder):
        arguments = ["ratios", tmp_path / "scores.parquet", "--tables", folder, "--output", tmp_path / "out.parquet"]
        bounds = json.dumps({"judge": {"specificity": [1, 5]}})
        options = parser.parse_args([*map(str, arguments), "--bounds", bounds])
        options.run(options)

    call(tmp_path)
    frame = schema.read(tmp_path / "out.parquet", "ratios")
    assert one(frame, metric="judge", dimension="specificity", threshold=0.2)["ratio"] == pytest.approx(2 / 3)
    with pytest.raises(FileError, match="none: no such folder"):
        call(tmp_path / "none")


def test_a_share_of_nothing_of_one_thing_and_of_all():
    assert np.isnan(share([], []).value)
    assert (share([True, False], [1, 1]).low, share([True, False], [1, 1]).high) == (0, 1)
    every = share([True] * 20, np.arange(20) // 5)
    assert every.high == 1
    # As unsure as four units are.
    assert every.low < share([True] * 20, np.arange(20)).low
    with pytest.raises(ValueError, match="a cluster for each"):
        share([True], [1, 2])


def test_intervals_of_clusters_cover():
    rng = np.random.default_rng(11)
    clusters = np.repeat(np.arange(40), 5)
    hit = [0, 0]
    for _ in range(400):
        yes = rng.random(200) < rng.beta(0.6, 0.4, 40)[clusters]
        for at, of in enumerate((clusters, np.arange(200))):
            found = share(yes, of)
            hit[at] += found.low <= 0.6 <= found.high
    assert 0.92 <= hit[0] / 400 <= 0.985
    # Taken for independent they would be much too narrow.
    assert hit[1] / 400 < 0.85
