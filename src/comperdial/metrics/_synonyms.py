"""Synonyms as nltk finds them in WordNet, read from WordNet's files (format: manual page wndb(5WN)).

nltk takes seconds and hundreds of megabytes to load WordNet, and makes objects of all relations of each synset that it
meets. METEOR needs names only. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from comperdial.data.wordnet import read_files

# Endings and what nltk's `morphy` puts in their place: the rules of detachment of manual page morphy(7WN).
_ENDINGS = {
    "noun": "s: ses:s ves:f xes:x zes:z ches:ch shes:sh men:man ies:y",
    "verb": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "adj": "er: est: er:e est:e",
    "adv": "",
}


class _WordClass:
    """The words of one of WordNet's four parts."""

    def __init__(self, name: str, files: Mapping[str, bytes]) -> None:
        self._data = files[f"data.{name}"]
        self._index = dict(line.split(" ", 1) for line in _entries(files[f"index.{name}"]))
        self._irregular = {form: bases for form, *bases in map(str.split, _entries(files[f"{name}.exc"]))}
        self._endings = [ending.split(":") for ending in _ENDINGS[name].split()]

    def names(self, word: str) -> Iterator[str]:
        """Return the names in all synsets of a word and of what it may be an inflection of."""
        bases = self._irregular.get(word)
        if bases is None:
            bases = [word.removesuffix(old) + new for old, new in self._endings if word.endswith(old)]
        for form in {word, *bases}:
            if form in self._index:
                # The number of synsets comes second, their offsets last.
                fields = self._index[form].split()
                for offset in fields[-int(fields[1]) :]:
                    yield from self._synset(int(offset))

    def _synset(self, offset: int) -> list[str]:
        """Return the names in a synset; those of several words have "_" between them."""
        fields = self._data[offset : self._data.index(b"\n", offset)].decode().split()
        # Fourth the number of names, in hexadecimal digits; then each with a number. Adjectives may end in "(p)".
        return [name.partition("(")[0] for name in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]


def _entries(content: bytes) -> list[str]:
    """Return the lines of a file, without the licence, which stands before them, indented."""
    return [line for line in content.decode().split("\n") if line and not line.startswith(" ")]


class Thesaurus:
    """The synonyms of words in a WordNet, each looked up once while it is remembered.

    Parameters
    ----------
    path
        A folder with WordNet's files, or a zip archive of one.
    """

    def __init__(self, path: Path) -> None:
        names = [name for part in _ENDINGS for name in (f"data.{part}", f"index.{part}", f"{part}.exc")]
        files = read_files(path, names)
        self._classes = [_WordClass(part, files) for part in _ENDINGS]
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
