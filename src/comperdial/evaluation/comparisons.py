"""Whether two metrics differ: table ``comparisons``, and the clusters of ranks that follow from it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.evaluation.correlations import Detail
from comperdial.evaluation.samples import HUMAN, Sample
from comperdial.stats import COEFFICIENTS, Coefficient
from comperdial.stats.comparison import compare, holm, rank_clusters, williams
from comperdial.stats.correlation import ALPHA
from comperdial.stats.intervals import coefficients

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]
_OF = ["dataset", "level", "against", "target", "coefficient"]


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

    ``p`` is the test that holds its level on units that share systems and dialogues (docs/validation.md),
    ``p_adjusted`` is Holm's correction over the pairs of one sample and coefficient. Beside it stand PERM-BOTH (Deutsch
    et al. 2021) and, not for Kendall, Williams' test: both take units to be independent. The ``Human`` row is compared
    with nothing.

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


def _of_coefficient(sample: Sample, name: Coefficient, detail: Detail, intervals: bool) -> list[dict[str, Any]]:
    found = compare(
        sample.scores, sample.ratings, sample.design, name,
        resamples=detail.resamples, seed=detail.seed, intervals=intervals,
    )  # fmt: skip
    beside = f"perm-both:{detail.resamples}" if np.isfinite(found.p_perm_both).any() else "perm-both:no"
    test = f"{found.test}|{beside}|seed:{detail.seed}|v:1"
    pairs = [pair for pair in combinations(range(len(sample.names)), 2) if not np.isnan(found.difference[pair])]
    swaps = re.search(r"swaps:(\d+)", found.test)
    if swaps and len(pairs) > ALPHA * (1 + int(swaps[1])):
        log.warning("%d pairs are too many for %s: after Holm's correction none can differ", len(pairs), found.test)
    adjusted = holm([found.p[pair] for pair in pairs])
    williams_p = _williams(sample, name, found.n)
    low, high = (np.clip(found.difference + side * found.reach, -2, 2) for side in (-1, 1))
    rows = []
    for (one, other), p_adjusted in zip(pairs, adjusted, strict=True):
        a, b = (one, other) if found.difference[one, other] >= 0 else (other, one)
        (metric_a, output_a), (metric_b, output_b) = sample.names[a], sample.names[b]
        rows.append(
            sample.key
            | {"coefficient": name, "metric_a": metric_a, "output_a": output_a, "metric_b": metric_b}
            | {"output_b": output_b, "difference": found.difference[a, b], "p": found.p[a, b]}
            | {"p_adjusted": p_adjusted, "p_perm_both": found.p_perm_both[a, b], "p_williams": williams_p[a, b]}
            | {"n": found.n[a, b], "test": test}
            | {"low": low[a, b], "high": high[a, b]}
        )
    return rows


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
    """Return table ``correlations`` with ``rank``: clusters of metrics that our corrected test does not tell apart."""
    ranks: dict[tuple[Any, ...], int] = {}
    tests = dict(iter(comparisons.groupby(_OF, sort=False)))
    pooled = correlations[correlations["grouping"] == "pooled"]
    for key, group in pooled.groupby(_OF, sort=False):
        if key not in tests:
            continue
        pairs = tests[key]
        names = {*zip(pairs["metric_a"], pairs["output_a"], strict=True)}
        names |= {*zip(pairs["metric_b"], pairs["output_b"], strict=True)}
        rows = [row for row in group.itertuples() if (row.metric, row.output) in names]
        place = {(row.metric, row.output): number for number, row in enumerate(rows)}
        p = np.full((len(rows), len(rows)), np.nan)
        for pair in pairs.itertuples():
            one, other = place[pair.metric_a, pair.output_a], place[pair.metric_b, pair.output_b]
            p[one, other] = p[other, one] = pair.p_adjusted
        for row, rank in zip(
            rows, rank_clusters(np.array([row.value for row in rows], dtype=np.float64), p), strict=True
        ):
            if rank:
                ranks[(*key, "pooled", row.metric, row.output)] = int(rank)
    keys = correlations[[*_OF, "grouping", "metric", "output"]].itertuples(index=False, name=None)
    return correlations.assign(rank=pd.array([ranks.get(key) for key in keys], dtype="Int32"))
