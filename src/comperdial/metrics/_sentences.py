"""nltk's English sentence splitter: whether its data are on this machine, and which bytes they are."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Sequence

from comperdial.core.errors import MissingResourceError
from comperdial.data import wordnet

_PLACE = "tokenizers/punkt_tab"
_FILES = ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")


def checksum() -> str:
    """Return 12 hex digits of a SHA-256 over the files of ``punkt_tab`` for English; ``absent`` where there are none.

    Files are looked for as nltk does: unpacked in any of its roots, then in an archive.
    """
    for root in wordnet.roots():
        folder = root / _PLACE / "english"
        if folder.is_dir():
            # nltk looks no further, whatever is in it.
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
    """Say so when the data are not on this machine."""
    return "nltk's punkt_tab, which splits sentences, is not on this machine" if checksum() == "absent" else None


def splitter(kind: str) -> Callable[[str], Sequence[str]]:
    """Return what makes sentences of a text.

    Parameters
    ----------
    kind
        ``punkt``: with the data; ``untrained``: without.

    Raises
    ------
    MissingResourceError
        When the data are wanted and not there.
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
