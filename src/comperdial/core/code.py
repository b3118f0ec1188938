"""A coarse hash of the code behind a result; it ignores docstrings, comments and layout."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

from comperdial.core.errors import FileError

PACKAGE = Path(__file__).parents[1]
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
