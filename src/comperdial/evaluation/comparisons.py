"""Whether two metrics differ: table ``pairs``."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from comperdial import schema
from comperdial.evaluation.correlations import SHOWN, Detail, Known, is_narrow, tested_measures
from comperdial.evaluation.samples import HUMAN, Sample
from comperdial.schema.tables import OVER
from comperdial.stats import COEFFICIENTS, Coefficient, Measure
from comperdial.stats.comparison import common_units, compare, williams
from comperdial.stats.correlation import ALPHA
from comperdial.stats.design import Design, by_units
from comperdial.stats.jackknife import CLOSE, Replicates, variances
from comperdial.stats.means import system_means
from comperdial.stats.pairs import Grouping, replicates
from comperdial.stats.swaps import SWAPS, swap_pairs, swap_systems_of_pairs

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]


def pairs(samples: Iterable[Sample], *, detail: Detail, known: Known | None = None) -> pd.DataFrame:
    """Test every pair of outputs for a difference of their correlation with the ratings.

    ``p`` is the test that holds its level on units that share systems and dialogues (docs/validation.md), not corrected: over
    which pairs it must be, the table knows that shows them. The interval is made of what the test is made of, so that it
    leaves out 0 just where ``p`` is below 0.05. Beside them ``p_wmt``, the one-sided p of the WMT metrics tasks (what metrics say
    of systems, or of pairs within items, is swapped), and Williams' test (Pearson, Spearman): both take units to be independent.
    The ``Human`` row is compared with nothing. Which statistics are tested:
    :func:`comperdial.evaluation.correlations.tested_measures`; of pairs with one of ``detail.also``: Pearson and Spearman.
    ``known``: what :func:`comperdial.evaluation.correlations` filled.

    Returns
    -------
    DataFrame
        Table ``pairs``: each pair once, the better first; p is missing where there is no test, and the interval where it is of
        ranks of systems' means. Pairs that share too few units are left out.
    """
    rows: list[dict[str, Any]] = []
    for sample in samples:
        part, whole = (_comparable(some) for some in (detail.of(sample), detail.shown(sample)))
        for name in COEFFICIENTS:
            compared = whole if name in SHOWN else part
            rows += _of_coefficient(compared, name, detail, intervals=False) if compared else []
        tested = tested_measures(part, detail) if part else []
        for grouping in dict.fromkeys(grouping for grouping, _ in tested):
            measures = [measure for of, measure in tested if of == grouping]
            rows += _of_measures(part, grouping, measures, detail, known or {}) if part else []
    return _table(rows)


def differences(
    samples: Iterable[Sample], *, detail: Detail, coefficients: Sequence[Measure] = COEFFICIENTS
) -> pd.DataFrame:
    """Do what :func:`pairs` does for some statistics, with intervals of the ranks of systems' means too, which take long.

    Of ``coefficients`` those that are of pairs of systems are tested at system level, and have no interval.
    """
    rows = [
        row
        for sample in samples
        if (part := _comparable(detail.of(sample)))
        for name in coefficients
        for row in (
            _of_coefficient(part, name, detail, intervals=True)
            if _is_coefficient(name)
            else _of_measures(part, "pooled", [name], detail, {})
            if part.design.average
            else []
        )
    ]
    return _table(rows)


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return schema.validate(pd.DataFrame(rows, columns=schema.table("pairs").columns), "pairs")


def _comparable(sample: Sample | None) -> Sample | None:
    """Return what is compared of a sample: two outputs or more, the raters' own left out."""
    part = sample.only([name for name in sample.names if name != HUMAN]) if sample else None
    return part if part and len(part.names) > 1 else None


def _is_coefficient(name: Measure) -> TypeGuard[Coefficient]:
    return name in COEFFICIENTS


def _of_coefficient(sample: Sample, name: Coefficient, detail: Detail, intervals: bool) -> list[dict[str, Any]]:
    result = compare(
        sample.scores, sample.ratings, sample.design, name,
        resamples=detail.resamples, seed=detail.seed, intervals=intervals,
    )  # fmt: skip
    test = f"{result.test}|seed:{detail.seed}|v:1"
    pairs = int(np.isfinite(result.difference[np.triu_indices(len(sample.names), 1)]).sum())
    swaps = re.search(r"swaps:(\d+)", result.test)
    if swaps and pairs > ALPHA * (1 + int(swaps[1])):
        log.warning("%d pairs are too many for %s: after Holm's correction none can differ", pairs, result.test)
    low, high = result.ends
    # As within items and systems: what counts as drawn where not all does.
    tests = np.where(result.given, test.replace(result.test, f"{result.test}|dialogues", 1), test)
    over = np.where(result.given, OVER[1], OVER[0] if len(sample.systems) > 1 else OVER[2])
    of_pairs = {
        "p": result.p, "p_wmt": result.p / 2 if swaps else np.full_like(result.p, np.nan),
        "p_williams": _williams(sample, name, result.n), "n": result.n, "low": low, "high": high,
        "test": tests, "over": over,
    }  # fmt: skip
    return _rows_of(sample, "pooled", name, result.difference, of_pairs, test)


def _rows_of(
    sample: Sample,
    grouping: Grouping,
    name: Measure,
    difference: Floats,
    of_pairs: Mapping[str, npt.NDArray[Any]],
    test: str,
) -> list[dict[str, Any]]:
    """Return a row for each pair that has a difference, the better first; without tests if the sample is narrow."""
    if is_narrow(sample):
        of_pairs = {name: values for name, values in of_pairs.items() if name == "n"}
    both = [pair for pair in combinations(range(len(sample.names)), 2) if not np.isnan(difference[pair])]
    rows = []
    for one, other in both:
        # Of two that differ by rounding only, the first stays the first.
        a, b = (one, other) if difference[one, other] > -CLOSE else (other, one)
        (metric_a, output_a), (metric_b, output_b) = sample.names[a], sample.names[b]
        rows.append(
            sample.key
            | {"grouping": grouping, "coefficient": name, "metric_a": metric_a, "output_a": output_a}
            | {"metric_b": metric_b, "output_b": output_b, "difference": abs(difference[a, b])}
            | {"test": test}
            | {column: values[a, b] for column, values in of_pairs.items()}
        )
    return rows


@dataclass(frozen=True)
class _Shared:
    """Outputs with units in common: which pairs of them are compared over these units, and their statistics there."""

    rows: npt.NDArray[np.intp]
    wanted: npt.NDArray[np.bool_]
    arrays: tuple[Floats, Floats, Design, npt.NDArray[np.intp]]
    result: dict[Measure, Replicates]


def _shared(
    sample: Sample, grouping: Grouping, measures: Sequence[Measure], detail: Detail, known: Known
) -> Iterator[_Shared]:
    for rows, wanted, units in common_units(~np.isnan(sample.scores)):
        design, items = sample.design.of(units), np.unique(sample.items[units], return_inverse=True)[1].astype(np.intp)
        arrays = sample.scores[np.ix_(rows, units)], sample.ratings[units], design, items
        names, result = known.get((*sample.key.values(), grouping), ((), {}))
        if units.all() and set(measures) <= set(result):
            at = [names.index(sample.names[row]) for row in rows]
            result = {measure: result[measure].rows(at) for measure in measures}
        else:
            result = replicates(*arrays, measures, grouping, resamples=detail.resamples, seed=detail.seed)
        yield _Shared(rows, wanted, arrays, result)


def _of_measures(
    sample: Sample, grouping: Grouping, measures: Sequence[Measure], detail: Detail, known: Known
) -> Iterator[dict[str, Any]]:
    shared = list(_shared(sample, grouping, measures, detail, known))
    for measure in measures:
        yield from _of_measure(sample, grouping, measure, detail, shared)


def _of_measure(
    sample: Sample, grouping: Grouping, measure: Measure, detail: Detail, shared: Sequence[_Shared]
) -> list[dict[str, Any]]:
    """Test a statistic within items or systems by leaving out, and one of pairs of systems by swapping whole systems."""
    count = len(sample.names)
    difference, p, p_wmt = (np.full((count, count), np.nan) for _ in range(3))
    n = np.zeros((count, count), dtype=np.intp)
    tests: dict[str, None] = {}
    for one in shared:
        rows, wanted, arrays, result = one.rows, one.wanted, one.arrays, one.result[measure]
        below = np.full((len(rows), len(rows)), np.nan)
        if grouping == "pooled" and arrays[2].fixed:
            # Swapping systems takes them as drawn.
            tested = below
            tests["none: systems are given"] = None
        elif grouping == "pooled":
            tested = swap_systems_of_pairs(*arrays, measure, resamples=detail.resamples, seed=detail.seed)
            tests[f"swap_systems|swaps:{SWAPS}"] = None
            # WMT swaps means, as this does; soft accuracies alone need the units.
            below = tested / 2 if measure != "spa" else below
        else:
            given = replace(result, systems=result.systems[:, :0]) if arrays[2].fixed else result
            drawn = variances(given)
            tested = drawn.test(result.values[:, np.newaxis] - result.values, drawn.cautious)[0]
            tests["|".join(["jackknife", *drawn.named])] = None
            if measure == "acc_eq":
                below = swap_pairs(*arrays, grouping, result, resamples=detail.resamples, seed=detail.seed)
        apart = result.values[:, np.newaxis] - result.values
        points = np.minimum(result.n[:, np.newaxis], result.n)
        cell = np.ix_(rows, rows)
        for whole, values in ((difference, apart), (p, tested), (p_wmt, below), (n, points)):
            whole[cell] = np.where(wanted, values, whole[cell])
    test = "|".join([*tests, f"seed:{detail.seed}|v:1"])
    return _rows_of(sample, grouping, measure, difference, {"p": p, "p_wmt": p_wmt, "n": n}, test)


def _williams(sample: Sample, name: Coefficient, n: npt.NDArray[np.intp]) -> Floats:
    """Return Williams' p of each pair whose outputs have scores of the same units."""
    metrics = len(sample.names)
    result = np.full((metrics, metrics), np.nan)
    if name == "kendall":
        return result
    for rows, kept in by_units(sample.scores):
        values = np.vstack([sample.scores[np.ix_(rows, kept)], sample.ratings[kept]])
        values = system_means(values, sample.design.of(kept)) if sample.design.average else values
        varies = np.ptp(values, axis=1) > 0
        values = stats.rankdata(values, axis=1) if name == "spearman" else values
        r = np.full((len(values), len(values)), np.nan)
        r[np.ix_(varies, varies)] = np.atleast_2d(np.corrcoef(values[varies]))
        cell = np.ix_(rows, rows)
        result[cell] = williams(r[:-1, -1:], r[:-1, -1], r[:-1, :-1], n[cell])
    return result
