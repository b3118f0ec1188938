"""Terminal output: escape control characters in foreign texts, and format sums of money."""

from __future__ import annotations

import logging
import re

# Control characters start escape sequences; bidirectional marks can reorder the displayed text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

# Decimals of a US dollar: the smallest unit of the ledger.
_MOST_DIGITS = 12
_CENT = 0.01


def harmless(text: object) -> str:
    r"""Escape control characters (``\x1b``), keeping line breaks and tabs."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), str(text))


class HarmlessFormatter(logging.Formatter):
    """Logging formatter that escapes control characters, since records may quote servers."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record and escape its control characters."""
        return harmless(super().format(record))


def money(dollars: float, digits: int = 2) -> str:
    """Format US dollars with ``digits`` decimals, or more where rounding would distort the sum."""
    near = abs(dollars) / (4 if abs(dollars) >= _CENT else 100)
    while digits < _MOST_DIGITS and abs(round(dollars, digits) - dollars) > near:
        digits += 1
    return f"${dollars:,.{digits}f}"
