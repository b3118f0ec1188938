"""How well each output agrees with each rated dimension, by who rated; and how one rater's dimensions agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pandas as pd

from comperdial import schema
from comperdial.core.names import Output
from comperdial.evaluation.correlations import Detail, correlations
from comperdial.evaluation.ensembles import MEAN, Ensembles, is_ensemble
from comperdial.evaluation.rated import RatedSet
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.stats import COEFFICIENTS


def dimension_correlations(
    rated: RatedSet,
    scores: pd.DataFrame,
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
    rated, scores, ensembles
        The data set, rated at one level, its table ``scores``, and means of these scores, which are correlated too.
    outputs
        (metric, output) of what gets intervals, on all dimensions; None: all. An output called as a dimension gets one
        on that dimension, and so does the mean of an ensemble.
    own
        By metric, the source whose ratings its scores are, as of recorded judges: neither they nor ensembles with them
        are compared with this source.
    resamples, seed
        Of an interval; 0: no intervals.

    Returns
    -------
    DataFrame
        Table ``dimension_correlations``. ``n`` counts rated items with a score, ``coverage`` is their share; ``p`` is
        scipy's, for independent items, as the paper's is.
    """
    made = ensembles or Ensembles()
    frames = [schema.empty("dimension_correlations")]
    for source in rated.sources:
        itself = {metric for metric, of in (own or {}).items() if of == source}
        for sample in rated.samples(scores, source):
            whole = made.added(sample)
            whole = whole.only([name for name in whole.names if not itself & made.made_of(name[0])])
            shown = [
                name for name in whole.names if outputs is None or name in outputs or _is_shown(name, sample.target)
            ]
            detail = Detail(shown, resamples=resamples, seed=seed, only=COEFFICIENTS) if resamples else None
            frames.append(correlations([whole], detail=detail).assign(source=source))
    table = pd.concat(frames, ignore_index=True).assign(dimension=lambda frame: frame["target"])
    return schema.validate(table[list(frames[0].columns)], "dimension_correlations")


def _is_shown(name: Output, dimension: str) -> bool:
    return name[1] == dimension or (is_ensemble(name[0]) and name[1] == MEAN)


def between_dimensions(rated: RatedSet, scores: pd.DataFrame, ensembles: Ensembles | None = None) -> pd.DataFrame:
    """Correlate the dimensions of each rater with each other, by Pearson (Zhang et al. 2024, figures 3 and 4).

    A rater is each source of ratings, each metric of table ``scores`` with an output for all five dimensions of the level,
    and of ``ensembles`` each judge with a metric for each. Table ``between_dimensions`` has each pair of dimensions once,
    over the n rated items that have all five.
    """
    wanted = list(DIMENSIONS[rated.level])
    single = {source: rated.single(source) for source in rated.sources}
    tables = {who: one.mean(axis="columns").unstack("dimension") for who, one in single.items() if one is not None}
    own = scores[scores["level"].eq(rated.level) & scores["output"].isin(wanted)]
    signatures = own.drop_duplicates("metric").set_index("metric")["signature"]
    by_output = own.pivot(index=["item_id", "system_id"], columns=["metric", "output"], values="value")
    items = pd.concat(tables.values()).index.unique() if tables else by_output.index[:0]
    judges = {str(metric): [(metric, one) for one in wanted] for metric in own["metric"].unique()}
    made_by = dict.fromkeys(tables)
    for who, outputs in {**judges, **(ensembles.dimensions if ensembles else {})}.items():
        there = [name for name in outputs if name in by_output.columns]
        if {output for _, output in there} == set(wanted):
            tables[who] = by_output[there].droplevel(0, axis="columns").reindex(items)
            made_by[who] = signatures[there[0][0]]
    rows = []
    for who, table in tables.items():
        if set(wanted) <= set(table.columns):
            whole = table[wanted].dropna()
            value, n, signature = whole.corr(), len(whole), made_by[who]
            rows += [
                (rated.dataset, who, one, other, value.loc[one, other], n, signature)
                for place, one in enumerate(wanted)
                for other in wanted[:place]
            ]
    table = pd.DataFrame(rows, columns=schema.table("between_dimensions").columns)
    return schema.validate(table, "between_dimensions")
