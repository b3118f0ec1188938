"""Public files by name: from a mirror folder or over HTTPS; none gets its final name before its checksum fits."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from comperdial.catalogue import Source
from comperdial.errors import SourceError
from comperdial.files import check_output, replacing, sha256

if TYPE_CHECKING:
    from requests import Session

log = logging.getLogger(__name__)

MIRROR_VARIABLE = "COMPERDIAL_MIRROR"
RAW = Path("data/raw")

_CHUNK = 1 << 18
RETRY_STATUS = frozenset({408, 429, 500, 502, 503, 504})


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
    """Return where a fetched file lies, once its bytes are known to be the ones pinned.

    Raises
    ------
    SourceError
        When it is missing or altered.
    """
    path = raw_path(source, raw)
    found = status(source, path)
    if found != "present":
        raise SourceError(
            f"source {source.name!r} is {found}",
            where=str(path),
            expected=f"sha256 {source.sha256}" if source.pinned else "a recorded sha256",
            hint=f"Run `comperdial fetch {source.name}`",
        )
    return path


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
    if not source.pinned:
        raise SourceError(
            f"source {source.name!r} is not pinned yet", where=source.url, expected="its sha256 in the lock file"
        )
    if status(source, target) == "present":
        return
    if origin := in_mirror(source, mirror):
        with replacing(target) as temporary:
            shutil.copyfile(origin, temporary)
            _verify(source, temporary, str(origin), "The mirror's copy is altered or incomplete: copy it anew")
    else:
        _download(source, target, attempts)


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


@contextmanager
def session(source: Source, url: str) -> Iterator[Session]:
    """Give a session in which HTTPS never leads to HTTP, where anyone on the way can put other bytes in.

    Raises
    ------
    SourceError
        When a server redirects to an address that is not HTTPS.
    """
    import requests

    with requests.Session() as opened:
        if url.startswith("https:"):
            del opened.adapters["http://"]
        try:
            yield opened
        except requests.exceptions.InvalidSchema as error:
            raise SourceError(
                f"source {source.name!r}: the server redirects to an address without encryption",
                where=url,
                expected="HTTPS all the way",
                hint=f"If it moved, correct data/sources.yaml; or set {MIRROR_VARIABLE} to a folder that has it",
            ) from error


def unreachable(source: Source, url: str, attempts: int, reason: str) -> SourceError:
    """Return the error for a file that the network did not give."""
    return SourceError(
        f"source {source.name!r} could not be downloaded in {attempts} attempts (last: {reason})",
        where=url,
        expected="an answer over HTTPS",
        hint=f"Without a network, set {MIRROR_VARIABLE} to a folder that holds {source.relative}",
    )


def refused(source: Source, url: str, status: str) -> SourceError:
    """Return the error for an answer that no further attempt would change."""
    return SourceError(
        f"source {source.name!r}: the server answers {status}",
        where=url,
        expected="the file",
        hint=f"If it moved, correct data/sources.yaml; or set {MIRROR_VARIABLE} to a folder that has it",
    )


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


def _download(source: Source, target: Path, attempts: int) -> None:
    import requests

    target = check_output(target)
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
            raise unreachable(source, source.url, attempts, reason)
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
    from tqdm import tqdm

    have = part.stat().st_size if part.exists() else 0
    if have >= source.bytes:
        part.unlink()
        have = 0
    # Not compressed: a range counts the bytes that travel, and we count the bytes of the file.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with (
        session(source, source.url) as opened,
        opened.get(source.url, headers=headers, stream=True, timeout=(10, 60)) as answer,
    ):
        if answer.status_code in RETRY_STATUS:
            after = answer.headers.get("Retry-After", "")
            return min(float(after), 60.0) if after.isdigit() else 0.0
        if answer.status_code == 416 and have:
            part.unlink()
            return 0.0
        if answer.status_code not in (200, 206):
            raise refused(source, source.url, f"{answer.status_code} {answer.reason}")
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
                if file.tell() > source.bytes:
                    break
            complete = file.tell() >= source.bytes
    return None if complete else 0.0
