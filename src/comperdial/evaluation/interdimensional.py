"""How the dimensions of one who rates go together (Zhang et al. 2024, figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.names import Output, output_name
from comperdial.evaluation.rated import RatedSet
from comperdial.schema.evaluated import DIMENSIONS

COLUMNS = ("dataset", "who", "dimension_a", "dimension_b", "value", "n")


def interdimensional(
    rated: RatedSet,
    scores: pd.DataFrame | None = None,
    *,
    sources: Sequence[str] | None = None,
    metrics: Sequence[str] | Mapping[str, Sequence[str]] = (),
    dimensions: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Correlate the dimensions of each who rates, by Pearson.

    Parameters
    ----------
    rated
        The data set.
    scores
        Its table ``scores``, for ``metrics``.
    sources
        Whose mean ratings; default: all who rated every dimension.
    metrics
        Judges with an output for each dimension. One that is a metric for each is written
        ``NAME=METRIC:OUTPUT,METRIC:OUTPUT,…``; or a mapping has the outputs of each by its name. At dialogue level,
        scores of turns are averaged by dialogue. Only rated items count.
    dimensions
        Default: the study's five of the level.

    Returns
    -------
    DataFrame
        Columns dataset, who (a source, a metric or the name of several), dimension_a, dimension_b, value, n: each pair
        of dimensions both ways round, and each with itself. n counts the items with all dimensions; no rows for one who
        lacks a dimension.

    Raises
    ------
    UnknownNameError
        When nobody of that name rated, or no score is of that metric or output.
    ConfigError
        When an entry of ``metrics`` is no metric and no group of them.
    """
    chosen = list(dimensions or DIMENSIONS[rated.level])
    for source in sources or ():
        if source not in rated.sources:
            raise UnknownNameError("source of ratings", source, rated.sources, where=f"dataset {rated.dataset!r}")
    tables: dict[str, pd.DataFrame] = {}
    for source in rated.sources if sources is None else sources:
        single = rated.single(source)
        if single is not None:
            tables[source] = single.mean(axis="columns").unstack("dimension")
    if metrics:
        tables |= _of_metrics(rated, scores, metrics)
    rows = []
    for who, table in tables.items():
        if not set(chosen) <= set(table.columns):
            continue
        whole = table[chosen].dropna()
        found = whole.corr().to_numpy(dtype=np.float64)
        for a, one in enumerate(chosen):
            for b, other in enumerate(chosen):
                rows.append((rated.dataset, who, one, other, found[a, b], len(whole)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _of_metrics(
    rated: RatedSet, scores: pd.DataFrame | None, metrics: Sequence[str] | Mapping[str, Sequence[str]]
) -> dict[str, pd.DataFrame]:
    """Return one row an item that was rated by anybody in any dimension, one column an output, of each judge."""
    scores = schema.empty("scores") if scores is None else scores
    known = {(str(m), str(o)) for m, o in scores[["metric", "output"]].drop_duplicates().itertuples(index=False)}
    judges = _judges(metrics, known, rated)
    parts = []
    of = scores[scores["metric"].isin([metric for names in judges.values() for metric, _ in names])]
    for source in rated.sources:
        for sample in rated.samples(of, source):
            index = pd.MultiIndex.from_tuples(sample.units)
            columns = pd.MultiIndex.from_tuples(sample.names)
            parts.append(pd.DataFrame(sample.scores.T, index=index, columns=columns))
    frame = pd.concat(parts)
    frame = frame[~frame.index.duplicated()]
    return {judge: frame.loc[:, names].droplevel(0, axis="columns") for judge, names in judges.items()}


def _judges(
    metrics: Sequence[str] | Mapping[str, Sequence[str]], known: set[Output], rated: RatedSet
) -> dict[str, list[Output]]:
    """Return the outputs of each judge, by its name."""
    where = f"dataset {rated.dataset!r}"
    found: dict[str, list[Output]] = {}
    for entry in metrics:
        name, equals, outputs = entry.partition("=")
        if isinstance(metrics, Mapping):
            name, names = entry, [output_name(one) for one in metrics[entry]]
        elif equals:
            names = [output_name(one) for one in outputs.split(",")]
        elif entry in {metric for metric, _ in known}:
            names = sorted(one for one in known if one[0] == entry)
        else:
            raise UnknownNameError("metric", entry, {metric for metric, _ in known}, where=where)
        if not name:
            raise ConfigError("a group of metrics without a name", where=entry, expected="NAME=METRIC:OUTPUT,…")
        if name in rated.sources:
            raise ConfigError(f"{name} is a source of ratings", where=where, expected="another name for these scores")
        for one in names:
            if one not in known:
                raise UnknownNameError("output", ":".join(one), {":".join(pair) for pair in known}, where=where)
        of = [output for _, output in names]
        if twice := next((output for output in of if of.count(output) > 1), None):
            raise ConfigError(f"two outputs for {twice}", where=name, expected="one for each dimension")
        found[name] = names
    return found
