"""A researcher's own file: CSV, JSONL or Parquet, with our columns under our names or under its own."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.files import read_table
from comperdial.core.names import plain_name
from comperdial.schema.tables import LARGEST_RATING

ALIASES = {"reference": "references", "system": "system_id", "annotator": "annotator_id"}

# What spreadsheets and R write for a missing number, in any case. In a column of texts these are texts.
_NO_NUMBER = frozenset({"na", "n/a", "#n/a", "nan", "null", "none", "-"})
# A longer cell is no list that is spelled as a text.
_LONGEST = 1_000_000
_WIDTH = 60
# Judges and metrics by name: what they gave is no rating by people unless `columns` says so.
_MACHINES = re.compile(
    r"gpt|llm|claude|gemini|llama|qwen|mistral|mixtral|deepseek|gemma|prometheus|judge|g_?eval|bleu|rouge|meteor|chrf"
    r"|bert|bart_?score|mover_?score|comet|unieval|simcse|perplexity|cosine|similarity|embedding|likelihood|logprob|levenshtein"
    r"|(?<![a-z0-9])(?:f1(?:_score)?|usr|fed|ppl|pmi|nll|em|ter|cider|spice|distinct|dist_?[12]|mauve|nubia)(?![a-z0-9])",
)


def read_columns(
    path: str | Path,
    known: Collection[str] | Mapping[str, str],
    needed: Sequence[str],
    columns: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Read a file and give its columns our names.

    A column counts as ours under the name that ``columns`` gives, under our name, or under an alias of it, whatever the
    case and with spaces or hyphens for underscores. All other columns keep their names.

    Parameters
    ----------
    path
        A JSONL, CSV or Parquet file.
    known, needed
        Our names, with what each means if messages are to say it; and those that must be there.
    columns
        Our name -> the file's. Where it is a list of names, these columns keep them. None if a user cannot map names.

    Raises
    ------
    SchemaError
        When a column is missing: names the file's columns and a map to paste; or when two columns are one of ours.
    UnknownNameError
        When ``columns`` has a name that is none of ours.
    """
    frame = read_table(path)
    frame.columns = frame.columns.map(str)
    written, mapped = list(frame.columns), columns or {}

    def wrong(problem: str, expected: str, hint: str | None = None) -> SchemaError:
        return SchemaError(problem, where=str(path), expected=expected, hint=hint)

    given: list[str] = []
    for ours, theirs in mapped.items():
        if ours not in known:
            raise UnknownNameError("column", str(ours), known, where=f"{path}, `columns`")
        for name in [theirs] if isinstance(theirs, str) else theirs:
            if name not in written:
                problem = f"no column {name!r}, which `columns` names"
                raise wrong(problem, f"columns of the file: {', '.join(written)}")
            if name in given:
                raise wrong(f"`columns` names {name!r} twice", "each column of the file once")
            given.append(name)
    names = {theirs: ours for ours, theirs in mapped.items() if isinstance(theirs, str)}
    free = [name for name in written if name not in given]
    for ours in sorted(set(known) - set(mapped) - set(given)):
        spellings = {ours, *(alias for alias, name in ALIASES.items() if name == ours)}
        there = [name for name in free if name in spellings] or [name for name in free if plain(name) in spellings]
        if len(there) > 1:
            raise wrong(f"columns {' and '.join(map(repr, sorted(there)))}", "one of the two")
        names |= dict.fromkeys(there, ours)
    # A column with one of our names whose place `columns` gives to another is none of ours.
    passed = {ours: f"{ours} (not as mapped)" for ours in names.values() if ours in written and ours not in names}
    if both := [name for name in given if name in passed]:
        problem = f"column {both[0]!r} is mapped to another of our columns, and one to it"
        raise wrong(problem, "another name for it in the file")
    frame = frame.rename(columns=passed | names)
    if missing := [ours for ours in needed if ours not in frame and ours not in mapped]:
        hint = f"It has: {', '.join(written) or '(none)'}"
        if columns is not None:
            others = frame.drop(columns=[name for name in frame.columns if name in known or name in given])
            guess = {**mapped, **_guess(others, missing)}
            hint += f". If some of these are meant, say so: columns: {json.dumps(guess, ensure_ascii=False)}"
        expected = "at least " + ", ".join(needed)
        if isinstance(known, Mapping):
            optional = ", ".join(name for name in known if name not in needed)
            expected = "; ".join([*(f"{name}: {known[name]}" for name in needed), f"optional: {optional}"])
        raise wrong(f"no column {', '.join(map(repr, missing))}", expected, hint)
    return frame


def plain(name: str) -> str:
    """Return a column's name in small letters, with underscores for spaces and hyphens."""
    return re.sub(r"[\s_-]+", "_", name.strip().lower())


def _guess(others: pd.DataFrame, missing: Sequence[str]) -> dict[str, str | list[str]]:
    """Propose for each missing column what may be meant by it, by the values alone; ``???`` where nothing fits."""
    result: dict[str, str | list[str]] = dict.fromkeys(missing, "???")
    people: list[str] = []
    texts: dict[str, list[str]] = {}
    for name in others.columns:
        cells = [cell for cell in others[name] if not is_missing(cell)]
        if cells and all(isinstance(number(cell), float) for cell in cells):
            people += [] if _MACHINES.search(plain(name)) else [name]
        elif words := [cell for cell in cells if isinstance(cell, str)]:
            texts[name] = words
    if "rating" in missing and people:
        result["rating"] = people[0] if len(people) == 1 else people
    if "response" in missing and texts:
        longest = max(texts, key=lambda name: sum(map(len, texts[name])) / len(texts[name]))
        result["response"] = longest
        texts.pop(longest)
    few = {name: len(set(words)) for name, words in texts.items() if 1 < len(set(words)) < len(words)}
    if "system_id" in missing and few:
        result["system_id"] = min(few, key=lambda name: few[name])
    return result


def is_missing(cell: object) -> bool:
    """Return whether a cell of a column of texts is empty; ``NA`` and ``null`` are texts."""
    if isinstance(cell, str):
        return not cell.strip()
    if isinstance(cell, list | tuple | dict | np.ndarray):
        return len(cell) == 0
    return cell is None or bool(pd.isna(cell))  # type: ignore[call-overload]


def number(cell: object) -> float | str | None:
    """Return a finite number up to ``LARGEST_RATING``, None for a missing one, or what the cell holds instead, for a message.

    A comma may stand for the decimal point, unless three digits follow it, which it may as well part in thousands.
    """
    if isinstance(cell, str):
        text = cell.strip()
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
