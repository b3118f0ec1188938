"""Public files by name: from a mirror folder or over HTTPS; none gets its final name before its checksum fits."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from comperdial.config import load_yaml
from comperdial.errors import ConfigError, SourceError, UnknownNameError
from comperdial.files import replacing, sha256

log = logging.getLogger(__name__)

MIRROR_VARIABLE = "COMPERDIAL_MIRROR"
CATALOGUE = Path("data/sources.yaml")
RAW = Path("data/raw")

_CHUNK = 1 << 18
_RETRY_STATUS = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Source:
    """A public file, pinned: where it comes from, what its bytes are, who may use it."""

    name: str
    repository: str
    commit: str
    path: str
    url: str
    sha256: str
    bytes: int
    licence: str
    citation: str

    @property
    def relative(self) -> PurePosixPath:
        """Return ``<owner>/<repository>/<path>``, the file's place in a mirror and under ``data/raw``."""
        return PurePosixPath(self.repository) / self.path


@dataclass(frozen=True)
class Dataset:
    """A dataset as the catalogue has it: which reader, which files under the reader's names for them."""

    name: str
    reader: str
    title: str
    files: Mapping[str, Source]


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
    content = load_yaml(path)
    files = {name: _source(name, entry, path) for name, entry in (content.get("files") or {}).items()}
    datasets = {}
    for name, entry in (content.get("datasets") or {}).items():
        where = f"{path}, dataset {name!r}"
        _check_keys(entry, {"reader", "title", "files"}, where)
        for file in entry["files"].values():
            if file not in files:
                raise UnknownNameError("source", file, files, where=where)
        datasets[name] = Dataset(
            name, entry["reader"], entry["title"], {role: files[file] for role, file in entry["files"].items()}
        )
    return Catalogue(files, datasets, path)


def _check_keys(entry: Any, expected: set[str], where: str) -> None:  # noqa: ANN401
    if not isinstance(entry, dict) or set(entry) != expected:
        found = ", ".join(sorted(entry)) if isinstance(entry, dict) else repr(entry)
        raise ConfigError(f"the entry has {found}", where=where, expected="exactly " + ", ".join(sorted(expected)))


def _source(name: str, entry: Any, path: Path) -> Source:  # noqa: ANN401
    where = f"{path}, file {name!r}"
    _check_keys(entry, {field.name for field in fields(Source)} - {"name"}, where)
    rules = {
        "repository": r"[\w.-]+/[\w.-]+",
        "commit": r"[0-9a-f]{40}",
        "sha256": r"[0-9a-f]{64}",
        "url": r"https://.+",
        "bytes": r"[1-9]\d*",
    }
    for field, rule in rules.items():
        if not re.fullmatch(rule, str(entry[field])):
            raise ConfigError(f"{field} is {entry[field]!r}", where=where, expected=f"text that matches {rule}")
    parts = PurePosixPath(entry["path"]).parts
    if ".." in parts or entry["path"].startswith("/") or ".." in PurePosixPath(entry["repository"]).parts:
        raise ConfigError(
            f"path {entry['path']!r} leaves its folder", where=where, expected="a path inside the repository"
        )
    if entry["commit"] not in entry["url"]:
        raise ConfigError("the URL does not name the commit", where=where, expected="a URL pinned to the commit")
    return Source(name=name, **entry)


def raw_path(source: Source, raw: Path = RAW) -> Path:
    """Return where a fetched file lies."""
    return raw / source.relative


def status(source: Source, path: Path) -> Literal["present", "missing", "altered"]:
    """Compare the file at ``path`` with what the catalogue says of it."""
    if not path.is_file():
        return "missing"
    if path.stat().st_size != source.bytes or sha256(path) != source.sha256:
        return "altered"
    return "present"


def fetch(source: Source, target: Path, *, mirror: str | Path | None = None, attempts: int = 5) -> None:
    """Bring a file to ``target``, checked; do nothing when it is there already.

    Parameters
    ----------
    source
        What to fetch.
    target
        Its final name. The file gets it only once its sha256 fits.
    mirror
        A folder laid out ``<owner>/<repository>/<path>``; default: the environment variable ``COMPERDIAL_MIRROR``.
        With a mirror the network is never tried, so that a machine without one fails at once and not after a time-out.
    attempts
        How often to try the network; an interrupted download goes on where it stopped.

    Raises
    ------
    SourceError
        When the mirror lacks the file, the network does not give it, or its bytes are not the ones pinned.
    """
    if status(source, target) == "present":
        return
    mirror = mirror or os.environ.get(MIRROR_VARIABLE) or None
    if mirror:
        _copy(source, Path(mirror) / source.relative, target)
    else:
        _download(source, target, attempts)


def _verify(source: Source, path: Path, origin: str, hint: str) -> None:
    size = path.stat().st_size
    digest = sha256(path)
    if size != source.bytes or digest != source.sha256:
        raise SourceError(
            f"source {source.name!r} has sha256 {digest} ({size} bytes)",
            where=origin,
            expected=f"sha256 {source.sha256} ({source.bytes} bytes)",
            hint=hint,
        )


def _copy(source: Source, origin: Path, target: Path) -> None:
    if not origin.is_file():
        raise SourceError(
            f"the mirror has no source {source.name!r}",
            where=str(origin),
            expected="the file there",
            hint=f"Copy it from {source.url}, or unset {MIRROR_VARIABLE} to download it",
        )
    with replacing(target) as temporary:
        temporary.write_bytes(origin.read_bytes())
        _verify(source, temporary, str(origin), "The mirror's copy is altered or incomplete: copy it anew")


def _download(source: Source, target: Path, attempts: int) -> None:
    import requests

    target.parent.mkdir(parents=True, exist_ok=True)
    # Named after the content wanted, so that a pin that moved never goes on with the bytes of the old file.
    part = target.with_name(f".{target.name}-{source.sha256[:12]}.part")
    for attempt in range(1, attempts + 1):
        try:
            wait = _receive(source, part)
            if wait is None:
                break
            reason = "the server asked to wait" if wait else "the server is not ready"
        except requests.RequestException as error:
            wait, reason = 0.0, type(error).__name__
        if attempt == attempts:
            raise SourceError(
                f"source {source.name!r} could not be downloaded in {attempts} attempts (last: {reason})",
                where=source.url,
                expected="an answer over HTTPS",
                hint=f"Without a network, set {MIRROR_VARIABLE} to a folder that holds {source.relative}",
            )
        pause = max(wait, 0.5 * 2 ** (attempt - 1))
        log.warning("%s: %s; attempt %d of %d in %.1f s", source.url, reason, attempt + 1, attempts, pause)
        time.sleep(pause)
    try:
        _verify(source, part, source.url, "The file upstream is not the one pinned in data/sources.yaml")
    except SourceError:
        part.unlink()
        raise
    part.replace(target)


def _receive(source: Source, part: Path) -> float | None:
    """Receive what is still missing of a file; return None when complete, else the seconds the server asks to wait."""
    import requests
    from tqdm import tqdm

    have = part.stat().st_size if part.exists() else 0
    if have >= source.bytes:
        part.unlink()
        have = 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    with requests.get(source.url, headers=headers, stream=True, timeout=(10, 60)) as answer:
        if answer.status_code in _RETRY_STATUS:
            after = answer.headers.get("Retry-After", "")
            return min(float(after), 60.0) if after.isdigit() else 0.0
        if answer.status_code not in (200, 206):
            raise SourceError(
                f"source {source.name!r}: the server answers {answer.status_code} {answer.reason}",
                where=source.url,
                expected="the file",
                hint=f"If it moved, correct data/sources.yaml; or set {MIRROR_VARIABLE} to a folder that has it",
            )
        resumed = have > 0 and answer.status_code == 206
        with (
            part.open("ab" if resumed else "wb") as file,
            tqdm(
                total=source.bytes,
                initial=have if resumed else 0,
                unit="B",
                unit_scale=True,
                desc=source.name,
                disable=None,
            ) as bar,
        ):
            for chunk in answer.iter_content(_CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
            complete = file.tell() >= source.bytes
    return None if complete else 0.0
