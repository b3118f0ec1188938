"""Text as metrics see it: the challenge's normalisation, and overlap counts."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise(text: str) -> str:
    """Normalise a text as the CPD challenge and ParlAI do; ComperDial's Table 14 is taken to mean this.

    Lower-case; each of the 32 ASCII punctuation characters becomes a space ("it's" -> "it s"); the words a, an, the
    become a space; white space collapses to single spaces. Curly quotes and dashes stay.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def overlap_f1(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[float, float, float]:
    """Return F1, precision and recall of the multiset overlap of two sequences of tokens, each 0 to 1."""
    common = sum((Counter(hypothesis) & Counter(reference)).values())
    if common == 0:
        return 0.0, 0.0, 0.0
    # One division of whole numbers: 2PR/(P+R) is the same but its rounding makes equal scores differ in the last digit,
    # which breaks ties and moves rank correlations in the fourth decimal (docs/reproduction-notes.md).
    return 2 * common / (len(hypothesis) + len(reference)), common / len(hypothesis), common / len(reference)
