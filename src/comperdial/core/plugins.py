"""Find a class by the name of the module it lives in, so that adding one means adding one file and no list."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TypeVar

from comperdial.core.errors import UnknownNameError

T = TypeVar("T")


@cache
def module_names(package: str, helpers: frozenset[str]) -> tuple[str, ...]:
    """Return the sorted names of the modules in ``package`` that are neither helpers nor private; imports none."""
    path = importlib.import_module(package).__path__
    names = (module.name for module in pkgutil.iter_modules(path))
    return tuple(sorted(n for n in names if not n.startswith("_") and n not in helpers))


def load_class(package: str, name: str, base: type[T], *, kind: str, helpers: frozenset[str]) -> type[T]:
    """Import ``package.name`` and return the one subclass of ``base`` that it defines.

    Raises
    ------
    UnknownNameError
        When the package has no such module, with the nearest names.
    TypeError
        When the module does not define exactly one concrete subclass (a mistake of its author).
    """
    known = module_names(package, helpers)
    if name not in known:
        raise UnknownNameError(kind, name, known)
    module = importlib.import_module(f"{package}.{name}")
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and not value.__name__.startswith("_")
    ]
    if len(classes) != 1:
        raise TypeError(f"{module.__name__} must define exactly one public subclass of {base.__name__}, not {classes}")
    return classes[0]
