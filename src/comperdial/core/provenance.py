"""What a table or figure was made of: a record beside it, written by the command that makes it."""

from __future__ import annotations

import csv
import json
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from comperdial.core.closure import PACKAGE, code_hash
from comperdial.core.errors import FileError
from comperdial.core.files import FORMS, form_path, read_json, sha256, write_text

SUFFIX = ".provenance.json"
FORMAT = 2

# The libraries that can move a number or a drawn line; those of a metric stand in its signature.
LIBRARIES = (
    "krippendorff", "matplotlib", "nbconvert", "numpy", "pandas", "pillow", "pyarrow", "scipy",
)  # fmt: skip
# Enough to tell two versions of a file apart; the hash over all files of code is whole.
_DIGITS = 16


def write(
    stem: str | Path,
    command: str,
    parameters: Mapping[str, Any],
    inputs: Iterable[str | Path],
    code: Mapping[str, str],
) -> Path:
    """Write the record of a table or figure beside it, as ``<stem>.provenance.json``.

    The same inputs give the same bytes: there is no time and no name of a machine in it. Files below the current folder
    are named by their path from there, others by their name alone.

    Parameters
    ----------
    stem
        The common name of its forms, without suffix (``results/tables/usr``); a name that ends in ``.html`` stands for
        its stem.
    command
        What made it: ``report.of_dataset:systems``.
    parameters
        What it was told, by name.
    inputs
        The files that it was made of.
    code
        What ran, as :func:`comperdial.core.closure.code_digests` says.

    Returns
    -------
    pathlib.Path
        The record.

    Raises
    ------
    FileError
        When one of the files does not exist.
    """
    files = {path_name(path): Path(path) for path in inputs}
    for path in files.values():
        if not path.is_file():
            raise FileError("no such file", where=str(path), expected="a file that the output was made from")
    data = dict(sorted(files.items()))
    known = {name: _plain(value) for name, value in parameters.items()}
    signatures, tests = _signatures(data.values())
    record = {
        "format": FORMAT,
        "command": command,
        "parameters": known,
        "inputs": {name: {"sha256": _digest(path), "size": path.stat().st_size} for name, path in data.items()},
        "code": {
            "sha256": code_hash(dict(code)),
            "files": {name: digest[:_DIGITS] for name, digest in sorted(code.items())},
        },
        "outputs": {path.suffix: _digest(path) for path in forms(stem)},
        "signatures": _in_output(stem, signatures),
        "tests": tests,
        "seeds": _seeds(known, [text for texts in signatures.values() for text in texts] + tests),
        "versions": versions(),
    }
    target = record_path(stem)
    # One line: there are many of them, and `comperdial why` is for readers.
    write_text(target, json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n")
    return target


def record_path(stem: str | Path) -> Path:
    """Return where the record of a table or figure lies, from its stem or the name of one of its forms."""
    path = Path(stem)
    return path if path.name.endswith(SUFFIX) else form_path(path, SUFFIX)


def read(path: str | Path) -> dict[str, Any]:
    """Read a record.

    Raises
    ------
    FileError
        When it is not JSON, or not a record of a form that is known here.
    """
    found = read_json(path)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise FileError(
            "not a record of provenance that is known here",
            where=str(path),
            expected=f"format {FORMAT}",
            hint="Make it again",
        )
    return found


def forms(stem: str | Path) -> list[Path]:
    """Return the forms of a table or figure that lie there: ``usr.csv``, ``usr.html`` and so on."""
    record = record_path(stem)
    base = record.name.removesuffix(SUFFIX)
    return [path for path in (record.with_name(base + suffix) for suffix in FORMS) if path.is_file()]


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of the libraries that results are computed with."""
    from comperdial import __version__
    from comperdial.core.versions import installed

    found = {name: installed(name) for name in LIBRARIES}
    return {"python": platform.python_version(), PACKAGE: __version__} | {
        name: version for name, version in found.items() if version != "absent"
    }


def path_name(path: str | PurePath) -> str:
    """Return a path as a record names it: from the current folder, or, when it lies elsewhere, the name alone."""
    absolute = Path.cwd() / path
    if absolute.is_relative_to(Path.cwd()) and ".." not in absolute.parts:
        return absolute.relative_to(Path.cwd()).as_posix()
    return absolute.name


def _digest(path: Path) -> str:
    return sha256(path)[:_DIGITS]


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Turn an option into JSON, without a path of this machine."""
    if isinstance(value, PurePath):
        return path_name(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [_plain(item) for item in value]
        return sorted(items, key=str) if isinstance(value, set | frozenset) else items
    if isinstance(value, str) and PurePath(value).is_absolute():
        return path_name(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _signatures(paths: Iterable[Path]) -> tuple[dict[str, list[str]], list[str]]:
    """Return each metric's signatures and the tests' signatures, from the inputs that carry such columns."""
    metrics: dict[str, set[str]] = {}
    tests: set[str] = set()
    for path in paths:
        # The table beside published values calls its metrics by a label.
        for metric, signature in _columns(path, "metric", "signature") or _columns(path, "label", "signature"):
            if metric and signature:
                metrics.setdefault(metric, set()).add(signature)
        tests |= {test for _, test in _columns(path, "metric_a", "test") if test}
    return {metric: sorted(metrics[metric]) for metric in sorted(metrics)}, sorted(tests)


def _in_output(stem: str | Path, signatures: dict[str, list[str]]) -> dict[str, list[str]]:
    """Keep the metrics that the output's CSV names in a column of their own; all, where it calls them otherwise."""
    cells: set[str] = set()
    for path in forms(stem):
        if path.suffix == ".csv":
            cells |= {name for column in ("metric", "metric_a", "metric_b") for (name,) in _columns(path, column)}
    named = {metric: found for metric, found in signatures.items() if metric in cells}
    return named or signatures


def _columns(path: Path, *names: str) -> set[tuple[str, ...]]:
    """Return the distinct values of some columns of a table; none when the file is no table that has them."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        if not set(names) <= set(pq.read_schema(path).names):
            return set()
        rows = pq.read_table(path, columns=list(names)).group_by(list(names)).aggregate([])
        return set(zip(*(rows[name].to_pylist() for name in names), strict=True))
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if set(names) <= set(reader.fieldnames or ()):
                return {tuple(row[name] or "" for name in names) for row in reader}
    return set()


def _seeds(parameters: Mapping[str, Any], signatures: Iterable[str]) -> dict[str, list[int]]:
    """Return every seed that is known, by where it stands: a parameter, or a signature (``seed:7``)."""
    found: dict[str, set[int]] = {}
    for name, value in parameters.items():
        if name.endswith("seed") and isinstance(value, int):
            found.setdefault(name, set()).add(value)
    for text in signatures:
        for seed in re.findall(r"\bseed:(\d+)", text):
            found.setdefault("signatures", set()).add(int(seed))
    return {name: sorted(values) for name, values in sorted(found.items())}
