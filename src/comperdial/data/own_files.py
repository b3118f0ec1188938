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
    known
        Our names, with what each means if messages are to say it.
    needed
        Those that must be there.
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
    if twice := frame.columns[frame.columns.duplicated()].tolist():
        raise SchemaError(f"two columns {twice[0]!r}", where=str(path), expected="each name once")
    written, mapped = list(frame.columns), columns or {}
    for name in mapped:
        if name not in known:
            raise UnknownNameError("column", str(name), known, where=f"{path}, `columns`")
    named = {ours: [theirs] if isinstance(theirs, str) else list(theirs) for ours, theirs in mapped.items()}
    given = [theirs for names in named.values() for theirs in names]
    if lost := [theirs for theirs in given if theirs not in frame]:
        raise SchemaError(
            f"no column {', '.join(map(repr, lost))}, which `columns` names",
            where=str(path),
            expected=f"columns of the file: {', '.join(frame.columns)}",
        )
    if twice := sorted({name for name in given if given.count(name) > 1}):
        raise SchemaError(
            f"`columns` names {twice[0]!r} twice", where=str(path), expected="each column of the file once"
        )
    found: dict[str, str] = {names[0]: ours for ours, names in named.items() if isinstance(mapped[ours], str)}
    taken = set(given)
    for ours in sorted(set(known) - set(named) - taken):
        spellings = {ours, *(alias for alias, name in ALIASES.items() if name == ours)}
        there = [name for name in frame.columns if name not in taken and name in spellings]
        there = there or [name for name in frame.columns if name not in taken and _plain(name) in spellings]
        if len(there) > 1:
            raise SchemaError(
                f"columns {' and '.join(map(repr, sorted(there)))}",
                where=str(path),
                expected="one of the two" if len(there) == 2 else "one of them",
            )
        found |= dict.fromkeys(there, ours)
    # A column with one of our names whose place `columns` gives to another is none of ours.
    passed = {name: f"{name} (not as mapped)" for name in found.values() if name in frame and name not in found}
    if both := sorted(taken & set(passed)):
        raise SchemaError(
            f"column {both[0]!r} is mapped to another of our columns, and one to it",
            where=str(path),
            expected="another name for it in the file",
        )
    frame = frame.rename(columns=passed | found)
    if missing := [ours for ours in needed if ours not in frame and ours not in named]:
        hint = f"It has: {', '.join(written) or '(none)'}"
        if columns is not None:
            others = frame.drop(columns=[name for name in frame.columns if name in known or name in taken])
            guess = {**mapped, **_guess(others, missing)}
            hint += f". If some of these are meant, say so: columns: {json.dumps(guess, ensure_ascii=False)}"
        meanings = [f"{name}: {known[name]}" for name in needed] if isinstance(known, Mapping) else []
        meanings += ["optional: " + ", ".join(name for name in known if name not in needed)] if meanings else []
        raise SchemaError(
            f"no column {', '.join(map(repr, missing))}",
            where=str(path),
            expected="; ".join(meanings) or "at least " + ", ".join(needed),
            hint=hint,
        )
    return frame


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name.strip().lower())


# Judges and metrics by name: what they gave is no rating by people unless `columns` says so.
_MACHINES = re.compile(
    r"gpt|llm|claude|gemini|llama|qwen|mistral|mixtral|deepseek|gemma|prometheus|judge|g_?eval|bleu|rouge|meteor|chrf"
    r"|bert|bart_?score|mover_?score|comet|unieval|simcse|perplexity|cosine|similarity|embedding|likelihood|logprob|levenshtein"
    r"|(?<![a-z0-9])(?:f1(?:_score)?|usr|fed|ppl|pmi|nll|em|ter|cider|spice|distinct|dist_?[12]|mauve|nubia)(?![a-z0-9])",
)


def is_of_machine(column: str) -> bool:
    """Return whether a column's name is that of a judge or a metric, such as ``gpt4_score``."""
    return bool(_MACHINES.search(_plain(column)))


def _guess(others: pd.DataFrame, missing: Sequence[str]) -> dict[str, str | list[str]]:
    """Propose for each missing column what may be meant by it, by the values alone; ``???`` where nothing fits."""
    cells = {str(name): [cell for cell in others[name] if not is_missing(cell)] for name in others}
    filled = {name: values for name, values in cells.items() if values}
    numbers = [name for name, values in filled.items() if all(isinstance(number(value), float) for value in values)]
    texts = {name: [v for v in values if isinstance(v, str)] for name, values in filled.items() if name not in numbers}
    texts = {name: values for name, values in texts.items() if values}
    found: dict[str, str | list[str]] = dict.fromkeys(missing, "???")
    by_people = [name for name in numbers if not is_of_machine(name)]
    if "rating" in missing and by_people:
        found["rating"] = by_people[0] if len(by_people) == 1 else by_people
    if "response" in missing and texts:
        longest = max(texts, key=lambda name: sum(map(len, texts[name])) / len(texts[name]))
        found["response"] = longest
        texts.pop(longest)
    if "system_id" in missing:
        few = {name: len(set(values)) for name, values in texts.items() if 1 < len(set(values)) < len(values)}
        if few:
            found["system_id"] = min(few, key=lambda name: few[name])
    return found


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
_DTYPE = re.compile(r",\s*dtype\s*=\s*(?:'[^']*'|\"[^\"]*\"|[\w.<>]+)\s*(?=\))")
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<value>u?'(?:[^'\\]|\\.)*'|u?\"(?:[^\"\\]|\\.)*\""
    r"|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|None|True|False)|(?P<open>[\[({])|(?P<close>[\])}])|(?P<other>[,:])",
    re.DOTALL,
)
_LIKE_A_LIST = re.compile(r"""\[\s*(['"]).*\1(?:\s*,\s*|\s+)(?:\.\.\.\s+)?\1.*\1\s*,?\s*\]$""", re.DOTALL)


def _printed_list(text: str) -> list[Any] | None:
    """Return the list that Python, pandas or numpy printed; None for any other text.

    Between entries of an array numpy prints no commas, and in ``literal_eval`` two texts without one would be joined.
    """
    if len(text) > _LONGEST:
        return None
    written: list[str] = []
    opened: list[str] = []
    after_value, place = False, 0
    while place < len(text):
        if call := _CALL.match(text, place):
            kind, place, written_as = "open", call.end(), "("
        elif opened and opened[-1] == "call" and (dtype := _DTYPE.match(text, place)):
            place = dtype.end()
            continue
        elif token := _TOKEN.match(text, place):
            kind, place, written_as = str(token.lastgroup), token.end(), token[0]
        else:
            return None
        if kind == "space":
            continue
        if kind in ("value", "open") and after_value:
            if not opened or opened[-1] != "[":
                return None
            written.append(",")
        if kind == "open":
            opened.append("call" if call else written_as)
        elif kind == "close":
            if not opened:
                return None
            opened.pop()
        after_value = kind in ("value", "close")
        written.append(written_as)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            value = ast.literal_eval("".join(written))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    if not isinstance(value, list | tuple):
        return None
    return [list(entry) if isinstance(entry, tuple) else entry for entry in value]


def utterances(cell: object, where: str) -> list[Any]:
    """Return the utterances of a history, as :func:`entries`; a text alone has one utterance a line."""
    found = entries(cell, where)
    if isinstance(cell, str) and len(found) == 1 and found[0] == cell:
        return [line for line in cell.splitlines() if line.strip()]
    return found


def spoken(history: Sequence[Any]) -> list[Any]:
    """Give texts their speakers, as metrics do: the one before the response is by the other of two, A."""
    last = len(history) - 1
    return [
        {"speaker": "AB"[(last - place) % 2], "text": said} if isinstance(said, str) else said
        for place, said in enumerate(history)
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
