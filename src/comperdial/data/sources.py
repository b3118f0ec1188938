"""Fetch public files from a mirror folder or over HTTPS; files get their final name only after their checksum is verified.

The first download of a file without a known checksum records it in the lock file; later downloads must match.
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
# Size limit for downloads of unknown size.
_LIMIT = 2**30
_RETRY_STATUS = frozenset({408, 429, 500, 502, 503, 504})
# Header in which the Hugging Face hub returns the commit of a branch.
_COMMIT_HEADER = "X-Repo-Commit"
_HEAD = (
    "# Written by `comperdial fetch` at the first download of a file whose checksum was not known; commit it.\n"
    "# Every later download is held to it. To take a newer upstream file, delete its entry and fetch again.\n"
)


def raw_path(source: Source, raw: Path = RAW) -> Path:
    """Return the local path of a fetched file."""
    return raw / source.relative


def status(source: Source, path: Path) -> Literal["present", "missing", "altered", "unpinned"]:
    """Compare a local file with its catalogue entry; ``unpinned`` if its checksum is unknown."""
    if not source.pinned:
        return "unpinned"
    if not path.is_file():
        return "missing"
    return "present" if path.stat().st_size == source.bytes and sha256(path) == source.sha256 else "altered"


def require(source: Source, raw: Path = RAW) -> Path:
    """Return the path of a file that matches its checksum; fetch it if missing.

    Raises
    ------
    SourceError
        If it cannot be fetched, or is altered.
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
    """Return the paths of a data set's files by the reader's names; see :func:`require`."""
    return {role: require(source, raw) for role, source in files.items()}


def fetch(source: Source, target: Path, *, lock_file: Path | None = None) -> Source:
    """Fetch a file to ``target`` and verify it; do nothing if it exists.

    If the environment variable ``COMPERDIAL_MIRROR`` names a folder with the layout ``<owner>/<repository>/<path>``, the
    network is never used, so that offline machines fail at once without a timeout.

    For a file that is not pinned, commit, sha256 and size are recorded in ``lock_file`` and added to the returned source.
    All files of a repository use the first recorded commit.

    Raises
    ------
    SourceError
        If the mirror lacks the file, the download fails or is incomplete, it is too large, its checksum does not match, or
        it is not pinned and there is no lock file.
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
        # The commit of a file from a mirror is unknown.
        pin = {"commit": _bring(source, url, target), "sha256": sha256(target), "bytes": target.stat().st_size}
        locked[source.name] = {"repository": source.repository, **pin}
        write_text(lock_file, _HEAD + yaml.safe_dump(locked, sort_keys=True))
    log.info("%s: recorded %s", source.name, ", ".join(f"{name} {value}" for name, value in pin.items()))
    return source.model_copy(update=pin)


def _bring(source: Source, url: str, target: Path) -> str | None:
    """Fetch a file and move it into place if it is correct; return the commit if the server gives one."""
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
                hint="The mirror's copy is altered or incomplete: copy it again" if mirror else hint,
            )
    return commit


def _unpack(source: Source, path: Path) -> None:
    """Replace a zip archive by its requested member."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(str(source.member)) as member:
            # Limit the size read: a small archive can expand to a huge file.
            content = member.read((source.bytes or _LIMIT) + 1)
    except (zipfile.BadZipFile, KeyError) as error:
        problem, expected = f"source {source.name!r} is not in the archive", f"a zip archive with {source.member}"
        hint = "The archive upstream is not the one in data/sources.yaml"
        raise SourceError(problem, where=source.url, expected=expected, hint=hint) from error
    path.write_bytes(content)


def _download(source: Source, url: str, target: Path) -> str | None:
    """Download a file, retrying where that may help; return the commit if the server gives one."""
    import requests

    problem, expected = "", "the file over HTTPS"
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _receive(source, url, target)
        except requests.exceptions.InvalidSchema:
            problem, expected = "the server redirects to an unencrypted address", "only HTTPS"
            break
        except requests.RequestException as error:
            # Without a response, the connection failed or was cut.
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
    hint = f"If the file moved, correct data/sources.yaml; without a network, set {MIRROR_VARIABLE} to a folder that contains "
    raise SourceError(
        f"source {source.name!r}: {problem}", where=url, expected=expected, hint=hint + str(source.relative)
    )


def _receive(source: Source, url: str, target: Path) -> str | None:
    """Receive a file up to its size limit; return the commit if the server gives one."""
    import requests
    from tqdm import tqdm

    most = source.bytes or _LIMIT
    with requests.Session() as session, target.open("wb") as file:
        if url.startswith("https:"):
            # Otherwise a redirect could lead to plain HTTP, where others can tamper with the file.
            del session.adapters["http://"]
        # Uncompressed, so that sizes match the file.
        headers = {"Accept-Encoding": "identity"}
        with session.get(url, headers=headers, stream=True, timeout=(10, 60)) as answer:
            if answer.status_code != requests.codes.ok:
                raise requests.HTTPError(response=answer)
            stated = answer.headers.get("Content-Length", "")
            size = int(stated) if stated.isdecimal() else 0
            with tqdm(total=size or None, unit="B", unit_scale=True, desc=source.name, disable=None) as bar:
                # requests raises an error for a truncated body.
                for chunk in answer.iter_content(1 << 18):
                    bar.update(file.write(chunk))
                    if max(size, file.tell()) > most:
                        break
            # If a pinned file is too large, its checksum fails anyway.
            if max(size, file.tell()) > most and not source.pinned:
                raise SourceError(
                    f"source {source.name!r} has more than {most / 2**30:.4g} GiB, the limit for a file of unknown size",
                    where=url,
                    expected="the file in the catalogue",
                    hint="If this size is correct, record its commit, sha256 and size in data/sources.yaml",
                )
            return next(filter(None, (part.headers.get(_COMMIT_HEADER) for part in (*answer.history, answer))), None)
