"""The sections ``judges`` and ``judging`` of ``params.yaml``: who judges, and what is asked of which data set."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from comperdial.config import check
from comperdial.errors import ConfigError, UnknownNameError
from comperdial.judges.base import Form
from comperdial.judges.services import services
from comperdial.judging.base import ANY_ROLE, DEFAULT, Judge, Judging, Variant

_JUDGE_KEYS = {
    "service", "model", "role", "mode", "parameters", "explain", "base_url", "key", "free", "concurrency",
    "requests_per_minute", "tokens_per_minute", "timeout", "attempts",
}  # fmt: skip
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
_TURN = {"history", "response", "reference", "fact"}
_DIALOGUE = {"turn_scores", "responses"}
# Of the section `judging`: where things lie and what they may cost, which no score depends on.
SETTINGS = ("ledger", "prices", "budget")
_VARIABLE = re.compile("[A-Z_][A-Z0-9_]*")
_VARIANT_KEYS = {
    "prompt", "label", "fields", "dimensions", "main", "scale", "aliases", "samples", "retries", "turns", "roles",
    "explain",
}  # fmt: skip


def read_judging(
    judges: Mapping[str, Any] | None, judging: Mapping[str, Any] | None, *, datasets: Collection[str] | None = None
) -> Judging:
    """Check both sections of ``params.yaml``.

    Parameters
    ----------
    judges, judging
        The sections; None for no such section.
    datasets
        The names of all data sets there can be; None where that is not known.

    Raises
    ------
    ConfigError
        Names the entry at fault.
    UnknownNameError
        When a judge, variant, service, role or data set is named that there is not.
    """
    for name, entry in (judges or {}).items():
        # Not the schema, which would print what may well be the key itself.
        if isinstance(entry, dict) and not _VARIABLE.fullmatch(str(entry.get("key", "KEY"))):
            raise ConfigError(
                "`key` is no name of an environment variable",
                where=f"params.yaml, judges.{name}",
                expected="capitals, digits and underscores; the key itself belongs into that variable, never here",
            )
    check({"judges": judges, "judging": judging}, Path(__file__).with_name("params.schema.yaml"))
    judging = judging or {}
    who = {name: _judge(name, entry) for name, entry in (judges or {}).items()}
    variants = {name: _variant(name, entry) for name, entry in judging.get("variants", {}).items()}
    by_dataset = {DEFAULT: ()} | {name: tuple(names) for name, names in judging.get("judges", {}).items()}
    for dataset, names in by_dataset.items():
        if datasets is not None and dataset not in (DEFAULT, *datasets):
            raise UnknownNameError("dataset", dataset, datasets, where="params.yaml, judging.judges")
        for name in names:
            if name not in who:
                raise UnknownNameError("judge", name, who, where=f"params.yaml, judging.judges.{dataset}")
    for variant in variants.values():
        _check_turns(variant, variants)
    asked_by = {role for variant in variants.values() for role in variant.roles}
    for judge in who.values():
        if asked_by and judge.role not in (ANY_ROLE, *asked_by):
            raise UnknownNameError("role", judge.role, asked_by, where=f"params.yaml, judges.{judge.name}")
    for variant in variants.values():
        for role in variant.roles:
            if who and role not in (roles := {judge.role for judge in who.values()}) and ANY_ROLE not in roles:
                raise UnknownNameError("role", role, roles, where=f"params.yaml, judging.variants.{variant.name}")
    return Judging(
        judges=who,
        variants=variants,
        by_dataset=by_dataset,
        prompts=judging.get("prompts", "ours"),
        ledger=Path(judging.get("ledger", "data/ledger")),
        prices=Path(judging.get("prices", "data/prices.yaml")),
        budget=float(judging.get("budget", 0)),
    )


def _check_turns(variant: Variant, variants: Mapping[str, Variant]) -> None:
    where = f"params.yaml, judging.variants.{variant.name}"
    if variant.turns is None:
        return
    if variant.turns not in variants:
        raise UnknownNameError("variant", variant.turns, variants, where=f"{where}, turns")
    if variants[variant.turns].level != "turn":
        raise ConfigError(f"`turns` is {variant.turns!r}", where=where, expected="a variant at turn level")
    if variants[variant.turns].roles and set(variants[variant.turns].roles) != set(variant.roles):
        raise ConfigError(
            f"`turns` is {variant.turns!r}, which other roles ask", where=where, expected="the same roles in both"
        )


def _unknown(entry: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for key in entry:
        if key not in known:
            raise UnknownNameError("option", key, known, where=where)


def _judge(name: str, entry: Mapping[str, Any]) -> Judge:
    where = f"params.yaml, judges.{name}"
    _unknown(entry, _JUDGE_KEYS, where)
    if entry["service"] not in services():
        raise UnknownNameError("service", entry["service"], services(), where=where)
    mode = entry.get("mode", "generate")
    if mode not in ("generate", "probabilities"):
        raise ConfigError(f"`mode` is {mode!r}", where=where, expected="generate or probabilities")
    return Judge(
        name=name,
        service=entry["service"],
        model=entry.get("model", ""),
        role=entry.get("role", ANY_ROLE),
        mode=mode,
        parameters=dict(entry.get("parameters", {})),
        explain=entry.get("explain"),
        connection={key: entry[key] for key in CONNECTION if key in entry},
    )


def _variant(name: str, entry: Mapping[str, Any]) -> Variant:
    where = f"params.yaml, judging.variants.{name}"
    _unknown(entry, _VARIANT_KEYS, where)
    dimensions = tuple(text.lower() for text in entry["dimensions"])
    main = entry.get("main", dimensions[-1]).lower()
    if main not in dimensions:
        raise ConfigError(f"`main` is {main!r}", where=where, expected="one of " + ", ".join(dimensions))
    low, high = entry.get("scale", (1, 5))
    if low >= high:
        raise ConfigError(f"`scale` is {low} to {high}", where=where, expected="the lower end first")
    samples = entry.get("samples", 1)
    counts = tuple(samples) if isinstance(samples, list) else (samples,)
    if len(set(counts)) < len(counts) or max(counts) != counts[0]:
        raise ConfigError(
            f"`samples` is {samples}",
            where=where,
            expected="different counts, the largest first: the others use its answers",
        )
    aliases = {key.lower(): tuple(names) for key, names in entry.get("aliases", {}).items()}
    if strange := [field for field in aliases if field not in dimensions]:
        raise UnknownNameError("dimension", strange[0], dimensions, where=f"{where}, aliases")
    allowed = _DIALOGUE if "turns" in entry else _TURN
    for field in entry["fields"]:
        if field in _DIALOGUE | _TURN and field not in allowed:
            raise ConfigError(
                f"the field {field!r} is not known at {'dialogue' if 'turns' in entry else 'turn'} level",
                where=where,
                expected=", ".join(sorted(allowed)) + "; `turns` makes a variant one of dialogues",
            )
    if ("turns" in entry) != ("turn_scores" in entry["fields"]):
        raise ConfigError(
            "`turns` and the field `turn_scores` go together",
            where=where,
            expected="both, at dialogue level, or neither",
        )
    return Variant(
        name=name,
        label=entry.get("label", name),
        prompt=entry["prompt"],
        fields=tuple(entry["fields"]),
        form=Form(dimensions, main, float(low), float(high), aliases),
        samples=counts,
        retries=entry.get("retries", 3),
        turns=entry.get("turns"),
        roles=tuple(entry.get("roles", ())),
        explain=entry.get("explain", False),
    )
