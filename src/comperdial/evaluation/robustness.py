"""Robustness of conclusions: tables ``curves`` (with less data) and ``power`` (to separate metrics)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.core.names import Output
from comperdial.evaluation.correlations import Detail
from comperdial.evaluation.samples import HUMAN, UNIT, Sample
from comperdial.stats import Coefficient
from comperdial.stats.coefficients import coefficients
from comperdial.stats.sizes import Curve, Varied, components, sample_curve, subsample_curve

Floats = npt.NDArray[np.float64]
# Sizes to evaluate, up to the total, which is added.
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 75)
# Numbers of systems and dialogues, including more than the data have.
POWER_SIZES = (5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500)


@dataclass(frozen=True)
class Subsampling:
    """Coefficient of the curves and the power, number of subsets per size, and seed."""

    coefficient: Coefficient = "spearman"
    repeats: int = 100
    seed: int = 2024


def curves(
    samples: Iterable[Sample], *, detail: Detail, subsampling: Subsampling, judgements: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Correlate on random subsets of systems, dialogues, annotators and judges' samples, for table ``curves``.

    ``detail`` names the outputs and dimensions; ``judgements`` has single samples of judges, and judges with only one sample
    per item are ignored.
    """
    name, how = subsampling.coefficient, {"repeats": subsampling.repeats, "seed": subsampling.seed}
    rows: list[dict[str, Any]] = []

    def add(sample: Sample, varied: str, curve: Curve, names: Sequence[Output]) -> None:
        for row, size in enumerate(curve.sizes):
            about = sample.key | {"coefficient": name, "varied": varied, "size": size}
            about |= {"agreement": curve.agreement[row], "repeats": curve.repeats[row]}
            for (metric, output), *ends in zip(names, curve.value[row], curve.low[row], curve.high[row], strict=True):
                values = dict(zip(("value", "low", "high"), ends, strict=True))
                rows.append(about | {"metric": metric, "output": output} | values)

    for part in _parts(samples, detail):
        systems, dialogues = part.design.counts
        fewest = {"systems": 3, "dialogues": 1, "annotators": 1} if part.design.average else {"annotators": 1}
        counts: dict[Varied, int] = {"systems": systems, "dialogues": dialogues, "annotators": len(part.annotators)}
        for varied, count in counts.items():
            sizes = _sizes(count, fewest.get(varied, 2))
            if len(sizes) > 1:
                curve = subsample_curve(part.scores, part.single, part.design, name, varied=varied, sizes=sizes, **how)
                add(part, varied, curve, part.names)
        # Judges have samples of responses or of dialogues.
        if judgements is not None and part.level == part.against:
            of_part = (judgements["dataset"] == part.dataset) & (judgements["level"] == part.level)
            names, judged = _judged(part, judgements[of_part])
            if names:
                others = part.scores[[row for row, one in enumerate(part.names) if one not in names]]
                rest = coefficients(others, part.ratings, part.design, [name])[:, 0]
                sizes = _sizes(judged.shape[1], 1)
                curve = sample_curve(judged, part.ratings, part.design, name, sizes=sizes, others=rest, **how)
                add(part, "samples", curve, names)
    return schema.validate(pd.DataFrame(rows, columns=schema.table("curves").columns), "curves")


def _parts(samples: Iterable[Sample], detail: Detail) -> Iterator[Sample]:
    for sample in samples:
        part = detail.of(sample)
        part = part.only([name for name in part.names if name != HUMAN]) if part else None
        if part and part.names and len(part.systems) > 2:
            yield part


def _sizes(count: int, least: int) -> list[int]:
    return [*(size for size in SIZES if least <= size < count), count] if count >= least else []


def _judged(sample: Sample, judgements: pd.DataFrame) -> tuple[list[Output], Floats]:
    """Return the outputs with several samples per item, and these: shape (outputs, most samples, units)."""
    units, tables = pd.MultiIndex.from_tuples(sample.units), {}
    for (metric, output), group in judgements.groupby(["metric", "output"]):
        if (metric, output) in sample.names and (group["sample"] > 0).any():
            wide = group.pivot(index=UNIT, columns="sample", values="value")
            tables[str(metric), str(output)] = wide.reindex(units).to_numpy(dtype=np.float64).T
    stacked = np.full((len(tables), max(map(len, tables.values()), default=0), len(units)), np.nan)
    for row, table in enumerate(tables.values()):
        stacked[row, : len(table)] = table
    return list(tables), stacked


def power(samples: Iterable[Sample], *, detail: Detail, subsampling: Subsampling) -> pd.DataFrame:
    """Return the power to separate metrics with different numbers of systems or dialogues, changing one number at a time.

    The pairs are neighbours in the ranking, and each metric with the best one, since these interest readers most. The sizes
    of table ``power`` are ``POWER_SIZES`` and the data's own.
    """
    name, rows = subsampling.coefficient, list[dict[str, Any]]()
    for part in _parts(samples, detail):
        values = coefficients(part.scores, part.ratings, part.design, [name])[:, 0]
        order = [int(row) for row in np.argsort(-values, kind="stable") if not np.isnan(values[row])]
        pairs = [*pairwise(order), *((order[0], row) for row in order[2:])]
        for (a, b), pair in zip(pairs, components(part.scores, part.ratings, part.design, name, pairs), strict=True):
            # Fixed systems add no variance.
            known = replace(pair, systems=0.0) if part.design.given else pair
            names = zip(("metric_a", "output_a", "metric_b", "output_b"), part.names[a] + part.names[b], strict=True)
            about = part.key | {"grouping": "pooled", "coefficient": name, "difference": pair.difference} | dict(names)
            systems, dialogues = pair.counts
            tried = [("dialogues", size, systems, size) for size in sorted({*POWER_SIZES, dialogues})]
            if not part.design.given:
                tried += [("systems", size, size, dialogues) for size in sorted({*POWER_SIZES, systems})]
            rows += [
                about | {"varied": varied, "size": size, "power": round(known.power(*counts), 4)}
                for varied, size, *counts in tried
            ]
    frame = pd.DataFrame(rows, columns=schema.table("power").columns)
    return schema.validate(frame[frame["difference"].notna()], "power")
