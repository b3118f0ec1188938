"""Whether two metrics differ: table ``comparisons``, and the clusters of ranks that follow from it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.evaluation.correlations import Detail, grouped_measures
from comperdial.evaluation.samples import HUMAN, Sample
from comperdial.stats import COEFFICIENTS, Coefficient, Measure
from comperdial.stats.comparison import (
    benjamini_hochberg,
    common_units,
    compare,
    holm,
    rank_clusters,
    williams,
)
from comperdial.stats.correlation import ALPHA
from comperdial.stats.grouped import Grouping, jackknife, replicates
from comperdial.stats.intervals import coefficients
from comperdial.stats.perm_both import swap_pairs, swap_systems_of_pairs

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]
_OF = ["dataset", "level", "against", "target", "grouping", "coefficient"]


def differences(
    samples: Iterable[Sample], *, detail: Detail, coefficients: Sequence[Coefficient] = COEFFICIENTS
) -> pd.DataFrame:
    """Do what :func:`comparisons` does, with the ends of each difference's 95 % interval.

    The interval is made of what the test is made of, so that it leaves out 0 just where ``p`` is below 0.05.

    Returns
    -------
    DataFrame
        Table ``comparisons`` with two more columns, ``low`` and ``high``, missing where there is no interval.
    """
    rows = list(_rows(samples, detail, coefficients, intervals=True))
    columns = schema.table("comparisons").columns
    frame = pd.DataFrame(rows, columns=[*columns, "low", "high"])
    return schema.validate(frame[columns], "comparisons").assign(low=frame["low"], high=frame["high"])


def comparisons(samples: Iterable[Sample], *, detail: Detail) -> pd.DataFrame:
    """Test every pair of outputs for a difference of their correlation with the ratings.

    ``p`` is the test that holds its level on units that share systems and dialogues (docs/validation.md);
    ``p_adjusted`` is Holm's correction over the pairs of one sample, grouping and coefficient, ``p_fdr`` Benjamini and
    Hochberg's. Beside them stand PERM-BOTH (Deutsch et al. 2021), ``p_wmt``, the same one-sided as the WMT metrics tasks
    have it, and Williams' test (Pearson and Spearman): all three take units to be independent. The ``Human`` row is
    compared with nothing.

    Returns
    -------
    DataFrame
        Table ``comparisons``: each pair once, the better first; p is missing where there is no test. Pairs that share
        too few units are left out.
    """
    rows = list(_rows(samples, detail, COEFFICIENTS, intervals=False))
    return schema.validate(pd.DataFrame(rows, columns=schema.table("comparisons").columns), "comparisons")


def _rows(
    samples: Iterable[Sample], detail: Detail, coefficients: Sequence[Coefficient], *, intervals: bool
) -> Iterator[dict[str, Any]]:
    for sample in samples:
        part = detail.of(sample)
        part = part.only([name for name in part.names if name != HUMAN]) if part else None
        if part and len(part.names) > 1:
            for name in coefficients:
                yield from _of_coefficient(part, name, detail, intervals)
            if not intervals:
                for grouping, measure in grouped_measures(part):
                    yield from _of_measure(part, grouping, measure, detail)


def _of_coefficient(sample: Sample, name: Coefficient, detail: Detail, intervals: bool) -> list[dict[str, Any]]:
    found = compare(
        sample.scores, sample.ratings, sample.design, name,
        resamples=detail.resamples, seed=detail.seed, intervals=intervals,
    )  # fmt: skip
    beside = f"perm-both:{detail.resamples}" if np.isfinite(found.p_perm_both).any() else "perm-both:no"
    test = f"{found.test}|{beside}|seed:{detail.seed}|v:1"
    pairs = int(np.isfinite(found.difference[np.triu_indices(len(sample.names), 1)]).sum())
    swaps = re.search(r"swaps:(\d+)", found.test)
    if swaps and pairs > ALPHA * (1 + int(swaps[1])):
        log.warning("%d pairs are too many for %s: after Holm's correction none can differ", pairs, found.test)
    low, high = (np.clip(found.difference + side * found.reach, -2, 2) for side in (-1, 1))
    of_pairs = {
        "p": found.p, "p_perm_both": found.p_perm_both, "p_wmt": _one_sided(found.p_perm_both, detail.resamples),
        "p_williams": _williams(sample, name, found.n), "n": found.n, "low": low, "high": high,
    }  # fmt: skip
    return _rows_of(sample, "pooled", name, found.difference, of_pairs, test)


def _rows_of(
    sample: Sample,
    grouping: Grouping,
    name: Measure,
    difference: Floats,
    of_pairs: Mapping[str, npt.NDArray[Any]],
    test: str,
) -> list[dict[str, Any]]:
    """Return a row for each pair that has a difference, the better first, with both corrections."""
    pairs = [pair for pair in combinations(range(len(sample.names)), 2) if not np.isnan(difference[pair])]
    p = np.array([of_pairs["p"][pair] for pair in pairs], dtype=np.float64)
    rows = []
    for (one, other), p_adjusted, p_fdr in zip(pairs, holm(p), benjamini_hochberg(p), strict=True):
        a, b = (one, other) if difference[one, other] >= 0 else (other, one)
        (metric_a, output_a), (metric_b, output_b) = sample.names[a], sample.names[b]
        rows.append(
            sample.key
            | {"grouping": grouping, "coefficient": name, "metric_a": metric_a, "output_a": output_a}
            | {"metric_b": metric_b, "output_b": output_b, "difference": difference[a, b]}
            | {"p_adjusted": p_adjusted, "p_fdr": p_fdr, "test": test}
            | {column: values[a, b] for column, values in of_pairs.items()}
        )
    return rows


def _one_sided(p_perm_both: Floats, resamples: int) -> Floats:
    """Return WMT's p: nothing is added to the swaps as far out, and half of them are on the other side."""
    return np.clip((p_perm_both * (1 + resamples) - 1) / (2 * max(resamples, 1)), 0, 1)


def _of_measure(sample: Sample, grouping: Grouping, measure: Measure, detail: Detail) -> list[dict[str, Any]]:
    """Test a statistic within items or systems by leaving out, and one of pairs of systems by swapping whole systems."""
    count = len(sample.names)
    difference, p, perm_both, p_wmt = (np.full((count, count), np.nan) for _ in range(4))
    n = np.zeros((count, count), dtype=np.intp)
    tests: dict[str, None] = {}
    for rows, wanted, units in common_units(~np.isnan(sample.scores)):
        design, items = sample.design.of(units), np.unique(sample.items[units], return_inverse=True)[1].astype(np.intp)
        arrays = sample.scores[np.ix_(rows, units)], sample.ratings[units], design, items
        found = replicates(*arrays, measure, grouping, resamples=detail.resamples, seed=detail.seed)
        swapped = np.full((len(rows), len(rows)), np.nan)
        if grouping == "pooled":
            tested, most = swap_systems_of_pairs(*arrays, measure, resamples=detail.resamples, seed=detail.seed)
            tests[f"swap_systems|swaps:{most}"] = None
            # At system level PERM-BOTH swaps means, as this does; soft accuracies alone need the units.
            swapped = tested if measure != "spa" else swapped
            below = swapped / 2
        else:
            tested, by = jackknife(found)
            tests[by] = None
            if measure == "acc_eq":
                swapped = swap_pairs(*arrays, grouping, found, resamples=detail.resamples, seed=detail.seed)
            below = _one_sided(swapped, detail.resamples)
        apart = found.values[:, np.newaxis] - found.values
        points = np.minimum(found.n[:, np.newaxis], found.n)
        cell = np.ix_(rows, rows)
        for whole, values in ((difference, apart), (p, tested), (perm_both, swapped), (p_wmt, below), (n, points)):
            whole[cell] = np.where(wanted, values, whole[cell])
    others = ~np.eye(count, dtype=np.bool_)
    beside = f"perm-both:{detail.resamples}" if np.isfinite(perm_both[others]).any() else "perm-both:no"
    test = "|".join([*tests, f"{beside}|seed:{detail.seed}|v:1"])
    return _rows_of(
        sample, grouping, measure, difference, {"p": p, "p_perm_both": perm_both, "p_wmt": p_wmt, "n": n}, test
    )


def _williams(sample: Sample, name: Coefficient, n: npt.NDArray[np.intp]) -> Floats:
    """Return Williams' p of each pair whose outputs have scores of the same units."""
    metrics = len(sample.names)
    found = np.full((metrics, metrics), np.nan)
    if name == "kendall":
        return found
    missing = np.isnan(sample.scores)
    for pattern in np.unique(missing, axis=0):
        rows = np.flatnonzero((missing == pattern).all(axis=1))
        kept = ~pattern
        part, design = sample.scores[np.ix_(rows, kept)], sample.design.of(kept)
        with_ratings = coefficients(part, sample.ratings[kept], design, [name])[:, 0]
        between = np.stack([coefficients(part, row, design, [name])[:, 0] for row in part])
        cell = np.ix_(rows, rows)
        found[cell] = williams(with_ratings[:, np.newaxis], with_ratings, between, n[cell])
    return found


def ranked(correlations: pd.DataFrame, comparisons: pd.DataFrame) -> pd.DataFrame:
    """Return table ``correlations`` with clusters of metrics that do not differ significantly from one another.

    ``rank`` is by our test, corrected for all pairs (Holm), of which ``tests`` is the number; ``rank_wmt`` by WMT's,
    one-sided and uncorrected.
    """
    found: dict[str, dict[tuple[Any, ...], int]] = {"rank": {}, "tests": {}, "rank_wmt": {}}
    tests = dict(iter(comparisons.groupby(_OF, sort=False)))
    for key, group in correlations.groupby(_OF, sort=False):
        if key not in tests:
            continue
        pairs = tests[key]
        names = {*zip(pairs["metric_a"], pairs["output_a"], strict=True)}
        names |= {*zip(pairs["metric_b"], pairs["output_b"], strict=True)}
        rows = [row for row in group.itertuples() if (row.metric, row.output) in names]
        place = {(row.metric, row.output): number for number, row in enumerate(rows)}
        values = np.array([row.value for row in rows], dtype=np.float64)
        one = [place[name] for name in zip(pairs["metric_a"], pairs["output_a"], strict=True)]
        other = [place[name] for name in zip(pairs["metric_b"], pairs["output_b"], strict=True)]
        for column, tested in (("rank", "p_adjusted"), ("rank_wmt", "p_wmt")):
            if pairs[tested].isna().all():
                continue
            p = np.full((len(rows), len(rows)), np.nan)
            p[one, other] = p[other, one] = pairs[tested].to_numpy(dtype=np.float64, na_value=np.nan)
            for row, rank in zip(rows, rank_clusters(values, p), strict=True):
                if rank:
                    found[column][(*key, row.metric, row.output)] = int(rank)
                    if column == "rank":
                        found["tests"][(*key, row.metric, row.output)] = int(pairs[tested].notna().sum())
    keys = list(correlations[[*_OF, "metric", "output"]].itertuples(index=False, name=None))
    return correlations.assign(
        **{column: pd.array([ranks.get(key) for key in keys], dtype="Int32") for column, ranks in found.items()}
    )
