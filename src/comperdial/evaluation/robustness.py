"""How firmly conclusions stand: tables ``curves`` (with less of everything) and ``power`` (to tell metrics apart)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.evaluation.correlations import Detail, grouped_measures
from comperdial.evaluation.samples import HUMAN, Sample
from comperdial.stats import OF_SYSTEMS, Coefficient, Measure
from comperdial.stats.coefficients import coefficients
from comperdial.stats.design import FEWEST_SAMPLED
from comperdial.stats.jackknife import variances
from comperdial.stats.pairs import Grouping, replicates
from comperdial.stats.power import Components, components, components_within
from comperdial.stats.subsampling import Curve, Varied, sample_curve, subsample_curve

Floats = npt.NDArray[np.float64]
# Of these numbers, those that are there; and all that there are.
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 75)
# Of the statistics within items and systems, those that decide which metric picks the better one; the others go along.
POWER_OF = {("item", "kendall"), ("item", "acc_eq"), ("system", "acc_eq"), *(("pooled", name) for name in OF_SYSTEMS)}
# Systems and dialogues to tell metrics apart with: more than there are, too.
POWER_SIZES = (5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500)


@dataclass(frozen=True)
class Subsampling:
    """Which coefficient the curves and the power are of, how many subsets are drawn for each size, and their seed."""

    coefficient: Coefficient = "spearman"
    repeats: int = 100
    seed: int = 2024


def curves(
    samples: Iterable[Sample], *, detail: Detail, subsampling: Subsampling, judgements: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Correlate on random subsets of systems, dialogues, annotators and judges' samples.

    Parameters
    ----------
    samples
        As :func:`comperdial.evaluation.samples` gives them.
    detail
        Of which outputs and dimensions.
    subsampling
        The coefficient, the number of subsets, the seed.
    judgements
        Table ``judgements``: single samples of judges. Judges with one sample an item take no part.

    Returns
    -------
    DataFrame
        Table ``curves``.
    """
    rows: list[dict[str, Any]] = []
    for part in _parts(samples, detail):
        counts: dict[Varied, int] = {
            "systems": len(part.systems),
            "dialogues": int(part.design.dialogues.max()) + 1,
            "annotators": len(part.annotators),
        }
        for varied, count in counts.items():
            sizes = _sizes(count, least=1 if varied == "annotators" or part.design.average else 2)
            if varied == "systems" and part.design.average:
                sizes = [size for size in sizes if size > 2]
            if len(sizes) < 2:
                continue
            curve = subsample_curve(
                part.scores, part.single, part.design, subsampling.coefficient,
                varied=varied, sizes=sizes, repeats=subsampling.repeats, seed=subsampling.seed,
            )  # fmt: skip
            rows += _curve_rows(part, subsampling, varied, curve, part.names)
        if judgements is not None:
            rows += _of_judges(part, subsampling, judgements)
    return schema.validate(pd.DataFrame(rows, columns=schema.table("curves").columns), "curves")


def _parts(samples: Iterable[Sample], detail: Detail) -> Iterable[Sample]:
    for sample in samples:
        part = detail.of(sample)
        part = part.only([name for name in part.names if name != HUMAN]) if part else None
        if part and part.names and len(part.systems) > 2:
            yield part


def _sizes(count: int, *, least: int) -> list[int]:
    return [*(size for size in SIZES if least <= size < count), count] if count >= least else []


def _curve_rows(
    sample: Sample, subsampling: Subsampling, varied: str, curve: Curve, names: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    return [
        sample.key
        | {"coefficient": subsampling.coefficient, "varied": varied, "size": size, "metric": metric, "output": output}
        | {"value": curve.value[row, column], "low": curve.low[row, column], "high": curve.high[row, column]}
        | {"agreement": curve.agreement[row], "repeats": curve.repeats[row]}
        for row, size in enumerate(curve.sizes)
        for column, (metric, output) in enumerate(names)
    ]


def _of_judges(sample: Sample, subsampling: Subsampling, judgements: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the curves over samples of the judges that have several; only where units are what they judged."""
    if sample.level == "system" or sample.level != sample.against:
        return []
    own = judgements[(judgements["dataset"] == sample.dataset) & (judgements["level"] == sample.level)]
    several = own[own["sample"] > 0][["metric", "output"]].drop_duplicates()
    names = [name for name in sample.names if name in set(several.itertuples(index=False, name=None))]
    if not names:
        return []
    units = pd.MultiIndex.from_tuples(sample.units)
    tables = []
    for metric, output in names:
        of_metric = own[(own["metric"] == metric) & (own["output"] == output)]
        wide = of_metric.pivot(index=["item_id", "system_id"], columns="sample", values="value")
        tables.append(wide.reindex(units).to_numpy(dtype=np.float64).T)
    most = max(map(len, tables))
    stacked = np.full((len(names), most, len(units)), np.nan)
    for row, table in enumerate(tables):
        stacked[row, : len(table)] = table
    others = [row for row, name in enumerate(sample.names) if name not in names]
    rest = coefficients(sample.scores[others], sample.ratings, sample.design, [subsampling.coefficient])[:, 0]
    curve = sample_curve(
        stacked, sample.ratings, sample.design, subsampling.coefficient,
        sizes=_sizes(most, least=1), repeats=subsampling.repeats, seed=subsampling.seed, others=rest,
    )  # fmt: skip
    return _curve_rows(sample, subsampling, "samples", curve, names)


def power(samples: Iterable[Sample], *, detail: Detail, subsampling: Subsampling) -> pd.DataFrame:
    """Return the chance to tell metrics apart with more or fewer systems or dialogues, the other kept as it is.

    The pairs are neighbours in the ranking, and each metric with the best one: those are what a reader asks about.

    Returns
    -------
    DataFrame
        Table ``power``. Sizes are those of ``POWER_SIZES`` and the data's own.
    """
    rows: list[dict[str, Any]] = []
    for part in _parts(samples, detail):
        values = coefficients(part.scores, part.ratings, part.design, [subsampling.coefficient])[:, 0]
        pairs = _asked(values)
        parts = components(part.scores, part.ratings, part.design, subsampling.coefficient, pairs) if pairs else []
        drawn = ["systems", "dialogues"]
        if part.design.given:
            parts, drawn = [replace(one, systems=0.0) for one in parts], drawn[1:]
        rows += _power_rows(part, "pooled", subsampling.coefficient, pairs, parts, drawn)
        rows += _power_within(part, detail)
    frame = pd.DataFrame(rows, columns=schema.table("power").columns)
    return schema.validate(frame[frame["difference"].notna()], "power")


def _asked(values: Floats) -> list[tuple[int, int]]:
    """Return neighbours in the ranking, and each with the best."""
    order = [int(row) for row in np.argsort(-values, kind="stable") if not np.isnan(values[row])]
    return [*pairwise(order), *((order[0], row) for row in order[2:])]


def _power_within(sample: Sample, detail: Detail) -> list[dict[str, Any]]:
    """Return the power of statistics within items and systems and of pairs of systems, over the units that all have."""
    units = np.asarray(np.isfinite(sample.scores).all(axis=0))
    if units.sum() < FEWEST_SAMPLED:
        return []
    rows = []
    items = np.unique(sample.items[units], return_inverse=True)[1].astype(np.intp)
    for grouping, measure in grouped_measures(sample):
        if (grouping, measure) not in POWER_OF:
            continue
        statistic = replicates(
            sample.scores[:, units], sample.ratings[units], sample.design.of(units), items, [measure], grouping,
            resamples=detail.resamples, seed=detail.seed,
        )[measure]  # fmt: skip
        pairs, drawn = _asked(statistic.values), variances(statistic).named
        rows += _power_rows(sample, grouping, measure, pairs, components_within(statistic, pairs), drawn)
    return rows


def _power_rows(
    sample: Sample,
    grouping: Grouping,
    measure: Measure,
    pairs: Sequence[tuple[int, int]],
    differences: Sequence[Components],
    drawn: Sequence[str],
) -> list[dict[str, Any]]:
    rows = []
    for (a, b), pair in zip(pairs, differences, strict=True):
        (metric_a, output_a), (metric_b, output_b) = sample.names[a], sample.names[b]
        systems, dialogues = pair.counts
        for varied, own in (("systems", systems), ("dialogues", dialogues)):
            for size in sorted({*POWER_SIZES, own}) if varied in drawn else ():
                chance = pair.power(size, dialogues) if varied == "systems" else pair.power(systems, size)
                rows.append(
                    sample.key
                    | {"grouping": grouping, "coefficient": measure, "varied": varied, "size": size}
                    | {"metric_a": metric_a, "output_a": output_a, "metric_b": metric_b, "output_b": output_b}
                    | {"difference": pair.difference, "power": round(chance, 4)}
                )
    return rows
