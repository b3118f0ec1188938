"""Parse cells of a user's file: numbers, names, texts and lists in the notations of many programs."""

from __future__ import annotations

import ast
import json
import re
import shlex
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.core.names import plain_name
from comperdial.schema.tables import LARGEST_RATING

# How spreadsheets and R write a missing number, ignoring case. In text columns these are texts.
_NO_NUMBER = frozenset({"na", "n/a", "#n/a", "nan", "null", "none", "-"})
# Names of rated dimensions.
RATED = re.compile(
    r"rating|score|severity|label|grade|quality|overall|likert|fluen|coher|relevan|consisten|informat|faithful|factual"
    r"|helpful|harmless|safety|empath|engag|human_?like|natural|correct|ground|adequa|appropriate|interest|specific"
    r"|sensib|understand|succinct|maintain|uses_knowledge|preference|satisf|warmth|humou?r|tone|accura|complet|concis"
    r"|honest|truthful|instruction_following"
)
# Longer cells are not parsed as lists.
_LONGEST = 1_000_000
_WIDTH = 60


def plain(name: str) -> str:
    """Return a column's name in lower case, with underscores for spaces and hyphens."""
    return re.sub(r"[\s_-]+", "_", name.strip().lower())


def is_missing(cell: object) -> bool:
    """Return whether a cell of a text column is empty; ``NA`` and ``null`` are texts."""
    if isinstance(cell, str):
        return not cell.strip()
    if isinstance(cell, float):
        return cell != cell
    if isinstance(cell, list | tuple | dict | np.ndarray):
        return len(cell) == 0
    return cell is None or bool(pd.isna(cell))  # type: ignore[call-overload]


def number(cell: object) -> float | str | None:
    """Return a finite number up to ``LARGEST_RATING``, None if missing, or otherwise the cell's content for a message.

    A comma is a decimal point unless three digits follow it: it could then be a thousands separator.
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
    """Return a name normalized by :func:`~comperdial.core.names.plain_name`, or None if missing.

    Raises
    ------
    SchemaError
        If the cell is neither a text nor a number.
    """
    if is_missing(cell):
        return None
    name = plain_name(cell)
    if not isinstance(name, str):
        raise SchemaError(f"holds {shown(cell)}", where=where, expected="a name or a number")
    return name


def entries(cell: object, where: str) -> list[Any]:
    """Return the entries of a list, which may be written as text; a plain text is a single entry.

    Lists may be written as JSON, as Python and pandas print lists and tuples, or as numpy prints arrays.

    Raises
    ------
    SchemaError
        If the cell is neither a text nor a list, or is a malformed list.
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
            expected='a list as JSON, such as ["one", "two"], with all entries',
        )
    # An ordinary text may start with a bracket: "[laughs] me too".
    return [cell]


# Wrappers printed by numpy and pandas: array([...], dtype=object), np.str_('a').
_CALL = re.compile(r"(?:(?:np|numpy)\.)?(?:array|list|tuple|str_|float(?:32|64)|int(?:32|64))\s*\(")
_LIKE_A_LIST = re.compile(r"""\[\s*(['"]).*\1(?:\s*,\s*|\s+)(?:\.\.\.\s+)?\1.*\1\s*,?\s*\]$""", re.DOTALL)
# A quoted text, closing bracket or word, and the white space before the next value: numpy prints no commas there.
_VALUE = re.compile(
    r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\]})]|[\w.]+)(\s+(?=-?[\w.'"\[({]))?""",
    re.DOTALL,
)


_LISTED = (str, int, float, list, tuple, dict, type(None))


class _Unwrapped(ast.NodeTransformer):
    """Replaces wrapper calls printed by numpy with their content."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_printed = len(node.args) == 1 and _CALL.fullmatch(f"{ast.unparse(node.func)}(")
        return self.visit(node.args[0]) if is_printed else node


def _printed_list(text: str) -> list[Any] | None:
    """Parse a list printed by Python, pandas or numpy; return None for any other text."""
    if len(text) > _LONGEST:
        return None
    if text[0] != "(":
        text = _VALUE.sub(lambda token: f"{token[1]}, " if token[2] else token[1], text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            body = ast.parse(text, mode="eval").body
            # Not a list followed by something else: "[laughs] [sighs]".
            value = (
                None if isinstance(body, ast.Tuple) and text[0] != "(" else ast.literal_eval(_Unwrapped().visit(body))
            )
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(entry, _LISTED) for entry in value):
        return None
    return [list(entry) if isinstance(entry, tuple) else entry for entry in value]


def utterances(cell: object, where: str) -> list[Any]:
    """Return the utterances of a history, as :func:`entries`; a plain text has one utterance per line."""
    result = entries(cell, where)
    if isinstance(cell, str) and len(result) == 1 and result[0] == cell:
        return [line for line in cell.splitlines() if line.strip()]
    return result


def spoken(history: Sequence[Any]) -> list[Any]:
    """Assign speakers to texts: they alternate, and the last one before the response is by A."""
    last = len(history) - 1
    return [
        {"speaker": "AB"[(last - place) % 2], "text": utterance} if isinstance(utterance, str) else utterance
        for place, utterance in enumerate(history)
    ]


def listed(names: Any) -> list[Any]:  # noqa: ANN401
    """Return a list of names as it is, and a single name as a list."""
    return list(names) if isinstance(names, list) else [names]


def option(name: str, value: object) -> str:
    """Format an option that takes JSON, to be pasted into a shell."""
    return f"--{name} {shlex.quote(json.dumps(value, ensure_ascii=False))}"


def shown(value: object) -> str:
    """Format a value for a message."""
    value = value.item() if isinstance(value, np.generic) else value
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to print integers of more than 4,300 digits.
        text = "a number of thousands of digits"
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
