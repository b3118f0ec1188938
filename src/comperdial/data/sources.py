"""Public files by name, from a mirror folder or over HTTPS; none gets its final name before its checksum is right.

The first download of a file whose checksum is not known records it in the lock file, and every later one must match.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from comperdial.core.errors import SourceError
from comperdial.core.files import replacing, sha256, write_text
from comperdial.data.catalogue import Source, read_lock

log = logging.getLogger(__name__)

MIRROR_VARIABLE = "COMPERDIAL_MIRROR"
RAW = Path("data/raw")

_ATTEMPTS = 5
# The most that a download of unknown size may bring.
_LIMIT = 2**30
_RETRY_STATUS = frozenset({408, 429, 500, 502, 503, 504})
# The header in which the Hugging Face hub names the commit of a branch.
_COMMIT_HEADER = "X-Repo-Commit"
_HEAD = (
    "# Written by `comperdial fetch` at the first download of a file whose checksum was not known; commit it.\n"
    "# Every later download is held to it. To take a newer upstream file, delete its entry and fetch again.\n"
)


def raw_path(source: Source, raw: Path = RAW) -> Path:
    """Return the path of a fetched file."""
    return raw / source.relative


def status(source: Source, path: Path) -> Literal["present", "missing", "altered", "unpinned"]:
    """Compare the file at ``path`` with its entry in the catalogue; ``unpinned`` if its checksum is not known."""
    if not source.pinned:
        return "unpinned"
    if not path.is_file():
        return "missing"
    return "present" if path.stat().st_size == source.bytes and sha256(path) == source.sha256 else "altered"


def require(source: Source, raw: Path = RAW) -> Path:
    """Return the path of a file whose bytes are the pinned ones; a missing one is fetched.

    Raises
    ------
    SourceError
        When it cannot be fetched, or is altered.
    """
    path = raw_path(source, raw)
    state = status(source, path)
    if state == "missing":
        fetch(source, path)
    elif state != "present":
        expected = f"sha256 {source.sha256}" if source.pinned else "a recorded sha256"
        hint = f"Run `comperdial fetch {source.name}`"
        raise SourceError(f"source {source.name!r} is {state}", where=str(path), expected=expected, hint=hint)
    return path


def require_all(files: Mapping[str, Source], raw: Path = RAW) -> dict[str, Path]:
    """Return the paths of a data set's files by the reader's names for them; see :func:`require`."""
    return {role: require(source, raw) for role, source in files.items()}


def fetch(source: Source, target: Path, *, lock_file: Path | None = None) -> Source:
    """Bring a file to ``target``, checked; do nothing if it is there already.

    With the environment variable ``COMPERDIAL_MIRROR``, a folder laid out ``<owner>/<repository>/<path>``, the network is
    never tried, so that a machine without one fails at once and not after a time-out.

    In ``lock_file``, commit, sha256 and size of a file that is not pinned are recorded; the source is returned with them.
    Files of one repository are taken at one commit: the first one that is recorded decides for the others.

    Raises
    ------
    SourceError
        When the mirror lacks the file, the network does not deliver it whole, it is too large, its bytes are not the
        pinned ones, or it is not pinned and there is no lock file.
    """
    if source.pinned:
        if status(source, target) != "present":
            _bring(source, source.url, target)
        return source
    if lock_file is None:
        problem = f"source {source.name!r} is not pinned yet"
        raise SourceError(problem, where=source.url, expected="its sha256 in the lock file")
    import yaml
    from filelock import FileLock

    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock_file.with_name(f".{lock_file.name}.lock")):
        locked = read_lock(lock_file)
        commits = [pin["commit"] for pin in locked.values() if pin["repository"] == source.repository and pin["commit"]]
        url = source.url.replace(f"/{source.revision}/", f"/{commits[0]}/") if commits else source.url
        # The commit of a mirror's file is not known.
        pin = {"commit": _bring(source, url, target), "sha256": sha256(target), "bytes": target.stat().st_size}
        locked[source.name] = {"repository": source.repository, **pin}
        write_text(lock_file, _HEAD + yaml.safe_dump(locked, sort_keys=True))
    log.info("%s: recorded %s", source.name, ", ".join(f"{name} {value}" for name, value in pin.items()))
    return source.model_copy(update=pin)


def _bring(source: Source, url: str, target: Path) -> str | None:
    """Bring a file to its place if its bytes are right; return the commit that the server names, if it does."""
    commit, mirror = None, os.environ.get(MIRROR_VARIABLE)
    with replacing(target) as temporary:
        if mirror:
            url = str(Path(mirror) / source.relative)
            if not Path(url).is_file():
                hint = f"Copy it from {source.url}, or unset {MIRROR_VARIABLE} to download it"
                problem = f"the mirror has no source {source.name!r}"
                raise SourceError(problem, where=url, expected="the file there", hint=hint)
            shutil.copyfile(url, temporary)
        else:
            commit = _download(source, url, temporary)
            if source.member:
                _unpack(source, temporary)
        if source.pinned and status(source, temporary) != "present":
            hint = "The file upstream is not the one pinned in data/sources.yaml"
            raise SourceError(
                f"source {source.name!r} has sha256 {sha256(temporary)} ({temporary.stat().st_size} bytes)",
                where=url,
                expected=f"sha256 {source.sha256} ({source.bytes} bytes)",
                hint="The mirror's copy is altered or incomplete: copy it anew" if mirror else hint,
            )
    return commit


def _unpack(source: Source, path: Path) -> None:
    """Replace a zip archive by the one member of it that is wanted."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(str(source.member)) as member:
            # No more than the file should have: a small archive can hold a huge one.
            content = member.read((source.bytes or _LIMIT) + 1)
    except (zipfile.BadZipFile, KeyError) as error:
        problem, expected = f"source {source.name!r} is not in the archive", f"a zip archive with {source.member}"
        hint = "The archive upstream is not the one that data/sources.yaml means"
        raise SourceError(problem, where=source.url, expected=expected, hint=hint) from error
    path.write_bytes(content)


def _download(source: Source, url: str, target: Path) -> str | None:
    """Download a file, trying again where that may help; return the commit that the server names, if it does."""
    import requests

    problem, expected = "", "the file over HTTPS"
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _receive(source, url, target)
        except requests.exceptions.InvalidSchema:
            problem, expected = "the server redirects to an address without encryption", "HTTPS all the way"
            break
        except requests.RequestException as error:
            # Without a response the connection failed or was cut.
            answer = error.response
            reason = type(error).__name__ if answer is None else f"{answer.status_code} {answer.reason}"
            if answer is not None and answer.status_code not in _RETRY_STATUS:
                problem = f"the server answers {reason}"
                break
            problem = f"could not be downloaded in {attempt} attempts ({reason})"
        if attempt < _ATTEMPTS:
            asked = answer.headers.get("Retry-After", "") if answer is not None else ""
            pause = max(min(float(asked), 60) if asked.isdigit() else 0, 0.5 * 2 ** (attempt - 1))
            log.warning("%s: %s; trying again in %g s", source.name, reason, pause)
            time.sleep(pause)
    hint = f"If the file moved, correct data/sources.yaml; without a network, set {MIRROR_VARIABLE} to a folder that holds "
    raise SourceError(
        f"source {source.name!r}: {problem}", where=url, expected=expected, hint=hint + str(source.relative)
    )


def _receive(source: Source, url: str, target: Path) -> str | None:
    """Receive a file, or as much of it as may come; return the commit that the server names, if it does."""
    import requests
    from tqdm import tqdm

    most = source.bytes or _LIMIT
    with requests.Session() as session, target.open("wb") as file:
        if url.startswith("https:"):
            # Else a redirect could lead to HTTP, where anyone on the way can put other bytes in.
            del session.adapters["http://"]
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
                    bar.update(file.write(chunk))
                    if max(size, file.tell()) > most:
                        break
            # Of a pinned file that is too large the checksum will be wrong.
            if max(size, file.tell()) > most and not source.pinned:
                raise SourceError(
                    f"source {source.name!r} has more than {most / 2**30:.4g} GiB, the limit for a file of unknown size",
                    where=url,
                    expected="the file that the catalogue names",
                    hint="If it is to be that large, record its commit, sha256 and size in data/sources.yaml",
                )
            return next(filter(None, (part.headers.get(_COMMIT_HEADER) for part in (*answer.history, answer))), None)
