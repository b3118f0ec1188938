"""Built-in entries, which ``params.yaml`` refers to by name and may override key by key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from comperdial.config import load_yaml

_ROOMS = Path(__file__).parents[1]
REGISTRIES = tuple(_ROOMS / room / "registry.yaml" for room in ("metrics", "data", "judges", "training"))
"""The registry files, in the format of ``params.yaml``."""

# Sections with built-in entries, and the key that marks a user's own entry.
_SECTIONS = {"metrics": "kind", "recorded": "format", "recorded_judges": "format", "training": "encoder"}


@cache
def registered(*section: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the built-in entries of a section by name, for example ``registered("judging", "variants")``."""
    for path in REGISTRIES:
        entries: Any = load_yaml(path)
        for key in section:
            entries = entries.get(key, {})
        if entries:
            return dict(entries)
    return {}


def completed(config: Mapping[str, Any]) -> dict[str, Any]:
    """Expand the built-in entries that an unvalidated ``params.yaml`` names.

    A name alone (``bleu:``) selects the built-in entry; keys given with it (``bleu: {text: raw}``) override its own. An entry
    with ``kind`` (``fields`` for a variant, ``format`` for a recording, ``encoder`` for a trained model) is the user's own and
    is not changed.
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
