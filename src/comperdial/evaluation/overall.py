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
from comperdial.stats.design import FEWEST_SAMPLED, Design, Floats, Integers, codes_of
from comperdial.stats.jackknife import Replicates, Variances, over_units, variances, weighted
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
    grouping: Grouping | None = None
    weight: float = 1.0

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
        """Return the factor of a difference in the task in the overall score, which ranges from 0 to 1."""
        return self.weight * (0.5 if self.signed else 1.0)

    def replicates(
        self, scores: Floats, ratings: Floats, design: Design, items: Integers, resamples: int, seed: int
    ) -> Replicates:
        """Return the statistic of some metrics, and its value without each cluster."""
        if self.grouping is None:
            return over_units(scores, ratings, design, cast(Coefficient, self.measure))
        how = {"resamples": resamples or 1000, "seed": seed}
        return replicates(scores, ratings, design, items, [self.measure], self.grouping, **how)[self.measure]


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
            measure, grouping, together = entry["measure"], entry.get("grouping"), entry.get("together")
            if together and measure != "accuracy":
                raise ConfigError(
                    f"`together` for {measure}", where=f"board {name}", expected="it for `accuracy` alone"
                )
            if grouping is None and measure not in COEFFICIENTS:
                expected = "pearson, spearman or kendall, or a grouping"
                raise ConfigError(f"{measure} over all units", where=f"board {name}", expected=expected)
            sets = [tuple(entry["datasets"])] if together else [(one,) for one in entry["datasets"]]
            kinds.setdefault((measure, grouping), []).extend(sets)
        tasks = (
            Task(measure, datasets, grouping, 1 / (len(kinds) * len(sets)))
            for (measure, grouping), sets in kinds.items()
            for datasets in sets
        )
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
    """Rank metrics on each task of a board, and overall.

    Parameters
    ----------
    samples
        A sample of units of each data set, at turn or dialogue level; averaged by system if a task requires it. Without a
        sample, no metric has a value for the data set.
    outputs
        (metric, output) to rank. A metric without scores on a task is left out of the overall ranking.
    resamples, seed
        For WMT's test, and soft accuracies; 0: skip WMT's test.

    Returns
    -------
    tuple
        Tables ``overall`` and ``overall_comparisons``. The task ``overall`` is the weighted mean, between 0 and 1; values of
        tasks are on their own scales. Intervals use jackknife variances, with independent data sets.
    """
    tasks, sums = board.tasks, _Sums(board.tasks, len(outputs), resamples)
    rng = np.random.default_rng(seed)
    for dataset in board.datasets:
        sums.add(dataset, samples, outputs, seed, rng)
    difference, p, reach = sums.tested()
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
        _tests(difference[place, :-1, :-1], p[place], sums.draws[place]).assign(task=name)
        for place, name in enumerate(names)
    ]
    columns = {
        "value": values,
        "low": np.clip(values - reach, least, 1.0),
        "high": np.clip(values + reach, least, 1.0),
        "n": [*sums.n, (~gone).sum(axis=0)],
        "weight": np.clip([*np.broadcast_to(weights[:, np.newaxis], gone.shape), weights @ ~gone], 0, 1),
        "coverage": np.clip([*sums.coverage, weights @ sums.coverage], 0, 1),
        "lacking": lacking,
    }
    about = pd.DataFrame(outputs, columns=["metric", "output"]).assign(
        board=board.name, signature=[_signature(samples, name) for name in outputs]
    )
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
    frames = {OVERALL: ranking, "overall_comparisons": pairs}
    made = [schema.validate(frame[schema.table(name).columns], name) for name, frame in frames.items()]
    return made[0], made[1]


class _Sums:
    """Sums over data sets; the first axis is tasks and, last, the overall score.

    The next two axes of ``difference`` and ``parts`` are metrics and, last, a constant 0: the difference from it is a metric's
    own value. ``draws`` are differences with swapped scores, for WMT's test.
    """

    def __init__(self, tasks: Sequence[Task], metrics: int, resamples: int) -> None:
        square = len(tasks) + 1, metrics + 1, metrics + 1
        self.tasks, self.resamples = tasks, resamples
        self.difference, self.parts, self.fewest = np.zeros(square), np.zeros((4, *square)), np.full(square, np.inf)
        self.draws = np.zeros((len(tasks) + 1, metrics, metrics, resamples))
        self.n, self.coverage = np.zeros((len(tasks), metrics), dtype=np.intp), np.zeros((len(tasks), metrics))

    def add(
        self,
        dataset: str,
        samples: Mapping[str, Sample],
        outputs: Sequence[Output],
        seed: int,
        rng: np.random.Generator,
    ) -> None:
        """Add a data set: each pair of metrics is compared over the units that both scored."""
        tasks = {place: task for place, task in enumerate(self.tasks) if dataset in task.datasets}
        if (sample := samples.get(dataset)) is None:
            self.difference[[*tasks, -1]] = np.nan
            return
        place_of = {name: row for row, name in enumerate(sample.names)}
        missing = np.full(len(sample.ratings), np.nan)
        table = np.stack([sample.scores[place_of[name]] if name in place_of else missing for name in outputs])
        compared = np.zeros(self.difference.shape[1:], dtype=bool)
        shares = {place: _share(task, dataset, samples) for place, task in tasks.items()}
        for place, share in shares.items():
            self.coverage[place] += share * np.isfinite(table).mean(axis=1)
        for rows, wanted, units in common_units(np.isfinite(table)):
            if units.sum() < FEWEST_SAMPLED:
                continue
            known = sample.ratings[units], sample.design.of(units), codes_of(sample.items[units])
            scores = table[np.ix_(rows, units)]
            made = {place: task.replicates(scores, *known, self.resamples, seed) for place, task in tasks.items()}
            parts = {place: weighted([(shares[place], part)]) for place, part in made.items()}
            # All tasks of a data set vary together.
            parts[-1] = weighted([(task.scale, parts[place]) for place, task in tasks.items()])
            asked = np.pad(wanted, (0, 1))
            asked[-1, :-1] = asked[:-1, -1] = np.diag(wanted)
            at = np.ix_([*rows, -1], [*rows, -1])
            compared[at] |= asked
            for place, part in parts.items():
                values, drawn = part.with_zero().values, variances(part.with_zero())
                self.difference[place][at] += np.where(asked, values[:, np.newaxis] - values, 0)
                self.parts[:, place][:, *at] += np.where(asked, drawn.parts, 0)
                self.fewest[place][at] = np.fmin(self.fewest[place][at], np.where(asked, drawn.fewest, np.inf))
            for place in tasks:
                self.n[place, rows] += np.where(np.diag(wanted), parts[place].n, 0)
            for a, b in zip(*np.nonzero(np.triu(wanted, 1)), strict=True) if self.resamples else ():
                for place, task in tasks.items():
                    swapped = swapped_differences(
                        scores[[a, b]], *known, task.measure, task.grouping, resamples=self.resamples, rng=rng
                    )
                    # Swapping everything flips the sign: both are equally likely.
                    swapped *= shares[place] * rng.choice([-1.0, 1.0], self.resamples)
                    self.draws[place, rows[a], rows[b]] += swapped
        for place in (*tasks, -1):
            self.difference[place][~compared] = np.nan

    def tested(self) -> tuple[Floats, Floats, Floats]:
        """Return differences, and p and half the width of 95 % intervals by the jackknife."""
        self.draws[-1] = np.tensordot([task.scale for task in self.tasks], self.draws[:-1], 1)
        drawn = Variances(self.parts, self.fewest)
        return self.difference, *drawn.test(self.difference, drawn.cautious)


def _share(task: Task, dataset: str, samples: Mapping[str, Sample]) -> float:
    """Return a data set's share of a task's pairs of systems."""
    pairs = {name: math.comb(samples[name].design.counts[0], 2) for name in task.datasets if name in samples}
    return pairs[dataset] / (sum(pairs.values()) or 1) if len(task.datasets) > 1 else 1.0


def _signature(samples: Mapping[str, Sample], name: Output) -> str:
    of = [sample for sample in samples.values() if name in sample.names]
    return " / ".join(sorted({sample.signatures[sample.names.index(name)] for sample in of})) or "none"


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
