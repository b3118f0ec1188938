"""Create metrics from an entry of ``params.yaml``, or from a kind with options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from comperdial.config import load_yaml
from comperdial.config.registry import registered
from comperdial.config.studies import params_file, with_studies
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.scripts import Writing
from comperdial.metrics import Batch, Metric, create, kinds

Entries = Mapping[str, Mapping[str, Any]]

# Keys of an entry that are not options of the metric.
ABOUT = ("datasets", "skip", "apart", "main", "label")
"""What an entry of a metric says besides ``kind`` and the kind's options."""
_NO_OPTIONS = ("kind", *ABOUT)
# Metrics whose words, stems or questions are English, with any model.
_ENGLISH = frozenset({"meteor", "fed", "unieval", "usr_mlm", "density", "local"})
# Models listed by `comperdial models` that were trained on languages other than English too. Nothing is assumed about
# a user's own models.
_MULTILINGUAL = frozenset({"BLEURT-20"})


def read_entries(path: str | Path | None = None) -> Entries:
    """Return metric entries by name, from the given ``params.yaml``, else from the one in this folder or the registry."""
    where = params_file(path)
    if path is None and not where.is_file():
        return registered("metrics")
    entries = with_studies(load_yaml(where)).get("metrics") or {}
    if not isinstance(entries, dict):
        raise ConfigError(f"metrics: {entries!r}", where=str(where), expected="a name and a kind for each metric")
    for name, entry in entries.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
            raise ConfigError(
                f"metric {name!r} is {entry!r}",
                where=str(where),
                expected="a name of `comperdial metrics`, or `kind` and the kind's options",
            )
    return entries


def metric_named(text: str, entries: Entries, options: Mapping[str, Any] | None = None) -> Metric:
    """Create a metric from a name or kind, with options.

    Parameters
    ----------
    text
        A name in ``entries`` or the registry, or else a kind; options may follow, as in ``bleu,text=raw``.
    entries
        The result of :func:`read_entries`.
    options
        More options. They override the options in ``text``, which override those of the entry.

    Raises
    ------
    UnknownNameError
        If no entry or kind has this name; the message suggests the nearest of both.
    ConfigError
        If an option is invalid.
    """
    name, *pairs = text.split(",")
    known = {**registered("metrics"), **entries}
    if name not in known and name not in kinds():
        raise UnknownNameError("metric", name, {*known, *kinds()})
    entry = dict(known.get(name, {"kind": name}))
    kind = entry["kind"]
    chosen = {key: value for key, value in entry.items() if key not in _NO_OPTIONS} | dict(map(option, pairs))
    return create(kind, **chosen | dict(options or {}))


def english_only(metric: Metric) -> bool:
    """Return whether a metric is only for English, because of its words or because our registry's model is English."""
    from comperdial.models import registry

    inner = getattr(metric, "inner", metric)
    model = getattr(inner, "model", None)
    return inner.kind in _ENGLISH or (model in registry.names() and model not in _MULTILINGUAL)


def why_unsuited(metric: Metric, writing: Writing) -> str | None:
    """Return why a metric cannot be run on data in this writing system, or None if it can."""
    script = writing.other_script
    return (
        f"English only, and the responses are in other scripts ({writing})" if script and english_only(metric) else None
    )


def suited(metric: Metric, writing: Writing) -> Metric:
    """Return the metric with a signature that states how it splits texts in this writing system."""
    found: Metric = metric.suited_to(writing) if hasattr(metric, "suited_to") else metric
    return found


def suited_to(metrics: Mapping[str, Metric], batches: Iterable[Batch]) -> tuple[dict[str, Metric], dict[str, str]]:
    """Return the metrics adapted to the responses' writing system, by name, and why the others are unsuitable."""
    writing = writing_of(batches)
    unsuited = {name: why for name, metric in metrics.items() if (why := why_unsuited(metric, writing))}
    return {name: suited(metric, writing) for name, metric in metrics.items() if name not in unsuited}, unsuited


def writing_of(batches: Iterable[Batch]) -> Writing:
    """Return the writing system of responses and their references."""
    responses: list[str] = []
    references: set[str] = set()
    for batch in batches:
        responses += batch.responses
        references.update(text for several in batch.references for text in several)
    return Writing.of(responses, references)


def option(text: str) -> tuple[str, str]:
    """Split ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"option {text!r}", expected="NAME=VALUE; several metrics are separated by blanks")
    return name, value
