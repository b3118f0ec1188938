"""The sections ``judges`` and ``judging`` of ``params.yaml``: who judges, and what is asked of which data set."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from comperdial.config import parameters
from comperdial.config.checking import Lines, checked
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.judges.base import Form
from comperdial.judges.services import services
from comperdial.judges.services.base import address
from comperdial.judges.weighting import check_labels
from comperdial.judging.base import ANY_ROLE, Judge, Judging, Variant
from comperdial.judging.groups import DEFAULT, spread

# What a judge's answers do not depend on: how it is reached, and how fast.
CONNECTION = (
    "base_url",
    "key",
    "free",
    "concurrency",
    "requests_per_minute",
    "tokens_per_minute",
    "timeout",
    "attempts",
)
# Of the section `judging`: where things lie and what they may cost, which no score depends on.
SETTINGS = ("ledger", "prices", "budget")


def read_judging(
    judges: Mapping[str, Any] | None,
    judging: Mapping[str, Any] | None,
    *,
    datasets: Collection[str] | None = None,
    groups: Mapping[str, Collection[str]] | None = None,
    lines: Lines | None = None,
) -> Judging:
    """Check both sections of ``params.yaml``.

    Parameters
    ----------
    judges, judging
        The sections, as the file has them; None for no such section.
    datasets
        The names of all data sets there can be; None where that is not known.
    groups
        Names that stand for several data sets, in ``judging.judges`` and ``judging.asks``
        (:func:`comperdial.judging.groups.groups_of`).
    lines
        Where settings are looked up, for messages.

    Raises
    ------
    ConfigError
        Names the entry at fault.
    UnknownNameError
        When a judge, variant, service, role or data set is named that there is not.
    """
    given = {"judges": judges, "judging": judging}
    sections, groups = checked(parameters.JudgingSections, given, lines=lines), groups or {}

    def place(*keys: str) -> str:
        value: Any = given
        for key in keys:
            value = value[key]
        return lines.place(keys, value) if lines else f"params.yaml, {'.'.join(keys)}"

    told = sections.judging or parameters.Judging(judges={DEFAULT: []}, variants={})
    for section in ("judges", "asks"):
        for name in getattr(told, section):
            if datasets is not None and name not in (DEFAULT, *datasets, *groups):
                raise UnknownNameError("dataset", name, (*datasets, *groups), where=place("judging", section))
    return Judging(
        judges={name: _judge(name, entry, place) for name, entry in sections.judges.items()},
        variants={name: _variant(name, entry, place) for name, entry in told.variants.items()},
        by_dataset={DEFAULT: ()} | spread(told.judges, groups, "params.yaml, judging.judges"),
        asks=spread(told.asks, groups, "params.yaml, judging.asks"),
        prompts=told.prompts,
        ledger=Path(told.ledger),
        prices=Path(told.prices),
        budget=float(told.budget),
    )


def _judge(name: str, entry: parameters.Judge, place: Callable[..., str]) -> Judge:
    if entry.service not in services():
        raise UnknownNameError("service", entry.service, services(), where=place("judges", name, "service"))
    if entry.base_url is not None:
        try:
            address(entry.base_url)
        except ConfigError as error:
            raise ConfigError(error.problem, where=place("judges", name), expected=error.expected) from error
    return Judge(
        name=name,
        service=entry.service,
        model=entry.model or "",
        role=entry.role or ANY_ROLE,
        mode=entry.mode,
        parameters=entry.parameters,
        explain=entry.explain,
        connection={key: value for key in CONNECTION if (value := getattr(entry, key)) is not None},
    )


def _variant(name: str, entry: parameters.Variant, place: Callable[..., str]) -> Variant:
    dimensions = tuple(text.lower() for text in entry.dimensions)
    # In order of the alphabet: a mapping has none of its own, and what is asked must not depend on it.
    labels = {label.strip(): float(value) for label, value in sorted((entry.labels or {}).items())}
    if labels:
        try:
            check_labels(labels)
        except ConfigError as error:
            where = place("judging", "variants", name, "labels")
            raise ConfigError(error.problem, where=where, expected=error.expected) from error
    low, high = (min(labels.values()), max(labels.values())) if labels else entry.scale or (1, 5)
    aliases = {key.lower(): tuple(names) for key, names in (entry.aliases or {}).items()}
    return Variant(
        name=name,
        label=entry.label or name,
        prompt=entry.prompt,
        fields=tuple(entry.fields),
        form=Form(dimensions, (entry.main or dimensions[-1]).lower(), float(low), float(high), aliases),
        samples=tuple(entry.samples) if isinstance(entry.samples, list) else (entry.samples,),
        retries=entry.retries,
        turns=entry.turns,
        roles=tuple(entry.roles),
        explain=entry.explain,
        labels=labels,
        question=entry.question,
    )
