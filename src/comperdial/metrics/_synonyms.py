"""Synonyms as nltk finds them in WordNet, read from WordNet's files (format: manual page wndb(5WN)).

nltk takes seconds and hundreds of megabytes to load WordNet, and makes objects of all relations of each synset that it
meets. METEOR needs names only. A test compares the two.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

# Endings and what nltk's `morphy` puts in their place: the rules of detachment of manual page morphy(7WN).
_ENDINGS = {
    "noun": "s: ses:s ves:f xes:x zes:z ches:ch shes:sh men:man ies:y",
    "verb": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "adj": "er: est: er:e est:e",
    "adv": "",
}


class _WordClass:
    """The words of one of WordNet's four parts."""

    def __init__(self, name: str, read: Callable[[str], bytes]) -> None:
        self._data = read(f"data.{name}")
        self._index = dict(line.split(" ", 1) for line in _lines(read(f"index.{name}")))
        self._irregular = {form: bases for form, *bases in map(str.split, _lines(read(f"{name}.exc")))}
        self._endings = [ending.split(":") for ending in _ENDINGS[name].split()]

    def names(self, word: str) -> Iterator[str]:
        """Return the names in all synsets of a word and of what it may be an inflection of."""
        bases = self._irregular.get(word)
        if bases is None:
            bases = [word.removesuffix(old) + new for old, new in self._endings if word.endswith(old)]
        for form in {word, *bases}:
            if entry := self._index.get(form):
                # The number of synsets comes second, their offsets in the data file last.
                fields = entry.split()
                for offset in fields[-int(fields[1]) :]:
                    yield from self._synset(int(offset))

    def _synset(self, offset: int) -> Iterator[str]:
        fields = self._data[offset : self._data.index(b"\n", offset)].decode().split()
        # Fourth the number of names, in hexadecimal digits; then each with a number. Adjectives may end in "(p)".
        for name in fields[4 : 4 + 2 * int(fields[3], 16) : 2]:
            yield name.partition("(")[0]


class Thesaurus:
    """The synonyms of words in a WordNet, each looked up once while it is remembered.

    Parameters
    ----------
    path
        A folder with WordNet's files, or a zip archive of one.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                self._classes = [_WordClass(name, lambda file: archive.read(f"wordnet/{file}")) for name in _ENDINGS]
        else:
            self._classes = [_WordClass(name, lambda file: (path / file).read_bytes()) for name in _ENDINGS]
        # About thirty megabytes when full.
        self.synonyms = lru_cache(maxsize=16_384)(self._synonyms)

    def _synonyms(self, word: str) -> frozenset[str]:
        """Return the other names without a space in all synsets of a word."""
        names = {name for part in self._classes for name in part.names(word.lower()) if "_" not in name}
        return frozenset(names - {word})


@lru_cache(maxsize=1)
def thesaurus(path: str) -> Thesaurus:
    """Return the thesaurus of a WordNet, read once."""
    return Thesaurus(Path(path))


def _lines(content: bytes) -> list[str]:
    # WordNet's licence stands before the words, indented.
    return [line for line in content.decode().split("\n") if line and not line.startswith(" ")]
