"""Text normalisation for metrics, as in the CPD challenge."""

from __future__ import annotations

import re
import string

_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise(text: str) -> str:
    """Normalise a text as the CPD challenge and ParlAI do; ComperDial's Table 14 is assumed to use the same.

    Convert to lower case; replace each of the 32 ASCII punctuation characters ("it's" -> "it s") and the words a, an, the
    with a space; collapse white space to single spaces. Curly quotes and dashes are kept.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def clean(text: str, form: str) -> str:
    """Return a text as the option ``text`` requires: ``normalised``, or ``raw``, which only strips white space."""
    return normalise(text) if form == "normalised" else text.strip()
