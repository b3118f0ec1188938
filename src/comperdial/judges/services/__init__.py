"""What answers a judge's prompts. The files of this package are the services, by the names of their modules."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from comperdial.core.plugins import load_class, module_names

if TYPE_CHECKING:
    from comperdial.judges.services.base import Service

__all__ = ["find", "services"]

_HELPERS = frozenset({"base"})


def services() -> tuple[str, ...]:
    """Return the names of all services."""
    return module_names(__name__, _HELPERS)


@cache
def find(name: str) -> type[Service]:
    """Return a service by name.

    Raises
    ------
    UnknownNameError
        When there is no such service; names the nearest ones.
    """
    from comperdial.judges.services.base import Service

    return load_class(__name__, name, Service, kind="service", helpers=_HELPERS)  # type: ignore[type-abstract]
