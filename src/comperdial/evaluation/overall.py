"""One ranking of metrics over many data sets: tasks, their weighted mean, and whether metrics differ in it.

A task is a statistic on a data set; pairwise accuracy is one task over several sets, all pairs of systems counting alike. The
overall score is the weighted mean over tasks, correlations taken from -1..1 to 0..1, as in the official tables of the WMT
metrics tasks. Two tests answer different questions: ours takes systems and dialogues as drawn from more of their kind, WMT's
takes them as given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.names import Output
from comperdial.evaluation.samples import Sample, Tables
from comperdial.schema.dimensions import chosen_dimension
from comperdial.stats import COEFFICIENTS, Coefficient, Measure
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
    """A statistic, any of ``MEASURES``, on one data set; on several for ``accuracy``, whose pairs of systems are pooled.

    ``grouping`` is ``item``, ``system``, ``pooled`` (means of systems), or None: over all units; ``weight`` is the share of
    the overall score.
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

    @property
    def scale(self) -> float:
        """Return what a difference in the task counts in the overall score, whose range is 0 to 1."""
        return self.weight * (0.5 if self.signed else 1.0)

    def replicates(
        self, scores: Floats, ratings: Floats, design: Design, items: Integers, resamples: int, seed: int
    ) -> Replicates:
        """Return the statistic of some metrics, and what it is without each cluster."""
        if self.grouping is None:
            return over_units(scores, ratings, design, cast(Coefficient, self.measure))
        how = {"resamples": resamples or 1000, "seed": seed}
        return replicates(scores, ratings, design, items, [self.measure], self.grouping, **how)[self.measure]


@dataclass(frozen=True)
class Board:
    """Tasks that make one ranking."""

    name: str
    tasks: tuple[Task, ...]

    @classmethod
    def of(cls, name: str, entries: Sequence[Mapping[str, Any]]) -> Board:
        """Read a board's tasks: each entry a measure, its grouping, and data sets; ``together`` makes them one task.

        Every kind of task has the same weight, and in it every task. A ConfigError is raised for data sets taken together
        by anything but ``accuracy``, or a statistic of pairs without a grouping.
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
    """Return the boards of a file by name: ``title``, ``level``, ``source``, ``missing``, ``tasks`` and ``outputs``."""
    return dict(load_yaml(path)["boards"])


def board_of(name: str, boards: Mapping[str, Any]) -> dict[str, Any]:
    """Return a board by name."""
    if name not in boards:
        raise UnknownNameError("board", name, boards)
    return dict(boards[name])


@dataclass
class _Sums:
    """Sums over data sets: the first axis is tasks and, last, the overall score, the next two are metrics.

    The last row and column of values is a metric that is always 0: a difference from it is a metric's own value.
    """

    difference: Floats
    variances: Floats
    fewest: Floats
    draws: npt.NDArray[np.float32]
    n: Integers
    coverage: Floats


def _summed(board: Board, samples: Mapping[str, Sample], outputs: Sequence[Output], resamples: int, seed: int) -> _Sums:
    """Sum over the data sets of a board, each pair of metrics over the units that both have."""
    counted, metrics = len(board.tasks), len(outputs)
    square = counted + 1, metrics + 1, metrics + 1
    sums = _Sums(
        np.zeros(square),
        np.zeros((4, *square)),
        np.full(square, np.inf),
        # Differences with swapped scores, for WMT's test.
        np.zeros((counted + 1, metrics, metrics, resamples), dtype=np.float32),
        np.zeros((counted, metrics), dtype=np.intp),
        np.zeros((counted, metrics)),
    )
    rng = np.random.default_rng(seed)
    for dataset in board.datasets:
        tasks = {place: task for place, task in enumerate(board.tasks) if dataset in task.datasets}
        if (sample := samples.get(dataset)) is None:
            sums.difference[[*tasks, -1]] = np.nan
            continue
        table, compared = _scores_of(sample, outputs), np.zeros(square[1:], dtype=bool)
        shares = {place: _share(task, dataset, samples) for place, task in tasks.items()}
        for place, share in shares.items():
            sums.coverage[place] += share * np.isfinite(table).mean(axis=1)
        for rows, wanted, units in common_units(np.isfinite(table)):
            if units.sum() < FEWEST_SAMPLED:
                continue
            items = np.unique(sample.items[units], return_inverse=True)[1].astype(np.intp)
            known = table[np.ix_(rows, units)], sample.ratings[units], sample.design.of(units), items
            # Each metric is compared with the one that is always 0, too.
            asked = np.pad(wanted, (0, 1))
            asked[-1, :-1] = asked[:-1, -1] = np.diag(wanted)
            compared[np.ix_([*rows, -1], [*rows, -1])] |= asked
            parts = {
                place: weighted([(shares[place], task.replicates(*known, resamples, seed))])
                for place, task in tasks.items()
            }
            for place, part in parts.items():
                sums.n[place, rows] += np.where(np.diag(wanted), part.n, 0)
            parts[-1] = weighted([(task.scale, parts[place]) for place, task in tasks.items()])
            one, other = np.nonzero(asked)
            at = np.append(rows, -1)[one], np.append(rows, -1)[other]
            for place, part in parts.items():
                part = part.with_zero()
                drawn = variances(part)
                sums.difference[place][at] += part.values[one] - part.values[other]
                sums.variances[:, place][:, *at] += drawn.parts[:, one, other]
                sums.fewest[place][at] = np.minimum(sums.fewest[place][at], drawn.fewest)
            for a, b in zip(*np.nonzero(np.triu(wanted, 1)), strict=True) if resamples else ():
                scores, ratings, design, items = known
                pair = scores[a], scores[b], ratings, design, items
                for place, task in tasks.items():
                    swapped = swapped_differences(*pair, task.measure, task.grouping, resamples=resamples, rng=rng)
                    # Swapping everything turns the sign: either is as likely.
                    swapped = (shares[place] * swapped * rng.choice([-1.0, 1.0], resamples)).astype(np.float32)
                    for at_task, scale in ((place, 1.0), (-1, task.scale)):
                        sums.draws[at_task, rows[a], rows[b]] += scale * swapped
                        sums.draws[at_task, rows[b], rows[a]] += scale * swapped
        for place in (*tasks, -1):
            sums.difference[place][~compared] = np.nan
    return sums


def _scores_of(sample: Sample, outputs: Sequence[Output]) -> Floats:
    """Return the scores of outputs, NaN for those that the sample lacks: shape (outputs, units)."""
    place = {name: row for row, name in enumerate(sample.names)}
    missing = np.full(len(sample.ratings), np.nan)
    return np.stack([sample.scores[place[name]] if name in place else missing for name in outputs])


def _share(task: Task, dataset: str, samples: Mapping[str, Sample]) -> float:
    """Return a data set's share of a task: that of the task's pairs of systems."""
    pairs = {name: math.comb(samples[name].design.counts[0], 2) for name in task.datasets if name in samples}
    return pairs[dataset] / sum(pairs.values()) if len(task.datasets) > 1 else 1.0


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
    sums, tasks = _summed(board, samples, outputs, resamples, seed), board.tasks
    drawn = Variances(sums.variances, sums.fewest)
    p, reach = drawn.test(sums.difference, drawn.cautious)
    values, reach = sums.difference[:, :-1, -1].copy(), reach[:, :-1, -1]
    scores, weights = values[:-1], np.array([task.weight for task in tasks])
    gone = ~np.isfinite(scores)
    if missing == "worst":
        scores = np.where(gone, pd.DataFrame(scores).min(axis=1).to_numpy()[:, np.newaxis], scores)
        # A value that was given has no variance.
        reach[-1, gone.any(axis=0)] = np.nan
    signed = np.array([task.signed for task in tasks])[:, np.newaxis]
    values[-1] = weights @ np.where(signed, (scores + 1) / 2, scores)
    names = [*(task.name for task in tasks), OVERALL]
    text = "given the worst value of: " if missing == "worst" else "no scores for: "
    lists = ["; ".join(name for name, lacks in zip(names, column, strict=False) if lacks) for column in gone.T]
    lacking = [["no scores" if lacks else None for lacks in row] for row in gone]
    lacking.append([text + listed if listed else None for listed in lists])
    n = [*sums.n, (~gone).sum(axis=0)]
    weight, coverage = [*weights, weights @ ~gone], [*sums.coverage, weights @ sums.coverage]
    about = pd.DataFrame(outputs, columns=["metric", "output"]).assign(
        board=board.name, signature=[_signature(samples, name) for name in outputs]
    )
    frames, tests = [], []
    for place, name in enumerate(names):
        task = tasks[place] if place < len(tasks) else None
        least = -1.0 if task and task.signed else 0.0
        frame = about.assign(
            task=name,
            coefficient=task.measure if task else "mean",
            value=values[place],
            low=np.clip(values[place] - reach[place], least, 1.0),
            high=np.clip(values[place] + reach[place], least, 1.0),
            n=n[place],
            weight=np.clip(weight[place], 0, 1),
            coverage=np.clip(coverage[place], 0, 1),
            lacking=pd.Series(lacking[place]),
        )
        pairs = _tests(sums.difference[place, :-1, :-1], p[place], sums.draws[place])
        for column, of in (("rank", "p_adjusted"), ("rank_wmt", "p_wmt")):
            frame[column] = _ranks(values[place], pairs, of)
        for side in "ab":
            named = about.loc[pairs[side], ["metric", "output"]].reset_index(drop=True)
            pairs = pairs.join(named.add_suffix(f"_{side}"))
        frames.append(frame)
        tests.append(pairs.assign(board=board.name, task=name, test=f"jackknife|perm-both:{resamples or 'no'}|v:1"))
    tables = {OVERALL: pd.concat(frames, ignore_index=True), "overall_comparisons": pd.concat(tests, ignore_index=True)}
    ranking, comparisons = (schema.validate(one[schema.table(name).columns], name) for name, one in tables.items())
    return ranking, comparisons


def _signature(samples: Mapping[str, Sample], name: Output) -> str:
    of = [sample for sample in samples.values() if name in sample.names]
    return " / ".join(sorted({sample.signatures[sample.names.index(name)] for sample in of})) or "none"


def _tests(difference: Floats, p: Floats, draws: npt.NDArray[np.float32]) -> pd.DataFrame:
    """Return a row for each pair of metrics, ``a`` the better one: places of metrics, difference and p-values."""
    one, other = np.nonzero(np.triu(np.isfinite(difference), 1))
    turned = difference[one, other] < 0
    a, b = np.where(turned, other, one), np.where(turned, one, other)
    p_wmt = np.full(len(one), np.nan)
    if draws.shape[-1]:
        # One-sided, as WMT's test is.
        near = np.abs(draws[one, other]) < np.abs(difference[one, other])[:, np.newaxis] - CLOSE - 1e-6
        p_wmt = (~near).mean(axis=-1) / 2
    p = p[one, other]
    adjusted = {"p": p, "p_adjusted": holm(p), "p_fdr": benjamini_hochberg(p), "p_wmt": p_wmt}
    return pd.DataFrame({"a": a, "b": b, "difference": difference[a, b]} | adjusted)


def _ranks(values: Floats, tests: pd.DataFrame, p: str) -> pd.arrays.IntegerArray:
    """Return the clusters of metrics that do not differ by a p; missing if nothing was tested."""
    matrix = np.full((len(values), len(values)), np.nan)
    matrix[tests["a"], tests["b"]] = matrix[tests["b"], tests["a"]] = tests[p]
    tested = bool(np.isfinite(matrix).any())
    return pd.array(
        [rank if rank and tested else None for rank in rank_clusters(values, matrix).tolist()], dtype="Int32"
    )


def pairs_of_systems(
    board: Board, samples: Mapping[str, Sample], kinds: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    """Return table ``overall_pairs``: the pairs of systems that the tasks over means of systems rest on.

    ``kinds`` is the kind of each system of each data set, as in table ``systems``: pairs with a human are counted.
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
    """Read what a board compares: of each data set the units of a level, in one rated dimension.

    ``folders`` are the tables of each data set, ``scores`` is table ``scores`` of any of them, ``outputs`` the (metric,
    output) to keep; ``level`` is ``turn`` or ``dialogue``; ``targets`` are the dimension to take of each data set (default: the
    one that is nearest to overall quality).
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
