"""Metrics as a person names them: an entry of ``params.yaml``, or a kind with options."""

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

# What an entry says that is no option of the metric.
ABOUT = ("datasets", "skip", "apart", "main", "label")
"""What an entry of a metric says besides ``kind`` and the kind's options."""
_NO_OPTIONS = ("kind", *ABOUT)
# Metrics whose words, stems or questions are English, whatever their model.
_ENGLISH = frozenset({"meteor", "fed", "unieval", "usr_mlm", "density", "local"})
# Of the models that `comperdial models` lists, the ones that were trained on more languages than English. A model that a user
# brings may know any language.
_MULTILINGUAL = frozenset({"BLEURT-20"})


def read_entries(path: str | Path | None = None) -> Entries:
    """Return metrics by name: those of a ``params.yaml`` (the one named, or the one here), or the package's registry."""
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
    """Make the metric that a person names.

    Parameters
    ----------
    text
        A name of ``entries`` or of the registry, or else a kind; options may follow, as in ``bleu,text=raw``.
    entries
        As :func:`read_entries` gives them.
    options
        More options. They go before those of the text, which go before those of the entry.

    Raises
    ------
    UnknownNameError
        When there is neither such an entry nor such a kind; suggests the nearest of both.
    ConfigError
        When an option is wrong.
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
    """Say whether a metric is for English alone: by its words, or by a model of ours that was trained on English."""
    from comperdial.models import registry

    inner = getattr(metric, "inner", metric)
    model = getattr(inner, "model", None)
    return inner.kind in _ENGLISH or (model in registry.names() and model not in _MULTILINGUAL)


def why_unsuited(metric: Metric, writing: Writing) -> str | None:
    """Say why a metric is not run on data that are written so; None if it is."""
    script = writing.other_script
    return (
        f"English only, and the responses are in other scripts ({writing})" if script and english_only(metric) else None
    )


def suited(metric: Metric, writing: Writing) -> Metric:
    """Return a metric whose signature says how it splits texts that are written so."""
    found: Metric = metric.suited_to(writing) if hasattr(metric, "suited_to") else metric
    return found


def suited_to(metrics: Mapping[str, Metric], batches: Iterable[Batch]) -> tuple[dict[str, Metric], dict[str, str]]:
    """Return metrics as they suit responses, each by its name, and of those that do not: why."""
    writing = writing_of(batches)
    unsuited = {name: why for name, metric in metrics.items() if (why := why_unsuited(metric, writing))}
    return {name: suited(metric, writing) for name, metric in metrics.items() if name not in unsuited}, unsuited


def writing_of(batches: Iterable[Batch]) -> Writing:
    """Return how responses and their references are written."""
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
