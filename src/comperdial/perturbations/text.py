"""Tokenize texts without loss, and look up English word forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

from comperdial.config import load_yaml

WORDS = load_yaml(Path(__file__).with_name("words.yaml"))
STOP_WORDS = frozenset(WORDS["stop_words"].split())
_LETTER = r"[^\W\d_]"
# Some corpora are tokenized as "do n't", some as "don ' t".
_NOT = r"n ?['’] ?t\b"
_CLITIC = r"['’] ?(?:m|re|s|ve|ll|d)\b"
_PIECE = re.compile(
    rf"(\s*)({_NOT}|{_CLITIC}|{_LETTER}+?(?={_NOT})|{_LETTER}+(?:-{_LETTER}+)*|\d[\d.,:]*\d|\d|\S)", re.IGNORECASE
)
_SENTENCE_END = {".", "!", "?", ";", "…"}


def words(strategy: str) -> SimpleNamespace:
    """Return a strategy's word lists, by their names in ``words.yaml``; a text becomes a set of words."""
    known = WORDS[strategy].items()
    return SimpleNamespace(**{name: frozenset(of.split()) if isinstance(of, str) else of for name, of in known})


@dataclass
class Piece:
    """A word, clitic ("n't", "'m"), number or punctuation mark with its preceding white space."""

    gap: str
    text: str

    @property
    def low(self) -> str:
        """Return the text in lower case, with a straight apostrophe and without spaces."""
        return self.text.lower().replace("’", "'").replace(" ", "")

    @property
    def is_word(self) -> bool:
        """Return whether it consists of letters."""
        return self.text[0].isalpha() and self.low != "n't"

    @property
    def is_clitic(self) -> bool:
        """Return whether it is a clitic such as "'m", but not "n't"."""
        return self.low[0] == "'" and len(self.low) > 1


def split(text: str) -> list[Piece]:
    """Split a text into pieces; :func:`join` restores it, without surrounding white space."""
    return [Piece(gap, piece) for gap, piece in _PIECE.findall(text)]


def join(pieces: list[Piece]) -> str:
    """Join pieces, without surrounding white space."""
    return "".join(piece.gap + piece.text for piece in pieces).strip()


def sentences(pieces: list[Piece]) -> list[list[Piece]]:
    """Group pieces by sentence, including final punctuation."""
    groups: list[list[Piece]] = []
    for piece in pieces:
        ended = groups and groups[-1][-1].text in _SENTENCE_END
        if not groups or (ended and piece.text not in _SENTENCE_END | {'"', "'", "”", "’", ")"}):
            groups.append([])
        groups[-1].append(piece)
    return groups


def same(one: str, other: str) -> bool:
    """Return whether two texts differ at most in white space and case."""
    return one.casefold().split() == other.casefold().split()


def capitalised(text: str) -> str:
    """Capitalize the first letter of a text."""
    return text[:1].upper() + text[1:]


def like(word: str, model: str) -> str:
    """Return a word with the capitalization of another."""
    if model.isupper() and len(model) > 1:
        return word.upper()
    return capitalised(word) if model[:1].isupper() else word


def article(old: str, word: str) -> str:
    """Return "a" or "an" to fit a word, if ``old`` is either; otherwise ``old``."""
    return like("an" if word[0].lower() in "aeiou" else "a", old) if old.lower() in {"a", "an"} else old


def dressed(text: str, model: str) -> str:
    """Convert a text to the style of another: lower case, spaces before punctuation."""
    if model == model.lower() and any(c.isalpha() for c in model):
        text = text.lower()
    return re.sub(r"(?<=\w)([.,?!])", r" \1", text) if re.search(r"\w [.,?!]", model) else text


# lemminflect takes 0.4 s to import, so import it only when needed.


@lru_cache(maxsize=16_384)
def lemmas(word: str) -> Mapping[str, tuple[str, ...]]:
    """Return the possible lemmas of a word, by part of speech (``NOUN``, ``VERB``, ``ADJ``, ``ADV``)."""
    from lemminflect import getAllLemmas

    return dict(getAllLemmas(word))


def forms(lemma: str, tag: str, *, guess: bool = True) -> tuple[str, ...]:
    """Return the forms of a lemma with a Penn Treebank tag; with ``guess``, also those of unknown words, by rules."""
    from lemminflect import getInflection

    return tuple(getInflection(lemma, tag, inflect_oov=guess))


@lru_cache(maxsize=4096)
def verb_of(word: str, tag: str) -> str | None:
    """Return the (most common) verb of which a lower-case word is the form ``VB``, ``VBD``, ``VBN`` or ``VBZ``, or None."""
    from lemminflect import getLemma

    # A word missing from the dictionary may be a verb.
    bases = getLemma(word, "VERB", lemmatize_oov=not lemmas(word))
    return bases[0] if bases and bases[0] and word in forms(bases[0], tag) else None


def is_participle(word: str) -> bool:
    """Return whether a lower-case word may be a past participle, including "showed" and "got"."""
    return bool(verb_of(word, "VBN") or verb_of(word, "VBD"))
