"""One ranking of metrics over many data sets: tasks, their weighted mean, and whether metrics differ in it.

A task is a statistic on a data set; pairwise accuracy is one task over several sets, all pairs of systems counting alike. The
overall score is the weighted mean over tasks, correlations taken from -1..1 to 0..1, as in the official tables of the WMT
metrics tasks. Two tests answer different questions: ours takes systems and dialogues as drawn from more of their kind, WMT's
takes them as given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.names import Output
from comperdial.evaluation.options import Tables
from comperdial.evaluation.samples import Sample
from comperdial.schema.dimensions import chosen_dimension
from comperdial.stats import COEFFICIENTS, Measure
from comperdial.stats.comparison import common_units
from comperdial.stats.design import FEWEST_SAMPLED, Design
from comperdial.stats.jackknife import CLOSE, Replicates, Variances, over_units, variances, weighted
from comperdial.stats.multiple import benjamini_hochberg, holm, rank_clusters
from comperdial.stats.pairs import Grouping, replicates
from comperdial.stats.swaps import swapped_differences

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Missing = Literal["left-out", "worst"]

OVERALL = "overall"
BOARDS = Path("studies/overall/boards.yaml")
# Statistics from -1 to 1; the others are shares.
_SIGNED = (*COEFFICIENTS, "tau_c", "tau_23", "pairwise_pearson")


@dataclass(frozen=True)
class Task:
    """A statistic, on one data set or on several together.

    Attributes
    ----------
    measure
        Any of ``MEASURES``.
    datasets
        Which data sets; several for ``accuracy``, whose pairs of systems are pooled.
    grouping
        ``item``, ``system``, ``pooled`` (means of systems), or None: over all units.
    weight
        Its share of the overall score.
    """

    measure: Measure
    datasets: tuple[str, ...]
    grouping: Grouping | None = None
    weight: float = 1.0

    @property
    def name(self) -> str:
        """Return what tables call the task."""
        within = f" by {self.grouping}" if self.grouping in ("item", "system") else ""
        return f"{self.measure}{within}, {'+'.join(self.datasets)}"

    @property
    def signed(self) -> bool:
        """Return whether the statistic goes from -1 to 1; others are shares."""
        return self.measure in _SIGNED

    def replicates(
        self, scores: Floats, ratings: Floats, design: Design, items: Integers, resamples: int, seed: int
    ) -> Replicates:
        """Return the statistic of some metrics, and what it is without each cluster."""
        if self.grouping is not None:
            return replicates(
                scores, ratings, design, items, [self.measure], self.grouping, resamples=resamples or 1000, seed=seed
            )[self.measure]
        for name in COEFFICIENTS:
            if name == self.measure:
                return over_units(scores, ratings, design, name)
        raise ConfigError(f"{self.measure} over all units", expected="pearson, spearman or kendall, or a grouping")


@dataclass(frozen=True)
class Board:
    """Tasks that make one ranking."""

    name: str
    tasks: tuple[Task, ...]

    @classmethod
    def of(cls, name: str, entries: Sequence[Mapping[str, Any]]) -> Board:
        """Read a board's tasks: each entry a measure, its grouping, and data sets; ``together`` makes them one task.

        Every kind of task has the same weight, and in it every task.

        Raises
        ------
        ConfigError
            For data sets taken together by anything but ``accuracy``.
        """
        found: dict[tuple[Measure, Grouping | None], list[tuple[str, ...]]] = {}
        for entry in entries:
            measure, together = entry["measure"], entry.get("together")
            if together and measure != "accuracy":
                raise ConfigError(
                    f"`together` for {measure}", where=f"board {name}", expected="it for `accuracy` alone"
                )
            sets = [tuple(entry["datasets"])] if together else [(one,) for one in entry["datasets"]]
            found.setdefault((measure, entry.get("grouping")), []).extend(sets)
        return cls(
            name,
            tuple(
                Task(measure, datasets, grouping, 1 / (len(found) * len(sets)))
                for (measure, grouping), sets in found.items()
                for datasets in sets
            ),
        )

    @property
    def datasets(self) -> list[str]:
        """Return the data sets of all tasks."""
        return list(dict.fromkeys(name for task in self.tasks for name in task.datasets))


def read_boards(path: str | Path = BOARDS) -> dict[str, Any]:
    """Return the boards of a file by name: ``title``, ``level``, ``source``, ``missing``, ``tasks`` and ``outputs``."""
    return dict(load_yaml(path)["boards"])


def board_of(name: str, boards: Mapping[str, Any]) -> dict[str, Any]:
    """Return a board by name."""
    if name not in boards:
        raise UnknownNameError("board", name, boards)
    return dict(boards[name])


class _Sum:
    """Sums over data sets: differences of all pairs, their variances, and draws of WMT's test.

    The last row and column of differences and variances is a metric that is always 0: a difference from it is a metric's own
    value.
    """

    def __init__(self, count: int, resamples: int) -> None:
        square = (count + 1, count + 1)
        self.difference, self.variances, self.fewest = np.zeros(square), np.zeros((4, *square)), np.full(square, np.inf)
        self.value, self.n = np.zeros(count), np.zeros(count, dtype=np.intp)
        self.draws = np.zeros((count, count, resamples), dtype=np.float32)

    def add(self, difference: Floats, parts: Floats, fewest: Floats) -> None:
        """Add what one data set says."""
        self.difference += difference
        self.value += difference[:-1, -1]
        self.variances += parts
        self.fewest = np.minimum(self.fewest, fewest)

    def p(self) -> Floats:
        """Return p of our test, of all pairs."""
        of = Variances(self.variances, self.fewest)
        return of.test(self.difference, of.cautious)[0][:-1, :-1]

    def p_wmt(self) -> Floats:
        """Return p of WMT's test, of all pairs; one-sided, as there."""
        difference = self.difference[:-1, :-1]
        if not self.draws.shape[-1]:
            return np.full(difference.shape, np.nan)
        far = ~(np.abs(self.draws) < np.abs(difference)[..., np.newaxis] - CLOSE - 1e-6)
        return np.where(np.isnan(difference), np.nan, far.mean(axis=-1) / 2)

    def interval(self, low: float) -> tuple[Floats, Floats]:
        """Return the ends of 95 % intervals of values, which are between ``low`` and 1."""
        of = Variances(self.variances[:, :-1, -1], self.fewest[:-1, -1])
        reach = of.test(self.value, of.cautious)[1]
        return np.clip(self.value - reach, low, 1.0), np.clip(self.value + reach, low, 1.0)


@dataclass
class _Ranking:
    """What one ranking is made of: the board, its samples and outputs, and the sums of each task and overall (the last)."""

    board: Board
    samples: Mapping[str, Sample]
    outputs: Sequence[Output]
    resamples: int
    seed: int
    sums: list[_Sum] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sums = [_Sum(len(self.outputs), self.resamples) for _ in range(len(self.board.tasks) + 1)]
        self.coverage = np.zeros((len(self.board.tasks), len(self.outputs)))
        rng = np.random.default_rng(self.seed)
        for dataset in self.board.datasets:
            places = [place for place, task in enumerate(self.board.tasks) if dataset in task.datasets]
            if dataset in self.samples:
                self._add(places, dataset, rng)
                continue
            for place in (*places, -1):
                self.sums[place].difference += np.nan
                self.sums[place].value += np.nan

    def _share(self, task: Task, dataset: str) -> float:
        """Return a data set's share of a task: that of the task's pairs of systems."""
        pairs = {
            name: math.comb(self.samples[name].design.counts[0], 2) for name in task.datasets if name in self.samples
        }
        return pairs[dataset] / sum(pairs.values()) if len(task.datasets) > 1 else 1.0

    def _add(self, places: Sequence[int], dataset: str, rng: np.random.Generator) -> None:
        """Add what a data set says on each of its tasks, over the units that both metrics of a pair have."""
        sample, count = self.samples[dataset], len(self.outputs)
        row_of = {name: row for row, name in enumerate(sample.names)}
        missing = np.full(len(sample.ratings), np.nan)
        table = np.stack([sample.scores[row_of[name]] if name in row_of else missing for name in self.outputs])
        tasks = {place: self.board.tasks[place] for place in places}
        shares = {place: self._share(task, dataset) for place, task in tasks.items()}
        scale = {place: task.weight * (0.5 if task.signed else 1.0) for place, task in tasks.items()}
        for place, share in shares.items():
            self.coverage[place] += share * np.isfinite(table).mean(axis=1)
        square = (count + 1, count + 1)
        # A pair without units in common has no difference.
        found = {
            place: (np.full(square, np.nan), np.zeros((4, *square)), np.full(square, np.inf)) for place in (*places, -1)
        }
        for rows, wanted, units in common_units(np.isfinite(table)):
            if units.sum() < FEWEST_SAMPLED:
                continue
            items = np.unique(sample.items[units], return_inverse=True)[1].astype(np.intp)
            known = table[np.ix_(rows, units)], sample.ratings[units], sample.design.of(units), items
            made: dict[int, Replicates] = {}
            for place, task in tasks.items():
                own = task.replicates(*known, self.resamples, self.seed)
                made[place] = weighted([(shares[place], own)])
                n = self.sums[place].n
                n[rows] = np.where(np.diag(wanted), n[rows] + own.n, n[rows])
            made[-1] = weighted([(scale[place], made[place]) for place in places])
            # Each metric has a difference from the one that is always 0.
            asked = np.pad(wanted, (0, 1))
            asked[-1, :-1] = asked[:-1, -1] = np.diag(wanted)
            asked[-1, -1] = False
            at = np.ix_([*rows, count], [*rows, count])
            for place, own in made.items():
                with_zero = own.with_zero()
                of = variances(with_zero)
                apart = with_zero.values[:, np.newaxis] - with_zero.values
                for whole, new in zip(found[place], (apart, of.parts, np.full(asked.shape, of.fewest)), strict=True):
                    whole[..., at[0], at[1]] = np.where(asked, new, whole[..., at[0], at[1]])
            for a, b in zip(*np.nonzero(np.triu(wanted, 1)), strict=True) if self.resamples else ():
                one, other = rows[a], rows[b]
                for place, task in tasks.items():
                    drawn = swapped_differences(
                        known[0][a],
                        known[0][b],
                        *known[1:],
                        task.measure,
                        task.grouping,
                        resamples=self.resamples,
                        rng=rng,
                    )
                    # Swapping everything turns the sign: either is as likely.
                    drawn = (shares[place] * drawn * rng.choice([-1.0, 1.0], self.resamples)).astype(np.float32)
                    for sums, factor in ((self.sums[place], 1.0), (self.sums[-1], scale[place])):
                        sums.draws[one, other] += factor * drawn
                        sums.draws[other, one] += factor * drawn
        for place, (difference, parts, fewest) in found.items():
            self.sums[place].add(difference, parts, fewest)

    def tables(self, missing: Missing) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return tables ``overall`` and ``overall_comparisons``."""
        tasks, whole = self.board.tasks, self.sums[-1]
        scores = np.stack([sums.value for sums in self.sums[:-1]])
        weights, gone = np.array([task.weight for task in tasks]), ~np.isfinite(scores)
        parts = [
            self._of_task(task.name, task.measure, sums, -1.0 if task.signed else 0.0, task.weight, coverage)
            for task, sums, coverage in zip(tasks, self.sums, self.coverage, strict=False)
        ]
        given = gone & (missing == "worst")
        if given.any():
            worst = np.nanmin(np.where(gone.all(axis=1, keepdims=True), np.inf, scores), axis=1)
            scores = np.where(given, np.where(np.isfinite(worst), worst, np.nan)[:, np.newaxis], scores)
            # A value that was given has no variance, and no test.
            whole.variances[:, np.append(given.any(axis=0), False), -1] = np.nan
        signed = np.array([task.signed for task in tasks])[:, np.newaxis]
        whole.value, whole.n = weights @ np.where(signed, (scores + 1) / 2, scores), (~gone).sum(axis=0)
        text = "given the worst value of: " if missing == "worst" else "no scores for: "
        lacking = [
            text + "; ".join(task.name for task, lacks in zip(tasks, column, strict=True) if lacks)
            if column.any()
            else None
            for column in gone.T
        ]
        parts.append(self._of_task(OVERALL, "mean", whole, 0.0, weights @ ~gone, weights @ self.coverage, lacking))
        names = (OVERALL, "overall_comparisons")
        frames = [pd.concat([part[at] for part in parts], ignore_index=True) for at in (0, 1)]
        frame, tests = (
            schema.validate(one[schema.table(name).columns], name) for one, name in zip(frames, names, strict=True)
        )
        return frame, tests

    def _of_task(
        self,
        name: str,
        measure: str,
        sums: _Sum,
        least: float,
        weight: float | Floats,
        coverage: Floats,
        lacking: list[str | None] | None = None,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        low, high = sums.interval(least)
        about = {"board": self.board.name, "task": name}
        metric, output = zip(*self.outputs, strict=True)
        frame = pd.DataFrame({"metric": metric, "output": output}).assign(
            **about,
            coefficient=measure,
            value=sums.value,
            low=low,
            high=high,
            n=sums.n,
            weight=np.clip(weight, 0, 1),
            coverage=np.clip(coverage, 0, 1),
            lacking=pd.Series(lacking or [None if np.isfinite(value) else "no scores" for value in sums.value]),
            signature=[self._signature(one) for one in self.outputs],
        )
        one, other = np.nonzero(np.triu(np.isfinite(sums.difference[:-1, :-1]), 1))
        turned = sums.difference[one, other] < 0
        a, b = np.where(turned, other, one), np.where(turned, one, other)
        p, p_wmt = sums.p(), sums.p_wmt()
        tests = pd.DataFrame(
            {
                f"{column}_{side}": np.take(names, at)
                for side, at in (("a", a), ("b", b))
                for column, names in (("metric", metric), ("output", output))
            }
        ).assign(
            **about,
            difference=sums.difference[a, b],
            p=p[one, other],
            p_adjusted=holm(p[one, other]),
            p_fdr=benjamini_hochberg(p[one, other]),
            p_wmt=p_wmt[one, other],
            test=f"jackknife|perm-both:{self.resamples or 'no'}|v:1",
        )
        for column, of in (("rank", "p_adjusted"), ("rank_wmt", "p_wmt")):
            matrix = np.full(p.shape, np.nan)
            matrix[one, other] = matrix[other, one] = tests[of]
            ranks = rank_clusters(sums.value, matrix)
            tested = bool(np.isfinite(matrix).any())
            frame[column] = pd.array([rank if rank and tested else None for rank in ranks.tolist()], dtype="Int32")
        return frame, tests

    def _signature(self, name: Output) -> str:
        of = [sample for sample in self.samples.values() if name in sample.names]
        return " / ".join(sorted({sample.signatures[sample.names.index(name)] for sample in of})) or "none"


def overall(
    board: Board,
    samples: Mapping[str, Sample],
    outputs: Sequence[Output],
    *,
    resamples: int = 1000,
    seed: int = 2024,
    missing: Missing = "left-out",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rank metrics on each task of a board, and over all.

    Parameters
    ----------
    board
        The tasks.
    samples
        A sample of units of each data set, at turn or dialogue level; means of systems are made of it where a task wants
        them. A data set without a sample has no value for any metric.
    outputs
        (metric, output) to rank.
    resamples, seed
        Of WMT's test, and of soft accuracies; 0: without WMT's test.
    missing
        A metric without scores on a task: ``left-out`` of the overall ranking, or given the ``worst`` value that any metric
        has on the task. Never 0.

    Returns
    -------
    tuple
        Tables ``overall`` and ``overall_comparisons``. The task ``overall`` is the weighted mean, between 0 and 1; values
        of tasks are on their own scales. Intervals are of jackknife variances, data sets independent of each other.
    """
    return _Ranking(board, samples, outputs, resamples, seed).tables(missing)


def pairs_of_systems(
    board: Board, samples: Mapping[str, Sample], kinds: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    """Return table ``overall_pairs``: the pairs of systems that the tasks over means of systems rest on.

    Parameters
    ----------
    board, samples
        As :func:`overall` takes them.
    kinds
        The kind of each system of each data set, as in table ``systems``: pairs with a human are counted.
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
    scores: Sequence[Path],
    outputs: Sequence[Output],
    *,
    level: str,
    source: str,
    targets: Mapping[str, str | None] | None = None,
) -> dict[str, Sample]:
    """Read what a board compares: of each data set the units of a level, in the dimension nearest to overall quality.

    Parameters
    ----------
    folders
        The folder of tables of each data set.
    scores
        Files of table ``scores``, of any of the data sets.
    outputs
        (metric, output) to keep.
    level, source
        ``turn`` or ``dialogue``; whose ratings.
    targets
        The dimension to take of each data set; default: the one that is nearest to overall quality.
    """
    frames = [schema.read(path, "scores") for path in scores]
    every = pd.concat(frames, ignore_index=True) if frames else schema.empty("scores")
    kept = every[pd.MultiIndex.from_frame(every[["metric", "output"]]).isin(list(outputs))]
    found = {}
    for name, folder in folders.items():
        tables = Tables.read(folder, (), source)
        ratings, own = tables.ratings, kept[kept["dataset"] == name]
        rated = ratings.loc[(ratings["level"] == level) & (ratings["source"] == source), "dimension"]
        if len(own) and len(rated):
            target = chosen_dimension((targets or {}).get(name), None, rated)
            (found[name],) = replace(tables, scores=own).samples([level], [target])
    return found
