"""Whether two metrics differ: table ``pairs``."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.evaluation.correlations import (
    SHOWN,
    Detail,
    Grouped,
    grouped_statistics,
    is_narrow,
    tested_measures,
    value_rows,
)
from comperdial.evaluation.expected import Expected
from comperdial.evaluation.samples import HUMAN, Sample
from comperdial.schema.tables import OVER
from comperdial.stats import Coefficient, Measure
from comperdial.stats.comparison import common_units, compare, put
from comperdial.stats.correlation import ALPHA
from comperdial.stats.jackknife import CLOSE, Replicates, variances
from comperdial.stats.pairs import Grouping, replicates
from comperdial.stats.swaps import SWAPS, swap_systems_of_pairs

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]


def evaluate(
    samples: Iterable[Sample], *, detail: Detail, expected: Expected | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the results of :func:`comperdial.evaluation.correlations` and :func:`pairs`, sharing computations."""
    values: list[dict[str, Any]] = []
    tests: list[dict[str, Any]] = []
    for sample in samples:
        grouped = grouped_statistics(sample, detail)
        values += value_rows(sample, detail, expected, grouped)
        tests += _test_rows(sample, detail, grouped)
    tables = {"correlations": values, "pairs": tests}
    made = (
        schema.validate(pd.DataFrame(rows, columns=schema.table(name).columns), name) for name, rows in tables.items()
    )
    return next(made), next(made)


def pairs(samples: Iterable[Sample], *, detail: Detail) -> pd.DataFrame:
    """Test every pair of outputs for a difference of their correlation with the ratings.

    ``p`` comes from a test that keeps its level for units that share systems and dialogues (docs/validation.md). It is not
    corrected: the correction depends on the pairs that a table shows. The interval matches the test, so that it excludes 0
    exactly if ``p`` is below 0.05. The ``Human`` row is not compared. Tested statistics:
    :func:`comperdial.evaluation.correlations.tested_measures`; for pairs with one of ``detail.also``: Pearson and Spearman.

    Returns
    -------
    DataFrame
        Table ``pairs``: each pair once, with the better metric first; p is missing if there is no test, and the interval for
        ranks of system means. Pairs that share too few units are left out.
    """
    rows = [row for sample in samples for row in _test_rows(sample, detail, grouped_statistics(sample, detail))]
    return schema.validate(pd.DataFrame(rows, columns=schema.table("pairs").columns), "pairs")


def _test_rows(sample: Sample, detail: Detail, grouped: Grouped) -> Iterator[dict[str, Any]]:
    main = detail.of(sample)
    part, whole = _comparable(main), _comparable(detail.shown(sample))
    for name in detail.coefficients:
        if compared := whole if name in SHOWN else part:
            yield from _of_coefficient(compared, name, detail)
    if not main or not part:
        return
    tested = tested_measures(part, detail)
    at = [main.names.index(name) for name in part.names]
    for grouping in dict.fromkeys(grouping for grouping, _ in tested):
        whole_units = {measure: result.rows(at) for measure, result in grouped(grouping).items()}
        measures = [measure for of, measure in tested if of == grouping]
        yield from _of_measures(part, grouping, measures, detail, whole_units)


def _comparable(sample: Sample | None) -> Sample | None:
    """Return the outputs of a sample to compare, at least two, without the raters' own."""
    part = sample.only([name for name in sample.names if name != HUMAN]) if sample else None
    return part if part and len(part.names) > 1 else None


def _of_coefficient(sample: Sample, name: Coefficient, detail: Detail) -> Iterator[dict[str, Any]]:
    how = {"resamples": detail.resamples, "seed": detail.seed}
    result = compare(sample.scores, sample.ratings, sample.design, name, **how)
    test = f"{result.test}|seed:{detail.seed}|v:1"
    pairs = int(np.isfinite(result.difference[np.triu_indices(len(sample.names), 1)]).sum())
    swaps = re.search(r"swaps:(\d+)", result.test)
    if swaps and pairs > ALPHA * (1 + int(swaps[1])):
        log.warning("%d pairs are too many for %s: after Holm's correction none can differ", pairs, result.test)
    low, high = result.ends
    columns = {
        "p": result.p, "n": result.n, "low": low, "high": high,
        # As within items and systems: name what counts as sampled if not everything does.
        "test": np.where(result.given, test.replace(result.test, f"{result.test}|dialogues", 1), test),
        "over": np.where(result.given, OVER[1], OVER[0] if len(sample.systems) > 1 else OVER[2]),
    }  # fmt: skip
    return _rows_of(sample, "pooled", name, result.difference, columns, test)


def _rows_of(
    sample: Sample,
    grouping: Grouping,
    name: Measure,
    difference: Floats,
    columns: Mapping[str, npt.NDArray[Any]],
    test: str,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each pair with a difference, the better first; without tests if the sample is narrow."""
    if is_narrow(sample):
        columns = {"n": columns["n"]}
    same = sample.key | {"grouping": grouping, "coefficient": name, "test": test}
    for one, other in combinations(range(len(sample.names)), 2):
        if np.isnan(difference[one, other]):
            continue
        # If two differ only by rounding, keep their order.
        a, b = (one, other) if difference[one, other] > -CLOSE else (other, one)
        names = ("metric_a", "output_a", "metric_b", "output_b")
        yield (
            same
            | dict(zip(names, sample.names[a] + sample.names[b], strict=True))
            | {"difference": abs(difference[a, b])}
            | {column: values[a, b] for column, values in columns.items()}
        )


def _of_measures(
    sample: Sample,
    grouping: Grouping,
    measures: Sequence[Measure],
    detail: Detail,
    known: Mapping[Measure, Replicates],
) -> Iterator[dict[str, Any]]:
    """Test statistics within items or systems by the jackknife, and those of pairs of systems by swapping whole systems.

    Those over all units are already ``known``.
    """
    count = len(sample.names)
    how: dict[str, Any] = {"resamples": detail.resamples, "seed": detail.seed}
    differences, p = ({measure: np.full((count, count), np.nan) for measure in measures} for _ in range(2))
    n = {measure: np.zeros((count, count), dtype=np.intp) for measure in measures}
    tests: dict[str, None] = {}
    for rows, wanted, units in common_units(~np.isnan(sample.scores)):
        if not units.any():
            continue
        design, items = sample.design.of(units), np.unique(sample.items[units], return_inverse=True)[1].astype(np.intp)
        arrays = sample.scores[np.ix_(rows, units)], sample.ratings[units], design, items
        result = None if units.all() else replicates(*arrays, measures, grouping, **how)
        for measure in measures:
            one = result[measure] if result else known[measure].rows(rows)
            apart, tested = one.values[:, np.newaxis] - one.values, np.full((len(rows), len(rows)), np.nan)
            if grouping != "pooled":
                drawn = variances(replace(one, systems=one.systems[:, :0]) if design.fixed else one)
                tested = drawn.test(apart, drawn.cautious)[0]
                tests["|".join(["jackknife", *drawn.named])] = None
            elif design.fixed:
                # Swapping systems requires sampled systems.
                tests["none: systems are given"] = None
            else:
                tested = swap_systems_of_pairs(*arrays, measure, **how)
                tests[f"swap_systems|swaps:{SWAPS}"] = None
            put(differences[measure], rows, wanted, apart)
            put(p[measure], rows, wanted, tested)
            put(n[measure], rows, wanted, np.minimum(one.n[:, np.newaxis], one.n))
    test = "|".join([*tests, f"seed:{detail.seed}|v:1"])
    for measure in measures:
        columns = {"p": p[measure], "n": n[measure]}
        yield from _rows_of(sample, grouping, measure, differences[measure], columns, test)
