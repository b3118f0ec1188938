"""A researcher's own rated file: CSV, JSONL or Parquet, one row per rating or per response."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
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
# Names often used for our columns but ambiguous: only used as a hint.
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
    """The content of a rating file.

    ``units`` gives each record's level, item_id and system_id; the first two are None for a record of neither a response nor a
    dialogue. ``named`` lists our columns in the file, ``ignored`` the others; ``scales`` gives the origin of each dimension's
    scale: ``option``, ``columns`` or ``data``.
    """

    tables: Tables
    units: pd.DataFrame
    ignored: tuple[str, ...]
    scales: Mapping[str, str]
    named: frozenset[str]
    layout: Layout


def read(dataset: str, files: Files, options: Mapping[str, Any] | None = None) -> Tables:
    """Read the file ``table`` with :func:`read_content` and :func:`report`."""
    return report(dataset, read_content(dataset, files["table"], options)).tables


def report(dataset: str, content: Content) -> Content:
    """Log the notes on a file's content and return the content."""
    for note in notes(content):
        log.warning("%s: %s", dataset, note)
    return content


def notes(content: Content, used: Collection[str] = ()) -> list[str]:
    """Report unused columns, unknown scales, and dialogues without a response.

    ``used`` lists further columns that the caller uses.
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
    """The rated levels and dimensions, and the raters."""

    levels: tuple[str, ...]
    dimensions: frozenset[str]
    sources: frozenset[str]


def rated(path: str | Path, options: Mapping[str, Any] | None = None) -> Rated:
    """Return what a file rates without validating its records, since the workflow calls this at every start.

    Column and option arguments and errors are those of :func:`read_content`.
    """
    layout = _read_once(Path(path), options)
    frame = layout.frame
    level = frame["response"].map(lambda cell: "dialogue" if is_missing(cell) else "turn")
    sources = frame.get("source", pd.Series("human", index=frame.index))
    sources = sources.map(lambda cell: "human" if is_missing(cell) else str(cell).strip())
    levels, dimensions, raters = set(), set(), set()
    for column, dimension in layout.dimensions.items():
        given = frame[column].map(lambda cell: number(cell) is not None).astype(bool)
        levels |= {*level[given]}
        named = frame["dimension"] if dimension is None else pd.Series(dimension, index=frame.index)
        dimensions |= {str(name).strip() for name in named[given]}
        raters |= {*sources[given]}
    return Rated(tuple(level for level in RATED_LEVELS if level in levels), frozenset(dimensions), frozenset(raters))


def texts(path: str | Path, options: Mapping[str, Any] | None = None) -> tuple[list[str], list[str]]:
    """Return a file's responses and references; arguments as for :func:`rated`."""
    frame = _read_once(Path(path), options).frame
    cells = enumerate(frame.get("references", ()), start=1)
    references = [str(text) for row, cell in cells for text in entries(cell, f"{path}, record {row}")]
    return [str(cell) for cell in frame["response"] if not is_missing(cell)], references


def with_hint(column: str) -> str:
    """Return the name of an unused column, with our column that it may correspond to."""
    meant = _OTHERS.get(plain(column)) or next(
        iter(get_close_matches(plain(column), [*COLUMNS, *NAMES["references"]], 1, 0.8)), None
    )
    return f"{column} (did you mean {meant}?)" if meant else column


def read_content(
    dataset: str, path: str | Path, options: Mapping[str, Any] | None = None, file: File | None = None
) -> Content:
    """Read a CSV, JSONL or Parquet file of rated responses with the columns :data:`COLUMNS`.

    ``docs/adding-a-dataset.md`` lists the defaults for missing columns. Options: ``columns``, our name -> the file's
    (``rating`` may be a list of columns, one per dimension), and ``scale``, ``[low, high]`` or dimension -> ``[low, high]``.
    ``file`` is the content if it has been read; ``path`` then only names it in messages.

    Raises
    ------
    SchemaError
        If a column is missing or a record is invalid; gives the file, the record and what was expected.
    ConfigError
        If an option is wrong.
    """
    path, options = Path(path), options or {}
    layout = _read(path, options, file)
    frame, dimensions = layout.frame, layout.dimensions
    if frame.empty:
        raise SchemaError("no records", where=str(path), expected="one record a rating, or one a response")
    # A rating column may have one of our names, such as "kind" for how kind a response is.
    ours = [name for name in COLUMNS if name in frame and name not in dimensions]
    rows = zip(
        frame[ours].itertuples(index=False, name=None),
        frame[[*dimensions]].itertuples(index=False, name=None),
        strict=True,
    )
    turns: dict[Any, _Turn] = {}
    records = [
        _Record(
            place,
            f"{path}, record {place}",
            dict(zip(ours, cells, strict=True)),
            dict(zip(dimensions, ratings, strict=True)),
            dimensions,
            turns,
        )
        for place, (cells, ratings) in enumerate(rows, start=1)
    ]
    kinds = _kinds(records)
    answers = _answers(records, kinds)
    if not answers:
        raise SchemaError("no responses", where=str(path), expected="responses, which metrics can score")
    ratings, origins = _ratings(records, options, layout)
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
    """Return a file's records under our column names, and its rating columns with their dimensions."""
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


def _read_once(path: Path, options: Mapping[str, Any] | None) -> Layout:
    """Cached :func:`_read`; the file is read again if it or the options change."""
    state = path.stat() if path.is_file() else None
    key = (state.st_mtime_ns, state.st_size) if state else None
    return _cached(path.absolute(), path, key, json.dumps(options or {}, sort_keys=True, default=str))


@lru_cache(maxsize=4)
def _cached(_: Path, path: Path, __: object, options: str) -> Layout:
    return _read(path, json.loads(options))


# Records


_Turn = tuple[tuple[str, str], dict[str, Any]]
_TURN = ("response", "system_id", "dialogue_id", "turn", "history", "references", "facts", "context_id")


class _Record:
    """A parsed record; ``key`` identifies its context, ``about`` describes the context."""

    def __init__(
        self, number: int, where: str, cells: Mapping[str, Any], rated: Mapping[str, Any],
        dimensions: Mapping[str, str | None], turns: dict[Any, _Turn],
    ) -> None:  # fmt: skip
        self.number, self.where, self.cells = number, where, cells
        self.level: str | None = None
        self.item: str | None = None
        self.annotator: str | None = None
        self.key, self.about = ("", ""), dict[str, Any]()
        system = self.name("system_id")
        if system is None:
            raise self.wrong("no system", "the name of who wrote the response")
        self.system, self.kind, self.source = system, self.text("kind"), self.text("source") or "human"
        if self.kind not in (None, *SYSTEM_KINDS):
            raise self.wrong(repr(self.kind), f"one of {', '.join(SYSTEM_KINDS)}", "kind")
        self.ratings: list[tuple[str, float]] = []
        for column, cell in rated.items():
            value = self.number_in(column, cell, "a number from -1e15 to 1e15, one rating a cell")
            dimension = dimensions[column] or self.text("dimension")
            if value is not None and dimension is None:
                raise self.wrong("a rating, and no dimension", "what was rated")
            self.ratings += [(str(dimension), value)] if value is not None else []
        self.scale = self._scale() if self.ratings else None
        self.response, dialogue = self.get("response"), self.name("dialogue_id")
        of_turn = any(self.get(column) is not None for column in ("context_id", "turn", "history"))
        if self.response is not None:
            self.level = "turn"
            # Each rating of a response repeats it, and parsing a history is slow.
            same = tuple(str(cells.get(name)) for name in _TURN)
            if same not in turns:
                turns[same] = self._turn_of(dialogue)
            self.key, self.about = turns[same]
        elif dialogue and not (self.ratings and of_turn):
            self.level, self.item = "dialogue", dialogue
        elif self.ratings:
            expected = "the response; or, where the whole dialogue is rated, a dialogue_id, and neither "
            raise self.wrong("a rating, and no response", expected + "context_id, turn nor history")
        if self.ratings:
            self.annotator = self.name("annotator_id")
            if self.annotator is None and "annotator_id" in cells:
                raise self.wrong("no annotator", "the name of who rated")

    def _turn_of(self, dialogue: str | None) -> _Turn:
        if not isinstance(self.response, str):
            raise self.wrong(f"holds {shown(self.response)}", "a text", "response")
        turn = self._turn()
        lists = {"history": self._history(), "references": self.texts("references"), "facts": self.texts("facts")}
        name = self.name("context_id")
        about = {"dialogue_id": dialogue, "turn": turn, **lists}
        # A context is identified by its name, its content, or else its response.
        if name is not None:
            return ("name", name), about
        if any(lists.values()) or (dialogue is not None and turn is not None):
            return ("content", json.dumps([*about.values()], ensure_ascii=False)), about
        return ("response", json.dumps([dialogue, self.system, self.response], ensure_ascii=False)), about

    def wrong(self, problem: str, expected: str, column: str | None = None) -> SchemaError:
        return SchemaError(problem, where=self.at(column) if column else self.where, expected=expected)

    def at(self, column: str) -> str:
        return f"{self.where}, column {column!r}"

    def get(self, column: str) -> Any:  # noqa: ANN401
        cell = self.cells.get(column)
        return None if is_missing(cell) else cell

    def name(self, column: str) -> str | None:
        return identifier(self.cells.get(column), self.at(column))

    def text(self, column: str) -> str | None:
        cell = self.get(column)
        return None if cell is None else str(cell).strip()

    def number_in(self, column: str, cell: object, expected: str) -> float | None:
        value = number(cell)
        if isinstance(value, str):
            raise self.wrong(f"holds {value}", expected, column)
        return value

    def texts(self, column: str) -> list[str]:
        result = entries(self.cells.get(column), self.at(column))
        for entry in result:
            if not isinstance(entry, str) or not entry.strip():
                raise self.wrong(f"one entry is {shown(entry)}", "a text that is not empty", column)
        return result

    def _turn(self) -> int | None:
        expected = "a whole number of 0 or more"
        value = self.number_in("turn", self.cells.get("turn"), expected)
        if value is not None and not (0 <= value < 2**31 and value.is_integer()):
            raise self.wrong(f"holds {value:g}", expected, "turn")
        return None if value is None else int(value)

    def _history(self) -> list[dict[str, str]]:
        result: list[Any] = []
        for entry in spoken(utterances(self.cells.get("history"), self.at("history"))):
            one = {name: entry.get(name) for name in ("speaker", "text")} if isinstance(entry, Mapping) else {}
            if not one or not all(isinstance(value, str) and value.strip() for value in one.values()):
                expected = "a text that is not empty, or {speaker, text}"
                raise self.wrong(f"one entry is {shown(entry)}", expected, "history")
            result.append(one)
        return result

    def _scale(self) -> Scale | None:
        low, high = (number(self.cells.get(name)) for name in ("scale_min", "scale_max"))
        if low is None and high is None:
            return None
        if not isinstance(low, float) or not isinstance(high, float) or low > high:
            raise self.wrong(f"a scale from {low} to {high}", "scale_min and scale_max, numbers")
        return low, high


def _kinds(records: Iterable[_Record]) -> dict[str, str | None]:
    """Return the kind of each system; None if no record gives it."""
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
    """Return responses with their contexts, and set the context name of each record.

    A context that a system answered several times is split into several.
    """
    by_key: dict[tuple[str, str], list[_Record]] = {}
    for record in records:
        if record.level == "turn":
            by_key.setdefault(record.key, []).append(record)
    taken = {name for by, name in by_key if by == "name"}
    width = len(str(len(by_key)))
    # Without a turn column, count the dialogue's contexts that the same system has answered.
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
    """Return the combined description of one context."""
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
    """Return an unused context name and mark it as used."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name


def _ratings(
    records: Iterable[_Record], options: Mapping[str, Any], layout: Layout
) -> tuple[list[Row], dict[str, str]]:
    """Return the rows of ``ratings``, and the origin of each dimension's scale."""
    rated = [(record, dimension, value) for record in records for dimension, value in record.ratings]
    values: dict[str, list[float]] = {}
    stated: dict[str, set[Scale]] = {}
    for record, dimension, value in rated:
        values.setdefault(dimension, []).append(value)
        if record.scale:
            stated.setdefault(dimension, set()).add(record.scale)
    spans = {dimension: (min(given), max(given)) for dimension, given in values.items()}
    chosen = _option_scales(options.get("scale"), values)
    lower = {*(options.get("lower_is_better") or ())}
    for name in lower - {*values}:
        raise UnknownNameError("dimension", name, values, where="--lower-is-better")
    lower |= {*layout.lower}
    rows = []
    before: dict[tuple[str | None, ...], int] = {}
    for record, dimension, value in rated:
        scale = chosen.get(dimension) or record.scale
        if scale is None and dimension in stated:
            if len(stated[dimension]) > 1:
                problem = f"no scale, and other ratings of {dimension!r} have several"
                raise SchemaError(problem, where=record.where, expected="scale_min and scale_max")
            (scale,) = stated[dimension]
        low, high = scale or layout.scales.get(dimension) or spans[dimension]
        if not low <= value <= high:
            problem = f"rating {value:g} of {dimension!r} is outside its scale"
            raise SchemaError(problem, where=record.where, expected=f"{low:g} to {high:g}")
        item = (str(record.level), str(record.item), record.system)
        # Unnamed annotators, and judges, rate once.
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
        name: "option" if name in chosen else "columns" if name in stated or name in layout.scales else "data"
        for name in values
    }


def _option_scales(option: Any, dimensions: Collection[str]) -> dict[str, Scale]:  # noqa: ANN401
    """Return the scales given by the option ``scale``, by dimension."""
    scales = {}
    given = option if isinstance(option, Mapping) else dict.fromkeys(dimensions if option is not None else (), option)
    for name, ends in given.items():
        if name not in dimensions:
            raise UnknownNameError("dimension", str(name), dimensions, where="scale")
        low, high = map(number, ends) if isinstance(ends, list | tuple) and len(ends) == 2 else (None, None)
        if not (isinstance(low, float) and isinstance(high, float) and low < high):
            raise ConfigError(f"{shown(ends)}", where="scale", expected="[lowest, highest], such as [1, 5]")
        scales[str(name)] = (low, high)
    return scales
