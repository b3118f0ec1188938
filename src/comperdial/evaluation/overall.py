"""One ranking of metrics over many data sets: tasks, their weighted mean, and whether metrics differ in it.

A task is a statistic on a data set; pairwise accuracy is one task over several sets, all pairs of systems counting alike. The
overall score is the weighted mean over tasks, correlations taken from -1..1 to 0..1, as in the official tables of the WMT
metrics tasks. Two tests stand side by side, and answer different questions: ours takes systems and dialogues as drawn from
more of their kind, WMT's takes them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from comperdial import schema
from comperdial.core.errors import ConfigError
from comperdial.core.names import Output
from comperdial.evaluation.aggregate import read_contexts
from comperdial.evaluation.samples import Sample
from comperdial.evaluation.samples import samples as paired_samples
from comperdial.schema.dimensions import chosen_dimension
from comperdial.stats import COEFFICIENTS, Coefficient, Measure
from comperdial.stats.comparison import CLOSE, FEWEST, benjamini_hochberg, common_units, holm, rank_clusters
from comperdial.stats.correlation import ALPHA
from comperdial.stats.design import Design
from comperdial.stats.grouped import (
    Grouping,
    Replicates,
    of_units,
    replicates,
    student,
    two_way,
    variance_of,
    variances,
    weighted,
)
from comperdial.stats.perm_both import swapped_differences

Floats = npt.NDArray[np.float64]
Missing = Literal["left-out", "worst"]

OVERALL = "overall"
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
        Of which data sets; several for ``accuracy``, whose pairs of systems are pooled.
    grouping
        ``item``, ``system``, ``pooled`` (means of systems), or None: over all units.
    """

    measure: Measure
    datasets: tuple[str, ...]
    grouping: Grouping | None = None

    @property
    def name(self) -> str:
        """Return what tables call the task."""
        within = f" by {self.grouping}" if self.grouping in ("item", "system") else ""
        return f"{self.measure}{within}, {'+'.join(self.datasets)}"

    def on_unit_scale(self, value: Floats) -> Floats:
        """Return values of the statistic between 0 and 1."""
        return (value + 1) / 2 if self.measure in _SIGNED else value


@dataclass(frozen=True)
class Board:
    """Tasks that make one ranking; the weight is split evenly over kinds of task, then over each kind's tasks."""

    name: str
    tasks: tuple[Task, ...]

    @classmethod
    def of(cls, name: str, entries: Sequence[Mapping[str, Any]]) -> Board:
        """Read a board's tasks: each entry a measure, its grouping, and data sets; ``together`` makes them one task.

        Raises
        ------
        ConfigError
            For data sets taken together by anything but ``accuracy``.
        """
        tasks: list[Task] = []
        for entry in entries:
            measure, grouping, sets = entry["measure"], entry.get("grouping"), tuple(entry["datasets"])
            if entry.get("together"):
                if measure != "accuracy":
                    raise ConfigError(
                        f"`together` for {measure}", where=f"board {name}", expected="it for `accuracy` alone"
                    )
                tasks.append(Task(measure, sets, grouping))
            else:
                tasks += [Task(measure, (one,), grouping) for one in sets]
        return cls(name, tuple(tasks))

    @property
    def weights(self) -> Floats:
        """Return the weight of each task; they sum to 1."""
        kinds = [(task.measure, task.grouping) for task in self.tasks]
        return np.array([1 / (len(set(kinds)) * kinds.count(kind)) for kind in kinds])

    @property
    def datasets(self) -> list[str]:
        """Return the data sets of all tasks."""
        return list(dict.fromkeys(name for task in self.tasks for name in task.datasets))


@dataclass
class _Sum:
    """What is added up over data sets: differences of all pairs, their variances, and draws of WMT's test.

    The last of the rows and columns of differences and variances is a metric that is always 0: a difference from it is a
    metric's own value.
    """

    difference: Floats
    variances: Floats
    fewest: Floats
    value: Floats
    n: npt.NDArray[np.intp]
    draws: npt.NDArray[np.float32] | None

    @classmethod
    def zeros(cls, count: int, resamples: int) -> _Sum:
        draws = np.zeros((count, count, resamples), dtype=np.float32) if resamples else None
        square = (count + 1, count + 1)
        return cls(
            np.zeros(square), np.zeros((4, *square)), np.full(square, np.inf), np.zeros(count),
            np.zeros(count, dtype=np.intp), draws,
        )  # fmt: skip

    def p(self) -> Floats:
        return student(self.difference, *variance_of(self.variances, self.fewest))

    def p_wmt(self) -> Floats:
        if self.draws is None:
            return np.full(self.difference.shape, np.nan)
        difference = self.difference[:-1, :-1]
        far = ~(np.abs(self.draws) < np.abs(difference)[..., np.newaxis] - CLOSE - 1e-6)
        return np.where(np.isnan(difference), np.nan, far.mean(axis=-1) / 2)

    def interval(self) -> tuple[Floats, Floats]:
        variance, freedom = variance_of(self.variances[:, :-1, -1], self.fewest[:-1, -1])
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = stats.t.isf(ALPHA / 2, freedom) * np.sqrt(variance)
        return self.value - reach, self.value + reach


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
        them. A data set without a sample lacks for every metric.
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
    count = len(outputs)
    sums = [_Sum.zeros(count, resamples) for _ in range(len(board.tasks) + 1)]
    rng = np.random.default_rng(seed)
    pairs_of = {name: (sample.design.counts[0] * (sample.design.counts[0] - 1)) / 2 for name, sample in samples.items()}
    coverage = np.zeros((len(board.tasks), count))
    for dataset in board.datasets:
        tasks = [place for place, task in enumerate(board.tasks) if dataset in task.datasets]
        if dataset not in samples:
            for place in (*tasks, -1):
                sums[place].difference += np.nan
                sums[place].value += np.nan
            continue
        sample = samples[dataset]
        table = _rows_of(sample, outputs)
        shares = [
            pairs_of[dataset] / sum(pairs_of.get(name, 0) for name in board.tasks[place].datasets)
            if len(board.tasks[place].datasets) > 1
            else 1.0
            for place in tasks
        ]
        for place, share in zip(tasks, shares, strict=True):
            coverage[place] += share * np.isfinite(table).mean(axis=1)
        _add(board, tasks, shares, sample, table, sums, resamples, seed, rng)
    rows, tests = [], []
    scores, weights = np.full((len(board.tasks), count), np.nan), board.weights
    for place in range(len(board.tasks)):
        scores[place] = sums[place].value
    filled, given = _filled(scores, missing)
    for place, task in enumerate(board.tasks):
        rows += _task_rows(
            board, task.name, task.measure, sums[place], outputs, samples, weights[place], coverage[place]
        )
        tests += _test_rows(board, task.name, sums[place], outputs)
    whole = sums[-1]
    on_scale = np.stack([task.on_unit_scale(row) for task, row in zip(board.tasks, filled, strict=True)])
    whole.value, whole.n = weights @ on_scale, np.isfinite(scores).sum(axis=0)
    lacking = [_lacking(board, ~np.isfinite(column), missing) for column in scores.T]
    if given.any():
        # A value that was given has no variance, and no test.
        whole.variances[:, np.append(given.any(axis=0), False), -1] = np.nan
    share = weights @ np.isfinite(scores)
    rows += _task_rows(board, OVERALL, "mean", whole, outputs, samples, share, weights @ coverage, lacking)
    tests += _test_rows(board, OVERALL, whole, outputs)
    frame = _ranked(pd.DataFrame(rows, columns=schema.table(OVERALL).columns), pd.DataFrame(tests), outputs)
    columns = schema.table("overall_comparisons").columns
    return schema.validate(frame, OVERALL), schema.validate(pd.DataFrame(tests, columns=columns), "overall_comparisons")


def pairs_of_systems(
    board: Board, samples: Mapping[str, Sample], kinds: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    """Count the pairs of systems that the tasks over means of systems rest on.

    Parameters
    ----------
    board, samples
        As :func:`overall` takes them.
    kinds
        Of each data set the kind of each system, as table ``systems`` has it.

    Returns
    -------
    DataFrame
        Table ``overall_pairs``: of each such task and data set the rated systems, their pairs, and in how many of these a
        system is a person.
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


def _rows_of(sample: Sample, outputs: Sequence[Output]) -> Floats:
    place = {name: row for row, name in enumerate(sample.names)}
    return np.stack(
        [sample.scores[place[name]] if name in place else np.full(len(sample.ratings), np.nan) for name in outputs]
    )


def _add(
    board: Board,
    tasks: Sequence[int],
    shares: Sequence[float],
    sample: Sample,
    table: Floats,
    sums: list[_Sum],
    resamples: int,
    seed: int,
    rng: np.random.Generator,
) -> None:
    """Add what a data set says on each of its tasks, over the units that both metrics of a pair have."""
    square = (len(table) + 1, len(table) + 1)
    # A pair without units in common has no difference.
    known = {
        place: (np.full(square, np.nan), np.zeros((4, *square)), np.full(square, np.inf)) for place in (*tasks, -1)
    }
    for rows, wanted, units in common_units(np.isfinite(table)):
        if units.sum() < FEWEST:
            continue
        design, items = sample.design.of(units), np.unique(sample.items[units], return_inverse=True)[1].astype(np.intp)
        scores, ratings = table[np.ix_(rows, units)], sample.ratings[units]
        found: dict[int, Replicates] = {}
        for place, share in zip(tasks, shares, strict=True):
            task = board.tasks[place]
            made = _made(task, scores, ratings, design, items, resamples, seed)
            found[place] = weighted([(share, made)])
            sums[place].n[rows] = np.where(np.diag(wanted), sums[place].n[rows] + made.n, sums[place].n[rows])
        scale = [board.weights[place] * (0.5 if board.tasks[place].measure in _SIGNED else 1.0) for place in tasks]
        found[-1] = weighted(list(zip(scale, (found[place] for place in tasks), strict=True)))
        ours = np.ix_([*rows, len(table)], [*rows, len(table)])
        own = np.diag(wanted)[:, np.newaxis]
        asked = np.block([[wanted, own], [own.T, np.zeros((1, 1), dtype=np.bool_)]])
        for place, made in found.items():
            with_zero = made.with_zero()
            values = with_zero.values
            parts, freedom = two_way(*variances(with_zero)[0])
            for whole, found_of in zip(
                known[place], (values[:, np.newaxis] - values, parts, np.full(asked.shape, freedom)), strict=True
            ):
                whole[..., ours[0], ours[1]] = np.where(asked, found_of, whole[..., ours[0], ours[1]])
        if resamples:
            for a, b in _pairs(wanted):
                for place, share, by in zip(tasks, shares, scale, strict=True):
                    task = board.tasks[place]
                    drawn = swapped_differences(
                        scores[a], scores[b], ratings, design, items, task.measure, task.grouping,
                        resamples=resamples, rng=rng,
                    )  # fmt: skip
                    # Swapping everything turns the sign: either is as likely.
                    drawn = (share * drawn * rng.choice([-1.0, 1.0], resamples)).astype(np.float32)
                    for account, factor in ((place, 1.0), (-1, by)):
                        draws = sums[account].draws
                        if draws is not None:
                            draws[rows[a], rows[b]] += factor * drawn
                            draws[rows[b], rows[a]] += factor * drawn
    for place, (difference, parts, fewest) in known.items():
        sums[place].difference += difference
        sums[place].value += difference[:-1, -1]
        sums[place].variances += parts
        sums[place].fewest = np.minimum(sums[place].fewest, fewest)


def _made(
    task: Task,
    scores: Floats,
    ratings: Floats,
    design: Design,
    items: npt.NDArray[np.intp],
    resamples: int,
    seed: int,
) -> Replicates:
    if task.grouping is None:
        return of_units(scores, ratings, design, _coefficient(task.measure))
    return replicates(
        scores, ratings, design, items, task.measure, task.grouping, resamples=resamples or 1000, seed=seed
    )


def _coefficient(measure: Measure) -> Coefficient:
    for name in COEFFICIENTS:
        if name == measure:
            return name
    raise ConfigError(f"{measure} over all units", expected="pearson, spearman or kendall, or a grouping")


def _pairs(wanted: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    for a, b in zip(*np.nonzero(np.triu(wanted, 1)), strict=True):
        yield int(a), int(b)


def _filled(scores: Floats, missing: Missing) -> tuple[Floats, npt.NDArray[np.bool_]]:
    gone = ~np.isfinite(scores)
    if missing == "left-out" or not gone.any():
        return scores, np.zeros_like(gone)
    with np.errstate(all="ignore"):
        worst = np.nanmin(np.where(np.isfinite(scores).any(axis=1, keepdims=True), scores, np.inf), axis=1)
    worst = np.where(np.isfinite(worst), worst, np.nan)
    return np.where(gone, worst[:, np.newaxis], scores), gone


def _lacking(board: Board, gone: npt.NDArray[np.bool_], missing: Missing) -> str | None:
    names = [task.name for task, lacks in zip(board.tasks, gone, strict=True) if lacks]
    if not names:
        return None
    said = "given the worst value of: " if missing == "worst" else "no scores for: "
    return said + "; ".join(names)


def _task_rows(
    board: Board,
    name: str,
    measure: str,
    found: _Sum,
    outputs: Sequence[Output],
    samples: Mapping[str, Sample],
    weight: float | Floats,
    coverage: Floats,
    lacking: Sequence[str | None] | None = None,
) -> list[dict[str, Any]]:
    signed = measure in _SIGNED
    low, high = (np.clip(end, -1.0 if signed else 0.0, 1.0) for end in found.interval())
    shares = np.broadcast_to(np.asarray(weight, dtype=np.float64), (len(outputs),))
    rows = []
    for row, (metric, output) in enumerate(outputs):
        without = lacking[row] if lacking else (None if np.isfinite(found.value[row]) else "no scores")
        rows.append(
            {
                "board": board.name, "task": name, "coefficient": measure, "metric": metric, "output": output,
                "value": found.value[row], "low": low[row], "high": high[row], "n": int(found.n[row]),
                "weight": float(np.clip(shares[row], 0, 1)), "coverage": float(np.clip(coverage[row], 0, 1)),
                "rank": None, "rank_wmt": None, "lacking": without,
                "signature": _signature((metric, output), samples),
            }
        )  # fmt: skip
    return rows


def _signature(name: Output, samples: Mapping[str, Sample]) -> str:
    found = {sample.signatures[sample.names.index(name)] for sample in samples.values() if name in sample.names}
    return " / ".join(sorted(found)) or "none"


def _test_rows(board: Board, name: str, found: _Sum, outputs: Sequence[Output]) -> list[dict[str, Any]]:
    upper = [pair for pair in combinations(range(len(outputs)), 2) if np.isfinite(found.difference[pair])]
    p, p_wmt = found.p(), found.p_wmt()
    values = np.array([p[pair] for pair in upper], dtype=np.float64)
    draws = 0 if found.draws is None else found.draws.shape[-1]
    rows = []
    for (one, other), adjusted, fdr in zip(upper, holm(values), benjamini_hochberg(values), strict=True):
        a, b = (one, other) if found.difference[one, other] >= 0 else (other, one)
        rows.append(
            {
                "board": board.name, "task": name, "metric_a": outputs[a][0], "output_a": outputs[a][1],
                "metric_b": outputs[b][0], "output_b": outputs[b][1], "difference": found.difference[a, b],
                "p": p[a, b], "p_adjusted": adjusted, "p_fdr": fdr, "p_wmt": p_wmt[a, b],
                "test": f"jackknife|perm-both:{draws or 'no'}|v:1",
            }
        )  # fmt: skip
    return rows


def _ranked(frame: pd.DataFrame, tests: pd.DataFrame, outputs: Sequence[Output]) -> pd.DataFrame:
    place = {name: row for row, name in enumerate(outputs)}
    ranks: dict[str, dict[tuple[str, str, str], int]] = {"rank": {}, "rank_wmt": {}}
    for task, group in frame.groupby("task", sort=False):
        names = list(zip(group["metric"], group["output"], strict=True))
        values = group["value"].to_numpy(dtype=np.float64, na_value=np.nan)
        pairs = tests[tests["task"] == task] if len(tests) else tests
        for column, tested in (("rank", "p_adjusted"), ("rank_wmt", "p_wmt")):
            if not len(pairs) or pairs[tested].isna().all():
                continue
            p = np.full((len(outputs), len(outputs)), np.nan)
            one = [place[name] for name in zip(pairs["metric_a"], pairs["output_a"], strict=True)]
            other = [place[name] for name in zip(pairs["metric_b"], pairs["output_b"], strict=True)]
            p[one, other] = p[other, one] = pairs[tested].to_numpy(dtype=np.float64, na_value=np.nan)
            order = [place[name] for name in names]
            found = rank_clusters(values, p[np.ix_(order, order)])
            ranks[column] |= {(str(task), *name): int(rank) for name, rank in zip(names, found, strict=True) if rank}
    keys = list(zip(frame["task"], frame["metric"], frame["output"], strict=True))
    return frame.assign(
        **{column: pd.array([known.get(key) for key in keys], dtype="Int32") for column, known in ranks.items()}
    )


def read_samples(
    folders: Mapping[str, Path],
    scores: Sequence[Path],
    outputs: Sequence[Output],
    *,
    level: str,
    source: str,
    targets: Mapping[str, Mapping[str, str | None]] | None = None,
) -> dict[str, Sample]:
    """Read what a board compares: of each data set the units of a level, in the dimension nearest to overall quality.

    Parameters
    ----------
    folders
        Of each data set's tables.
    scores
        Files of table ``scores``, of any of the data sets.
    outputs
        (metric, output) to keep.
    level, source
        ``turn`` or ``dialogue``; whose ratings.
    targets
        Of each data set, what :func:`comperdial.schema.dimensions.chosen_dimension` is told.
    """
    frames = [schema.read(path, "scores") for path in scores]
    every = pd.concat(frames, ignore_index=True) if frames else schema.empty("scores")
    kept = every[pd.MultiIndex.from_frame(every[["metric", "output"]]).isin(list(outputs))]
    found = {}
    for name, folder in folders.items():
        own = kept[kept["dataset"] == name]
        ratings = schema.ratings_in(folder)
        ratings = ratings[ratings["level"] == level]
        if not len(own) or not (ratings["source"] == source).any():
            continue
        said = (targets or {}).get(name, {})
        target = chosen_dimension(
            said.get("target"), said.get("main_target"), ratings[ratings["source"] == source]["dimension"]
        )
        systems = folder / "systems.parquet"
        for sample in paired_samples(
            own,
            ratings,
            systems=schema.read(systems, "systems") if systems.is_file() else None,
            source=source,
            levels=[level],
            targets=[target],
            contexts=read_contexts(folder / "contexts.parquet", dataset=name),
        ):
            found[name] = sample
    return found
