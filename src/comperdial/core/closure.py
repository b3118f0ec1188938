"""Which code a job runs, and a hash over it: what Snakemake must watch, so that an edit makes results stale.

A Python file counts by what it does: its syntax tree, without docstrings, comments and what only a type checker reads.
Any other file counts by its bytes.
"""

from __future__ import annotations

import ast
import hashlib
import json
import symtable
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from comperdial.core.errors import FileError
from comperdial.core.files import check_input, read_json, sha256, write_text

PACKAGE = "comperdial"
# Digests of files that were parsed before. A cache: neither git nor DVC has it, and it may be deleted at any time.
_CACHE = Path(".snakemake/code.json")


# What reads, checks and writes files computes no value: an edit there makes nothing stale. How texts are split does.
_PLUMBING = tuple(f"{PACKAGE}.{room}" for room in ("config", "core", "schema"))
_COUNTS = f"{PACKAGE}.core.scripts"

# How a name is used follows from where it stands; the other is the u of u"".
_NO_MEANING = ("ctx", "kind")


class _Parsed(NamedTuple):
    """What a Python file does, as a SHA-256, and which names of this package it imports, modules or what is in them."""

    digest: str
    imports: list[str]


def code_digests(*names: str, root: str | Path = "src") -> dict[str, str]:
    """Return what a job runs, part by part, with the SHA-256 of what each does.

    Parameters
    ----------
    names
        Modules, by their names below the package (``scoring``, ``metrics.bleu``), of which all counts; functions
        (``report.of_dataset:systems``), of whose module counts what they use; other files, by their paths
        (``src/comperdial/models/registry.yaml``). With each counts every module of this package that it imports, lazily or
        not.
    root
        The folder that holds the package's folder. The files are read there, not where the package is installed, and
        once in a process.

    Returns
    -------
    dict
        By path, that of a function with its name after a colon; those of the package start with ``root``.
    """
    return _digests(names, Path(root))


def code_version(*names: str, root: str | Path = "src") -> str:
    """Return the names and a hash over what they do, ``name,name@0123456789ab``: it changes when that does.

    Parameters
    ----------
    names, root
        As in :func:`code_digests`.
    """
    return f"{','.join(names)}@{code_hash(_digests(names, Path(root)))[:12]}"


def names_of_version(version: str) -> list[str]:
    """Return the names in a text made by :func:`code_version`."""
    names = version.rpartition("@")[0]
    if not names:
        raise FileError(f"{version!r} names no code", expected="name,name@hash")
    return names.split(",")


def code_hash(digests: dict[str, str]) -> str:
    """Return one SHA-256 over files of code, given the SHA-256 of each by its path."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def digest_of(part: str, root: str | Path = "") -> str | None:
    """Return the SHA-256 of a part that :func:`code_digests` names, in the repository at ``root``; None if it is not there."""
    path, _, function = part.partition(":")
    file = (Path(root) / path).resolve()
    if not file.is_file() or (function and function not in _definitions(file)):
        return None
    return _reached(file, function)[0] if function else _file_digest(file)


def _file_digest(path: str | Path) -> str:
    path = check_input(path)
    return _parsed(path.read_bytes()).digest if path.suffix == ".py" else sha256(path)


def _digests(names: tuple[str, ...], root: Path) -> dict[str, str]:
    modules = _modules(root.resolve())
    found: dict[str, str] = {name: _file_digest(name) for name in names if "/" in name}
    waiting: list[str] = []
    for name in (name for name in names if "/" not in name):
        module, _, function = f"{PACKAGE}.{name}".partition(":")
        if module not in modules:
            raise FileError(f"no module {module}", where=str(root), expected="a module of the package")
        if function:
            path = root / modules[module][0]
            found[f"{path}:{function}"], imports = _reached(path.resolve(), function)
            waiting += _absolute(imports, module, path)
        else:
            waiting.append(module)
    seen = set()
    while waiting:
        name = waiting.pop()
        if name in modules and name not in seen and (name == _COUNTS or not name.startswith(_PLUMBING)):
            seen.add(name)
            path, parsed = modules[name]
            found[str(root / path)] = parsed.digest
            waiting += _absolute(parsed.imports, name, path)
    return found


def _absolute(imports: list[str], module: str, path: Path) -> Iterator[str]:
    """Return what a module imports by full names: relative ones begin with dots."""
    for name in imports:
        tail = name.lstrip(".")
        if up := len(name) - len(tail):
            package = [*module.split("."), *([""] if path.stem == "__init__" else [])][:-up]
            yield ".".join([*package, *filter(None, [tail])])
        else:
            yield name


class _Definition(NamedTuple):
    """What one statement at the top of a module does, what it imports, and the names that it uses."""

    digest: str
    imports: list[str]
    uses: frozenset[str]


# What runs whatever is used of a module: statements that define nothing.
_ALWAYS = ""
_ARTIFACT = f"{PACKAGE}.core.artifact"


@cache
def _definitions(path: Path) -> dict[str, _Definition]:
    """Return the statements of a module by the names that they define; what declares an artifact is left out."""
    body = ast.parse(path.read_bytes()).body
    declaring = {name for statement in body for name in _declaring(statement)}
    found: dict[str, list[ast.stmt]] = {}
    for statement in body:
        for name, part in _defined(statement, declaring):
            found.setdefault(name, []).append(part)
    return {name: _definition(parts) for name, parts in found.items()}


def _declaring(statement: ast.stmt) -> Iterator[str]:
    """Return what a module calls the decorators of :mod:`comperdial.core.artifact`, or that module."""
    if isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            if _ARTIFACT in (statement.module, f"{statement.module}.{alias.name}"):
                yield alias.asname or alias.name


def _defined(statement: ast.stmt, declaring: Collection[str]) -> Iterator[tuple[str, ast.stmt]]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        # What a declaration says reaches the job as settings and inputs.
        statement.decorator_list = [
            decorator
            for decorator in statement.decorator_list
            if not {node.id for node in ast.walk(_called(decorator)) if isinstance(node, ast.Name)} & {*declaring}
        ]
        yield statement.name, statement
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            single = type(statement)(**{**dict(ast.iter_fields(statement)), "names": [alias]})
            # Nobody can tell which names a star brings.
            yield _ALWAYS if alias.name == "*" else (alias.asname or alias.name).partition(".")[0], single
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for name in (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)):
            yield name, statement
    else:
        yield _ALWAYS, statement


def _definition(parts: list[ast.stmt]) -> _Definition:
    words: list[str] = []
    imports: dict[str, None] = {}
    _spell(parts, words, imports)
    uses = {name for part in parts for name in _uses(symtable.symtable(ast.unparse(part), "", "exec"))}
    return _Definition(_sha256(words), list(imports), frozenset(uses))


def _called(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _uses(scope: symtable.SymbolTable) -> Iterator[str]:
    """Return the names of the module that a scope uses: no arguments and no variables of functions."""
    local = scope.get_type() == "function"
    yield from (
        name.get_name() for name in scope.get_symbols() if name.is_referenced() and (name.is_global() or not local)
    )
    for inner in scope.get_children():
        yield from _uses(inner)


@cache
def _reached(path: Path, function: str) -> tuple[str, list[str]]:
    """Return what a function does with all that it uses of its module, as a SHA-256, and what these import."""
    known = _definitions(path)
    if function not in known:
        raise FileError(f"no function {function}", where=str(path), expected="a function of the module")
    reached, waiting = set(), [function, *([_ALWAYS] if _ALWAYS in known else [])]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += known[name].uses & known.keys()
    parts = {name: known[name] for name in sorted(reached)}
    imports = dict.fromkeys(module for part in parts.values() for module in part.imports)
    return _sha256([f"{name} {part.digest}" for name, part in parts.items()]), list(imports)


def _sha256(words: list[str]) -> str:
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()


@cache
def _modules(root: Path) -> dict[str, tuple[Path, _Parsed]]:
    """Return each module of the package by its name: its path below ``root``, and what it does."""
    cache_file = root.parent / _CACHE
    cached = _read_cache(cache_file)
    _PARSED.update(cached)
    contents = {path.relative_to(root): path.read_bytes() for path in (root / PACKAGE).rglob("*.py")}
    found = {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): (path, _parsed(data))
        for path, data in contents.items()
    }
    used = {key: _PARSED[key] for key in map(_key, contents.values())}
    if used.keys() != cached.keys() and cache_file.parent.is_dir():
        with suppress(OSError, FileError):
            write_text(cache_file, json.dumps(used))
    return found


def _read_cache(path: Path) -> dict[str, _Parsed]:
    try:
        return {key: _Parsed(digest, list(imports)) for key, (digest, imports) in read_json(path).items()}
    except (FileError, AttributeError, TypeError, ValueError):
        return {}


# What was parsed, or was in the cache, by the hash of its bytes.
_PARSED: dict[str, _Parsed] = {}


def _parsed(data: bytes) -> _Parsed:
    key = _key(data)
    if key not in _PARSED:
        _PARSED[key] = _parse(data)
    return _PARSED[key]


def _key(data: bytes) -> str:
    hashed = _parser().copy()
    hashed.update(data)
    return hashed.hexdigest()


@cache
def _parser() -> hashlib._Hash:
    """Return a hash over what decides how a file is parsed: what another edition of this module kept is not used."""
    return hashlib.sha256(sys.version.encode() + Path(__file__).read_bytes())


def _parse(data: bytes) -> _Parsed:
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        # It cannot run, and whoever imports it is told why.
        return _Parsed(hashlib.sha256(data).hexdigest(), [])
    words: list[str] = []
    imports: dict[str, None] = {}
    _spell(tree, words, imports)
    return _Parsed(_sha256(words), list(imports))


def _spell(node: Any, words: list[str], imports: dict[str, None]) -> None:  # noqa: ANN401
    """Append what a part of a tree does, a word a line, and note what it imports.

    Not :func:`ast.dump`: it keeps docstrings, and is not the same text in every version of Python.
    """
    if isinstance(node, list):
        words.append("[")
        for item in node:
            _spell(item, words, imports)
        words.append("]")
    elif not isinstance(node, ast.AST):
        words.append(repr(node))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        pass  # A docstring, or one where Python looks for none.
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in (getattr(node.test, "id", ""), getattr(node.test, "attr", "")):
        _spell(node.orelse, words, imports)
    else:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.update(dict.fromkeys(_imported_names(node)))
        words.append(f"({type(node).__name__}")
        for field in node._fields:
            value = getattr(node, field, None)
            # Newer versions of Python have fields that are empty where nothing new is used.
            if value is not None and value != [] and field not in _NO_MEANING:
                words.append(field)
                _spell(value, words, imports)
        words.append(")")


def _imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.startswith(f"{PACKAGE}."))
    elif node.level:
        parts = [[node.module], *([node.module, alias.name] for alias in node.names)]
        yield from ("." * node.level + ".".join(filter(None, part)) for part in parts)
    elif node.module and node.module.split(".")[0] == PACKAGE:
        # The name may be a module itself; the package's own __init__ only hands things on.
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if node.module != PACKAGE:
            yield node.module
