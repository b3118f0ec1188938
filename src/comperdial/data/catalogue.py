"""``data/sources.yaml``: every public file, pinned, and the files of each data set.

A file with an unknown checksum has a ``revision`` instead of commit, sha256 and bytes. Its first download records these in
``sources.lock.yaml`` next to the catalogue, and later downloads must match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import model_validator

from comperdial.config.checking import Count, DatasetName, Expected, Maybe, Strict, Text, read_checked, rule, unknown
from comperdial.core.errors import FileError, UnknownNameError
from comperdial.core.names import RATED_LEVELS

CATALOGUE = Path("data/sources.yaml")

_Name = Annotated[
    str,
    Expected(
        "letters, digits, dots, hyphens and underscores, not a dot or a hyphen first",
        "^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
    ),
]
_Repository = Annotated[str, Expected("<owner>/<name>", r"^\w[\w.-]*/[\w.-]+$")]
_Path = Annotated[str, Expected("a path without braces", r"^[^{}\x00-\x1f\x7f]+$")]
_Url = Annotated[str, Expected("https://…", "^https://.+")]
_Commit = Annotated[str, Expected("a commit: 40 hexadecimal digits", "^[0-9a-f]{40}$")]
_Sha256 = Annotated[str, Expected("64 hexadecimal digits", "^[0-9a-f]{64}$")]
_Revision = Annotated[str, Expected("a branch or a tag", r"^[\w./-]+$")]
_Line = Annotated[str, Expected("one line of text", r"^[^\x00-\x1f\x7f]+$")]


class Source(Strict):
    """A public file: its origin, checksum, licence and citation.

    ``revision`` is the branch or tag of a file pinned by the lock file; until then ``sha256`` is None. ``member`` names the
    file inside the zip archive at the URL; checksum and size are those of the member.
    """

    name: str = ""
    repository: _Repository
    path: _Path
    url: _Url
    licence: _Line
    citation: _Line
    commit: Maybe[_Commit] = None
    sha256: Maybe[_Sha256] = None
    bytes: Maybe[Count] = None
    revision: Maybe[_Revision] = None
    member: Maybe[Text] = None

    @model_validator(mode="after")
    def _is_pinned(self) -> Source:
        pins = [name for name in ("commit", "sha256", "bytes") if getattr(self, name) is not None]
        if len(pins) != (0 if self.revision else 3):
            given = ", ".join(pins + ["revision"] * bool(self.revision)) or "neither"
            raise rule(f"it has {given}", "`commit`, `sha256` and `bytes`, or only `revision`")
        if PurePosixPath(self.path).is_absolute() or ".." in self.relative.parts:
            raise rule(f"path {self.path!r} leaves its folder", "a path inside the repository", "path")
        if self.commit and self.commit not in self.url:
            raise rule("the URL does not name the commit", "a URL pinned to the commit", "url")
        if self.revision and "{revision}" not in self.url:
            raise rule("the URL has no {revision}", "a URL with {revision} in it", "url")
        if self.member and self.revision:
            raise rule("a member of an unpinned archive", "`commit`, `sha256` and `bytes`", "member")
        return self

    @property
    def pinned(self) -> bool:
        """Return whether the checksum is known."""
        return self.sha256 is not None

    @property
    def relative(self) -> PurePosixPath:
        """Return ``<owner>/<repository>/<path>``, the file's path in a mirror and in ``data/raw``."""
        return PurePosixPath(self.repository) / self.path


@dataclass(frozen=True)
class Dataset:
    """A data set of the catalogue: its reader, and its files keyed by the reader's names.

    ``levels`` are the rated ones: ``turn``, ``dialogue``, both, or neither for pairs without ratings. ``source`` and
    ``target`` override the rater and dimension in ``evaluation`` of ``params.yaml``. ``script`` is the main script of the
    texts if not Latin: metrics for English are then skipped.
    """

    name: str
    reader: str
    title: str
    files: Mapping[str, Source]
    levels: tuple[str, ...] = ("turn",)
    source: str | None = None
    target: str | None = None
    script: str | None = None


@dataclass(frozen=True)
class Catalogue:
    """The content of ``data/sources.yaml``."""

    files: Mapping[str, Source]
    datasets: Mapping[str, Dataset]
    path: Path

    def file(self, name: str) -> Source:
        """Return a file by name; raise :class:`UnknownNameError` if it does not exist."""
        if name not in self.files:
            raise UnknownNameError("source", name, self.files, where=str(self.path))
        return self.files[name]

    def dataset(self, name: str) -> Dataset:
        """Return a data set by name; raise :class:`UnknownNameError` if it does not exist."""
        if name not in self.datasets:
            raise UnknownNameError("dataset", name, self.datasets, where=str(self.path))
        return self.datasets[name]


_Levels = Annotated[list[Literal["turn", "dialogue"]], Expected("a list of turn and dialogue, possibly empty")]


class _Entry(Strict):
    reader: DatasetName
    title: _Line
    files: dict[str, Text]
    levels: Maybe[_Levels] = None
    source: Maybe[Text] = None
    target: Maybe[Text] = None
    script: Maybe[Literal["Japanese"]] = None


class _Content(Strict):
    files: dict[_Name, Source]
    datasets: dict[DatasetName, _Entry]

    @model_validator(mode="after")
    def _names_files(self) -> _Content:
        for name, entry in self.datasets.items():
            for role, file in entry.files.items():
                if file not in self.files:
                    raise unknown("source", file, self.files, "datasets", name, "files", role)
        return self


class _Locked(Strict):
    repository: Text
    commit: _Commit | None
    sha256: _Sha256
    bytes: Count


def load_catalogue(path: str | Path = CATALOGUE) -> Catalogue:
    """Read and validate ``data/sources.yaml``.

    Raises
    ------
    ConfigError
        If an entry lacks a field, has an unknown one, is not pinned, or has a path outside its folder.
    """
    path = Path(path)
    if not path.is_file():
        expected, hint = "the catalogue of public files", "Run this in the repository's root, or pass --catalogue FILE"
        raise FileError("no such file", where=str(path), expected=expected, hint=hint)
    return _loaded(path, tuple((f.absolute(), f.stat().st_mtime_ns) for f in (path, lock_path(path)) if f.is_file()))


@cache
def _loaded(path: Path, _: tuple[tuple[Path, int], ...]) -> Catalogue:
    """Read the catalogue once per process, and again if it changes or a relative path resolves to another file."""
    content, locked = read_checked(_Content, path), read_lock(lock_path(path))
    files = {}
    for name, source in content.files.items():
        update: dict[str, Any] = {"name": name}
        if source.revision:
            pin = locked.get(name, {"commit": None})
            update |= {key: value for key, value in pin.items() if key != "repository"}
            update["url"] = source.url.replace("{revision}", pin["commit"] or source.revision)
        files[name] = source.model_copy(update=update)
    datasets = {}
    for name, entry in content.datasets.items():
        # ComperDial's format has ratings at both levels.
        default = RATED_LEVELS[: 1 + (entry.reader == "comperdial")]
        levels = [level for level in RATED_LEVELS if level in (default if entry.levels is None else entry.levels)]
        roles = {role: files[file] for role, file in entry.files.items()}
        more = (tuple(levels), entry.source, entry.target, entry.script)
        datasets[name] = Dataset(name, entry.reader, entry.title, roles, *more)
    return Catalogue(files, datasets, path)


def lock_path(catalogue: str | Path) -> Path:
    """Return the path of a catalogue's lock file."""
    return Path(catalogue).with_name("sources.lock.yaml")


def read_lock(path: Path) -> dict[str, dict[str, Any]]:
    """Read a lock file: file -> repository, commit (None from a mirror), sha256, bytes; empty if it does not exist."""
    locked = read_checked(dict[str, _Locked], path) if path.is_file() else {}
    return {name: entry.model_dump() for name, entry in locked.items()}
