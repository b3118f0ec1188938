"""Text as metrics see it: the challenge's normalisation."""

from __future__ import annotations

import re
import string

_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise(text: str) -> str:
    """Normalise a text as the CPD challenge and ParlAI do; ComperDial's Table 14 is taken to mean this.

    Lower-case; each of the 32 ASCII punctuation characters becomes a space ("it's" -> "it s"); the words a, an, the
    become a space; white space collapses to single spaces. Curly quotes and dashes stay.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def clean(text: str, form: str) -> str:
    """Return a text in the form that an option ``text`` names: ``normalised``, or ``raw``, stripped of white space."""
    return normalise(text) if form == "normalised" else text.strip()
