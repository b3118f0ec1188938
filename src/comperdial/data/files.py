"""Read tables in common formats (CSV, TSV, JSON, JSONL, Parquet and Excel) as a flat frame with one row per record."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial.core.errors import FileError, MissingResourceError
from comperdial.core.files import check_input, parse_json, read_parquet
from comperdial.data.logs import Log, read_log, tool_of
from comperdial.data.own_files import RATED, is_missing, number
from comperdial.data.transcripts import SPEAKERS, TEXTS

SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx", ".xlsm")
SHEET = "sheet"
"""Column for the sheet of each record, if several sheets of a workbook are joined."""
_ZIP, _PARQUET, _OLD_EXCEL = b"PK\x03\x04", b"PAR1", b"\xd0\xcf\x11\xe0"
_TABS = frozenset({".tsv", ".tab"})
_GENERIC = frozenset({"*", "id", "name", "text", "value", "type", "label", "score"})
# A JSON object is a map of records, not a record, if its values share at least this fraction of keys.
_ALIKE = 0.6


_SPLITS = frozenset({"train", "training", "dev", "development", "valid", "validation", "val", "test", "eval"})
# Number of rows searched for the header.
_LOOKED_AT = 20
# A longer list of numbers is a vector, not ratings.
_MOST_RATERS = 20
_PLACES, _LISTS = "raters[]", "lists[]"
_VOTED = re.compile(r"'(?:winner|choice|vote|preference|preferred|verdict)'", re.IGNORECASE)
_TWO = {("a", "b"), ("1", "2"), ("left", "right"), ("first", "second"), ("x", "y")}


@dataclass
class File:
    """The records of a file.

    Attributes
    ----------
    frame
        One row per record; cells of text files are texts, those of JSON, Parquet and Excel keep their types.
    rows
        The line (CSV and JSONL) or record number (other formats) of each row.
    notes
        How the file was read, for the user.
    log
        The content as the log of an evaluation tool, if it is one: the frame then has a row per sample and a column per
        score.

    Names of columns are texts.
    """

    frame: pd.DataFrame
    rows: Sequence[int]
    notes: list[str] = field(default_factory=list)
    log: Log | None = None

    def __post_init__(self) -> None:
        self.frame = self.frame.set_axis(self.frame.columns.map(str), axis=1)


def read_file(path: str | Path, sheet: str | None = None) -> File:
    """Read a file by content, and by suffix where the content is ambiguous.

    Parameters
    ----------
    path
        A file with one of :data:`SUFFIXES`, ignoring case.
    sheet
        Sheet of a workbook; default: the only one, or all if they have the same columns.

    Raises
    ------
    FileError
        If the file cannot be read; the message gives the line and what was expected.
    """
    result = _read(Path(path), sheet)
    return result if result.log else _by_place(result)


def _read(path: Path, sheet: str | None) -> File:
    suffix = path.suffix.lower()
    if suffix == ".eval":
        hint = f"Write it as JSON: inspect log dump {path} > {path.stem}.json"
        raise FileError("an Inspect log in its binary format", where=str(path), expected="its JSON form", hint=hint)
    if path.is_dir():
        raise FileError("a folder", where=str(path), expected="a file; folders of tables are for `comperdial score`")
    if suffix not in SUFFIXES and suffix not in _TABS:
        expected = "a name ending in " + ", ".join(SUFFIXES)
        raise FileError(f"unknown kind of file {path.suffix!r}", where=str(path), expected=expected)
    try:
        data = check_input(path).read_bytes()
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror})", where=str(path)) from error
    if data.startswith(_ZIP):
        return _noted(_excel(path, data, sheet), suffix not in (".xlsx", ".xlsm"), "an Excel workbook", suffix)
    if data.startswith(_OLD_EXCEL):
        hint = "Save it as .xlsx or CSV"
        raise FileError("an old Excel file (.xls)", where=str(path), expected=".xlsx", hint=hint)
    if suffix in (".xlsx", ".xlsm"):
        raise FileError("not a readable Excel workbook", where=str(path), expected="an Excel workbook")
    if data.startswith(_PARQUET) or suffix == ".parquet":
        return _noted(_parquet(path), suffix != ".parquet", "a Parquet file", suffix)
    if sheet is not None:
        raise FileError("no workbook", where=str(path), expected="an Excel file, because of --sheet")
    text, notes = _decoded(path, data)
    start = text.lstrip()[:1]
    if suffix in (".json", ".jsonl", ".ndjson") or (start in "[{" and start and _is_json(text)):
        result = _json(path, text)
    else:
        result = _csv(path, text, "\t" if suffix in _TABS else None)
    result.notes[:0] = notes
    return result


def _noted(file: File, other: bool, what: str, suffix: str) -> File:
    if other:
        file.notes.insert(0, f"{what}, although its name ends in {suffix}")
    return file


def _decoded(path: Path, data: bytes) -> tuple[str, list[str]]:
    """Decode a file: UTF-8, UTF-16 with a byte order mark, or Windows-1252, as Excel writes CSV."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace"), ["read as UTF-16"]
    try:
        return data.decode("utf-8-sig"), []
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        if b"\0" in data:
            problem = f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8"
            raise FileError(problem, where=f"{path}, line {line}", expected="a text file in UTF-8") from error
        note = f"line {line} is not UTF-8: read as Windows-1252; if letters look wrong, save the file as UTF-8"
        return data.decode("cp1252", "replace"), [note]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


# CSV


def _csv(path: Path, text: str, delimiter: str | None) -> File:
    """Read a CSV; cells stay text: "007" is not a number, an empty cell not a missing value."""
    # Not pandas: if a row is too long, it takes the first cell as an index and shifts the others.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter or _delimiter(text))
    rows: list[list[str]] = []
    lines: list[int] = []
    short = 0
    try:
        written = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise FileError(f"not valid CSV ({error})", where=f"{path}, line {reader.line_num}") from error
    if not written:
        raise FileError("the file is empty", where=str(path), expected="a header line and records")
    place, notes = _header([row for _, row in written], [line for line, _ in written], path)
    header = [name.strip() for name in written[place][1]]
    for line, row in written[place + 1 :]:
        while len(row) > len(header) and not row[-1].strip():
            row.pop()
        if len(row) > len(header):
            hint = 'Put texts that contain the separator in "quotes"'
            count = Counter(len(row) for _, row in written).most_common(1)[0][0]
            first = next(line for line, row in written if len(row) == count)
            if first == line and count > 2:
                hint = f"If line {line} is the header, remove those above it"
            expected = f"{len(header)}, as in the header"
            raise FileError(f"{len(row)} cells", where=f"{path}, line {line}", expected=expected, hint=hint)
        short += len(row) < len(header)
        rows.append(row + [""] * (len(header) - len(row)))
        lines.append(line)
    if rows and short == len(rows) and delimiter is None and len(header) == 1:
        short = 0
    while len(header) > 1 and not header[-1] and not any(row[-1].strip() for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    if twice := [name for name, count in Counter(header).items() if count > 1]:
        where = f"{path}, line {written[place][0]}"
        raise FileError(f"two columns are called {twice[0]!r}", where=where, expected="each name once")
    if short:
        notes.append(
            f"{short} of {len(rows)} rows are shorter than the header: the cells that they lack count as empty"
        )
    if len(rows) > 1 and any(cell.startswith('{"ImportId"') for cell in rows[1]):
        notes.append("an export of Qualtrics: the questions' texts and import ids below the header are no records")
        rows, lines = rows[2:], lines[2:]
    return File(pd.DataFrame(rows, columns=header, dtype=object), lines, notes)


def _header(rows: Sequence[Sequence[Any]], numbers: Sequence[int], path: Path) -> tuple[int, list[str]]:
    """Return the index of the header, skipping title rows with one filled cell, and notes about these.

    ``numbers`` are the row numbers in the file. A second header row below column groups is an error.
    """
    filled = [[cell for cell in row if not is_missing(cell)] for row in rows[:_LOOKED_AT]]
    place = next((place for place, cells in enumerate(filled) if len(cells) > 1), 0)
    if place and not (len(filled[place]) > 2 and _are_names(filled[place]) and len(rows) > place + 1):
        place = 0
    names = list(rows[place])
    below, records = list(rows[place + 1]) if len(rows) > place + 1 else [], rows[place + 2 : place + 2 + _LOOKED_AT]
    columns = [
        [value for row in records if len(row) > n and (value := number(row[n])) is not None] for n in range(len(below))
    ]
    numeric = [
        n for n, values in enumerate(columns) if len(values) > 1 and all(isinstance(one, float) for one in values)
    ]
    grouped = len({str(name).strip() for name in names}) < len(names) or any(map(is_missing, names))
    if grouped and numeric and len(below) >= len(names) and all(isinstance(number(cell), str) for cell in below):
        n = next((n for n in numeric if below.count(below[n]) > 1), numeric[0])
        group = next((str(names[k]) for k in range(min(n, len(names) - 1), -1, -1) if not is_missing(names[k])), "")
        raise FileError(
            "two header rows",
            where=f"{path}, rows {numbers[place]} and {numbers[place + 1]}",
            expected="a single header row",
            hint=f"Merge both names, such as {f'{group} {below[n]}'.strip()!r}",
        )
    titles = [str(cells[0]).strip() for cells in filled[:place] if cells]
    return place, [f"row {numbers[place]} has the names of columns; above it: {'; '.join(titles)}"] if titles else []


def _are_names(cells: Sequence[Any]) -> bool:
    return all(isinstance(cell, str) and isinstance(number(cell), str) for cell in cells) and len({*cells}) == len(
        cells
    )


def _delimiter(text: str) -> str:
    """Return the delimiter of the header; spreadsheets use semicolons in locales with decimal commas."""

    def cells(delimiter: str) -> list[int]:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            return [len([cell for cell in row if cell.strip()]) for row in islice(rows, _LOOKED_AT)]
        except csv.Error:
            return [0]

    counts = {delimiter: cells(delimiter) for delimiter in (",", ";", "\t")}
    # Titles above the header have no delimiters.
    first = next((place for place, several in enumerate(zip(*counts.values(), strict=False)) if max(several) > 1), 0)
    return max(counts, key=lambda delimiter: counts[delimiter][first] if len(counts[delimiter]) > first else 0)


# Excel and Parquet


def _excel(path: Path, data: bytes, sheet: str | None) -> File:
    try:
        book = pd.read_excel(io.BytesIO(data), sheet_name=None, dtype=object, keep_default_na=False, engine="openpyxl")
    except ImportError:
        problem = "openpyxl, which reads Excel files, is not installed"
        hint = "Install it with `pip install openpyxl`, or save the sheet as CSV"
        raise MissingResourceError(problem, where=str(path), hint=hint) from None
    except Exception as error:
        raise FileError(f"not a readable Excel workbook ({error})", where=str(path)) from error
    sheets = {str(name): frame for name, frame in book.items() if len(_filled(frame))}
    if sheet is not None and sheet not in sheets:
        raise FileError(f"no sheet {sheet!r} with records", where=str(path), expected=f"one of: {', '.join(sheets)}")
    if sheet is not None:
        sheets = {sheet: sheets[sheet]}
    if not sheets:
        raise FileError("no records", where=str(path), expected="a sheet with a header line and records")
    notes: list[str] = []
    result = _joined(path, {name: _filled(_below_titles(frame, path, notes)) for name, frame in sheets.items()})
    result.notes[:0] = dict.fromkeys(notes)
    return result


def _below_titles(frame: pd.DataFrame, path: Path, notes: list[str]) -> pd.DataFrame:
    """Return a sheet without title rows above the header."""
    # How pandas names missing or duplicate columns.
    first = ["" if str(name).startswith("Unnamed:") else re.sub(r"\.\d+$", "", str(name)) for name in frame.columns]
    rows = [first, *frame.head(3 * _LOOKED_AT).to_numpy().tolist()]
    place, more = _header(rows, range(1, len(rows) + 1), path)
    notes += more
    if not place:
        return frame
    names = [str(cell).strip() or f"Unnamed: {n}" for n, cell in enumerate(rows[place])]
    return frame.iloc[place:].set_axis(names, axis=1)


def _joined(path: Path, sheets: Mapping[str, pd.DataFrame]) -> File:
    """Join the sheets of a workbook: a single one, several with equal columns, or ratings plus one sheet of texts."""
    shapes = [tuple(frame.columns) for frame in sheets.values()]
    common, count = Counter(shapes).most_common(1)[0]
    alike = {name: frame for name, frame in sheets.items() if tuple(frame.columns) == common}
    others = {name: frame for name, frame in sheets.items() if name not in alike}
    if len(sheets) == 1:
        frame = next(iter(sheets.values()))
        return File(frame, range(2, len(frame) + 2))
    # Single-column sheets of another length are remarks.
    lengths = {len(frame) for frame in sheets.values() if len(frame.columns) > 1}
    remarks = [
        name for name, frame in sheets.items() if len(frame.columns) == 1 and lengths and len(frame) not in lengths
    ]
    if remarks:
        result = _joined(path, {name: frame for name, frame in sheets.items() if name not in remarks})
        result.notes.append(f"sheets of one column, not read: {', '.join(remarks)}")
        return result
    notes = [f"{count} sheets with the same columns: {', '.join(alike)}"]
    if others and count > 1 and all({*frame.columns} > {*common} for frame in others.values()):
        notes.append(f"sheets with these and further columns: {', '.join(others)}")
        alike, others = dict(sheets), {}
    if others:
        name, texts = next(iter(others.items()))
        keys = [column for column in texts if column in common]
        fits = len(others) == 1 and count > 1
        by_row = not keys and all(len(frame) == len(texts) for frame in alike.values())
        if not fits or not (by_row or (keys and not texts.duplicated(keys).any())):
            problem = f"{len(sheets)} sheets with different columns: {', '.join(sheets)}"
            likeliest = max(sheets, key=lambda name: (shapes.count(tuple(sheets[name].columns)), sheets[name].size))
            hint = f"Choose one, for example --sheet {likeliest!r}"
            raise FileError(problem, where=str(path), expected="one sheet", hint=hint)
        joined = (lambda frame: texts.join(frame)) if by_row else (lambda frame: texts.merge(frame, on=keys))
        rows_of = {one: len(frame) for one, frame in alike.items()}
        alike = {one: joined(frame) for one, frame in alike.items()}
        if lost := [one for one, frame in alike.items() if len(frame) < rows_of[one]]:
            problem = f"sheet {lost[0]!r} has rows that are not in sheet {name!r}, by {', '.join(keys)}"
            raise FileError(
                problem, where=str(path), expected="one sheet", hint=f"Choose one, for example --sheet {lost[0]!r}"
            )
        notes.append(f"each joined with the sheet {name} " + ("row by row" if by_row else f"by {', '.join(keys)}"))
    parts = [frame.assign(**{SHEET: name}) for name, frame in alike.items()]
    rows = [row for frame in alike.values() for row in range(2, len(frame) + 2)]
    return File(pd.concat(parts, ignore_index=True), rows, notes)


def _filled(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a sheet without empty rows, and without empty unnamed columns."""
    frame.columns = [str(name).strip() for name in frame.columns]
    full = frame.map(lambda cell: bool(str(cell).strip()))
    named = [not str(name).startswith("Unnamed:") for name in frame.columns]
    return frame.loc[full.any(axis=1), full.any(axis=0).to_numpy() | np.array(named)].reset_index(drop=True)


def _parquet(path: Path) -> File:
    frame = read_parquet(path)
    objects = [name for name in frame if frame[name].dtype == object]
    if not any(_is_nested(_plain(cell)) for name in objects for cell in frame[name].head(20)):
        return File(frame, range(1, len(frame) + 1))
    records = [{str(name): _plain(cell) for name, cell in row.items()} for row in frame.to_dict("records")]
    return _flat(records, range(1, len(records) + 1))


def _plain(cell: Any) -> Any:  # noqa: ANN401
    if isinstance(cell, np.ndarray):
        return [_plain(one) for one in cell.tolist()]
    return {key: _plain(one) for key, one in cell.items()} if isinstance(cell, dict) else cell


# JSON


def _json(path: Path, text: str) -> File:
    """Read JSON Lines or one document: a list of records, an object containing one, or a map of records."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        raise FileError("no records", where=str(path), expected="JSON records")
    by_line = path.suffix.lower() in (".jsonl", ".ndjson")
    if len(lines) > 1 and _is_json(lines[0][1]) and lines[0][1].strip() not in "[{":
        records = _each(path, lines)
        for (number, _), record in zip(lines, records, strict=True):
            if not isinstance(record, dict):
                problem, expected = f"a JSON {type(record).__name__}", "one JSON object per line"
                raise FileError(problem, where=f"{path}, line {number}", expected=expected)
        if tool := tool_of(records[0]):
            return _of_log(tool, records, path)
        return _flat(records, [number for number, _ in lines])
    if by_line and not _is_json(text):
        _each(path, lines)
    value = parse_json(text, str(path), expected="a list of JSON records, or one JSON object per line")
    if tool := tool_of(value):
        return _of_log(tool, [value] if by_line else value, path)
    notes = ["one JSON document, not one object a line"] if by_line and len(lines) > 1 else []
    if isinstance(value, Mapping) and _is_map_of_labels(value):
        return _flat(
            [
                {"annotator": who, "item": item, "rating": label}
                for who, one in value.items()
                for item, label in one.items()
            ],
            range(1, 1 + sum(map(len, value.values()))),
        )
    if isinstance(value, Mapping) and _is_map_of_lists(value):
        # Usually systems and their answers, or the splits of a data set.
        key = "split" if {*map(str.lower, value)} <= _SPLITS else "object.*"
        value = [{key: name, **record} for name, several in value.items() for record in several]
    elif isinstance(value, Mapping) and (len(lines) > 1 or path.suffix.lower() == ".json"):
        place, value = _records_in(value)
        notes += [f"the records are the list {place!r}"] if place else []
    records = [value] if isinstance(value, Mapping) else value
    if not isinstance(records, list) or not records or not all(isinstance(record, dict) for record in records):
        expected = "a list of records, or an object that contains one"
        raise FileError("no list of JSON objects", where=str(path), expected=expected)
    records = _label_studio(records) or records
    result = _flat(records, range(1, len(records) + 1))
    result.notes[:0] = notes
    return result


def _each(path: Path, lines: Sequence[tuple[int, str]]) -> list[Any]:
    expected = "one JSON object per line"
    return [parse_json(line, str(path), expected=expected, line=number) for number, line in lines]


def _of_log(tool: str, value: Any, path: Path) -> File:  # noqa: ANN401
    log = read_log(tool, value, path)
    # A score may have the same name as one of our columns.
    rows = [record | {f"{name} (score)": value for name, value in record["scores"].items()} for record in log.records]
    frame = pd.DataFrame(rows).drop(columns="scores")
    return File(frame, range(1, len(frame) + 1), [f"a log of {tool}", *log.notes], log)


def _records_in(value: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the largest list of objects in a document, with its path; the document itself if there is none."""
    lists: list[tuple[int, str, list[Any]]] = []

    def look(node: Any, place: str) -> None:  # noqa: ANN401
        if isinstance(node, Mapping):
            for key, one in node.items():
                look(one, f"{place}.{key}" if place else str(key))
        elif isinstance(node, list) and node and _is_nested(node) and not _is_utterances(node):
            lists.append((len(json.dumps(node, default=str)), place, node))

    if not _is_map(value):
        look(value, "")
    # Other content of a single record belongs to it.
    whole = len(json.dumps(value, default=str))
    lists = [one for one in lists if 2 * one[0] > whole]
    return max(lists, key=lambda one: (one[0], -len(one[1])))[1:] if lists else ("", value)


def _is_nested(cell: Any) -> bool:  # noqa: ANN401
    return isinstance(cell, dict) or (
        isinstance(cell, list) and bool(cell) and all(isinstance(one, dict) for one in cell)
    )


def _is_map(node: Mapping[str, Any]) -> bool:
    """Return whether an object maps names to records of one shape, such as systems to answers."""
    values = list(node.values())
    if not values or not all(isinstance(one, dict) and one for one in values):
        return False
    if len(values) == 1:
        return next(iter(node)).isdigit()
    keys = [set(one) for one in values]
    return len(set.intersection(*keys)) >= _ALIKE * len(set.union(*keys))


def _is_map_of_lists(node: Mapping[str, Any]) -> bool:
    """Return whether an object maps two or more names to lists of records of one shape."""
    lists = [*node.values()]
    if len(lists) < 2 or not all(isinstance(one, list) and _is_nested(one) for one in lists):
        return False
    keys = [set(record) for several in lists for record in several]
    return len(set.intersection(*keys)) >= _ALIKE * len(set.union(*keys))


def _is_map_of_labels(node: Mapping[str, Any]) -> bool:
    """Return whether an object maps raters to their labels of many items."""
    if len(node) < 2 or not all(isinstance(one, dict) and one for one in node.values()):
        return False
    items = {item for one in node.values() for item in one}
    return len(items) > max(20, 2 * len(node)) and all(
        isinstance(label, str | int | float) for one in node.values() for label in one.values()
    )


def _by_place(file: File) -> File:
    """Expand lists of a few numbers, possibly written as text, to one row per entry: ratings by several raters."""
    texts = ("references", "reference", "history", "facts")
    rated = [name for name in file.frame if name not in texts and _are_ratings(file.frame[name])]
    lists = {name: [_ratings(cell) for cell in file.frame[name]] for name in rated}
    counts = [{len(cells[row]) for cells in lists.values() if cells[row]} for row in range(len(file.frame))]
    if not lists or max(map(len, counts)) > 1:
        return file
    rows, numbers = [], []
    for row, (place_in_file, record) in enumerate(zip(file.rows, file.frame.to_dict("records"), strict=True)):
        for place in range(max(counts[row], default=1)):
            cells = {name: cells[row][place] if cells[row] else None for name, cells in lists.items()}
            rows.append({**record, **cells, _PLACES: place + 1 if counts[row] else None})
            numbers.append(place_in_file)
    frame = pd.DataFrame(rows, columns=[*file.frame.columns, _PLACES], dtype=object)
    note = f"{len(file.frame)} records hold {len(rows)} rows, one a place of the lists in {', '.join(map(str, lists))}"
    return File(frame, numbers, [*file.notes, note])


def _are_ratings(cells: pd.Series) -> bool:
    filled = (cell for cell in map(_plain, cells) if not (cell is None or cell != cell or cell in ("", [])))
    first = next(filled, None)
    return bool(_ratings(first)) and all(_ratings(cell) for cell in filled)


def _ratings(cell: Any) -> list[Any]:  # noqa: ANN401
    """Return the ratings of several raters in a cell, None for missing ones; empty if it is not a short list of numbers."""
    cell = _plain(cell)
    if isinstance(cell, str) and cell.startswith("[") and cell.endswith("]"):
        with suppress(ValueError):
            cell = json.loads(cell)
    if not isinstance(cell, list) or not 2 <= len(cell) <= _MOST_RATERS:
        return []
    # Raters may explain a missing rating: "N/A (no errors)".
    numbers = [None if isinstance(one, str) and re.match(r"n/?a\b", one, re.IGNORECASE) else one for one in cell]
    known = [isinstance(one, int | float) and not isinstance(one, bool) for one in numbers if one is not None]
    return numbers if all(known) and (known or numbers != cell) else []


def _is_utterances(cell: list[dict[str, Any]]) -> bool:
    """Return whether a list of objects is a conversation without ratings, to be kept in one cell."""
    return all({*TEXTS} & {*one} and {*SPEAKERS} & {*one} for one in cell) and not any(map(_has_ratings, cell))


def _has_ratings(node: Any) -> bool:  # noqa: ANN401
    if isinstance(node, list):
        return any(map(_has_ratings, node))
    return isinstance(node, Mapping) and any(
        (RATED.search(str(key).lower()) and not isinstance(one, str | bool | None)) or _has_ratings(one)
        for key, one in node.items()
    )


def _flat(records: Sequence[Mapping[str, Any]], rows: Sequence[int]) -> File:
    """Flatten nested records: each entry of an inner list or map of records becomes a row.

    Columns are named by path, shortened to the unique part; the keys of a map form the column ``*``.
    """
    flat: list[dict[str, Any]] = []
    numbers: list[int] = []
    left: Counter[str] = Counter()
    for place, record in zip(rows, records, strict=True):
        for row in _rows(record, "", left):
            flat.append(row)
            numbers.append(place)
    paths = list(dict.fromkeys(name for row in flat for name in row))
    names = _short(paths)
    frame = pd.DataFrame(
        [{names[name]: cell for name, cell in row.items()} for row in flat], columns=[names[name] for name in paths]
    )
    notes = [f"{len(records)} records hold {len(flat)} rows"] if len(flat) > len(records) else []
    notes += [f"not read: the list {name!r} beside another one" for name in left]
    return File(frame.astype(object).where(frame.notna(), None), numbers, notes)


def _rows(node: Mapping[str, Any], place: str, left: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a record: its own cells, combined with those of its largest inner list or map."""
    own: dict[str, Any] = {}
    inner: list[tuple[int, str, list[tuple[Any, Any]]]] = []
    if place and _is_map(node):
        inner.append((0, f"{place}.*", list(node.items())))
    for key, cell in () if inner else _inline(node, place):
        if isinstance(cell, Mapping) and cell:
            inner.append((len(str(cell)), f"{key}.*", list(cell.items())))
        elif _is_nested(cell) and not _is_utterances(cell):
            inner.append((len(str(cell)), f"{key}[]", list(enumerate(cell, start=1))))
        else:
            own[key] = None if cell == {} else cell
    if _VOTED.search(" ".join(map(repr, _keys(node)))):
        # The two sides of a vote become columns.
        for one in list(inner):
            if sides := _two_sides(one):
                inner.remove(one)
                own |= sides
    if not inner:
        yield own
        return
    inner.sort(key=lambda one: -one[0])
    if alike := [one for one in inner[1:] if one[1].endswith("[]") and _are_alike(inner[0][2], one[2])]:
        # Lists of one shape, such as ratings by experts and by the crowd, are concatenated.
        parts = [inner[0], *alike]
        items = [(f"{key.removesuffix('[]')} {number}", one) for _, key, several in parts for number, one in several]
        inner = [(0, _LISTS, items), *(one for one in inner if one not in parts)]
    for _, key, _ in inner[1:]:
        left[key] += 1
    _, key, items = inner[0]
    for name, one in items:
        for row in _rows(one, key, left):
            yield {**own, key: name, **row}


def _keys(node: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the keys of an object and of everything in it."""
    if isinstance(node, Mapping):
        for key, cell in node.items():
            yield str(key)
            yield from _keys(cell)
    elif isinstance(node, list):
        for one in node[:2]:
            yield from _keys(one)


def _two_sides(inner: tuple[int, str, list[tuple[Any, Any]]]) -> dict[str, Any]:
    """Return the cells of ``{"a": {…}, "b": {…}}`` or of a two-item list, by name and side; otherwise nothing."""
    _, key, items = inner
    names = [str(name).lower() for name, _ in items]
    if (
        len(items) != 2
        or not all(isinstance(one, dict) for _, one in items)
        or _VOTED.search(" ".join(map(repr, _keys(items[0][1]))))
    ):
        return {}
    if key.endswith("[]"):
        names = ["0", "1"]
    elif tuple(names) not in _TWO:
        return {}
    return {f"{name}_{side}": cell for side, (_, one) in zip(names, items, strict=True) for name, cell in one.items()}


def _are_alike(one: Sequence[tuple[Any, Any]], other: Sequence[tuple[Any, Any]]) -> bool:
    """Return whether two lists of records share a vote, or most of their keys."""
    first, second = set(_keys([item for _, item in one])), set(_keys([item for _, item in other]))
    voted = [name for name in first & second if _VOTED.search(repr(name))]
    return bool(voted) or len(first & second) >= _ALIKE * len(first | second)


def _inline(node: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    """Yield the cells of an object and of nested objects that are not maps, by path."""
    for key, cell in node.items():
        name = f"{place}.{key}" if place else str(key)
        if isinstance(cell, Mapping) and cell and not _is_map(cell):
            yield from _inline(cell, name)
        else:
            yield name, cell


def _short(paths: Sequence[str]) -> dict[str, str]:
    """Return the shortest unique suffix of each path."""
    names = {}
    for path in paths:
        parts = path.split(".")
        endings = [".".join(parts[-count:]) for count in range(1, len(parts) + 1)]
        # Generic names need the name of their parent.
        endings = endings[1:] if parts[-1] in _GENERIC and len(parts) > 1 else endings
        names[path] = next(
            (end for end in endings if sum(other == end or other.endswith(f".{end}") for other in paths) == 1), path
        )
    return names


def _label_studio(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """Return one record per annotation of a Label Studio export; None if it is not one."""
    if not all(isinstance(one.get("data"), dict) and isinstance(one.get("annotations"), list) for one in records):
        return None
    rows = []
    for task in records:
        for annotation in task["annotations"]:
            answers = {}
            for one in annotation.get("result", []):
                kind, value = one.get("type"), one.get("value", {})
                if kind == "pairwise":
                    answers["winner"] = value.get("selected")
                elif kind in value:
                    cell = value[kind]
                    is_one = kind == "choices" and len(cell) == 1
                    answers[str(one.get("from_name"))] = cell[0] if is_one else cell
            if not annotation.get("was_cancelled"):
                about = {"task_id": task.get("id"), **task["data"], "annotator": annotation.get("completed_by")}
                rows.append(about | answers)
    return rows or None
