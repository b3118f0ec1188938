"""Agreement of each output with each rated dimension, by source of ratings; and agreement of a rater's dimensions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.names import RATED_LEVELS, Output
from comperdial.evaluation.correlations import Detail, correlations
from comperdial.evaluation.ensembles import MEAN, Ensembles, is_ensemble
from comperdial.evaluation.samples import UNIT, Sample, Tables
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.stats import COEFFICIENTS
from comperdial.stats.design import FEWEST_SAMPLED, Design


def dimension_correlations(
    tables: Tables,
    *,
    ensembles: Ensembles | None = None,
    outputs: Collection[Output] | None = None,
    own: Mapping[str, str] | None = None,
    resamples: int = 1000,
    seed: int = 2024,
) -> pd.DataFrame:
    """Correlate every output with the mean rating of every dimension, by source of ratings (Zhang et al. 2024).

    Scores and ensembles are compared with ratings at the rated level. In table ``dimension_correlations`` ``n`` counts rated
    items with a score, ``coverage`` is their share; ``p`` is scipy's, for independent items, as in the paper. ``outputs`` get
    intervals on all dimensions (None: all; without ``resamples``: none); an output named after a dimension, or the mean of
    an ensemble, gets one on that dimension. ``own`` is the rating source of the scores of some metrics, such as recorded
    judges: neither they nor ensembles with them are compared with it.
    """
    made, name = ensembles or Ensembles(), "dimension_correlations"
    frames = [schema.empty(name)]
    for source in tables.sources:
        itself = {metric for metric, of in (own or {}).items() if of == source}
        samples = replace(tables, source=source).samples(RATED_LEVELS)
        for sample in (_resampled(one) for one in samples if one.level == one.against):
            whole = made.added(sample)
            whole = whole.only([name for name in whole.names if not itself & made.made_of(name[0])])
            shown = [
                (metric, output)
                for metric, output in whole.names
                if outputs is None
                or (metric, output) in outputs
                or output == sample.target
                or (is_ensemble(metric) and output == MEAN)
            ]
            detail = Detail(shown, resamples=resamples, seed=seed, only=COEFFICIENTS) if resamples else None
            frames.append(correlations([whole], detail=detail).assign(source=source))
    table = pd.concat(frames, ignore_index=True).assign(dimension=lambda frame: frame["target"])
    return schema.validate(table[list(frames[0].columns)], name)


def _resampled(sample: Sample) -> Sample:
    """Return a sample with the clusters to resample for intervals.

    These are systems and dialogues, if systems share dialogues; systems, if each dialogue belongs to one system, whose variance
    then includes that of dialogues (intervals over both would cover 98 %); dialogues, if there are fewer than four systems, or
    a dialogue's system is unknown.
    """
    design, coverage = sample.design, np.isfinite(sample.scores).mean(axis=1)
    if len(sample.systems) < FEWEST_SAMPLED:
        design = Design(np.zeros_like(design.systems), design.dialogues)
    elif design.cells.max() == design.dialogues.max():
        design = Design(design.systems, np.zeros_like(design.dialogues))
    return replace(sample, design=design, coverage=tuple(coverage.tolist()))


def between_dimensions(tables: Tables, ensembles: Ensembles | None = None) -> pd.DataFrame:
    """Correlate the dimensions of each rater with each other, by Pearson (Zhang et al. 2024, figures 3 and 4).

    A rater is a source of ratings, a metric with an output for all five dimensions of the rated level, or a judge of
    ``ensembles`` with a metric for each. Table ``between_dimensions`` has each pair of dimensions once, over the n rated items
    with all five.
    """
    name, rows = "between_dimensions", []
    for dataset, level in tables.ratings[["dataset", "level"]].drop_duplicates().itertuples(index=False):
        wanted = list(DIMENSIONS[level])
        single = {source: replace(tables, source=source).single(level) for source in tables.sources}
        raters = {who: (one.mean(axis="columns").unstack("dimension"), None) for who, one in single.items() if len(one)}
        if not raters:
            continue
        items = pd.concat([table for table, _ in raters.values()]).index.unique()
        scores = tables.scores[tables.scores["level"].eq(level) & tables.scores["output"].isin(wanted)]
        signatures = scores.drop_duplicates("metric").set_index("metric")["signature"]
        wide = scores.pivot(index=UNIT, columns=["metric", "output"], values="value").reindex(items)
        judges = {metric: [(metric, one) for one in wanted] for metric in signatures.index}
        for who, outputs in {**judges, **(ensembles.dimensions if ensembles else {})}.items():
            if there := [output for output in outputs if output in wide.columns]:
                raters[who] = wide[there].droplevel(0, axis="columns"), signatures[there[0][0]]
        for who, (table, signature) in raters.items():
            if {*wanted} <= {*table.columns}:
                whole = table[wanted].dropna()
                value = whole.corr().to_numpy()
                pairs = zip(*np.tril_indices(len(wanted), -1), strict=True)
                about = len(whole), signature
                rows += [(dataset, who, wanted[a], wanted[b], value[a, b], *about) for a, b in pairs]
    return schema.validate(pd.DataFrame(rows, columns=schema.table(name).columns), name)
