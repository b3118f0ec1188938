"""The least common synonyms of words in WordNet, from its files (formats: manual pages wndb(5WN), senseidx(5WN)).

The senses of a word stand in the order of how often people used them in WordNet's tagged texts, and ``cntlist.rev``
says how often. nltk knows the same, but takes seconds to load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from comperdial.perturbations._generic import STOP_WORDS
from comperdial.perturbations._verbs import ing_of, past_of, with_s
from comperdial.wordnet import entries, offsets, read_files, synset, synset_names

_PARTS = {"noun": "1", "verb": "2", "adj": "3", "adv": "4"}
# Satellites of adjectives count as adjectives.
_KINDS = {"1": "noun", "2": "verb", "3": "adj", "4": "adv", "5": "adj"}
# Ending -> what may stand in its place in the base (manual page morphy(7WN)), and the form that it makes.
_ENDINGS = {
    "noun": "ches:ch:s shes:sh:s xes:x:s ses:s:s ies:y:s s::s",
    "verb": "ies:y:s es:e:s es::s s::s ied:y:ed ed:e:ed ed::ed ing:e:ing ing::ing",
    "adj": "",
    "adv": "",
}
_RULES = {part: [rule.split(":") for rule in rules.split()] for part, rules in _ENDINGS.items()}
_INFLECT: dict[str, Callable[[str], str]] = {"": str, "s": with_s, "ed": past_of, "ing": ing_of}
# A synset says by this pointer how its words are used: as slang, as an insult.
_USAGE = ";u"


class Lexicon:
    """A WordNet's words with their commonest senses.

    Parameters
    ----------
    path
        A folder with WordNet's files, or a zip archive of one.
    """

    def __init__(self, path: Path) -> None:
        files = read_files(path, _files())
        self._data = {part: files[f"data.{part}"] for part in _PARTS}
        self._index = {part: dict(line.split(" ", 1) for line in entries(files[f"index.{part}"])) for part in _PARTS}
        self._irregular = {
            part: {form: bases[0] for form, *bases in map(str.split, entries(files[f"{part}.exc"])) if bases}
            for part in _PARTS
        }
        self._uses: Counter[tuple[str, str]] = Counter()
        for line in entries(files["cntlist.rev"]):
            key, _, count = line.split()
            word, _, rest = key.partition("%")
            self._uses[word, _KINDS[rest[0]]] += int(count)
        self.rarest = lru_cache(maxsize=16_384)(self._rarest)

    def _rarest(self, word: str) -> str | None:
        """Return the least common synonym of a lower-case word, inflected as it is; None when there is none.

        The word is taken for what it most often is: noun, verb, adjective or adverb, of the endings that it may have.
        Of the names of its commonest sense, those count that are one lower-case word, rarer than the word, and no
        spelling or extension of it. The least often used in WordNet's tagged texts is taken, of equally rare ones the
        longest, of these the first by the alphabet.
        """
        readings = [(self._uses[base, part], part, base, form) for part, base, form in self._readings(word)]
        if not readings:
            return None
        # Nouns first where no text says what a word mostly is.
        _, part, base, form = max(readings, key=lambda reading: (reading[0], -list(_PARTS).index(reading[1])))
        most = max(self._uses[base, part] - 1, 0)
        names = sorted(
            (self._uses[name, part], -len(name), name)
            for name in self._first_sense(part, base)
            if name.isalpha()
            and name.islower()
            and name not in STOP_WORDS
            and not _alike(name, base)
            and self._uses[name, part] <= most
        )
        return _INFLECT[form](names[0][2]) if names else None

    def _readings(self, word: str) -> Iterator[tuple[str, str, str]]:
        for part in _PARTS:
            index = self._index[part]
            if word in index:
                yield part, word, ""
            if word in self._irregular[part]:
                form = {"noun": "s", "verb": "ing" if word.endswith("ing") else "ed"}.get(part)
                if form and self._irregular[part][word] in index:
                    yield part, self._irregular[part][word], form
                continue
            for old, new, form in _RULES[part]:
                base = word.removesuffix(old) + new
                if word.endswith(old) and base in index:
                    yield part, base, form
                    break

    def _first_sense(self, part: str, base: str) -> list[str]:
        line = synset(self._data[part], offsets(self._index[part][base])[0])
        # Behind the bar stands what the synset means.
        return [] if _USAGE in line.partition("|")[0].split() else synset_names(line)


def _alike(one: str, other: str) -> bool:
    """Say whether one word is a spelling of the other ("colour", "color"), or goes on from it ("floor", "flooring")."""
    first, second = (word.replace("z", "s").replace("our", "or").replace("ll", "l") for word in (one, other))
    return first.startswith(second) or second.startswith(first) or first.removesuffix("e") == second.removesuffix("e")


def _files() -> list[str]:
    return [f"{kind}.{part}" for kind in ("data", "index") for part in _PARTS] + [
        *(f"{part}.exc" for part in _PARTS),
        "cntlist.rev",
    ]


@lru_cache(maxsize=1)
def lexicon(path: str) -> Lexicon:
    """Return the lexicon of a WordNet, read once."""
    return Lexicon(Path(path))
