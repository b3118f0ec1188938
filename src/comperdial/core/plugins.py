"""Find a class by the name of its module, so that adding one requires only a new file."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TypeVar

from comperdial.core.errors import UnknownNameError

T = TypeVar("T")


@cache
def module_names(package: str, helpers: frozenset[str]) -> tuple[str, ...]:
    """Return the sorted names of the modules in ``package``, without helpers and private ones; imports nothing."""
    names = (module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__))
    return tuple(sorted(name for name in names if not name.startswith("_") and name not in helpers))


def load_class(package: str, name: str, base: type[T], *, kind: str, helpers: frozenset[str]) -> type[T]:
    """Import ``package.name`` and return the one public subclass of ``base`` that it defines.

    Raises
    ------
    UnknownNameError
        If there is no such module; suggests the closest names.
    """
    if name not in module_names(package, helpers):
        raise UnknownNameError(kind, name, module_names(package, helpers))
    module = importlib.import_module(f"{package}.{name}")
    own = [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__]
    (chosen,) = (value for value in own if issubclass(value, base) and not value.__name__.startswith("_"))
    return chosen
