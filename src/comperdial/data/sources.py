"""Public files by name: from a mirror folder or over HTTPS; none gets its final name before its checksum fits.

A file whose checksum nobody here has seen is recorded in the lock file at its first download, and held to ever after.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import os
import shutil
import time
import zipfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from comperdial.core.errors import ConfigError, SourceError
from comperdial.core.files import replacing, sha256
from comperdial.data.catalogue import Source, updating_lock

if TYPE_CHECKING:
    from requests import Session

log = logging.getLogger(__name__)

MIRROR_VARIABLE = "COMPERDIAL_MIRROR"
LIMIT_VARIABLE = "COMPERDIAL_MAX_DOWNLOAD"
RAW = Path("data/raw")

_GIB = 1
_RETRY_STATUS = frozenset({408, 429, 500, 502, 503, 504})
# The header in which the Hugging Face hub names the commit that a branch stood at.
_COMMIT_HEADER = "X-Repo-Commit"
_HEAD = (
    "# Written by `comperdial fetch` at the first download of a file whose checksum was not known; commit it.\n"
    "# Every later download is held to it. To take a newer upstream file, delete its entry and fetch again.\n"
)


def raw_path(source: Source, raw: Path = RAW) -> Path:
    """Return where a fetched file lies."""
    return raw / source.relative


def status(source: Source, path: Path) -> Literal["present", "missing", "altered", "unpinned"]:
    """Compare the file at ``path`` with what the catalogue says of it; nothing is known of an unpinned one."""
    if not source.pinned:
        return "unpinned"
    if not path.is_file():
        return "missing"
    if path.stat().st_size != source.bytes or sha256(path) != source.sha256:
        return "altered"
    return "present"


def require(source: Source, raw: Path = RAW) -> Path:
    """Return where a public file is, with the bytes that are pinned; a missing one is fetched.

    Raises
    ------
    SourceError
        When it cannot be fetched, or is altered.
    """
    path = raw_path(source, raw)
    found = status(source, path)
    if found == "missing" and source.pinned:
        fetch(source, path)
        return path
    if found != "present":
        raise SourceError(
            f"source {source.name!r} is {found}",
            where=str(path),
            expected=f"sha256 {source.sha256}" if source.pinned else "a recorded sha256",
            hint=f"Run `comperdial fetch {source.name}`",
        )
    return path


def fetch(
    source: Source,
    target: Path,
    *,
    lock_file: Path | None = None,
    mirror: str | Path | None = None,
    attempts: int = 5,
) -> Source:
    """Bring a file to ``target``, checked; do nothing when it is there already.

    Parameters
    ----------
    source
        What to fetch.
    target
        Its final name. The file gets it only once it is whole and its sha256 fits.
    lock_file
        Where commit, sha256 and size of a file that is not pinned are recorded. Files of one repository are taken at
        one commit: the first one that is recorded decides for the others.
    mirror
        A folder laid out ``<owner>/<repository>/<path>``; default: the environment variable ``COMPERDIAL_MIRROR``.
        With a mirror the network is never tried, so that a machine without one fails at once and not after a time-out.
    attempts
        How often to try the network; each begins with the file's first byte.

    Returns
    -------
    Source
        The same source, pinned.

    Raises
    ------
    SourceError
        When the mirror lacks the file; when the network does not give it whole, or gives more than the limit; when its
        bytes are not the ones pinned, or it is not pinned and there is no lock file.
    ConfigError
        When the limit is no number.
    """
    if source.pinned:
        if status(source, target) != "present":
            _bring(source, source.url, target, mirror, attempts)
        return source
    if lock_file is None:
        raise SourceError(
            f"source {source.name!r} is not pinned yet", where=source.url, expected="its sha256 in the lock file"
        )
    with updating_lock(lock_file, _HEAD) as locked:
        known = (pin["commit"] for pin in locked.values() if pin["repository"] == source.repository)
        commit = next(filter(None, known), None)
        url = source.url
        if commit and source.revision:
            url = url.replace(f"/{source.revision}/", f"/{commit}/")
        named = _bring(source, url, target, mirror, attempts)
        # Nobody knows which commit a mirror's file is of.
        commit = None if in_mirror(source, mirror) else named or commit
        digest, size = sha256(target), target.stat().st_size
        locked[source.name] = {"repository": source.repository, "commit": commit, "sha256": digest, "bytes": size}
    log.info("%s: recorded sha256 %s (%d bytes, commit %s)", source.name, digest, size, commit)
    return dataclasses.replace(source, commit=commit or "", sha256=digest, bytes=size)


def _bring(source: Source, url: str, target: Path, mirror: str | Path | None, attempts: int) -> str | None:
    """Bring a file to its place if its bytes are right; return the commit that the server names, if it does."""
    origin = in_mirror(source, mirror)
    with replacing(target) as temporary:
        if origin:
            shutil.copyfile(origin, temporary)
            commit, hint = None, "The mirror's copy is altered or incomplete: copy it anew"
        else:
            commit = _download(source, url, temporary, attempts)
            if source.member:
                _unpack(source, temporary)
            hint = "The file upstream is not the one pinned in data/sources.yaml"
        if source.pinned and status(source, temporary) != "present":
            raise SourceError(
                f"source {source.name!r} has sha256 {sha256(temporary)} ({temporary.stat().st_size} bytes)",
                where=str(origin or url),
                expected=f"sha256 {source.sha256} ({source.bytes} bytes)",
                hint=hint,
            )
    return commit


def _unpack(source: Source, path: Path) -> None:
    """Replace a zip archive by the one member of it that is wanted."""
    archive = path.with_name(f"{path.name}.zip")
    path.rename(archive)
    try:
        with zipfile.ZipFile(archive) as found, found.open(str(source.member)) as member, path.open("wb") as file:
            # No more than the file should have: a small archive can hold a huge one.
            file.write(member.read(source.bytes + 1))
    except (zipfile.BadZipFile, KeyError) as error:
        raise SourceError(
            f"source {source.name!r} is not in the archive",
            where=source.url,
            expected=f"a zip archive with {source.member}",
            hint="The archive upstream is not the one that data/sources.yaml means",
        ) from error
    finally:
        archive.unlink()


def in_mirror(source: Source, mirror: str | Path | None = None) -> Path | None:
    """Return where a mirror has a file; None when no mirror is named, in the argument or in the environment.

    Raises
    ------
    SourceError
        When the mirror lacks the file.
    """
    mirror = mirror or os.environ.get(MIRROR_VARIABLE) or None
    if not mirror:
        return None
    origin = Path(mirror) / source.relative
    if not origin.is_file():
        raise SourceError(
            f"the mirror has no source {source.name!r}",
            where=str(origin),
            expected="the file there",
            hint=f"Copy it from {source.url}, or unset {MIRROR_VARIABLE} to download it",
        )
    return origin


def _download(source: Source, url: str, target: Path, attempts: int) -> str | None:
    """Download a file, trying again where that may help; return the commit that the server names, if it does."""
    import requests

    most = source.bytes if source.pinned else _limit()
    moved = f"If it moved, correct data/sources.yaml; or set {MIRROR_VARIABLE} to a folder that has it"
    for attempt in range(1, attempts + 1):
        try:
            with requests.Session() as session, target.open("wb") as file:
                if url.startswith("https:"):
                    # Else a redirect could lead to HTTP, where anyone on the way can put other bytes in.
                    del session.adapters["http://"]
                return _receive(session, source, url, file, most)
        except requests.exceptions.InvalidSchema as error:
            raise SourceError(
                f"source {source.name!r}: the server redirects to an address without encryption",
                where=url,
                expected="HTTPS all the way",
                hint=moved,
            ) from error
        except requests.RequestException as error:
            answer, reason = error.response, type(error).__name__
            if answer is not None:
                reason = f"{answer.status_code} {answer.reason}"
                if answer.status_code not in _RETRY_STATUS:
                    raise SourceError(
                        f"source {source.name!r}: the server answers {reason}",
                        where=url,
                        expected="the file",
                        hint=moved,
                    ) from error
        if attempt < attempts:
            after = answer.headers.get("Retry-After", "") if answer is not None else ""
            pause = max(min(float(after), 60.0) if after.isdigit() else 0.0, 0.5 * 2 ** (attempt - 1))
            log.warning("%s: %s; attempt %d of %d in %.1f s", url, reason, attempt + 1, attempts, pause)
            time.sleep(pause)
    raise SourceError(
        f"source {source.name!r} could not be downloaded in {attempts} attempts (last: {reason})",
        where=url,
        expected="an answer over HTTPS",
        hint=f"Without a network, set {MIRROR_VARIABLE} to a folder that holds {source.relative}",
    )


def _receive(session: Session, source: Source, url: str, file: IO[bytes], most: float) -> str | None:
    """Receive a file, or as much of it as may come; return the commit that the server names, if it does."""
    import requests
    from tqdm import tqdm

    # Not compressed, so that sizes are those of the file.
    headers = {"Accept-Encoding": "identity"}
    with session.get(url, headers=headers, stream=True, timeout=(10, 60)) as answer:
        if answer.status_code != requests.codes.ok:
            raise requests.HTTPError(response=answer)
        stated = answer.headers.get("Content-Length", "")
        size = int(stated) if stated.isdecimal() else 0
        with tqdm(total=size or None, unit="B", unit_scale=True, desc=source.name, disable=None) as bar:
            # A body that is shorter than stated is an error of requests.
            for chunk in answer.iter_content(1 << 18):
                file.write(chunk)
                bar.update(len(chunk))
                if max(size, file.tell()) > most:
                    break
            else:
                named = (part.headers.get(_COMMIT_HEADER) for part in (*answer.history, answer))
                return next(filter(None, named), None)
    if source.pinned:
        # Its checksum will say so.
        return None
    raise SourceError(
        f"source {source.name!r} has more than {most / 2**30:.4g} GiB, the limit for a file of unknown size",
        where=url,
        expected="the file that the catalogue names",
        hint=f"Set {LIMIT_VARIABLE} to more GiB if it is to be that large",
    )


def _limit() -> float:
    """Return how many bytes a download may bring of a file whose size nobody has recorded."""
    given = os.environ.get(LIMIT_VARIABLE) or _GIB
    try:
        found = float(given)
    except ValueError:
        found = 0.0
    if not 0 < found < math.inf:
        raise ConfigError(repr(given), where=LIMIT_VARIABLE, expected="a number of GiB above 0")
    return found * 2**30
