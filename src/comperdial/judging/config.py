"""The sections ``judges`` and ``judging`` of ``params.yaml``: who judges, and what is asked of which data set."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from comperdial.config import check
from comperdial.errors import ConfigError, UnknownNameError
from comperdial.judges.base import Form
from comperdial.judges.secrets import refuse_secrets
from comperdial.judges.services import services
from comperdial.judges.services.base import address
from comperdial.judges.weighting import check_labels
from comperdial.judging.base import ANY_ROLE, Judge, Judging, Variant
from comperdial.judging.groups import DEFAULT, spread

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
_WHOLE = {"dialogue"}
# Of the section `judging`: where things lie and what they may cost, which no score depends on.
SETTINGS = ("ledger", "prices", "budget")
_VARIABLE = re.compile("[A-Z_][A-Z0-9_]*")
_VARIANT_KEYS = {
    "prompt", "label", "fields", "dimensions", "main", "scale", "aliases", "samples", "retries", "turns", "roles",
    "explain", "labels", "question",
}  # fmt: skip


def read_judging(
    judges: Mapping[str, Any] | None,
    judging: Mapping[str, Any] | None,
    *,
    datasets: Collection[str] | None = None,
    groups: Mapping[str, Collection[str]] | None = None,
) -> Judging:
    """Check both sections of ``params.yaml``.

    Parameters
    ----------
    judges, judging
        The sections; None for no such section.
    datasets
        The names of all data sets there can be; None where that is not known.
    groups
        Names that stand for several data sets, in ``judging.judges`` and ``judging.asks``
        (:func:`comperdial.judging.groups.groups_of`).

    Raises
    ------
    ConfigError
        Names the entry at fault.
    UnknownNameError
        When a judge, variant, service, role or data set is named that there is not.
    """
    for name, entry in (judges or {}).items():
        if isinstance(entry, dict):
            check_key(entry.get("key"), f"params.yaml, judges.{name}")
            if isinstance(parameters := entry.get("parameters"), dict):
                refuse_secrets(parameters, f"params.yaml, judges.{name}.parameters")
    _check_label_texts(judging)
    check({"judges": judges, "judging": judging}, Path(__file__).with_name("params.schema.yaml"))
    judging, groups = judging or {}, groups or {}
    who = {name: _judge(name, entry) for name, entry in (judges or {}).items()}
    variants = {name: _variant(name, entry) for name, entry in judging.get("variants", {}).items()}
    lists = {key: judging.get(key, {}) for key in ("judges", "asks")}
    known = None if datasets is None else (*datasets, *groups)
    _check_lists("judge", lists["judges"], who, known, "params.yaml, judging.judges")
    _check_lists("variant", lists["asks"], variants, known, "params.yaml, judging.asks")
    for variant in variants.values():
        _check_turns(variant, variants)
    _check_steps(lists["asks"], variants)
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
        by_dataset={DEFAULT: ()} | spread(lists["judges"], groups, "params.yaml, judging.judges"),
        asks=spread(lists["asks"], groups, "params.yaml, judging.asks"),
        prompts=judging.get("prompts", "ours"),
        ledger=Path(judging.get("ledger", "data/ledger")),
        prices=Path(judging.get("prices", "data/prices.yaml")),
        budget=float(judging.get("budget", 0)),
    )


def check_key(variable: object, where: str) -> None:
    """Refuse what cannot be the name of the environment variable that holds a key, without showing it."""
    # Not left to the schema, whose message would show what may well be the key itself.
    if variable is not None and not _VARIABLE.fullmatch(str(variable)):
        raise ConfigError(
            "`key` is no name of an environment variable",
            where=where,
            expected="capitals, digits and underscores; the key itself belongs into that variable, never here",
        )


def _check_lists(
    kind: str, lists: Mapping[str, Any], names: Collection[str], datasets: Collection[str] | None, where: str
) -> None:
    """Refuse a list for a data set that there is not, and a name in it that there is not."""
    for dataset, listed in lists.items():
        if datasets is not None and dataset not in (DEFAULT, *datasets):
            raise UnknownNameError("dataset", dataset, datasets, where=where)
        for name in listed:
            if name not in names:
                raise UnknownNameError(kind, name, names, where=f"{where}.{dataset}")


def _check_steps(asks: Mapping[str, Any], variants: Mapping[str, Variant]) -> None:
    for dataset, names in asks.items():
        for name in names:
            if (turns := variants[name].turns) and turns not in names:
                raise ConfigError(
                    f"{name} without {turns}, whose scores it is given",
                    where=f"params.yaml, judging.asks.{dataset}",
                    expected="both, or neither",
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
    if "base_url" in entry:
        try:
            address(entry["base_url"])
        except ConfigError as error:
            raise ConfigError(error.problem, where=where, expected=error.expected) from error
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
    labels = _labels(entry, where)
    low, high = entry.get("scale", (1, 5)) if not labels else (min(labels.values()), max(labels.values()))
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
    _check_fields(entry, where)
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
        labels=labels,
        question=entry.get("question"),
    )


def _check_fields(entry: Mapping[str, Any], where: str) -> None:
    """Refuse fields of two levels, or of another level than the variant's."""
    fields = set(entry["fields"])
    level = "dialogue" if "turns" in entry else "turn"
    allowed = _DIALOGUE if "turns" in entry else _WHOLE if fields & _WHOLE else _TURN
    for field in entry["fields"]:
        if field in _DIALOGUE | _TURN | _WHOLE and field not in allowed:
            with_dialogue = allowed == _WHOLE
            raise ConfigError(
                f"the field {field!r} is not known " + ("beside `dialogue`" if with_dialogue else f"at {level} level"),
                where=where,
                expected=", ".join(sorted(allowed)) + "; `turns` makes a variant one of dialogues",
            )
    if ("turns" in entry) != ("turn_scores" in fields):
        raise ConfigError(
            "`turns` and the field `turn_scores` go together",
            where=where,
            expected="both, at dialogue level, or neither",
        )


def _check_label_texts(judging: object) -> None:
    """Refuse labels that YAML made something else of, before the schema, which takes every key for a text."""
    variants = judging.get("variants") if isinstance(judging, dict) else None
    for name, entry in variants.items() if isinstance(variants, dict) else ():
        labels = entry.get("labels") if isinstance(entry, dict) else None
        for label in labels if isinstance(labels, dict) else ():
            if not isinstance(label, str):
                raise ConfigError(
                    f"the label {label!r} is no text",
                    where=f"params.yaml, judging.variants.{name}, labels",
                    expected='texts, such as {"Yes": 1, "No": 0}: without quotes, YAML reads Yes as true, No as false',
                )


def _labels(entry: Mapping[str, Any], where: str) -> dict[str, float]:
    # In order of the alphabet: a mapping has none of its own, and what is asked must not depend on it.
    labels = {label.strip(): float(value) for label, value in sorted(entry.get("labels", {}).items())}
    if not labels:
        return {}
    for option in ("scale", "explain", "samples", "retries"):
        if entry.get(option):
            raise ConfigError(
                f"`{option}` beside `labels`", where=where, expected="labels alone: they are the scale and the answer"
            )
    if len(entry["dimensions"]) > 1:
        raise ConfigError(f"labels for {len(entry['dimensions'])} dimensions", where=where, expected="one dimension")
    try:
        check_labels(labels)
    except ConfigError as error:
        raise ConfigError(error.problem, where=f"{where}, labels", expected=error.expected) from error
    return labels
