"""Versions of installed packages, for signatures."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def installed(package: str) -> str:
    """Return the version of a package without its build tag, or ``absent`` if it is not installed."""
    try:
        # Treat torch 2.13.0+cpu and 2.13.0+cu130 as one version.
        return version(package).partition("+")[0]
    except PackageNotFoundError:
        return "absent"
