"""Entries that come with the package: ``params.yaml`` names them, and may change single keys of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from comperdial.config import load_yaml

_ROOMS = Path(__file__).parents[1]
REGISTRIES = tuple(_ROOMS / room / "registry.yaml" for room in ("metrics", "data", "judges", "training"))
"""The files with the entries, each in the form of ``params.yaml``."""

# Where entries are, and the key by which a user's own entry is known.
_SECTIONS = {
    ("metrics",): "kind",
    ("recorded",): "format",
    ("recorded_judges",): "format",
    ("training",): "encoder",
    ("judging", "variants"): "fields",
}


@cache
def registered(*section: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the package's entries of a section, such as ``registered("judging", "variants")``, by name."""
    for path in REGISTRIES:
        entries: Any = load_yaml(path)
        for key in section:
            entries = entries.get(key, {})
        if entries:
            return dict(entries)
    return {}


def completed(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration in which each entry of the package that it names is spelled out.

    A name alone (``bleu:``) is the package's entry. Keys given with it (``bleu: {text: raw}``) are added to it or
    replace its own. An entry with ``kind`` (of a variant ``fields``, of a recording ``format``, of a model to be trained
    ``encoder``) is the user's, and is left as it is.

    Parameters
    ----------
    config
        ``params.yaml``, not yet checked: what is not a mapping is left as it is.
    """
    filled = dict(config)
    for (*outer, section), own in _SECTIONS.items():
        entries: Any = filled
        for key in outer:
            entries = entries.get(key) if isinstance(entries, Mapping) else None
        if not isinstance(entries, Mapping) or not isinstance(entries.get(section), Mapping):
            continue
        known = registered(*outer, section)
        spelled = {name: _entry(known.get(name), given, own) for name, given in entries[section].items()}
        filled = _replaced(filled, (*outer, section), spelled)
    return filled


def _entry(known: Mapping[str, Any] | None, given: Any, own: str) -> Any:  # noqa: ANN401
    if known is None or not isinstance(given, Mapping | None) or (given and own in given):
        return given
    return {**known, **(given or {})}


def _replaced(config: Mapping[str, Any], keys: tuple[str, ...], value: Any) -> dict[str, Any]:  # noqa: ANN401
    key, *rest = keys
    return {**config, key: _replaced(config[key], tuple(rest), value) if rest else value}
