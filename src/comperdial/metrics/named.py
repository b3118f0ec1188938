"""Metrics as a person names them: an entry of ``params.yaml``, or a kind with options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comperdial.config import load_yaml
from comperdial.config.registry import completed, registered
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.metrics import Metric, create, kinds

Entries = Mapping[str, Mapping[str, Any]]

# What an entry says that is no option of the metric.
ABOUT = ("datasets", "skip", "apart", "main", "label")
"""What an entry of a metric says besides ``kind`` and the kind's options."""
_NO_OPTIONS = ("kind", *ABOUT)
PARAMS = Path("params.yaml")


def read_entries(path: str | Path | None = None) -> Entries:
    """Return metrics by name: those of a ``params.yaml`` (the one named, or the one here), or the package's registry."""
    if path is None and not PARAMS.is_file():
        return registered("metrics")
    where = Path(path) if path is not None else PARAMS
    entries = completed(load_yaml(where)).get("metrics") or {}
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


def option(text: str) -> tuple[str, str]:
    """Split ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"option {text!r}", expected="NAME=VALUE")
    return name, value
