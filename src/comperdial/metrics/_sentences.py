"""nltk's English sentence splitter, with the availability and checksum of its data."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Sequence

from comperdial.core.errors import MissingResourceError
from comperdial.data import wordnet

_PLACE = "tokenizers/punkt_tab"
_FILES = ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")


def checksum() -> str:
    """Return 12 hex digits of the SHA-256 of the English ``punkt_tab`` files, or ``absent`` if they are missing.

    As in nltk, unpacked files in any of its roots come before archives.
    """
    for root in wordnet.roots():
        folder = root / _PLACE / "english"
        if folder.is_dir():
            # nltk stops at the first folder, even if it is incomplete.
            whole = all((folder / name).is_file() for name in _FILES)
            return _combine([(folder / name).read_bytes() for name in _FILES]) if whole else "absent"
    for root in wordnet.roots():
        archive = root / f"{_PLACE}.zip"
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as content:
                names = [f"punkt_tab/english/{name}" for name in _FILES]
                whole = set(names) <= set(content.namelist())
                return _combine([content.read(name) for name in names]) if whole else "absent"
    return "absent"


def _combine(contents: Sequence[bytes]) -> str:
    lines = "".join(f"{hashlib.sha256(content).hexdigest()}\n" for content in contents)
    return hashlib.sha256(lines.encode()).hexdigest()[:12]


def missing() -> str | None:
    """Return a message if the data are missing, else None."""
    return "nltk's punkt_tab, which splits sentences, is not on this machine" if checksum() == "absent" else None


def splitter(kind: str) -> Callable[[str], Sequence[str]]:
    """Return a function that splits a text into sentences.

    Parameters
    ----------
    kind
        ``punkt``: with nltk's data; ``untrained``: without.

    Raises
    ------
    MissingResourceError
        If ``punkt`` is requested and its data are missing.
    """
    if kind == "punkt" and (problem := missing()):
        raise MissingResourceError(
            problem,
            hint="Run `python -m nltk.downloader punkt_tab`, or set the metric's option `sentences: untrained`",
        )
    from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTokenizer

    tokenize: Callable[[str], Sequence[str]] = (
        PunktTokenizer("english") if kind == "punkt" else PunktSentenceTokenizer()
    ).tokenize
    return tokenize
