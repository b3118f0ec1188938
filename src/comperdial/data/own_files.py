"""A researcher's own file: CSV, JSONL or Parquet, with our columns under our names or under its own."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.files import read_table

ALIASES = {"reference": "references", "system": "system_id", "annotator": "annotator_id"}

# What spreadsheets and R write for a missing value; of a number, in any case.
_NO_TEXT = frozenset({"NA", "N/A", "#N/A", "NaN"})
_NO_NUMBER = frozenset({"na", "n/a", "#n/a", "nan", "null", "none", "-"})
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


def _guess(others: pd.DataFrame, missing: Sequence[str]) -> dict[str, str | list[str]]:
    """Propose for each missing column what may be meant by it, by the values alone; ``???`` where nothing fits."""
    cells = {str(name): [cell for cell in others[name] if not is_missing(cell)] for name in others}
    filled = {name: values for name, values in cells.items() if values}
    numbers = [name for name, values in filled.items() if all(isinstance(number(value), float) for value in values)]
    texts = {name: [v for v in values if isinstance(v, str)] for name, values in filled.items() if name not in numbers}
    texts = {name: values for name, values in texts.items() if values}
    found: dict[str, str | list[str]] = dict.fromkeys(missing, "???")
    if "rating" in missing and numbers:
        found["rating"] = numbers[0] if len(numbers) == 1 else numbers
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
    """Say whether a cell holds nothing: it is empty, or what spreadsheets and R write for a missing value."""
    if isinstance(cell, str):
        return not cell.strip() or cell.strip() in _NO_TEXT
    if isinstance(cell, list | tuple | dict | np.ndarray):
        return len(cell) == 0
    return cell is None or bool(pd.isna(cell))  # type: ignore[call-overload]


def number(cell: object) -> float | str | None:
    """Return a finite number, None for a missing one, or what the cell holds instead, as a message shows it.

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
        value = float(cell)
    return value if math.isfinite(value) else shown(cell)


def identifier(cell: object, where: str) -> str | None:
    """Return a name, None for a missing one; ``1`` and ``1.0`` are the same name, since programs add and drop ``.0``.

    Raises
    ------
    SchemaError
        When the cell is neither a text nor a whole number.
    """
    if is_missing(cell):
        return None
    if isinstance(cell, str):
        text = cell.strip()
        return text.partition(".")[0] if re.fullmatch(r"-?\d+\.0+", text) else text
    whole = isinstance(cell, int | float | np.number) and not isinstance(cell, bool) and float(cell).is_integer()
    if not whole:
        raise SchemaError(f"holds {shown(cell)}", where=where, expected="a name or a whole number")
    return str(int(cell))  # type: ignore[call-overload]


def entries(cell: object, where: str) -> list[Any]:
    """Return what a cell lists: the entries of a list, which a text may spell as JSON; a text alone is one entry.

    Raises
    ------
    SchemaError
        When the cell is neither a text nor a list.
    """
    if isinstance(cell, list | np.ndarray):
        return list(cell)
    if is_missing(cell):
        return []
    if not isinstance(cell, str):
        raise SchemaError(f"holds {shown(cell)}", where=where, expected="a text or a list")
    if not cell.lstrip().startswith("["):
        return [cell]
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        # A text may well start with a bracket: "[laughs] me too".
        return [cell]
    return list(value)


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
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
