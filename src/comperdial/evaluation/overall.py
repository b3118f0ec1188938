"""Rank metrics over many data sets: tasks, their weighted mean, and significance tests.

A task is a statistic on a data set; pairwise accuracy is one task over several sets, counting all pairs of systems equally. The
overall score is the weighted mean over tasks, with correlations rescaled from -1..1 to 0..1, as in the official tables of the
WMT metrics tasks. The two tests differ: ours treats systems and dialogues as samples, WMT's as fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.names import Output
from comperdial.evaluation.samples import Sample, Tables
from comperdial.schema.dimensions import chosen_dimension
from comperdial.stats import COEFFICIENTS, Coefficient, Measure
from comperdial.stats.comparison import common_units
from comperdial.stats.design import FEWEST_SAMPLED, Floats, Integers, codes_of
from comperdial.stats.jackknife import Variances, over_units, variances, weighted
from comperdial.stats.multiple import benjamini_hochberg, holm, rank_clusters
from comperdial.stats.pairs import Grouping, replicates
from comperdial.stats.swaps import swapped_differences

OVERALL = "overall"
BOARDS = Path("studies/overall/boards.yaml")
# Swaps less extreme than the data by this relative amount still count as equally extreme.
_NEAR = 1e-6
# Statistics from -1 to 1; the others are shares.
_SIGNED = (*COEFFICIENTS, "tau_c", "tau_23", "pairwise_pearson")


@dataclass(frozen=True)
class Task:
    """A statistic, any of ``MEASURES``, on one data set; for ``accuracy`` several, whose pairs of systems are pooled.

    ``grouping`` is ``item``, ``system``, ``pooled`` (system means), or None: over all units; ``weight`` is the task's share of
    the overall score.
    """

    measure: Measure
    datasets: tuple[str, ...]
    grouping: Grouping | None
    weight: float

    @property
    def name(self) -> str:
        """Return the task's name in tables."""
        within = f" by {self.grouping}" if self.grouping in ("item", "system") else ""
        return f"{self.measure}{within}, {'+'.join(self.datasets)}"

    @property
    def signed(self) -> bool:
        """Return whether the statistic ranges from -1 to 1; others are shares."""
        return self.measure in _SIGNED

    @property
    def scale(self) -> float:
        """Return the factor that scales the task's differences to the overall score, which ranges from 0 to 1."""
        return self.weight * (0.5 if self.signed else 1.0)


@dataclass(frozen=True)
class Board:
    """The tasks behind one ranking."""

    name: str
    tasks: tuple[Task, ...]

    @classmethod
    def of(cls, name: str, entries: Sequence[Mapping[str, Any]]) -> Board:
        """Read a board's tasks: each entry has a measure, its grouping, and data sets; ``together`` makes them one task.

        Every kind of task has the same weight, split evenly over its tasks. Raises a ConfigError for pooled data sets with
        another measure than ``accuracy``, or a statistic of pairs without a grouping.
        """
        kinds: dict[tuple[Measure, Grouping | None], list[tuple[str, ...]]] = {}
        for entry in entries:
            (measure, grouping), where = (entry["measure"], entry.get("grouping")), f"board {name}"
            if entry.get("together") and measure != "accuracy":
                raise ConfigError(f"`together` for {measure}", where=where, expected="it for `accuracy` alone")
            if grouping is None and measure not in COEFFICIENTS:
                expected = "pearson, spearman or kendall, or a grouping"
                raise ConfigError(f"{measure} over all units", where=where, expected=expected)
            sets = [tuple(entry["datasets"])] if entry.get("together") else [(one,) for one in entry["datasets"]]
            kinds.setdefault((measure, grouping), []).extend(sets)
        weights = {kind: 1 / (len(kinds) * len(sets)) for kind, sets in kinds.items()}
        tasks = (Task(kind[0], one, kind[1], weights[kind]) for kind, sets in kinds.items() for one in sets)
        return cls(name, tuple(tasks))

    @property
    def datasets(self) -> list[str]:
        """Return the data sets of all tasks."""
        return list(dict.fromkeys(name for task in self.tasks for name in task.datasets))


def read_boards(path: str | Path = BOARDS) -> dict[str, Any]:
    """Return the boards of a file by name: ``title``, ``level``, ``source``, ``tasks`` and ``outputs``."""
    return dict(load_yaml(path)["boards"])


def board_of(name: str, boards: Mapping[str, Any]) -> dict[str, Any]:
    """Return a board by name."""
    if name not in boards:
        raise UnknownNameError("board", name, boards)
    return dict(boards[name])


def overall(
    board: Board,
    samples: Mapping[str, Sample],
    outputs: Sequence[Output],
    *,
    resamples: int = 1000,
    seed: int = 2024,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rank metrics on each task of a board, and overall: tables ``overall`` and ``overall_comparisons``.

    ``samples`` has a sample of units of each data set, at turn or dialogue level, averaged by system if a task requires it;
    without a sample, no metric has a value for the data set. ``outputs`` are the (metric, output) to rank; one without scores on
    a task is left out of the overall ranking. ``resamples`` and ``seed`` are for WMT's test (0: skip it) and soft accuracies.
    The task ``overall`` is the weighted mean, between 0 and 1; values of tasks are on their own scales. Intervals use jackknife
    variances, with independent data sets.
    """
    tasks = board.tasks
    difference, drawn, draws, n, coverage = _summed(board, samples, outputs, resamples, seed)
    p, reach = drawn.test(difference, drawn.cautious)
    # The difference from the constant 0 is a metric's own value.
    values, reach = difference[:, :-1, -1].copy(), reach[:, :-1, -1]
    scores, weights = values[:-1], np.array([task.weight for task in tasks])
    gone, signed = ~np.isfinite(scores), np.array([[task.signed] for task in tasks])
    # Rescale a correlation r to (1 + r) / 2.
    values[-1] = weights @ np.where(signed, (scores + 1) / 2, scores)
    least = np.where(np.vstack([signed, [[False]]]), -1.0, 0.0)
    names = [*(task.name for task in tasks), OVERALL]
    lacking = [["no scores" if lacks else None for lacks in row] for row in gone]
    lacking.append(["no scores for: " + "; ".join(compress(names, lacks)) if lacks.any() else None for lacks in gone.T])
    tests = [
        _tests(difference[place, :-1, :-1], p[place], draws[place]).assign(task=name)
        for place, name in enumerate(names)
    ]
    columns = {
        "value": values,
        "low": np.clip(values - reach, least, 1.0),
        "high": np.clip(values + reach, least, 1.0),
        "n": [*n, (~gone).sum(axis=0)],
        "weight": np.clip([*np.broadcast_to(weights[:, np.newaxis], gone.shape), weights @ ~gone], 0, 1),
        "coverage": np.clip([*coverage, weights @ coverage], 0, 1),
        "lacking": lacking,
    }
    signed_by: dict[Output, set[str]] = {name: set() for name in outputs}
    for sample in samples.values():
        for name, signature in zip(sample.names, sample.signatures, strict=True):
            signed_by.setdefault(name, set()).add(signature)
    signatures = [" / ".join(sorted(signed_by[name])) or "none" for name in outputs]
    about = pd.DataFrame(outputs, columns=["metric", "output"]).assign(board=board.name, signature=signatures)
    ranking = pd.concat([about] * len(names), ignore_index=True).assign(
        task=np.repeat(names, len(outputs)),
        coefficient=np.repeat([*(task.measure for task in tasks), "mean"], len(outputs)),
        **{column: np.ravel(each) for column, each in columns.items()},
        rank=_ranks(values, tests, "p_adjusted"),
        rank_wmt=_ranks(values, tests, "p_wmt"),
    )
    pairs = pd.concat(tests, ignore_index=True)
    for side in "ab":
        pairs[[f"metric_{side}", f"output_{side}"]] = about.loc[pairs[side], ["metric", "output"]].to_numpy()
    pairs = pairs.assign(board=board.name, test=f"jackknife|perm-both:{resamples or 'no'}|v:1")
    return (
        schema.validate(ranking[schema.table(OVERALL).columns], OVERALL),
        schema.validate(pairs[schema.table("overall_comparisons").columns], "overall_comparisons"),
    )


def _summed(
    board: Board, samples: Mapping[str, Sample], outputs: Sequence[Output], resamples: int, seed: int
) -> tuple[Floats, Variances, Floats, Integers, Floats]:
    """Return sums over data sets; the first axis is tasks and, last, the overall score.

    The next two axes of the differences and variances are metrics and, last, a constant 0; then come differences with swapped
    scores, for WMT's test, numbers of units and coverage. Each pair of metrics is compared over the units that both scored.
    """
    metrics, rng = len(outputs), np.random.default_rng(seed)
    square = len(board.tasks) + 1, metrics + 1, metrics + 1
    difference, spread, fewest = np.zeros(square), np.zeros((4, *square)), np.full(square, np.inf)
    draws = np.zeros((len(board.tasks) + 1, metrics, metrics, resamples))
    n, coverage = np.zeros((len(board.tasks), metrics), dtype=np.intp), np.zeros((len(board.tasks), metrics))
    for dataset in board.datasets:
        tasks = {place: task for place, task in enumerate(board.tasks) if dataset in task.datasets}
        if (sample := samples.get(dataset)) is None:
            difference[[*tasks, -1]] = np.nan
            continue
        place_of = {name: row for row, name in enumerate(sample.names)}
        missing = np.full(len(sample.ratings), np.nan)
        table = np.stack([sample.scores[place_of[name]] if name in place_of else missing for name in outputs])
        compared = np.zeros(square[1:], dtype=bool)
        shares = {place: _share(task, dataset, samples) for place, task in tasks.items()}
        for place, share in shares.items():
            coverage[place] += share * np.isfinite(table).mean(axis=1)
        for rows, wanted, units in common_units(np.isfinite(table)):
            if units.sum() < FEWEST_SAMPLED:
                continue
            known = sample.ratings[units], sample.design.of(units), codes_of(sample.items[units])
            scores, parts = table[np.ix_(rows, units)], {}
            for place, task in tasks.items():
                if task.grouping is None:
                    made = over_units(scores, *known[:2], cast(Coefficient, task.measure))
                else:
                    how: dict[str, Any] = {"resamples": resamples or 1000, "seed": seed}
                    made = replicates(scores, *known, [task.measure], task.grouping, **how)[task.measure]
                parts[place] = weighted([(shares[place], made)])
            # All tasks of a data set vary together.
            parts[-1] = weighted([(task.scale, parts[place]) for place, task in tasks.items()])
            asked = np.pad(wanted, (0, 1))
            asked[-1, :-1] = asked[:-1, -1] = np.diag(wanted)
            at = np.ix_([*rows, -1], [*rows, -1])
            compared[at] |= asked
            for place, part in parts.items():
                values, drawn = part.with_zero().values, variances(part.with_zero())
                difference[place][at] += np.where(asked, values[:, np.newaxis] - values, 0)
                spread[:, place][:, *at] += np.where(asked, drawn.parts, 0)
                fewest[place][at] = np.fmin(fewest[place][at], np.where(asked, drawn.fewest, np.inf))
            for place in tasks:
                n[place, rows] += np.where(np.diag(wanted), parts[place].n, 0)
            for a, b in zip(*np.nonzero(np.triu(wanted, 1)), strict=True) if resamples else ():
                for place, task in tasks.items():
                    how = {"resamples": resamples, "rng": rng}
                    swapped = swapped_differences(scores[[a, b]], *known, task.measure, task.grouping, **how)
                    # Swapping everything flips the sign: both are equally likely.
                    swapped *= shares[place] * rng.choice([-1.0, 1.0], resamples)
                    draws[place, rows[a], rows[b]] += swapped
        for place in (*tasks, -1):
            difference[place][~compared] = np.nan
    draws[-1] = np.tensordot([task.scale for task in board.tasks], draws[:-1], 1)
    return difference, Variances(spread, fewest), draws, n, coverage


def _share(task: Task, dataset: str, samples: Mapping[str, Sample]) -> float:
    """Return a data set's share of a task's pairs of systems."""
    pairs = {name: math.comb(samples[name].design.counts[0], 2) for name in task.datasets if name in samples}
    return pairs[dataset] / (sum(pairs.values()) or 1) if len(task.datasets) > 1 else 1.0


def _tests(difference: Floats, p: Floats, draws: Floats) -> pd.DataFrame:
    """Return a row per pair of metrics, ``a`` the better one: indices of metrics, difference and p-values."""
    one, other = np.nonzero(np.triu(np.isfinite(difference), 1))
    turned = difference[one, other] < 0
    a, b = np.where(turned, other, one), np.where(turned, one, other)
    far = np.abs(draws[one, other]) >= np.abs(difference[one, other])[:, np.newaxis] - _NEAR
    # One-sided, as in WMT's test; some statistics have none.
    p = p[one, other]
    drawn = np.isfinite(draws[one, other]).all(axis=-1) & (draws.shape[-1] > 0)
    p_wmt = np.where(drawn, far.mean(axis=-1) / 2 if draws.shape[-1] else np.nan, np.nan)
    adjusted = {"p": p, "p_adjusted": holm(p), "p_fdr": benjamini_hochberg(p), "p_wmt": p_wmt}
    return pd.DataFrame({"a": a, "b": b, "difference": difference[a, b]} | adjusted)


def _ranks(values: Floats, tests: Sequence[pd.DataFrame], p: str) -> pd.arrays.IntegerArray:
    """Return for each task the clusters of metrics that do not differ significantly; missing without tests."""
    ranks: list[int | None] = []
    for own, pairs in zip(values, tests, strict=True):
        matrix = np.full((len(own), len(own)), np.nan)
        matrix[pairs["a"], pairs["b"]] = matrix[pairs["b"], pairs["a"]] = pairs[p]
        tested = np.isfinite(matrix).any()
        ranks += [rank if rank and tested else None for rank in rank_clusters(own, matrix).tolist()]
    return pd.array(ranks, dtype="Int32")


def pairs_of_systems(
    board: Board, samples: Mapping[str, Sample], kinds: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    """Return table ``overall_pairs``: the pairs of systems behind the tasks over system means.

    ``kinds`` is the kind of each system of each data set, as in table ``systems``, to count pairs with a human.
    """
    rows = []
    for task in board.tasks:
        for name in task.datasets if task.grouping == "pooled" else ():
            if name in samples:
                systems = samples[name].systems
                agents = sum(kinds.get(name, {}).get(system) != "human" for system in systems)
                pairs = math.comb(len(systems), 2)
                counts = {"systems": len(systems), "pairs": pairs, "with_human": pairs - math.comb(agents, 2)}
                rows.append({"board": board.name, "task": task.name, "dataset": name} | counts)
    columns = schema.table("overall_pairs").columns
    return schema.validate(pd.DataFrame(rows, columns=columns), "overall_pairs")


def read_samples(
    folders: Mapping[str, Path],
    scores: pd.DataFrame,
    outputs: Sequence[Output],
    *,
    level: str,
    source: str,
    targets: Mapping[str, str | None] | None = None,
) -> dict[str, Sample]:
    """Read the samples of a board: the units of a level of each data set, in one rated dimension.

    ``folders`` are the tables of each data set, ``scores`` is table ``scores`` of any of them, ``outputs`` the (metric, output)
    to keep; ``level`` is ``turn`` or ``dialogue``; ``targets`` are the dimensions by data set (default: the one closest to
    overall quality).
    """
    kept = scores[pd.MultiIndex.from_frame(scores[["metric", "output"]]).isin(list(outputs))]
    samples = {}
    for name, folder in folders.items():
        tables = replace(Tables.read(folder, (), source), scores=kept[kept["dataset"] == name])
        ratings = tables.ratings
        rated = ratings.loc[(ratings["level"] == level) & (ratings["source"] == source), "dimension"]
        if len(tables.scores) and len(rated):
            (samples[name],) = tables.samples([level], [chosen_dimension((targets or {}).get(name), None, rated)])
    return samples
