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

# The sections with such entries, and the key by which a user's own entry is known.
_SECTIONS = {"metrics": "kind", "recorded": "format", "recorded_judges": "format", "training": "encoder"}


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
    """Return ``params.yaml``, not yet checked, in which each entry of the package that it names is spelled out.

    A name alone (``bleu:``) is the package's entry. Keys given with it (``bleu: {text: raw}``) are added to it or
    replace its own. An entry with ``kind`` (of a variant ``fields``, of a recording ``format``, of a model to be trained
    ``encoder``) is the user's, and is left as it is.
    """
    filled = {name: _spelled_out(config[name], own, name) for name, own in _SECTIONS.items() if name in config}
    judging = config.get("judging")
    if isinstance(judging, Mapping) and "variants" in judging:
        variants = _spelled_out(judging["variants"], "fields", "judging", "variants")
        filled["judging"] = {**judging, "variants": variants}
    return {**config, **filled}


def _spelled_out(entries: Any, own: str, *section: str) -> Any:  # noqa: ANN401
    known = registered(*section)
    if not isinstance(entries, Mapping):
        return entries
    return {
        name: {**known[name], **(given or {})}
        if name in known and isinstance(given, Mapping | None) and own not in (given or {})
        else given
        for name, given in entries.items()
    }
