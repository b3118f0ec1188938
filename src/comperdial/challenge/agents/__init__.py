"""Simulated agents of the embedded benchmark, by kind. The files of this package are the registry: one kind a file.

They are no dialogue systems that anybody should use: they fail in known ways and by known amounts, so that metrics and
statistics have something to rank. ``data/demo/agents.yaml`` is the roster.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from comperdial.challenge.agent import Agent
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.plugins import load_class, module_names

__all__ = ["create", "kinds"]

_HELPERS: frozenset[str] = frozenset()


def kinds() -> tuple[str, ...]:
    """Return the names of all kinds of simulated agents."""
    return module_names(__name__, _HELPERS)


def create(kind: str, /, **options: object) -> Agent:
    """Make an agent of a kind from its options; paths in options are relative to the working directory.

    Raises
    ------
    UnknownNameError
        When there is no such kind or option; names the kind, what there is, and the nearest names.
    ConfigError
        When a needed option is missing or has a value that it cannot have.
    FileError
        When a file named by an option cannot be read as what it should be.
    """
    found = load_class(__name__, kind, Agent, kind="agent kind", helpers=_HELPERS)  # type: ignore[type-abstract]
    return found(**_checked(found, kind, options))


def _checked(found: type[Agent], kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options, which are all known and hold all that the kind cannot do without."""
    known = inspect.signature(found).parameters
    for name in options:
        if name not in known:
            raise UnknownNameError(f"option of agent kind {kind!r}:", name, known)
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in options:
            raise ConfigError(f"agent kind {kind!r} lacks the option {name!r}", expected="options " + ", ".join(known))
    return dict(options)
