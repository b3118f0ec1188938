"""The first download of a file whose checksum nobody here has seen: what came is recorded and held to."""

from __future__ import annotations

import dataclasses
import logging
import math
import os
import shutil
import time
from pathlib import Path
from typing import Any

from comperdial.catalogue import Source, read_lock
from comperdial.errors import ConfigError, SourceError
from comperdial.files import replacing, sha256, write_text
from comperdial.sources import RETRY_STATUS, in_mirror, refused, session, unreachable

LIMIT_VARIABLE = "COMPERDIAL_MAX_DOWNLOAD"
_GIB = 1

log = logging.getLogger(__name__)

# The header in which the Hugging Face hub names the commit that a branch stood at.
_COMMIT_HEADER = "X-Repo-Commit"


def lock(
    source: Source, target: Path, lock_file: Path, *, mirror: str | Path | None = None, attempts: int = 5
) -> Source:
    """Bring an unpinned file to ``target`` and record its commit, sha256 and size in the lock file.

    Files of one repository are taken at one commit: the first one that is recorded decides for the others.

    Returns
    -------
    Source
        The same source, pinned.

    Raises
    ------
    SourceError
        When the mirror lacks the file, or the network does not give it whole or gives more than the limit.
    ConfigError
        When the limit is no number.
    """
    origin = in_mirror(source, mirror)
    locked = read_lock(lock_file)
    commit: str | None = None
    with replacing(target) as temporary:
        if origin:
            shutil.copyfile(origin, temporary)
        else:
            commit = _download(source, _commit_of(source, locked), temporary, attempts)
        pins: dict[str, Any] = {
            "repository": source.repository,
            "commit": commit,
            "sha256": sha256(temporary),
            "bytes": temporary.stat().st_size,
        }
    _record(lock_file, locked | {source.name: pins})
    log.info("%s: recorded sha256 %s (%d bytes, commit %s)", source.name, pins["sha256"], pins["bytes"], commit)
    return dataclasses.replace(source, commit=commit or "", sha256=pins["sha256"], bytes=pins["bytes"])


def _commit_of(source: Source, locked: dict[str, dict[str, Any]]) -> str | None:
    return next((p["commit"] for p in locked.values() if p["repository"] == source.repository and p["commit"]), None)


def _record(path: Path, locked: dict[str, dict[str, Any]]) -> None:
    import yaml

    head = (
        "# Written by `comperdial fetch` at the first download of a file whose checksum was not known; commit it.\n"
        "# Every later download is held to it. To take a newer upstream file, delete its entry and fetch again.\n"
    )
    write_text(path, head + yaml.safe_dump(locked, sort_keys=True))


def _most_bytes() -> float:
    """Return how much a download of a file may bring whose size nobody has recorded."""
    given = os.environ.get(LIMIT_VARIABLE) or _GIB
    try:
        found = float(given)
    except ValueError:
        found = 0.0
    if not 0 < found < math.inf:
        raise ConfigError(repr(given), where=LIMIT_VARIABLE, expected="a number of GiB above 0")
    return found * 2**30


def _too_large(source: Source, url: str, most: float) -> SourceError:
    return SourceError(
        f"source {source.name!r} has more than {most / 2**30:.4g} GiB, the limit for a file of unknown size",
        where=url,
        expected="the file that the catalogue names",
        hint=f"Set {LIMIT_VARIABLE} to more GiB if it is to be that large",
    )


def _download(source: Source, commit: str | None, target: Path, attempts: int) -> str | None:
    """Download whole, and return the commit that the server names; the one asked for, if it names none."""
    import requests
    from tqdm import tqdm

    url = source.url
    if commit and source.revision:
        url = url.replace(f"/{source.revision}/", f"/{commit}/")
    reason, most = "", _most_bytes()
    for attempt in range(1, attempts + 1):
        try:
            headers = {"Accept-Encoding": "identity"}
            with (
                session(source, url) as opened,
                opened.get(url, headers=headers, stream=True, timeout=(10, 60)) as answer,
            ):
                if answer.status_code == 200:
                    stated = answer.headers.get("Content-Length", "")
                    expected = int(stated) if stated.isdecimal() else 0
                    if expected > most:
                        raise _too_large(source, url, most)
                    named = [a.headers.get(_COMMIT_HEADER) for a in (*answer.history, answer)]
                    bar = tqdm(total=expected or None, unit="B", unit_scale=True, desc=source.name, disable=None)
                    with target.open("wb") as file, bar:
                        for chunk in answer.iter_content(1 << 18):
                            file.write(chunk)
                            bar.update(len(chunk))
                            if file.tell() > most:
                                raise _too_large(source, url, most)
                    if not expected or target.stat().st_size == expected:
                        return next((name for name in named if name), commit)
                    reason = f"{target.stat().st_size} of {expected} bytes"
                elif answer.status_code not in RETRY_STATUS:
                    raise refused(source, url, f"{answer.status_code} {answer.reason}")
                else:
                    reason = f"status {answer.status_code}"
        except requests.RequestException as error:
            reason = type(error).__name__
        if attempt < attempts:
            time.sleep(0.5 * 2 ** (attempt - 1))
    raise unreachable(source, url, attempts, reason)
