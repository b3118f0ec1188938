"""A coarse hash of the code behind a result; it ignores docstrings, comments and layout."""

from __future__ import annotations

import ast
import hashlib
import json
from contextlib import suppress
from functools import cache
from pathlib import Path

from comperdial.core.errors import FileError
from comperdial.core.files import write_text

PACKAGE = Path(__file__).parents[1]
# Parsing all modules takes longer than the rest of a run in which nothing is stale.
CACHE = Path(".snakemake/code.json")
# The subpackages that `modules_of` follows; a change elsewhere, as in `core`, makes no result stale.
ROOMS = ("auditing", "evaluation", "report", "stats", "studies", "training")
_ROOMS = tuple(f"comperdial.{room}" for room in ROOMS)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code(*paths: str, root: Path = PACKAGE) -> str:
    """Return a hash of files and folders in the package, such as ``stats``, ``metrics/bleu.py`` or ``report/*.py``.

    All files of a folder count. Python files are hashed as syntax trees without docstrings.

    Raises
    ------
    FileError
        If a file or folder does not exist.
    """
    files = [one for path in paths for one in (sorted(root.glob(path)) if "*" in path else [root / path])]
    return hashlib.sha256("".join(_hash(one, root) for one in files).encode()).hexdigest()[:12]


def modules_of(*paths: str, root: Path = PACKAGE) -> list[str]:
    """Return modules of the package with all modules in :data:`ROOMS` that they import, directly or indirectly."""
    seen: set[str] = set()
    left = list(paths)
    while left:
        path = left.pop()
        if path not in seen:
            seen.add(path)
            left += _read(root / path, root)[1]
    return sorted(seen)


def _module_of(folder: str, name: str, root: Path) -> str:
    """Return the module that a name is imported from; for a re-exported name, the module that defines it."""
    package = f"{folder}/__init__.py"
    path = next(one for one in (f"{folder}/{name}.py", f"{folder}.py", package) if (root / one).is_file())
    if path == package:
        for node in ast.parse((root / package).read_bytes()).body:
            if isinstance(node, ast.ImportFrom) and name in {one.name for one in node.names}:
                return _module_of("/".join(str(node.module).split(".")[1:]), name, root)
    return path


@cache
def _kept() -> dict[str, tuple[str, str, list[str]]]:
    with suppress(OSError, ValueError):
        return dict(json.loads(CACHE.read_text(encoding="utf-8")))
    return {}


def keep() -> None:
    """Write the hashes and imports of modules to :data:`CACHE`; an entry is valid while a file's size and time are unchanged."""
    if CACHE.parent.is_dir():
        write_text(CACHE, json.dumps(_kept()))


@cache
def _read(path: Path, root: Path) -> tuple[str, list[str]]:
    """Return a module's hash without docstrings, and its imports from :data:`ROOMS`, including those in functions."""
    status = path.stat()
    version, known = f"{status.st_size} {status.st_mtime_ns}", _kept().get(str(path))
    if not known or known[0] != version:
        known = _kept()[str(path)] = (version, *_parsed(path, root))
    return known[1], known[2]


def _parsed(path: Path, root: Path) -> tuple[str, list[str]]:
    tree = ast.parse(path.read_bytes())
    imported = []
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_ROOMS):
            folder = "/".join(str(node.module).split(".")[1:])
            imported += [_module_of(folder, name.name, root) for name in node.names]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imported


@cache
def _hash(path: Path, root: Path) -> str:
    if path.is_dir():
        files = [one for one in path.rglob("*") if one.is_file() and "__pycache__" not in one.parts]
        parts = [f"{one.relative_to(path)} {_hash(one, root)}" for one in sorted(files)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    if not path.is_file():
        raise FileError("no such file or folder", where=str(path), expected="code of the package")
    return _read(path, root)[0] if path.suffix == ".py" else hashlib.sha256(path.read_bytes()).hexdigest()
