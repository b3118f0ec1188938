"""What a cell of a user's file holds: a number, a name, a text or a list, however a program wrote it."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.core.names import plain_name
from comperdial.schema.tables import LARGEST_RATING

# What spreadsheets and R write for a missing number, in any case. In a column of texts these are texts.
_NO_NUMBER = frozenset({"na", "n/a", "#n/a", "nan", "null", "none", "-"})
# Names of what is rated.
RATED = re.compile(
    r"rating|score|severity|label|grade|quality|overall|likert|fluen|coher|relevan|consisten|informat|faithful|factual"
    r"|helpful|harmless|safety|empath|engag|human_?like|natural|correct|ground|adequa|appropriate|interest|specific"
    r"|sensib|understand|succinct|maintain|uses_knowledge|preference|satisf|warmth|humou?r|tone|accura|complet|concis"
    r"|honest|truthful|instruction_following"
)
# A longer cell is no list that is spelled as a text.
_LONGEST = 1_000_000
_WIDTH = 60


def plain(name: str) -> str:
    """Return a column's name in small letters, with underscores for spaces and hyphens."""
    return re.sub(r"[\s_-]+", "_", name.strip().lower())


def is_missing(cell: object) -> bool:
    """Return whether a cell of a column of texts is empty; ``NA`` and ``null`` are texts."""
    if isinstance(cell, str):
        return not cell.strip()
    if isinstance(cell, float):
        return cell != cell
    if isinstance(cell, list | tuple | dict | np.ndarray):
        return len(cell) == 0
    return cell is None or bool(pd.isna(cell))  # type: ignore[call-overload]


def number(cell: object) -> float | str | None:
    """Return a finite number up to ``LARGEST_RATING``, None for a missing one, or what the cell holds instead, for a message.

    A comma may stand for the decimal point, unless three digits follow it, which it may as well part in thousands.
    """
    if isinstance(cell, str):
        text = cell.strip()
        if len(text) < 16 and text.isascii() and text.isdecimal():
            return float(text)
        if not text or text.lower() in _NO_NUMBER:
            return None
        if re.fullmatch(r"[+-]?\d+,(?!\d{3}$)\d+", text):
            text = text.replace(",", ".")
        if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
            return shown(cell)
        value = float(text)
    elif is_missing(cell):
        return None
    elif isinstance(cell, bool | np.bool_) or not isinstance(cell, int | float | np.number):
        return shown(cell)
    else:
        try:
            value = float(cell)
        except OverflowError:
            return shown(cell)
    return value if abs(value) <= LARGEST_RATING else shown(cell)


def identifier(cell: object, where: str) -> str | None:
    """Return a name as :func:`~comperdial.core.names.plain_name` spells it, None for a missing one.

    Raises
    ------
    SchemaError
        When the cell is neither a text nor a number.
    """
    if is_missing(cell):
        return None
    name = plain_name(cell)
    if not isinstance(name, str):
        raise SchemaError(f"holds {shown(cell)}", where=where, expected="a name or a number")
    return name


def entries(cell: object, where: str) -> list[Any]:
    """Return what a cell lists: the entries of a list, which a text may spell; a text alone is one entry.

    A list may be spelled as JSON, as Python and pandas print lists and tuples, or as numpy prints arrays.

    Raises
    ------
    SchemaError
        When the cell is neither a text nor a list, or a text that spells a list wrongly.
    """
    if isinstance(cell, list | tuple | np.ndarray):
        return list(cell)
    if is_missing(cell):
        return []
    if not isinstance(cell, str):
        raise SchemaError(f"holds {shown(cell)}", where=where, expected="a text or a list")
    text = cell.strip()
    if text[0] not in "[(" and not _CALL.match(text):
        return [cell]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _printed_list(text)
    if isinstance(value, list):
        return value
    if _LIKE_A_LIST.match(text):
        raise SchemaError(
            f"holds {shown(cell)}, which is not a readable list",
            where=where,
            expected='a list as JSON, such as ["one", "two"], with every entry in it',
        )
    # A text may well start with a bracket: "[laughs] me too".
    return [cell]


# What numpy and pandas print around a value: array([...], dtype=object), np.str_('a').
_CALL = re.compile(r"(?:(?:np|numpy)\.)?(?:array|list|tuple|str_|float(?:32|64)|int(?:32|64))\s*\(")
_LIKE_A_LIST = re.compile(r"""\[\s*(['"]).*\1(?:\s*,\s*|\s+)(?:\.\.\.\s+)?\1.*\1\s*,?\s*\]$""", re.DOTALL)
# A text in quotes, a closing bracket or a word, and the white space before a further value: numpy prints no commas there.
_VALUE = re.compile(
    r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\]})]|[\w.]+)(\s+(?=-?[\w.'"\[({]))?""",
    re.DOTALL,
)


_LISTED = (str, int, float, list, tuple, dict, type(None))


class _Unwrapped(ast.NodeTransformer):
    """Replaces the calls that numpy prints by what they hold."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_printed = len(node.args) == 1 and _CALL.fullmatch(f"{ast.unparse(node.func)}(")
        return self.visit(node.args[0]) if is_printed else node


def _printed_list(text: str) -> list[Any] | None:
    """Return the list that Python, pandas or numpy printed; None for any other text."""
    if len(text) > _LONGEST:
        return None
    if text[0] != "(":
        text = _VALUE.sub(lambda token: f"{token[1]}, " if token[2] else token[1], text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            body = ast.parse(text, mode="eval").body
            # Not a list and something after it: "[laughs] [sighs]".
            value = (
                None if isinstance(body, ast.Tuple) and text[0] != "(" else ast.literal_eval(_Unwrapped().visit(body))
            )
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(entry, _LISTED) for entry in value):
        return None
    return [list(entry) if isinstance(entry, tuple) else entry for entry in value]


def utterances(cell: object, where: str) -> list[Any]:
    """Return the utterances of a history, as :func:`entries`; a text alone has one utterance a line."""
    result = entries(cell, where)
    if isinstance(cell, str) and len(result) == 1 and result[0] == cell:
        return [line for line in cell.splitlines() if line.strip()]
    return result


def spoken(history: Sequence[Any]) -> list[Any]:
    """Give texts their speakers, as metrics do: the one before the response is by the other of two, A."""
    last = len(history) - 1
    return [
        {"speaker": "AB"[(last - place) % 2], "text": utterance} if isinstance(utterance, str) else utterance
        for place, utterance in enumerate(history)
    ]


def shown(value: object) -> str:
    """Return a value as a message shows it."""
    value = value.item() if isinstance(value, np.generic) else value
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to write whole numbers of more than 4,300 digits.
        text = "a number of thousands of digits"
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
