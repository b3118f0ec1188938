"""What a terminal shows: foreign texts without their control characters, and sums of money."""

from __future__ import annotations

import logging
import re

# Escape sequences begin with a control character; marks of direction show a text in another order than it has.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

# Of a US dollar: the ledger counts no smaller parts.
_MOST_DIGITS = 12
_CENT = 0.01


def harmless(text: object) -> str:
    r"""Return a text whose control characters are spelled out (``\x1b``), its lines and tabs as they are."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), str(text))


class HarmlessFormatter(logging.Formatter):
    """Formats records of a log for a terminal: they may hold texts of servers."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as :func:`harmless` text."""
        return harmless(super().format(record))


def money(dollars: float, digits: int = 2) -> str:
    """Return US dollars with so many digits after the point, or with more where these would be far from the sum."""
    near = abs(dollars) / (4 if abs(dollars) >= _CENT else 100)
    while digits < _MOST_DIGITS and abs(round(dollars, digits) - dollars) > near:
        digits += 1
    return f"${dollars:,.{digits}f}"
