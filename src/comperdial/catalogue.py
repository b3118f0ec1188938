"""``data/sources.yaml``: every public file, pinned, and which data set is read from which of them.

A file whose checksum nobody here has seen names a ``revision`` instead of commit, sha256 and bytes. Its first download
records these in ``sources.lock.yaml`` beside the catalogue, and every later one is held to them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from comperdial.config import load_yaml
from comperdial.errors import ConfigError, FileError, UnknownNameError
from comperdial.files import write_text
from comperdial.names import RATED_LEVELS

CATALOGUE = Path("data/sources.yaml")


@dataclass(frozen=True)
class Source:
    """A public file: where it comes from, what its bytes are, who may use it.

    ``revision`` is the branch or tag that was asked for, of a file that is pinned by the lock file; without an entry
    there, ``sha256`` is empty and the file is not pinned.
    """

    name: str
    repository: str
    commit: str
    path: str
    url: str
    sha256: str
    bytes: int
    licence: str
    citation: str
    revision: str | None = None

    @property
    def pinned(self) -> bool:
        """Return whether the bytes are known."""
        return bool(self.sha256)

    @property
    def relative(self) -> PurePosixPath:
        """Return ``<owner>/<repository>/<path>``, the file's place in a mirror and under ``data/raw``."""
        return PurePosixPath(self.repository) / self.path


@dataclass(frozen=True)
class Dataset:
    """A dataset as the catalogue has it: which reader, which files under the reader's names for them.

    ``levels`` says what is rated: ``turn``, ``dialogue``, both or (of pairs without ratings) neither; ``source`` by
    whom and ``target`` in which dimension, where that is not what ``evaluation`` in ``params.yaml`` says of all.
    """

    name: str
    reader: str
    title: str
    files: Mapping[str, Source]
    levels: tuple[str, ...] = ("turn",)
    source: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class Catalogue:
    """What ``data/sources.yaml`` says."""

    files: Mapping[str, Source]
    datasets: Mapping[str, Dataset]
    path: Path

    def file(self, name: str) -> Source:
        """Return a file by name, or raise :class:`UnknownNameError`."""
        if name not in self.files:
            raise UnknownNameError("source", name, self.files, where=str(self.path))
        return self.files[name]

    def dataset(self, name: str) -> Dataset:
        """Return a dataset by name, or raise :class:`UnknownNameError`."""
        if name not in self.datasets:
            raise UnknownNameError("dataset", name, self.datasets, where=str(self.path))
        return self.datasets[name]


@cache
def load_catalogue(path: str | Path = CATALOGUE) -> Catalogue:
    """Read and check ``data/sources.yaml``.

    Raises
    ------
    ConfigError
        When an entry lacks a field, has an unknown one, is not pinned, or has a path that leaves its folder.
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(
            "no such file",
            where=str(path),
            expected="the catalogue of public files",
            hint="Run this in the repository's root, or say --catalogue FILE",
        )
    content = load_yaml(path)
    _check_keys(content, {"files", "datasets"}, str(path))
    for part in ("files", "datasets"):
        if not isinstance(content[part], dict):
            raise ConfigError(f"{part} is {content[part]!r}", where=str(path), expected="a mapping of names")
    locked = read_lock(lock_path(path))
    files = {name: _source(name, entry, path, locked) for name, entry in content["files"].items()}
    datasets = {}
    for name, entry in content["datasets"].items():
        where = f"{path}, dataset {name!r}"
        _check_name(name, _DATASET_NAME, where)
        _check_keys(entry, {"reader", "title", "files"}, where, optional={"levels", "source", "target"})
        _check_rules(entry, {k: _RULES[k] for k in ("reader", "title")}, where)
        if not isinstance(entry["files"], dict):
            raise ConfigError(f"files is {entry['files']!r}", where=where, expected="a mapping of names")
        for file in entry["files"].values():
            if not isinstance(file, str) or file not in files:
                raise UnknownNameError("source", str(file), files, where=where)
        datasets[name] = Dataset(
            name,
            entry["reader"],
            entry["title"],
            {role: files[file] for role, file in entry["files"].items()},
            _levels(entry, where),
            entry.get("source"),
            entry.get("target"),
        )
    return Catalogue(files, datasets, path)


def _levels(entry: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return which levels an entry says are rated; if it does not say, what its reader is known to read."""
    if "levels" not in entry:
        return RATED_LEVELS if entry["reader"] == "comperdial" else ("turn",)
    levels = entry["levels"]
    if not isinstance(levels, list) or [level for level in RATED_LEVELS if level in levels] != levels:
        raise ConfigError(f"levels is {levels!r}", where=where, expected="a list of turn, dialogue, or of neither")
    return tuple(levels)


def _check_keys(entry: Any, expected: set[str], where: str, optional: Collection[str] = ()) -> None:  # noqa: ANN401
    if not isinstance(entry, dict) or set(entry) - set(optional) != expected:
        found = ", ".join(sorted(entry)) if isinstance(entry, dict) else repr(entry)
        raise ConfigError(f"the entry has {found}", where=where, expected="exactly " + ", ".join(sorted(expected)))


def lock_path(catalogue: str | Path) -> Path:
    """Return where the lock file of a catalogue lies."""
    return Path(catalogue).with_name("sources.lock.yaml")


def read_lock(path: Path) -> dict[str, dict[str, Any]]:
    """Read a lock file: file -> repository, commit (None from a mirror), sha256, bytes; empty when there is none."""
    if not path.is_file():
        return {}
    locked = load_yaml(path)
    for name, entry in locked.items():
        where = f"{path}, file {name!r}"
        _check_keys(entry, {"repository", "commit", "sha256", "bytes"}, where)
        _check_rules(
            entry, {k: _RULES[k] for k in ("sha256", "bytes", *(["commit"] if entry["commit"] else []))}, where
        )
    return locked


@contextmanager
def updating_lock(path: Path, head: str) -> Iterator[dict[str, dict[str, Any]]]:
    """Give the entries of a lock file, to be changed; they are written when the block ends without an error.

    Other processes that change it wait. ``head`` is the comment that the file begins with.
    """
    import yaml
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        locked = read_lock(path)
        before = dict(locked)
        yield locked
        if locked != before:
            write_text(path, head + yaml.safe_dump(locked, sort_keys=True))


# What becomes the name of a file, a word of a command or a pattern of Snakemake's.
_FILE_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_DATASET_NAME = r"[a-z0-9_]+"
_RULES = {
    "repository": r"\w[\w.-]*/[\w.-]+",
    "path": r"[^{}\x00-\x1f\x7f]+",
    "commit": r"[0-9a-f]{40}",
    "sha256": r"[0-9a-f]{64}",
    "url": r"https://.+",
    "bytes": r"[1-9]\d*",
    "reader": r"[a-z0-9_]+",
    "revision": r"[\w./-]+",
    **dict.fromkeys(("title", "licence", "citation"), r"[^\x00-\x1f\x7f]+"),
}
_PINS = {"commit", "sha256", "bytes"}


def _check_rules(entry: Mapping[str, Any], rules: Mapping[str, str], where: str) -> None:
    for field, rule in rules.items():
        fitting = type(entry[field]) is (int if field == "bytes" else str)
        if not fitting or not re.fullmatch(rule, str(entry[field])):
            raise ConfigError(f"{field} is {entry[field]!r}", where=where, expected=f"text that matches {rule}")


def _check_name(name: str, rule: str, where: str) -> None:
    if not re.fullmatch(rule, name):
        raise ConfigError(f"the name {name!r}", where=where, expected=f"text that matches {rule}")


def _source(name: str, entry: Any, path: Path, locked: Mapping[str, Mapping[str, Any]]) -> Source:  # noqa: ANN401
    where = f"{path}, file {name!r}"
    _check_name(name, _FILE_NAME, where)
    by_lock = isinstance(entry, dict) and "revision" in entry
    known = {field.name for field in fields(Source)} - {"name"}
    _check_keys(entry, known - (_PINS if by_lock else {"revision"}), where)
    _check_rules(entry, {k: rule for k, rule in _RULES.items() if k in entry}, where)
    parts = PurePosixPath(str(entry["path"])).parts
    if ".." in parts or entry["path"].startswith("/") or ".." in PurePosixPath(entry["repository"]).parts:
        raise ConfigError(
            f"path {entry['path']!r} leaves its folder", where=where, expected="a path inside the repository"
        )
    if by_lock:
        return _locked(name, entry, locked.get(name), where)
    if entry["commit"] not in entry["url"]:
        raise ConfigError("the URL does not name the commit", where=where, expected="a URL pinned to the commit")
    return Source(name=name, **entry)


def _locked(name: str, entry: Mapping[str, Any], pins: Mapping[str, Any] | None, where: str) -> Source:
    if "{revision}" not in entry["url"]:
        raise ConfigError("the URL has no {revision}", where=where, expected="a URL with {revision} in it")
    pins = pins or {"commit": None, "sha256": "", "bytes": 0}
    found = {**pins, **entry, "commit": pins["commit"] or ""}
    found["url"] = entry["url"].replace("{revision}", found["commit"] or entry["revision"])
    return Source(name=name, **found)
