"""A researcher's own rated file: one CSV, JSONL or Parquet file, one row a rating or one row a response."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.core.names import RATED_LEVELS
from comperdial.data.columns import NAMES, Layout, lay_out, plain, strip_markup
from comperdial.data.files import File, read_file
from comperdial.data.own_files import entries, identifier, is_missing, number, shown, spoken, utterances
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Row, Scale, Tables
from comperdial.schema.tables import SYSTEM_KINDS

log = logging.getLogger(__name__)

COLUMNS: Mapping[str, str] = {
    "response": "the text (required)",
    "system_id": "or `system`: who wrote it (required)",
    "rating": "a number (required; missing where nobody rated)",
    "context_id": "what was answered",
    "dialogue_id": "the dialogue that it is part of",
    "turn": "a whole number of 0 or more",
    "history": "a list of utterances before the response: texts, or {speaker, text}",
    "references": "or `reference`: a text, or a list of texts",
    "facts": "a text, or a list of texts",
    "annotator_id": "or `annotator`: who rated",
    "dimension": "what was rated",
    "scale_min": "lowest rating possible",
    "scale_max": "highest rating possible",
    "source": "whose ratings: human, or the name of a judge",
    "kind": f"what the system is: {', '.join(SYSTEM_KINDS)}",
}
# What such columns are often called, where it may be something else: only a hint.
_OTHERS = {
    "context": "history, or context_id",
    "score": "rating",
    "fact": "facts",
    "knowledge": "facts",
    "rater": "annotator",
}
_OPTIONS = ("columns", "scale", "labels", "lower_is_better", "sheet", "strip_markup")
_SAME_TEXT = "Where two responses with the same text are meant, give each a context_id of its own"


@dataclass(frozen=True)
class Content:
    """What a file of ratings holds.

    ``units`` says what each record is of: level, item_id, system_id; the first two are None for a record of neither a
    response nor a dialogue. ``named`` are our columns that the file has, ``ignored`` its others; ``scales`` says where the
    scale of each dimension is from: ``option``, ``columns`` or ``data``.
    """

    tables: Tables
    units: pd.DataFrame
    ignored: tuple[str, ...]
    scales: Mapping[str, str]
    named: frozenset[str]
    layout: Layout


def read(dataset: str, files: Files, options: Mapping[str, Any] | None = None) -> Tables:
    """Read the file ``table``: :func:`read_content`, then :func:`report`."""
    return report(dataset, read_content(dataset, files["table"], options)).tables


def report(dataset: str, content: Content) -> Content:
    """Log the notes on a file's content, and return it."""
    for note in notes(content):
        log.warning("%s: %s", dataset, note)
    return content


def notes(content: Content, used: Collection[str] = ()) -> list[str]:
    """Say which columns of a file are not used, which scales are not given, and which dialogues have no response.

    ``used`` are columns without a meaning of ours that the caller uses.
    """
    made = []
    if ignored := [name for name in content.ignored if name not in used]:
        made.append(f"columns not used: {', '.join(map(with_hint, ignored))}")
    ratings = content.tables["ratings"]
    for name in (name for name, origin in content.scales.items() if origin == "data"):
        rated = ratings.loc[ratings["dimension"] == name, "rating"]
        used = f"used is the range of the ratings, {rated.min():g} to {rated.max():g}"
        made.append(f"no scale is given for {name}: {used}")
    whole, responses = ratings[ratings["level"] == "dialogue"], content.tables["responses"]
    dialogues = responses["context_id"].map(content.tables["contexts"].set_index("context_id")["dialogue_id"])
    answered = set(zip(dialogues, responses["system_id"], strict=True))
    if lost := set(zip(whole["item_id"], whole["system_id"], strict=True)) - answered:
        item, system = min(lost)
        made.append(f"{len(lost)} rated dialogues have no response in the file, the first: {item} by {system}")
    return made


class Rated(NamedTuple):
    """What a file rates: at which levels, which dimensions, and who did."""

    levels: tuple[str, ...]
    dimensions: frozenset[str]
    sources: frozenset[str]


def rated(path: str | Path, options: Mapping[str, Any] | None = None) -> Rated:
    """Return what a file rates, without checking its records: the workflow asks at each start.

    Parameters and errors of columns and options are those of :func:`read_content`.
    """
    layout = _read(Path(path), options or {})
    frame = layout.frame
    result = set()
    for column, dimension in layout.dimensions.items():
        named = frame["dimension"] if dimension is None else [dimension] * len(frame)
        sources = frame.get("source", [None] * len(frame))
        for response, what, source, cell in zip(frame["response"], named, sources, frame[column], strict=True):
            if number(cell) is not None:
                level = "dialogue" if is_missing(response) else "turn"
                result.add((level, str(what).strip(), "human" if is_missing(source) else str(source).strip()))
    levels, dimensions, raters = ({part[place] for part in result} for place in range(3))
    return Rated(tuple(level for level in RATED_LEVELS if level in levels), frozenset(dimensions), frozenset(raters))


def texts(path: str | Path, options: Mapping[str, Any] | None = None) -> tuple[list[str], list[str]]:
    """Return the responses of a file, and their references, as :func:`rated`."""
    frame = _read(Path(path), options or {}).frame
    cells = enumerate(frame.get("references", ()), start=1)
    references = [str(text) for row, cell in cells for text in entries(cell, f"{path}, record {row}")]
    return [str(cell) for cell in frame["response"] if not is_missing(cell)], references


def with_hint(column: str) -> str:
    """Return the name of a column that is not used, with the name of ours that may be meant by it."""
    meant = _OTHERS.get(plain(column)) or next(
        iter(get_close_matches(plain(column), [*COLUMNS, *NAMES["references"]], 1, 0.8)), None
    )
    return f"{column} (did you mean {meant}?)" if meant else column


def read_content(
    dataset: str, path: str | Path, options: Mapping[str, Any] | None = None, file: File | None = None
) -> Content:
    """Read one CSV, JSONL or Parquet file of rated responses, whose columns are :data:`COLUMNS`.

    ``docs/adding-a-dataset.md`` says what is taken for what a file leaves out. Options: ``columns``, our name -> the file's
    (for ``rating`` it may be a list of columns, one a dimension), and ``scale``, ``[low, high]`` or dimension ->
    ``[low, high]``. ``file`` is what the file holds, if it has been read; ``path`` is then what messages call it.

    Raises
    ------
    SchemaError
        When a column is missing, or a record breaks a rule: names the file, the record and what was expected.
    ConfigError
        When an option is wrong.
    """
    path, options = Path(path), options or {}
    layout = _read(path, options, file)
    frame, dimensions = layout.frame, layout.dimensions
    if frame.empty:
        raise SchemaError("no records", where=str(path), expected="one record a rating, or one a response")
    # A column of ratings may have one of our names, such as "kind" for how kind a response is.
    ours = [name for name in COLUMNS if name in frame and name not in dimensions]
    records = []
    for place, row in enumerate(zip(*(frame[name] for name in [*ours, *dimensions]), strict=True), start=1):
        cells, rated = dict(zip(ours, row, strict=False)), dict(zip(dimensions, row[len(ours) :], strict=True))
        records.append(_record(place, _Cells(f"{path}, record {place}", cells), rated, dimensions))
    kinds = _kinds(records)
    answers = _answers(records, kinds)
    if not answers:
        raise SchemaError("no responses", where=str(path), expected="responses, which metrics can score")
    ratings, origins = _ratings(records, options, layout.scales)
    systems = [base.system(name, kind or "agent") for name, kind in kinds.items()]
    units = [(record.level, record.item, record.system) for record in records]
    return Content(
        base.tables(dataset, {"table": path}, systems, answers, ratings),
        pd.DataFrame(units, columns=["level", "item_id", "system_id"], dtype=object),
        tuple(name or "(without a name)" for name in layout.unused),
        origins,
        frozenset({*ours, "rating"}),
        layout,
    )


# Columns


def _read(path: Path, options: Mapping[str, Any], file: File | None = None) -> Layout:
    """Return a file's records under our names, and its columns of ratings with the dimension of each."""
    for name in options:
        if name not in _OPTIONS:
            raise UnknownNameError("option", str(name), _OPTIONS, where=f"options of {path}")
    columns = options.get("columns") or {}
    if not isinstance(columns, Mapping):
        expected = "our name -> the file's, such as {response: reply, rating: [warmth, humour]}"
        raise ConfigError(f"columns is {shown(columns)}", where=f"options of {path}", expected=expected)
    layout = lay_out(file or read_file(path, options.get("sheet")), path, columns, options.get("labels"))
    if options.get("strip_markup"):
        strip_markup(layout)
    return layout


# Records


@dataclass
class _Record:
    """What a record says; ``key`` tells its context from others, ``about`` is what it says of it."""

    number: int
    where: str
    system: str
    kind: str | None = None
    level: str | None = None
    item: str | None = None
    response: str = ""
    key: tuple[str, str] = ("", "")
    about: dict[str, Any] = field(default_factory=dict)
    annotator: str | None = None
    source: str = "human"
    ratings: list[tuple[str, float]] = field(default_factory=list)
    scale: Scale | None = None


class _Cells(NamedTuple):
    """The cells of one record, by our names for its columns."""

    where: str
    cells: Mapping[str, Any]

    def at(self, column: str) -> str:
        return f"{self.where}, column {column!r}"

    def get(self, column: str) -> Any:  # noqa: ANN401
        cell = self.cells.get(column)
        return None if is_missing(cell) else cell

    def is_of_turn(self) -> bool:
        return any(self.get(column) is not None for column in ("context_id", "turn", "history"))

    def name(self, column: str) -> str | None:
        return identifier(self.cells.get(column), self.at(column))

    def text(self, column: str) -> str | None:
        cell = self.get(column)
        return None if cell is None else str(cell).strip()

    def turn(self) -> int | None:
        value = number(self.cells.get("turn"))
        if isinstance(value, str) or (value is not None and not (0 <= value < 2**31 and value.is_integer())):
            held = value if isinstance(value, str) else f"{value:g}"
            raise SchemaError(f"holds {held}", where=self.at("turn"), expected="a whole number of 0 or more")
        return None if value is None else int(value)

    def texts(self, column: str) -> list[str]:
        result = entries(self.cells.get(column), self.at(column))
        for entry in result:
            if not isinstance(entry, str) or not entry.strip():
                problem = f"one entry is {shown(entry)}"
                raise SchemaError(problem, where=self.at(column), expected="a text that is not empty")
        return result

    def history(self) -> list[dict[str, str]]:
        result: list[Any] = []
        for entry in spoken(utterances(self.cells.get("history"), self.at("history"))):
            one = {name: entry.get(name) for name in ("speaker", "text")} if isinstance(entry, Mapping) else {}
            if not one or not all(isinstance(value, str) and value.strip() for value in one.values()):
                expected = "a text that is not empty, or {speaker, text}"
                raise SchemaError(f"one entry is {shown(entry)}", where=self.at("history"), expected=expected)
            result.append(one)
        return result

    def scale(self) -> Scale | None:
        low, high = (number(self.cells.get(name)) for name in ("scale_min", "scale_max"))
        if low is None and high is None:
            return None
        if not isinstance(low, float) or not isinstance(high, float) or low > high:
            expected = "scale_min and scale_max, numbers"
            raise SchemaError(f"a scale from {low} to {high}", where=self.where, expected=expected)
        return low, high


def _record(place: int, cells: _Cells, rated: Mapping[str, Any], dimensions: Mapping[str, str | None]) -> _Record:
    system = cells.name("system_id")
    if system is None:
        raise SchemaError("no system", where=cells.where, expected="the name of who wrote the response")
    record = _Record(place, cells.where, system, cells.text("kind"), source=cells.text("source") or "human")
    if record.kind not in (None, *SYSTEM_KINDS):
        raise SchemaError(repr(record.kind), where=cells.at("kind"), expected="one of " + ", ".join(SYSTEM_KINDS))
    for column, cell in rated.items():
        value = number(cell)
        if isinstance(value, str):
            expected = "a number from -1e15 to 1e15, one rating a cell"
            raise SchemaError(f"holds {value}", where=cells.at(column), expected=expected)
        if value is not None:
            dimension = dimensions[column] or cells.text("dimension")
            if dimension is None:
                raise SchemaError("a rating, and no dimension", where=cells.where, expected="what was rated")
            record.ratings.append((dimension, value))
    record.scale = cells.scale() if record.ratings else None
    response, dialogue = cells.get("response"), cells.name("dialogue_id")
    if response is not None:
        if not isinstance(response, str):
            raise SchemaError(f"holds {shown(response)}", where=cells.at("response"), expected="a text")
        record.level, record.response = "turn", response
        record.about = {
            "dialogue_id": dialogue,
            "turn": cells.turn(),
            "history": cells.history(),
            "references": cells.texts("references"),
            "facts": cells.texts("facts"),
        }
        record.key = _key(cells.name("context_id"), record)
    elif dialogue and not (record.ratings and cells.is_of_turn()):
        record.level, record.item = "dialogue", dialogue
    elif record.ratings:
        expected = "the response; or, where the whole dialogue is rated, a dialogue_id, and neither context_id, turn nor history"
        raise SchemaError("a rating, and no response", where=cells.where, expected=expected)
    if record.ratings:
        record.annotator = cells.name("annotator_id")
        if record.annotator is None and "annotator_id" in cells.cells:
            raise SchemaError("no annotator", where=cells.where, expected="the name of who rated")
    return record


def _key(name: str | None, record: _Record) -> tuple[str, str]:
    """Return what tells a record's context from others: its name, what it holds, or else the response."""
    dialogue, turn, *lists = record.about.values()
    if name is not None:
        return "name", name
    if any(lists) or (dialogue is not None and turn is not None):
        return "content", json.dumps([dialogue, turn, *lists], ensure_ascii=False)
    return "response", json.dumps([dialogue, record.system, record.response], ensure_ascii=False)


def _kinds(records: Iterable[_Record]) -> dict[str, str | None]:
    """Return the kind of each system, None where no record says it."""
    kinds: dict[str, str | None] = {}
    for record in records:
        known = kinds.setdefault(record.system, record.kind)
        if known and record.kind and record.kind != known:
            problem = f"system {record.system!r} is {record.kind}, and before it was {known}"
            raise SchemaError(problem, where=f"{record.where}, column 'kind'", expected="one kind a system")
        kinds[record.system] = known or record.kind
    return kinds


# Tables


def _answers(records: Iterable[_Record], kinds: Mapping[str, str | None]) -> list[Row]:
    """Return the responses with their contexts, and give each record of one its context's name.

    A context that a system answered several times becomes as many contexts.
    """
    by_key: dict[tuple[str, str], list[_Record]] = {}
    for record in records:
        if record.level == "turn":
            by_key.setdefault(record.key, []).append(record)
    taken = {name for by, name in by_key if by == "name"}
    width = len(str(len(by_key)))
    # Without a column, a turn is how many of the dialogue's contexts the same system answered before.
    turns: Counter[tuple[str, str]] = Counter()
    rows = []
    for place, (key, group) in enumerate(by_key.items(), start=1):
        about = _about(group)
        answers: dict[str, dict[str, None]] = {}
        for record in group:
            answers.setdefault(record.system, {})[record.response] = None
        name = key[1] if key[0] == "name" else _free(f"{place:0{width}d}", taken)
        names = [name, *(_free(f"{name} ({copy})", taken) for copy in range(2, max(map(len, answers.values())) + 1))]
        dialogue = about.get("dialogue_id") or name
        turn = about.get("turn", max(turns[dialogue, system] for system in answers))
        for system in answers:
            turns[dialogue, system] = turn + 1
        references = [text for system, given in answers.items() if kinds[system] == "reference" for text in given]
        references = about.get("references") or references
        items = {}
        for system, given in answers.items():
            for item, text in zip(names, given, strict=False):
                items[system, text] = item
                facts = about.get("facts", [])
                rows.append(
                    base.answer(item, dialogue, turn, about.get("history", []), system, text, references, facts)
                )
        for record in group:
            record.item = items[record.system, record.response]
    return rows


def _about(group: Iterable[_Record]) -> dict[str, Any]:
    """Return what the records of one context say of it."""
    first: dict[str, _Record] = {}
    for record in group:
        for column, value in record.about.items():
            if value is None or value == []:
                continue
            known = first.setdefault(column, record)
            if known.about[column] != value:
                named = repr(record.key[1]) if record.key[0] == "name" else "of this response"
                raise SchemaError(
                    f"context {named} has another {column} than in record {known.number}: {shown(value)}, "
                    f"and {shown(known.about[column])} there",
                    where=record.where,
                    expected="each context_id for one context",
                    hint="Contexts of different dialogues need names of their own, such as <dialogue>-<turn>",
                )
    return {column: record.about[column] for column, record in first.items()}


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no context has, and take it."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name


def _ratings(
    records: Iterable[_Record], options: Mapping[str, Any], by_name: Mapping[str, Scale]
) -> tuple[list[Row], dict[str, str]]:
    """Return the rows of ``ratings``, and where the scale of each dimension is from."""
    rated = [(record, dimension, value) for record in records for dimension, value in record.ratings]
    values: dict[str, list[float]] = {}
    stated: dict[str, set[Scale]] = {}
    for record, dimension, value in rated:
        values.setdefault(dimension, []).append(value)
        if record.scale:
            stated.setdefault(dimension, set()).add(record.scale)
    spans = {dimension: (min(given), max(given)) for dimension, given in values.items()}
    chosen = _option_scales(options.get("scale"), values)
    lower = options.get("lower_is_better") or ()
    for name in lower:
        if name not in values:
            raise UnknownNameError("dimension", name, values, where="--lower-is-better")
    rows = []
    before: dict[tuple[str | None, ...], int] = {}
    for record, dimension, value in rated:
        scale = chosen.get(dimension) or record.scale
        if scale is None and dimension in stated:
            if len(stated[dimension]) > 1:
                problem = f"no scale, and other ratings of {dimension!r} have several"
                raise SchemaError(problem, where=record.where, expected="scale_min and scale_max")
            (scale,) = stated[dimension]
        low, high = scale or by_name.get(dimension) or spans[dimension]
        if not low <= value <= high:
            problem = f"rating {value:g} of {dimension!r} is outside its scale"
            raise SchemaError(problem, where=record.where, expected=f"{low:g} to {high:g}")
        item = (str(record.level), str(record.item), record.system)
        # One who is not named rates once, as does each judge.
        annotator = record.annotator or ("1" if record.source == "human" else record.source)
        key = (*item, annotator, dimension)
        if key in before:
            what = "a dialogue" if record.level == "dialogue" else "a response"
            by = f" by annotator {record.annotator!r}" if record.annotator else ""
            raise SchemaError(
                f"{what} has several ratings of {dimension!r}{by}: record {before[key]} rates it too",
                where=record.where,
                expected="each once" if by else "a column `annotator_id` that says whose each is",
                hint=_SAME_TEXT if record.level == "turn" else None,
            )
        before[key] = record.number
        value = low + high - value if dimension in lower else value
        rows.append(base.rating(item, annotator, dimension, value, (low, high), source=record.source))
    return rows, {
        name: "option" if name in chosen else "columns" if name in stated or name in by_name else "data"
        for name in values
    }


def _option_scales(option: Any, dimensions: Collection[str]) -> dict[str, Scale]:  # noqa: ANN401
    """Return the scale of each dimension that the option ``scale`` gives."""
    scales = {}
    given = option if isinstance(option, Mapping) else dict.fromkeys(dimensions, option) if option is not None else {}
    for name, ends in given.items():
        if name not in dimensions:
            raise UnknownNameError("dimension", str(name), dimensions, where="scale")
        result = (
            [value for end in ends if isinstance(value := number(end), float)] if isinstance(ends, list | tuple) else []
        )
        if len(result) != 2 or len(result) != len(ends) or not result[0] < result[1]:
            raise ConfigError(f"{shown(ends)}", where="scale", expected="[lowest, highest], such as [1, 5]")
        scales[str(name)] = (result[0], result[1])
    return scales
