"""A coarse hash of the code behind a result; it ignores docstrings, comments and layout."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from comperdial.core.errors import FileError

PACKAGE = Path(__file__).parents[1]
# The rooms whose modules `modules_of` follows; a change elsewhere, as in `core`, makes no result stale.
ROOMS = ("auditing", "evaluation", "report", "stats", "studies", "training")
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
    return hashlib.sha256("".join(map(_hash, files)).encode()).hexdigest()[:12]


def modules_of(*paths: str, root: Path = PACKAGE) -> list[str]:
    """Return modules of the package with all modules in :data:`ROOMS` that they import, directly or not."""
    found: set[str] = set()
    left = list(paths)
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += [one for one in _imported(root / path, root) if one.split("/")[0] in ROOMS]
    return sorted(found)


def _imported(path: Path, root: Path) -> Iterator[str]:
    """Yield the modules of the package that a module imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{root.name}."):
            folder = "/".join(str(node.module).split(".")[1:])
            for name in node.names:
                yield _module_of(folder, name.name, root)


def _module_of(folder: str, name: str, root: Path) -> str:
    """Return the module that a name is imported from; for a name that a package only passes on, where it is defined."""
    package = f"{folder}/__init__.py"
    path = next(one for one in (f"{folder}/{name}.py", f"{folder}.py", package) if (root / one).is_file())
    if path == package:
        for node in ast.parse((root / package).read_bytes()).body:
            if isinstance(node, ast.ImportFrom) and name in {one.name for one in node.names}:
                return _module_of("/".join(str(node.module).split(".")[1:]), name, root)
    return path


@cache
def _hash(path: Path) -> str:
    if path.is_dir():
        files = [one for one in path.rglob("*") if one.is_file() and "__pycache__" not in one.parts]
        parts = [f"{one.relative_to(path)} {_hash(one)}" for one in sorted(files)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    if not path.is_file():
        raise FileError("no such file or folder", where=str(path), expected="code of the package")
    content = path.read_bytes()
    if path.suffix == ".py":
        tree = ast.parse(content)
        for node in ast.walk(tree):
            if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        content = ast.dump(tree).encode()
    return hashlib.sha256(content).hexdigest()
