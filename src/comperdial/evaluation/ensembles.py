"""Ensembles of scores: over a judge's dimensions, and over metrics (Zhang et al. 2024, Tables 5 and 6)."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.names import Output, output_name
from comperdial.evaluation.samples import Sample
from comperdial.schema.evaluated import DIMENSIONS

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]

OVERALL = "overall"
OVER_DIMENSIONS, OVER_MODELS = "ensemble-dimensions", "ensemble-models"
MEAN = "mean"
SCALES = ("z", "plain")
_WHERE = "ensembles"


def is_ensemble(metric: str) -> bool:
    """Say whether a metric is an ensemble of others."""
    return metric.partition(":")[0] in (OVER_DIMENSIONS, OVER_MODELS)


def standing_for(frame: pd.DataFrame, outputs: Collection[str | Output]) -> pd.DataFrame:
    """Keep the rows of outputs that stand for their metric on the row's dimension.

    Parameters
    ----------
    frame
        Has columns metric, output and dimension.
    outputs
        ``METRIC:OUTPUT`` or (metric, output): what stands for a metric that has no output called as the dimension.

    Returns
    -------
    DataFrame
        One output a metric and dimension, where ``outputs`` names one a metric.
    """
    main = {output_name(name) if isinstance(name, str) else name for name in outputs}
    own = frame["output"] == frame["dimension"]
    has_own = own.groupby([frame["metric"], frame["dimension"]]).transform("any") if len(frame) else own
    named = pd.Series(
        [pair in main for pair in zip(frame["metric"], frame["output"], strict=True)], index=frame.index, dtype=bool
    )
    return frame[own | (named & ~has_own)]


@dataclass(frozen=True)
class Members:
    """What an ensemble over models averages.

    Attributes
    ----------
    names
        ``METRIC:OUTPUT``; or ``METRIC``, which stands for its output that is called as the dimension.
    scale
        ``z``: each member is standardised over the items that all members have; ``plain``: scores as they are, for
        members on the same scale.
    """

    names: tuple[str, ...]
    scale: str = "z"

    def of(self, dimension: str) -> list[Output]:
        """Return metric and output of each member for a dimension."""
        return [output_name(name, dimension) for name in self.names]

    @property
    def by_dimension(self) -> bool:
        """Say whether a member differs by dimension."""
        return any(":" not in name for name in self.names)


@dataclass(frozen=True)
class Ensembles:
    """Which ensembles are made.

    Attributes
    ----------
    dimensions
        Metrics, judges above all, with an output for each dimension: the mean of all but ``overall`` becomes metric
        ``ensemble-dimensions:<metric>``, output ``mean``. One judge's dimensions have one scale: scores are averaged as
        they are.
    apart
        Judges that are a metric for each dimension (implicit scoring): by the judge's name, (metric, output) of each,
        where an output is called as its dimension. Likewise metric ``ensemble-dimensions:<name>``, at each level whose
        dimensions are there; those called ``overall`` are no members.
    models
        By name, the members of metric ``ensemble-models:<name>``. Its output is ``mean``; or, where a member has an
        output for each dimension, called as the dimension.
    """

    dimensions: tuple[str, ...] = ()
    models: Mapping[str, Members] = field(default_factory=dict)
    apart: Mapping[str, tuple[Output, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Ensembles:
        """Return the ensembles that a JSON object names.

        ``{"dimensions": [metric, …], "models": {name: [member, …]}}``; in place of a list of members
        ``{"members": […], "scale": "z"}`` says how they are brought to one scale, and in place of a metric
        ``{name: ["METRIC:OUTPUT", …]}`` a judge that is a metric for each dimension.

        Raises
        ------
        ConfigError
            When it has another form.
        """
        if unknown := sorted(set(value) - {"dimensions", "models"}):
            raise UnknownNameError("kind of ensemble", unknown[0], ["dimensions", "models"], where=_WHERE)
        dimensions, models = value.get("dimensions", []), value.get("models", {})
        plain, apart = _dimensions(dimensions)
        if not isinstance(models, Mapping):
            raise ConfigError("no object", where=f"{_WHERE}, models", expected='{"name": ["METRIC:OUTPUT", …]}')
        return cls(plain, {str(name): _members(str(name), models[name]) for name in sorted(models)}, apart)

    @property
    def direct(self) -> dict[str, str]:
        """Return whose overall score a metric has: by metric, the name of a judge whose dimensions are averaged."""
        found = {metric: metric for metric in self.dimensions}
        return found | {one: name for name, of in self.apart.items() for one, output in of if output == OVERALL}

    def made_of(self, metric: str) -> set[str]:
        """Return the metrics whose scores are in a metric: itself, or an ensemble's members."""
        kind, _, name = metric.partition(":")
        if kind == OVER_DIMENSIONS and name in self.apart:
            return {one for one, output in self.apart[name] if output != OVERALL}
        if kind == OVER_MODELS and name in self.models:
            return {one for one, _ in self.models[name].of(OVERALL)}
        return {name if kind == OVER_DIMENSIONS else metric}

    def added(self, sample: Sample) -> Sample:
        """Return a sample with the ensembles whose members it has all of, in the order of names."""
        at = {name: row for row, name in enumerate(sample.names)}
        made: list[tuple[Output, list[int], str]] = []
        for name, members, scale in self._wanted(DIMENSIONS[sample.against]):
            rows = [at[member] for member in members if member in at]
            if len(rows) == len(members):
                made.append((name, rows, scale))
            elif rows:
                lost = next(member for member in members if member not in at)
                log.info("%s: no %s: no scores of %s", sample.dataset, ":".join(name), ":".join(lost))
        return _with(sample, made) if made else sample

    def check(self, names: Iterable[Output]) -> None:
        """Refuse a member that no data set has scores of, so that a typing error does not pass for a result."""
        known = set(names)
        metrics = {metric for metric, _ in known}
        for metric in self.dimensions:
            if metric not in metrics:
                raise UnknownNameError("metric", metric, metrics, where=f"{_WHERE}, dimensions")
        for judge, outputs in self.apart.items():
            for one in outputs:
                if one not in known:
                    spelled = {":".join(pair) for pair in known}
                    raise UnknownNameError("output", ":".join(one), spelled, where=f"{_WHERE}, dimensions, {judge}")
        for ensemble, members in self.models.items():
            for name in members.names:
                if ":" in name and output_name(name) not in known:
                    spelled = {":".join(one) for one in known}
                    raise UnknownNameError("output", name, spelled, where=f"{_WHERE}, models, {ensemble}")
                if ":" not in name and name not in metrics:
                    raise UnknownNameError("metric", name, metrics, where=f"{_WHERE}, models, {ensemble}")

    def _wanted(self, dimensions: Sequence[str]) -> Iterator[tuple[Output, list[Output], str]]:
        for metric in self.dimensions:
            single = [(metric, dimension) for dimension in dimensions if dimension != OVERALL]
            yield (f"{OVER_DIMENSIONS}:{metric}", MEAN), single, "plain"
        for judge, outputs in self.apart.items():
            of = {output: (metric, output) for metric, output in outputs}
            if single := [of[dimension] for dimension in dimensions if dimension != OVERALL and dimension in of]:
                yield (f"{OVER_DIMENSIONS}:{judge}", MEAN), single, "plain"
        for name, members in self.models.items():
            for output in dimensions if members.by_dimension else [MEAN]:
                yield (f"{OVER_MODELS}:{name}", output), members.of(output), members.scale


def combined(scores: Floats, scale: str) -> Floats:
    """Average members item by item.

    Parameters
    ----------
    scores
        Shape (members, n), NaN where there is no score.
    scale
        ``z``: each member less its mean, over its standard deviation, both over the items that all members have; a
        member that does not vary there adds nothing. ``plain``: scores as they are.

    Returns
    -------
    array
        Shape (n,), NaN for items that not all members have.
    """
    if scale not in SCALES:
        raise ValueError(f"unknown scale {scale!r}; expected one of {', '.join(SCALES)}")
    there = ~np.isnan(scores).any(axis=0)
    found = np.full(scores.shape[1], np.nan)
    values = scores[:, there]
    if scale == "z" and there.any():
        values = values - values.mean(axis=1, keepdims=True)
        spread = values.std(axis=1, keepdims=True)
        flat = np.ptp(scores[:, there], axis=1, keepdims=True) == 0
        values = np.where(flat, 0.0, values / np.where(flat, 1.0, spread))
    found[there] = values.mean(axis=0)
    return found


def _with(sample: Sample, made: Sequence[tuple[Output, list[int], str]]) -> Sample:
    rows = np.stack([combined(sample.scores[rows], scale) for _, rows, scale in made])
    names = [*sample.names, *(name for name, _, _ in made)]
    signatures = [*sample.signatures, *(_signature(sample, *one) for one in made)]
    cut = [*sample.cut, *(max(sample.cut[row] for row in rows) for _, rows, _ in made)]
    coverage = [*sample.coverage, *(float(share) for share in (~np.isnan(rows)).mean(axis=1))]
    if len(set(names)) < len(names):
        raise ConfigError(
            "a metric is called as an ensemble", where=f"dataset {sample.dataset!r}", expected="two names"
        )
    order = sorted(range(len(names)), key=names.__getitem__)
    return replace(
        sample,
        names=tuple(names[at] for at in order),
        scores=np.concatenate([sample.scores, rows])[order],
        coverage=tuple(coverage[at] for at in order),
        cut=tuple(cut[at] for at in order),
        signatures=tuple(signatures[at] for at in order),
    )


def _signature(sample: Sample, name: Output, rows: list[int], scale: str) -> str:
    """Return all that determines an ensemble: members, their scale, and a digest of what made them."""
    kind = name[0].partition(":")[0]
    over = kind == OVER_DIMENSIONS
    members = "+".join(sample.names[row][1] if over else ":".join(sample.names[row]) for row in rows)
    digest = hashlib.sha256("\n".join(sample.signatures[row] for row in rows).encode()).hexdigest()[:8]
    return f"{kind}|members:{members}|scale:{scale}|made:{digest}"


def _dimensions(value: object) -> tuple[tuple[str, ...], dict[str, tuple[Output, ...]]]:
    """Return the metrics that have all dimensions, and by name the judges that are a metric for each."""
    where = f"{_WHERE}, dimensions"
    entries = list(value) if isinstance(value, list | tuple) else None
    if entries is None or not all(
        isinstance(one, Mapping) or (isinstance(one, str) and one.strip()) for one in entries
    ):
        raise ConfigError(
            "no list of metrics", where=where, expected='names of metrics, or {"name": ["METRIC:OUTPUT"]}'
        )
    plain = [one for one in entries if isinstance(one, str)]
    groups = [(str(name), of) for one in entries if isinstance(one, Mapping) for name, of in one.items()]
    _once([*plain, *(name for name, _ in groups)], where)
    return tuple(plain), {name: _apart(f"{where}, {name}", of) for name, of in sorted(groups, key=lambda one: one[0])}


def _apart(where: str, value: object) -> tuple[Output, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ConfigError("no list of outputs", where=where, expected='["METRIC:OUTPUT", …], one for each dimension')
    names = tuple(output_name(name) for name in value)
    rated = [output for _, output in names]
    for output in rated:
        if output not in (known := {one for of in DIMENSIONS.values() for one in of}):
            raise UnknownNameError("dimension", output, known, where=where)
    _once([output for output in rated if output != OVERALL], where)
    for of in DIMENSIONS.values():
        lost = [one for one in of if one not in rated and one != OVERALL]
        # Of a level that it is not asked at, a judge has no dimension; of none, it is no judge.
        if (lost and len(lost) < len(of) - 1) or set(rated) <= {OVERALL}:
            raise ConfigError(f"no output for {lost[0]}", where=where, expected="all dimensions of a level")
    return names


def _once(names: Sequence[str], where: str) -> None:
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"{twice} stands twice", where=where, expected="each once")


def _members(name: str, value: object) -> Members:
    where = f"{_WHERE}, models, {name}"
    scale: object = SCALES[0]
    if isinstance(value, Mapping):
        if unknown := sorted(set(value) - {"members", "scale"}):
            raise UnknownNameError("setting", str(unknown[0]), ["members", "scale"], where=where)
        scale, value = value.get("scale", scale), value.get("members")
    if not _names(value, least=1):
        raise ConfigError("no list of members", where=where, expected='["METRIC:OUTPUT" or "METRIC", …], each once')
    if not isinstance(scale, str) or scale not in SCALES:
        raise UnknownNameError("scale", str(scale), SCALES, where=where)
    names = tuple(value) if isinstance(value, list | tuple) else ()
    for member in names:
        output_name(member, MEAN)
    return Members(names, scale)


def _names(value: object, *, least: int) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) >= least
        and all(isinstance(name, str) and name.strip() for name in value)
        and len(set(value)) == len(value)
    )
