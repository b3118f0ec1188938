"""Which files of this package a module runs: what Snakemake must watch, so that an edit makes results stale."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from comperdial.errors import FileError
from comperdial.files import read_text, sha256

PACKAGE = "comperdial"


def source_files(*modules: str, root: str | Path = "src") -> list[str]:
    """Return the files of the given modules and of all modules of this package that they import, lazily or not.

    Parameters
    ----------
    modules
        Names below the package, with dots: ``scoring``, ``metrics.bleu``.
    root
        The folder that holds the package's folder. The files are read there, not where the package is installed.

    Returns
    -------
    list of str
        Paths that start with ``root``, sorted.
    """
    found: set[Path] = set()
    waiting = [_file(f"{PACKAGE}.{module}", Path(root)) for module in modules]
    for name, path in zip(modules, waiting, strict=True):
        if path is None:
            raise FileError(f"no module {PACKAGE}.{name}", where=str(root), expected="a module of the package")
    while waiting:
        path = waiting.pop()
        if path is not None and path not in found:
            found.add(path)
            waiting += _imports(path, Path(root))
    return sorted(str(path) for path in found)


def code_files(*names: str, root: str | Path = "src") -> list[str]:
    """Return :func:`source_files` of the names that are modules, and those that are paths (``a/b.yaml``), sorted."""
    paths = [name for name in names if "/" in name]
    return sorted({*source_files(*(name for name in names if "/" not in name), root=root), *paths})


def code_version(*names: str, root: str | Path = "src") -> str:
    """Return the names and a hash over what their files hold, ``name,name@0123456789ab``: it changes when they do.

    Parameters
    ----------
    names, root
        As in :func:`code_files`.
    """
    return f"{','.join(names)}@{code_hash({path: _digest(path) for path in code_files(*names, root=root)})[:12]}"


def files_of_version(version: str, *, root: str | Path = "src") -> list[str]:
    """Return the files that a text made by :func:`code_version` is about."""
    names = version.rpartition("@")[0]
    if not names:
        raise FileError(f"{version!r} names no code", expected="name,name@hash")
    return code_files(*names.split(","), root=root)


def code_hash(digests: dict[str, str]) -> str:
    """Return one SHA-256 over files of code, given the SHA-256 of each by its path."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


@cache
def _digest(path: str) -> str:
    return sha256(Path(path))


@cache
def _imports(path: Path, root: Path) -> tuple[Path, ...]:
    names = _imported_names(ast.parse(read_text(path)))
    return tuple(file for name in names if (file := _file(name, root)))


def _imported_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
            # The name may be a module itself; the package's own __init__ only hands things on.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            if node.module != PACKAGE:
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(f"{PACKAGE}."))


def _file(name: str, root: Path) -> Path | None:
    base = root.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None
