"""Cached word stems by nltk's Porter stemmer."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any


@cache
def _stemmer() -> Any:  # noqa: ANN401
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


# Larger than a typical vocabulary, so that few words are stemmed twice; about ten megabytes when full.
@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a word's stem by the Porter stemmer in nltk's default variant."""
    found: str = _stemmer().stem(word)
    return found
