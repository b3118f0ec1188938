"""How well each output agrees with each rated dimension: table ``dimension_correlations``, and what is made of it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.core.names import Output, output_name
from comperdial.evaluation.ensembles import (
    MEAN,
    OVERALL,
    Ensembles,
    is_ensemble,
    standing_for,
)
from comperdial.evaluation.leave_out import leave_one_system_out
from comperdial.evaluation.rated import RatedSet, matched, read_scores_by_dataset
from comperdial.evaluation.samples import Sample
from comperdial.stats import COEFFICIENTS
from comperdial.stats.correlation import Coefficient, correlate, rowwise
from comperdial.stats.intervals import intervals

log = logging.getLogger(__name__)

__all__ = [
    "OVERALL",
    "RatedSet",
    "dimension_correlations",
    "output_name",
    "rank_deviation",
    "read_scores_by_dataset",
]

Floats = npt.NDArray[np.float64]


def dimension_correlations(
    sets: Sequence[RatedSet],
    scores: Mapping[str, pd.DataFrame],
    *,
    ensembles: Ensembles | None = None,
    outputs: Collection[Output] | None = None,
    own: Mapping[str, str] | None = None,
    resamples: int = 1000,
    seed: int = 2024,
) -> pd.DataFrame:
    """Correlate every output with the mean rating of every dimension, by source of ratings (Zhang et al. 2024).

    Parameters
    ----------
    sets
        Data sets, each rated at one level.
    scores
        Table ``scores`` of each data set. At dialogue level scores of turns are averaged over the dialogue's scored
        turns, and scores of dialogues taken as they are.
    ensembles
        What else is correlated: means of these scores.
    outputs
        (metric, output) of what gets intervals, on all dimensions; None: all. An output called as a dimension gets one
        on that dimension, and each ensemble has one.
    own
        Metrics whose scores are the ratings of a source, as a recorded judge's: no rows of them, nor of ensembles that
        they are members of, against that source.
    resamples, seed
        Of an interval (:func:`comperdial.stats.intervals.intervals`, its default method); 0: no intervals. What is
        resampled is said by :meth:`RatedSet.samples`.

    Returns
    -------
    DataFrame
        Table ``dimension_correlations``. ``n`` counts rated items with a score, ``coverage`` is their share; ``p`` is
        scipy's, for independent items, as the paper's is: items of one dialogue are not, and the interval knows that.

    Raises
    ------
    SchemaError
        When scores belong to nothing that was rated, or a data set lacks scores.
    UnknownNameError
        When no data set has an output, a member of an ensemble, or a metric or source of ``own``.
    """
    if resamples < 0 or resamples == 1 or seed < 0:
        raise ConfigError(
            f"{resamples} resamples, seed {seed}", expected="2 resamples or more, or 0 for no intervals; a seed from 0"
        )
    matched(scores, [one.dataset for one in sets])
    known = {
        (str(row[0]), str(row[1]))
        for frame in scores.values()
        for row in frame[["metric", "output"]].drop_duplicates().itertuples(index=False, name=None)
    }
    if ensembles:
        ensembles.check(known)
    for name in sorted(outputs or ()):
        if name in known or is_ensemble(name[0]):
            continue
        if name[0] in {metric for metric, _ in known}:
            raise UnknownNameError("output", ":".join(name), [":".join(one) for one in known], where="--outputs")
        log.warning("no scores of %s: every response lacks what it needs, or nobody computed them", ":".join(name))
    own = own or {}
    every = sorted({source for one in sets for source in one.sources})
    for metric, source in own.items():
        if metric not in (metrics := {name[0] for name in known}):
            raise UnknownNameError("metric", metric, metrics, where="--own")
        if source not in every:
            raise UnknownNameError("source of ratings", source, every, where="--own")
    rows: list[dict[str, Any]] = []
    for one in sorted(sets, key=lambda rated: rated.dataset):
        for source in one.sources:
            for sample in one.samples(scores[one.dataset], source):
                whole = ensembles.added(sample) if ensembles else sample
                itself = {metric for metric, of in own.items() if of == source}
                parts = {name: ensembles.made_of(name[0]) if ensembles else {name[0]} for name in whole.names}
                whole = whole.only([name for name, of in parts.items() if not itself & of])
                rows += _rows(whole, source, _bounds(whole, outputs, resamples, seed) if resamples else {})
    return schema.validate(
        pd.DataFrame(rows, columns=schema.table("dimension_correlations").columns), "dimension_correlations"
    )


def _rows(
    sample: Sample, source: str, bounds: Mapping[tuple[Output, str], tuple[float, float]]
) -> list[dict[str, Any]]:
    counts = (~np.isnan(sample.scores)).sum(axis=1)
    rows = []
    for coefficient in COEFFICIENTS:
        values, p = _correlated(sample.scores, sample.ratings, counts, coefficient)
        without = leave_one_system_out(sample, coefficient, values)
        for at, name in enumerate(sample.names):
            low, high = bounds.get((name, coefficient), (np.nan, np.nan))
            rows.append(
                {
                    "dataset": sample.dataset,
                    "source": source,
                    "level": sample.level,
                    "dimension": sample.target,
                    "metric": name[0],
                    "output": name[1],
                    "coefficient": coefficient,
                    "value": values[at],
                    "low": low,
                    "high": high,
                    **{column: found[at] for column, found in without.items()},
                    "p": p[at],
                    "n": int(counts[at]),
                    "coverage": sample.coverage[at],
                    "signature": sample.signatures[at],
                }
            )
    return rows


def _correlated(
    scores: Floats, ratings: Floats, counts: npt.NDArray[np.intp], name: Coefficient
) -> tuple[Floats, Floats]:
    """Return coefficients and scipy's p-values: shape (outputs,) each."""
    if name == "kendall":
        # The pairs of a thousand items, of all outputs at once, are slower than scipy's sorting.
        found = [correlate(row, ratings, name) for row in scores]
        return np.array([one.value for one in found]), np.array([one.p for one in found])
    values = rowwise(scores, np.broadcast_to(ratings, scores.shape), name)
    freedom = np.where(counts > 2, counts - 2, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(values) * np.sqrt(freedom / (1 - values**2))
    return values, np.asarray(np.minimum(1.0, 2 * stats.t.sf(t, freedom)))


def _bounds(
    sample: Sample, outputs: Collection[Output] | None, resamples: int, seed: int
) -> dict[tuple[Output, str], tuple[float, float]]:
    """Return the ends of intervals, by output and coefficient, of what gets them."""
    chosen = [name for name in sample.names if outputs is None or name in outputs or _stands(name, sample.target)]
    part = sample.only(chosen)
    if not part.names:
        return {}
    found = intervals(part.scores, part.ratings, part.design, COEFFICIENTS, resamples=resamples, seed=seed)
    return {
        (name, coefficient): (float(found.low[row, column]), float(found.high[row, column]))
        for row, name in enumerate(part.names)
        for column, coefficient in enumerate(COEFFICIENTS)
    }


def _stands(name: Output, dimension: str) -> bool:
    return name[1] == dimension or (is_ensemble(name[0]) and name[1] == MEAN)


def rank_deviation(
    frame: pd.DataFrame,
    outputs: Collection[str | Output],
    *,
    coefficient: Coefficient = "pearson",
    leave_out: Collection[str] = (),
) -> pd.DataFrame:
    """Say how much the ranking of metrics by a judge's ratings is that by people's (Zhang et al. 2024, Table 4).

    Parameters
    ----------
    frame
        Table ``dimension_correlations`` of one data set with ratings of people and of gpt-4.
    outputs
        As :func:`standing_for` takes them.
    coefficient
        By which metrics are ranked; the paper: Pearson.
    leave_out
        Metrics that take no part: above all the judge whose ratings are one of the two sources. Ensembles take none.

    Returns
    -------
    DataFrame
        Columns dataset, dimension, value (Spearman's correlation of the two rankings), n (metrics with both).
    """
    if frame["dataset"].nunique() > 1:
        raise SchemaError("several data sets", where="rank_deviation", expected="the correlations of one data set")
    rows = frame[(frame["coefficient"] == coefficient) & ~frame["metric"].isin(list(leave_out))]
    rows = standing_for(rows[~rows["metric"].map(is_ensemble).astype(bool)], outputs)
    found = []
    for (dataset, dimension), group in rows.groupby(["dataset", "dimension"], sort=True):
        table = group.pivot(index=["metric", "output"], columns="source", values="value")
        if not {"human", "gpt-4"} <= set(table.columns):
            continue
        both = table[["human", "gpt-4"]].dropna().to_numpy(dtype=np.float64)
        result = correlate(both[:, 0], both[:, 1], "spearman")
        found.append({"dataset": dataset, "dimension": dimension, "value": result.value, "n": result.n})
    return pd.DataFrame(found, columns=["dataset", "dimension", "value", "n"])
