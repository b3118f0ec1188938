"""What the Hugging Face hub, or a mirror of it, has of a file, before the file itself is asked for."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin, urlsplit

from comperdial import sources
from comperdial.catalogue import Source

if TYPE_CHECKING:
    from requests import Response

HUB = "https://huggingface.co"

_HOPS = 5


@dataclass(frozen=True)
class Offer:
    """A file that is there: the commit it is of, and, of a large file, its checksum and size."""

    commit: str | None = None
    sha256: str = ""
    bytes: int = 0


def url(repository: str, revision: str, path: str) -> str:
    """Return where a file of a repository lies, at a commit, branch or pull request (``refs/pr/1``)."""
    return f"{HUB}/{repository}/resolve/{quote(revision, safe='')}/{path}"


def offer(source: Source, mirror: str | Path | None, *, optional: bool, attempts: int = 5) -> Offer | None:
    """Ask whether a file is there; return None for an optional one that is not.

    The hub names the SHA-256 and the size of large files in its headers, so that their download can be checked, and
    can go on where it stopped, even the first time.

    Raises
    ------
    SourceError
        When a file that is not optional is not there, or the network gives no answer.
    """
    import requests

    if mirror:
        if optional and not (Path(mirror) / source.relative).is_file():
            return None
        sources.in_mirror(source, mirror)
        return Offer()
    reason = ""
    for attempt in range(1, attempts + 1):
        try:
            answer = _head(source.url)
        except requests.RequestException as error:
            reason = type(error).__name__
        else:
            if answer.status_code == 404 and optional:
                return None
            if answer.status_code < 400:
                return _read(answer)
            if answer.status_code not in sources.RETRY_STATUS:
                raise sources.refused(source, source.url, f"{answer.status_code} {answer.reason}")
            reason = f"status {answer.status_code}"
        if attempt < attempts:
            time.sleep(0.5 * 2 ** (attempt - 1))
    raise sources.unreachable(source, source.url, attempts, reason)


def _head(address: str) -> Response:
    """Ask for the headers, through the hub's own redirects but not to where it keeps large files."""
    import requests

    for _ in range(_HOPS):
        answer = requests.head(
            address, headers={"Accept-Encoding": "identity"}, timeout=(10, 60), allow_redirects=False
        )
        target = answer.headers.get("Location", "")
        if not answer.is_redirect or urlsplit(target).netloc or "X-Repo-Commit" in answer.headers:
            return answer
        address = urljoin(address, target)
    raise requests.TooManyRedirects(f"more than {_HOPS} redirects")


def _read(answer: Response) -> Offer:
    commit = answer.headers.get("X-Repo-Commit")
    etag = answer.headers.get("X-Linked-Etag", "").removeprefix("W/").strip('"')
    size = answer.headers.get("X-Linked-Size", "")
    if re.fullmatch("[0-9a-f]{64}", etag) and size.isdigit() and int(size):
        return Offer(commit, etag, int(size))
    return Offer(commit)
