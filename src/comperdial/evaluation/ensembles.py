"""Ensembles of scores: over a judge's dimensions, and over metrics (Zhang et al. 2024, Tables 5 and 6)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from comperdial.core.errors import ConfigError
from comperdial.core.names import Output, output_name
from comperdial.evaluation.samples import Sample
from comperdial.schema.evaluated import DIMENSIONS

OVERALL = "overall"
OVER_DIMENSIONS, OVER_MODELS = "ensemble-dimensions", "ensemble-models"
MEAN = "mean"


def is_ensemble(metric: str) -> bool:
    """Return whether a metric is an ensemble of others."""
    return metric.partition(":")[0] in (OVER_DIMENSIONS, OVER_MODELS)


@dataclass(frozen=True)
class Ensembles:
    """The mean scores to add to a sample.

    ``dimensions`` maps a judge's name to its output for each dimension. The mean of all except ``overall`` becomes metric
    ``ensemble-dimensions:<name>``, output ``mean``; scores are averaged unscaled, since one judge has one scale.

    ``models`` maps names to the members of metric ``ensemble-models:<name>``, as ``METRIC:OUTPUT``, or ``METRIC`` for the output
    named after the dimension. Its output is ``mean`` or, with such a member, named after the dimension. Members are
    standardized over the items that all of them scored.
    """

    dimensions: Mapping[str, Sequence[Output]] = field(default_factory=dict)
    models: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, value: Mapping[str, Any], scored: Iterable[str] = (), variants: Mapping[str, Any] | None = None
    ) -> Ensembles:
        """Return the ensembles of a study: ``{"dimensions": [METRIC, …], "models": {NAME: [MEMBER, …]}}``.

        For a study's variant with words as labels, such as Yes and No (implicit scoring), the ``scored`` metrics
        ``<variant>_<judge>`` also form a judge with a metric per dimension: ``implicit_<judge>``.
        """
        every = dict.fromkeys(sum(DIMENSIONS.values(), ()))
        dimensions = {metric: [(metric, one) for one in every] for metric in value.get("dimensions", ())}
        for name, variant in (variants or {}).items():
            if any(str(label) != f"{number:g}" for label, number in (variant.get("labels") or {}).items()):
                for metric in (one for one in scored if one.startswith(f"{name}_")):
                    judge = f"implicit_{metric.removeprefix(f'{name}_')}"
                    dimensions.setdefault(judge, []).append((metric, variant["dimensions"][0]))
        return cls(dimensions, dict(value.get("models", {})))

    def judge_of(self, metric: str) -> str:
        """Return the judge of a metric; the metric's own name if it has none."""
        return next((name for name, of in self.dimensions.items() if metric in dict(of)), metric)

    def made_of(self, metric: str) -> set[str]:
        """Return the metrics that a metric consists of: itself, or an ensemble's members."""
        members = [of for level in DIMENSIONS for (name, _), of in self.members(level).items() if name == metric]
        return {name for of in members for name, _ in of} or {metric}

    def members(self, level: str) -> dict[Output, list[Output]]:
        """Return the outputs that each ensemble averages at a level, by the ensemble's output."""
        ensembles = {}
        rated = [dimension for dimension in DIMENSIONS[level] if dimension != OVERALL]
        for judge, outputs in self.dimensions.items():
            of = {output: (metric, output) for metric, output in outputs}
            if of.keys() >= set(rated):
                ensembles[f"{OVER_DIMENSIONS}:{judge}", MEAN] = [of[dimension] for dimension in rated]
        for name, members in self.models.items():
            for output in DIMENSIONS[level] if any(":" not in one for one in members) else [MEAN]:
                ensembles[f"{OVER_MODELS}:{name}", output] = [output_name(one, output) for one in members]
        return ensembles

    def added(self, sample: Sample) -> Sample:
        """Return a sample with the ensembles whose members it has, sorted by name."""
        columns = zip(sample.scores, sample.coverage, sample.cut, sample.signatures, strict=True)
        rows, made = dict(zip(sample.names, columns, strict=True)), {}
        for name, members in self.members(sample.against).items():
            if not rows.keys() >= set(members):
                continue
            if name in rows:
                problem = f"{name[0]} is a metric and an ensemble"
                raise ConfigError(problem, where=f"dataset {sample.dataset!r}", expected="two names")
            kind, own = name[0].partition(":")[0], [rows[one] for one in members]
            standardise = kind == OVER_MODELS
            scores = averaged(np.stack([row[0] for row in own]), standardise=standardise)
            listed = "+".join(":".join(one) if standardise else one[1] for one in members)
            # The digest identifies the members' signatures.
            digest = hashlib.sha256("\n".join(row[3] for row in own).encode()).hexdigest()[:8]
            signature = f"{kind}|members:{listed}|scale:{'z' if standardise else 'plain'}|made:{digest}"
            made[name] = scores, float(np.isfinite(scores).mean()), max(row[2] for row in own), signature
        every = dict(sorted((rows | made).items()))
        values, coverage, cuts, signatures = zip(*every.values(), strict=True)
        return replace(
            sample, names=tuple(every), scores=np.stack(values), coverage=coverage, cut=cuts, signatures=signatures
        )


def averaged(scores: npt.NDArray[np.float64], *, standardise: bool) -> npt.NDArray[np.float64]:
    """Average members by item: (members, n) becomes (n,), NaN for items that some member did not score.

    With ``standardise``, members are first standardized over the items that all scored; a member that is constant there adds
    nothing.
    """
    whole = ~np.isnan(scores).any(axis=0)
    means, values = np.full(scores.shape[1], np.nan), scores[:, whole]
    if standardise and whole.any():
        flat = np.ptp(values, axis=1, keepdims=True) == 0
        spread = np.where(flat, 1.0, values.std(axis=1, keepdims=True))
        values = np.where(flat, 0.0, (values - values.mean(axis=1, keepdims=True)) / spread)
    means[whole] = values.mean(axis=0)
    return means
