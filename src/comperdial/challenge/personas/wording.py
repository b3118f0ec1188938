"""What kind of sentence a persona sentence is, by its form: published personas do not label their sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

_KINDS = (
    ("name", re.compile(r"my name is\b")),
    ("age", re.compile(r"i['’]m \d+ years old\b|i am \d+ years old\b")),
    ("characteristic", re.compile(r"my character trait\b")),
    ("routine_habit", re.compile(r"i regularly or consistently\b")),
    ("goal_plan", re.compile(r"i intend to\b")),
    ("experience", re.compile(r"i\b.*\bin the past\b")),
    ("head", re.compile(r"i am\b|i['’]m\b")),
)


def kinds_of(sentences: Sequence[str]) -> list[str]:
    """Return the kind of each sentence: name, age, family, head, or an aspect (without whom it has to do with).

    Published sentences are noisy, so the form decides: what precedes the first head and has none of the forms is
    family information; what has none of them later is ``other``.
    """
    kinds: list[str] = []
    for sentence in sentences:
        text = sentence.strip().lower()
        kind = next((kind for kind, pattern in _KINDS if pattern.match(text)), None)
        kinds.append(kind or ("other" if "head" in kinds else "family"))
    return kinds
