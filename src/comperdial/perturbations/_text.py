"""Texts as pieces, losslessly: words, clitics ("n't", "'m"), marks, each with the white space before it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LETTER = r"[^\W\d_]"
# Some corpora are tokenised as "do n't", some as "don ' t".
_NOT = r"n ?['’] ?t\b"
_CLITIC = r"['’] ?(?:m|re|s|ve|ll|d)\b"
_PIECE = re.compile(
    rf"(\s*)({_NOT}|{_CLITIC}|{_LETTER}+?(?={_NOT})|{_LETTER}+(?:-{_LETTER}+)*|\d[\d.,:]*\d|\d|\S)",
    re.IGNORECASE,
)
_SENTENCE_END = {".", "!", "?", ";", "…"}
_SPACED_MARK = re.compile(r"\w [.,?!]")
_SPACED_CLITIC = re.compile(r"\w (?:n['’]t|['’](?:m|re|s|ve|ll|d))\b", re.IGNORECASE)
_UNSPACED_MARK = re.compile(r"(?<=\w)([.,?!])")


@dataclass
class Piece:
    """A word, clitic, number or mark with the white space before it."""

    gap: str
    text: str

    @property
    def low(self) -> str:
        """Return the text in lower case, with a straight apostrophe and without spaces."""
        return self.text.lower().replace("’", "'").replace(" ", "")

    @property
    def is_word(self) -> bool:
        """Say whether it is made of letters."""
        return self.text[0].isalpha() and self.low != "n't"


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that stands for a list of them."""
    return frozenset(text.split())


def split(text: str) -> list[Piece]:
    """Cut a text into pieces; :func:`join` puts it together again, but for white space at its end."""
    return [Piece(gap, piece) for gap, piece in _PIECE.findall(text)]


def join(pieces: list[Piece]) -> str:
    """Put pieces together, without white space at the ends."""
    return "".join(piece.gap + piece.text for piece in pieces).strip()


def sentences(pieces: list[Piece]) -> list[list[Piece]]:
    """Group pieces by sentence; each ends with its marks."""
    groups: list[list[Piece]] = [[]]
    for piece in pieces:
        last = groups[-1]
        if last and last[-1].text in _SENTENCE_END and piece.text not in _SENTENCE_END | {'"', "'", "”", "’", ")"}:
            groups.append([])
        groups[-1].append(piece)
    return [group for group in groups if group]


def tidy(text: str) -> str:
    """Return a text with single spaces and none at its ends."""
    return " ".join(text.split())


def same(one: str, other: str) -> bool:
    """Say whether two texts differ in white space and case at most."""
    return one.casefold().split() == other.casefold().split()


def like(word: str, model: str) -> str:
    """Return a word with the capitals of another."""
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def is_lower(text: str) -> bool:
    """Say whether a text does without capitals."""
    return text == text.lower()


def clitic_gap(text: str) -> str:
    """Return what stands before a clitic in a text: nothing, or a space in tokenised texts ("do n't")."""
    return " " if _SPACED_CLITIC.search(text) else ""


def dressed(text: str, model: str) -> str:
    """Write a text as another is written: in lower case, with a space before marks."""
    if is_lower(model) and any(c.isalpha() for c in model):
        text = text.lower()
    return _UNSPACED_MARK.sub(r" \1", text) if _SPACED_MARK.search(model) else text


def capitalised(text: str, model: str) -> str:
    """Begin a text with a capital, unless another text does without capitals."""
    return text if is_lower(model) else text[:1].upper() + text[1:]
