"""What a terminal shows: texts of others without their control characters, and sums of money."""

from __future__ import annotations

import logging
import math
import re

# Escape sequences begin with a control character; marks of direction show a text in another order than it has.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def harmless(text: object) -> str:
    r"""Return a text whose control characters are spelled out (``\x1b``), its lines and tabs as they are."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), str(text))


class HarmlessFormatter(logging.Formatter):
    """Formats records of a log for a terminal: what servers say is among them."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as :func:`harmless` text."""
        return harmless(super().format(record))


def money(dollars: float) -> str:
    """Return US dollars with as many digits as the sum needs: never $0.00 for what is more than nothing."""
    if dollars >= 1 or not dollars or not math.isfinite(dollars):
        return f"${dollars:,.2f}"
    digits = max(4, 2 - math.ceil(math.log10(abs(dollars))))
    return f"${dollars:.{digits}f}"
