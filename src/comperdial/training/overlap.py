"""Which training dialogues stand, whole or in part, in data that metrics are evaluated on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from comperdial.data.corpora import Dialogue

_NOT = re.compile(r"\s+n\s*['\u2019]\s*t\b")
_APOSTROPHE = re.compile(r"\s*['\u2019]\s*")


def words(text: str) -> list[str]:
    """Return a text's words as all data sets spell them: lower case, no punctuation, contractions in one piece."""
    text = _NOT.sub("nt", text.lower())
    return re.findall(r"[^\W_]+", _APOSTROPHE.sub("", text))


def ngrams(texts: Iterable[str], size: int) -> set[tuple[str, ...]]:
    """Return the word n-grams of utterances said one after another; they may span several.

    Data that is cut into utterances elsewhere, or short utterances whose sequence is what is told again, are found too.
    """
    said = [word for text in texts for word in words(text)]
    return {tuple(said[start : start + size]) for start in range(len(said) - size + 1)}


def without_overlap(
    dialogues: Sequence[Dialogue], evaluated: Iterable[Sequence[str]], size: int
) -> tuple[list[Dialogue], Counter[str]]:
    """Remove the dialogues that share a word n-gram with evaluation data.

    Parameters
    ----------
    dialogues
        What is to be trained on.
    evaluated
        The texts of the evaluation data, each a list of utterances in order.
    size
        Words in an n-gram.

    Returns
    -------
    tuple
        The dialogues that are left, and how many were removed of each corpus.
    """
    known: set[tuple[str, ...]] = set()
    for texts in evaluated:
        known |= ngrams(texts, size)
    left = []
    removed: Counter[str] = Counter()
    for dialogue in dialogues:
        if known.isdisjoint(ngrams(dialogue.texts, size)):
            left.append(dialogue)
        else:
            removed[dialogue.corpus] += 1
    return left, removed
