"""The versions of installed packages, as signatures name them."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def installed(package: str) -> str:
    """Return the version of a package without its build, or ``absent`` when it is not installed."""
    try:
        # torch 2.13.0+cpu and 2.13.0+cu130 are one version.
        return version(package).partition("+")[0]
    except PackageNotFoundError:
        return "absent"
