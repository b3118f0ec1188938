"""A researcher's own rated file: one CSV, JSONL or Parquet file, one row a rating or one row a response."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.core.names import RATED_LEVELS
from comperdial.data.own_files import (
    ALIASES,
    entries,
    identifier,
    is_missing,
    number,
    read_columns,
    shown,
    spoken,
    utterances,
)
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables
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
_NEEDED = ("response", "system_id", "rating")
_OPTIONS = ("columns", "scale")
_Scale = tuple[float, float]
_SAME_TEXT = "Where two responses with the same text are meant, give each a context_id of its own"


@dataclass(frozen=True)
class Content:
    """What a file of ratings holds.

    Attributes
    ----------
    tables
        The tables.
    records
        How many rows the file has.
    ignored
        Its columns that are none of ours.
    scales
        Dimension -> where its scale is from: ``option``, ``columns`` or ``data``.
    named
        Our columns that the file has.
    """

    tables: Tables
    records: int
    ignored: tuple[str, ...]
    scales: Mapping[str, str]
    named: frozenset[str]


@dataclass
class _Context:
    """A context under way: what rows said of it, and the record that said it first."""

    said: dict[str, Any] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Rating:
    """A rating of a context's response, or, without a context, of a dialogue."""

    number: int
    context: tuple[str, ...] | None
    item: str
    system: str
    annotator: str
    dimension: str
    rating: float
    scale: _Scale | None
    source: str


def read(dataset: str, files: Files, options: Mapping[str, Any] | None = None) -> Tables:
    """Read a user's file, as :class:`RatedFile` says."""
    return RatedFile(dataset, files, options).read()


class RatedFile:
    """Reader of one CSV, JSONL or Parquet file of rated responses, whose columns are :data:`COLUMNS`.

    Files: ``table``. Options: ``columns``, our name -> the file's (for ``rating`` it may be a list of columns, one a
    dimension), and ``scale``, ``[low, high]`` or dimension -> ``[low, high]``. ``docs/adding-a-dataset.md`` says what
    is taken for what a file leaves out.
    """

    def __init__(self, dataset: str, files: Files, options: Mapping[str, Any] | None = None) -> None:
        self.dataset = dataset
        self.files = files
        self.options = options or {}

    def read(self) -> Tables:
        """Return all tables; what was understood otherwise than said is logged."""
        content = self.content()
        if content.ignored:
            log.info("%s: columns not used: %s", self.dataset, ", ".join(map(with_hint, content.ignored)))
        ratings = content.tables["ratings"]
        for name in (name for name, origin in content.scales.items() if origin == "data"):
            rated = ratings.loc[ratings["dimension"] == name, "rating"]
            log.warning(
                "%s: no scale is given for %s: used is the range of the ratings, %g to %g",
                self.dataset, name, rated.min(), rated.max(),
            )  # fmt: skip
        return content.tables

    def content(self) -> Content:
        """Return the tables, and what else is to be said of the file.

        Raises
        ------
        SchemaError
            When a column is missing, or a record breaks a rule: names the file, the record and what was expected.
        ConfigError
            When an option is wrong.
        """
        self._path = Path(self.files["table"])
        frame, rated = _read(self._path, self.options)
        if frame.empty:
            raise SchemaError("no records", where=str(self._path), expected="one record a rating, or one a response")
        # A column of ratings may have one of our names, such as "kind" for how kind a response is.
        self._cells = {name: frame[name].tolist() for name in COLUMNS if name in frame and name not in rated}
        self._rated = [(name, dimension, frame[name].tolist()) for name, dimension in rated.items()]
        self._contexts: dict[tuple[str, ...], _Context] = {}
        self._kinds: dict[str, str | None] = {}
        self._dialogues: set[tuple[str, str]] = set()
        self._units: list[tuple[str, tuple[str, ...] | None, str]] = []
        ratings = [rating for place in range(len(frame)) for rating in self._record(place)]
        if not any(context.answers for context in self._contexts.values()):
            raise SchemaError("no responses", where=str(self._path), expected="responses, which metrics can score")
        scales, origins = self._scales(ratings)
        return Content(
            self._tables(ratings, scales),
            len(frame),
            tuple(name or "(without a name)" for name in frame.columns if name not in {*self._cells, *rated}),
            origins,
            frozenset({*self._cells, "rating"}),
        )

    def units(self) -> pd.DataFrame:
        """Return what each record was of, in order, once the file is read.

        Columns: level, item_id, system_id; the first two are None for a record of neither a response nor a dialogue.
        """
        names = self._names()
        rows = [
            ("turn", self._name_of(names, context, system, item), system)
            if context
            else ("dialogue" if item else None, item or None, system)
            for system, context, item in self._units
        ]
        return pd.DataFrame(rows, columns=["level", "item_id", "system_id"], dtype=object)

    def _cell(self, name: str, place: int) -> Any:  # noqa: ANN401
        return self._cells[name][place] if name in self._cells else None

    def _where(self, place: int, column: str | None = None) -> str:
        return f"{self._path}, record {place + 1}" + (f", column {column!r}" if column else "")

    def _name(self, name: str, place: int) -> str | None:
        return identifier(self._cell(name, place), self._where(place, name))

    def _record(self, place: int) -> Iterator[_Rating]:
        """Take in a record, and yield its ratings."""
        system = self._name("system_id", place)
        if system is None:
            raise SchemaError("no system", where=self._where(place), expected="the name of who wrote the response")
        self._take_kind(system, place)
        dialogue = self._name("dialogue_id", place)
        found = list(self._ratings_of(place))
        response = self._cell("response", place)
        context: tuple[str, ...] | None = None
        if not is_missing(response):
            if not isinstance(response, str):
                raise SchemaError(f"holds {shown(response)}", where=self._where(place, "response"), expected="a text")
            context = self._take_context(place, dialogue, system, response)
            answers = self._contexts[context].answers.setdefault(system, [])
            if response not in answers:
                answers.append(response)
            item = response
            self._units.append((system, context, response))
        elif dialogue is not None and not (found and self._is_of_turn(place)):
            item = dialogue
            self._units.append((system, None, dialogue))
            if found:
                self._dialogues.add((dialogue, system))
        elif found:
            raise SchemaError(
                "a rating, and no response",
                where=self._where(place),
                expected="the response; or, where the whole dialogue is rated, a dialogue_id, and neither context_id, "
                "turn nor history",
            )
        else:
            self._units.append((system, None, ""))
            return
        annotator = self._name("annotator_id", place) if found else None
        if found and annotator is None:
            if "annotator_id" in self._cells:
                raise SchemaError("no annotator", where=self._where(place), expected="the name of who rated")
            annotator = "1"
        source = _source(self._cell("source", place))
        for dimension, rating, scale in found:
            yield _Rating(
                place + 1, context, item, system, str(annotator), dimension, rating, scale, source
            )  # fmt: skip

    def _is_of_turn(self, place: int) -> bool:
        return not all(is_missing(self._cell(name, place)) for name in ("context_id", "turn", "history"))

    def _take_kind(self, system: str, place: int) -> None:
        cell = self._cell("kind", place)
        kind = None if is_missing(cell) else str(cell).strip()
        if kind is not None and kind not in SYSTEM_KINDS:
            raise SchemaError(
                f"{shown(cell)}", where=self._where(place, "kind"), expected="one of " + ", ".join(SYSTEM_KINDS)
            )
        known = self._kinds.setdefault(system, kind)
        if known is None:
            self._kinds[system] = kind
        elif kind not in (None, known):
            raise SchemaError(
                f"system {system!r} is {kind}, and before it was {known}",
                where=self._where(place, "kind"),
                expected="one kind a system",
            )

    def _take_context(self, place: int, dialogue: str | None, system: str, response: str) -> tuple[str, ...]:
        """Take in what a record says of a context, and return what tells this context from others."""
        said = {
            "dialogue_id": dialogue,
            "turn": self._turn(place),
            "history": [self._utterance(u, place) for u in spoken(self._entries("history", place))],
            "references": self._entries("references", place),
            "facts": self._entries("facts", place),
        }
        lists = [said["history"], said["references"], said["facts"]]
        name = self._name("context_id", place)
        key: tuple[str, ...]
        if name is not None:
            key = ("name", name)
        elif any(lists) or (dialogue is not None and said["turn"] is not None):
            key = ("content", json.dumps([dialogue, said["turn"], *lists], ensure_ascii=False))
        else:
            key = ("response", json.dumps([dialogue, system, response], ensure_ascii=False))
        context = self._contexts.setdefault(key, _Context())
        for column, value in said.items():
            if value is None or value == []:
                continue
            if context.said.setdefault(column, value) != value:
                raise SchemaError(
                    f"context {name!r} has another {column} than in record {context.first[column]}: {shown(value)}, "
                    f"and {shown(context.said[column])} there",
                    where=self._where(place),
                    expected="each context_id for one context",
                    hint="Contexts of different dialogues need names of their own, such as <dialogue>-<turn>",
                )
            context.first.setdefault(column, place + 1)
        return key

    def _turn(self, place: int) -> int | None:
        value = number(self._cell("turn", place))
        if value is None:
            return None
        if isinstance(value, str) or not 0 <= value < 2**31 or not value.is_integer():
            held = value if isinstance(value, str) else f"{value:g}"
            raise SchemaError(f"holds {held}", where=self._where(place, "turn"), expected="a whole number of 0 or more")
        return int(value)

    def _entries(self, name: str, place: int) -> list[Any]:
        where = self._where(place, name)
        if name == "history":
            return utterances(self._cell(name, place), where)
        found = entries(self._cell(name, place), where)
        for entry in found:
            if not isinstance(entry, str) or not entry.strip():
                raise SchemaError(f"one entry is {shown(entry)}", where=where, expected="a text that is not empty")
        return found

    def _utterance(self, entry: Any, place: int) -> dict[str, str]:  # noqa: ANN401
        if isinstance(entry, Mapping):
            utterance = {name: entry.get(name) for name in ("speaker", "text")}
            if all(isinstance(value, str) and value.strip() for value in utterance.values()):
                return {name: str(value) for name, value in utterance.items()}
        raise SchemaError(
            f"one entry is {shown(entry)}",
            where=self._where(place, "history"),
            expected="a text that is not empty, or {speaker, text}",
        )

    def _ratings_of(self, place: int) -> Iterator[tuple[str, float, _Scale | None]]:
        """Yield dimension, rating and scale, as far as a record says them."""
        for column, named, cells in self._rated:
            value = number(cells[place])
            if value is None:
                continue
            if isinstance(value, str):
                where = self._where(place, column)
                raise SchemaError(
                    f"holds {value}", where=where, expected="a number from -1e15 to 1e15, one rating a cell"
                )
            dimension = named
            if dimension is None:
                cell = self._cell("dimension", place)
                if is_missing(cell):
                    raise SchemaError("a rating, and no dimension", where=self._where(place), expected="what was rated")
                dimension = str(cell).strip()
            yield dimension, value, self._scale_of(place)

    def _scale_of(self, place: int) -> _Scale | None:
        ends = [number(self._cell(name, place)) for name in ("scale_min", "scale_max")]
        if ends == [None, None]:
            return None
        low, high = ends
        if not isinstance(low, float) or not isinstance(high, float) or low > high:
            raise SchemaError(
                f"a scale from {low} to {high}", where=self._where(place), expected="scale_min and scale_max, numbers"
            )
        return low, high

    def _scales(self, ratings: Sequence[_Rating]) -> tuple[list[_Scale], dict[str, str]]:
        """Return the scale of each rating, and where the scale of each dimension is from."""
        option = _option_scales(self.options.get("scale"), {rating.dimension for rating in ratings})
        said: dict[str, set[_Scale]] = {}
        spans: dict[str, _Scale] = {}
        for one in ratings:
            if one.scale is not None:
                said.setdefault(one.dimension, set()).add(one.scale)
            low, high = spans.get(one.dimension, (one.rating, one.rating))
            spans[one.dimension] = (min(low, one.rating), max(high, one.rating))
        scales = []
        for one in ratings:
            scale = option.get(one.dimension) or one.scale
            if scale is None and one.dimension in said:
                if len(said[one.dimension]) > 1:
                    raise SchemaError(
                        f"no scale, and other ratings of {one.dimension!r} have several",
                        where=f"{self._path}, record {one.number}",
                        expected="scale_min and scale_max",
                    )
                (scale,) = said[one.dimension]
            scale = scale or spans[one.dimension]
            if not scale[0] <= one.rating <= scale[1]:
                raise SchemaError(
                    f"rating {one.rating:g} of {one.dimension!r} is outside its scale",
                    where=f"{self._path}, record {one.number}",
                    expected=f"{scale[0]:g} to {scale[1]:g}",
                )
            scales.append(scale)
        origins = {name: "option" if name in option else "columns" if name in said else "data" for name in spans}
        return scales, origins

    def _tables(self, ratings: Sequence[_Rating], scales: Sequence[_Scale]) -> Tables:
        names = self._names()
        contexts, responses = self._rows(names)
        rows: list[dict[str, Any]] = []
        before: dict[tuple[str, ...], int] = {}
        for one, (low, high) in zip(ratings, scales, strict=True):
            level = "dialogue" if one.context is None else "turn"
            item = one.item if one.context is None else self._name_of(names, one.context, one.system, one.item)
            key = (level, item, one.system, one.annotator, one.dimension)
            if key in before:
                raise self._twice(one, before[key])
            before[key] = one.number
            rows.append(
                base.rating(
                    level, item, one.system, one.annotator, one.dimension, one.rating, (low, high), source=one.source
                )
            )
        answered = {(c["dialogue_id"], r["system_id"]) for c, r in responses}
        if lost := sorted(self._dialogues - answered):
            log.warning(
                "%s: %d rated dialogues have no response in the file, the first: %s by %s",
                self._path, len(lost), *lost[0],
            )  # fmt: skip
        return base.tables(
            self.dataset,
            self.files,
            systems=[base.system(name, kind or "agent") for name, kind in self._kinds.items()],
            contexts=contexts,
            responses=[response for _, response in responses],
            ratings=rows,
        )

    def _twice(self, one: _Rating, first: int) -> SchemaError:
        what = "a dialogue" if one.context is None else "a response"
        by = "" if "annotator_id" not in self._cells else f" by annotator {one.annotator!r}"
        expected = "each once" if by else "a column `annotator_id` that says whose each is"
        return SchemaError(
            f"{what} has several ratings of {one.dimension!r}{by}: record {first} rates it too",
            where=f"{self._path}, record {one.number}",
            expected=expected,
            hint=None if one.context is None else _SAME_TEXT,
        )

    def _name_of(
        self, names: Mapping[tuple[str, ...], Sequence[str]], context: tuple[str, ...], system: str, response: str
    ) -> str:
        return names[context][self._contexts[context].answers[system].index(response)]

    def _names(self) -> dict[tuple[str, ...], list[str]]:
        """Return the names of each context: several where a system answered it several times."""
        width = len(str(len(self._contexts)))
        names: dict[tuple[str, ...], list[str]] = {}
        taken = {key[1] for key in self._contexts if key[0] == "name"}
        for place, (key, context) in enumerate(self._contexts.items(), start=1):
            first = key[1] if key[0] == "name" else _free(f"{place:0{width}d}", taken)
            copies = range(2, max(map(len, context.answers.values())) + 1)
            names[key] = [first, *(_free(f"{first} ({copy})", taken) for copy in copies)]
        return names

    def _rows(
        self, names: Mapping[tuple[str, ...], Sequence[str]]
    ) -> tuple[list[dict[str, Any]], list[tuple[dict[str, Any], dict[str, Any]]]]:
        """Return the rows of ``contexts``, and those of ``responses`` with their contexts'."""
        rows, responses = [], []
        # Without a column, a turn is how many of the dialogue's contexts the same system answered before.
        turns: Counter[tuple[str, str]] = Counter()
        for key, context in self._contexts.items():
            said = context.said
            dialogue = said.get("dialogue_id") or names[key][0]
            of_references = [
                text
                for system, texts in context.answers.items()
                if self._kinds[system] == "reference"
                for text in texts
            ]
            row = {
                "dialogue_id": dialogue,
                "turn": said.get("turn", max(turns[dialogue, system] for system in context.answers)),
                "history": said.get("history", []),
                "references": said.get("references") or of_references,
                "facts": said.get("facts", []),
            }
            for system in context.answers:
                turns[dialogue, system] = row["turn"] + 1
            copies = [{"context_id": name, **row} for name in names[key]]
            rows += copies
            for system, texts in context.answers.items():
                responses += [
                    (copy, {"context_id": copy["context_id"], "system_id": system, "response": text})
                    for copy, text in zip(copies, texts, strict=False)
                ]
        return rows, responses


class Rated(NamedTuple):
    """What a file rates: at which levels, which dimensions, and who did."""

    levels: tuple[str, ...]
    dimensions: frozenset[str]
    sources: frozenset[str]


def rated(path: str | Path, options: Mapping[str, Any] | None = None) -> Rated:
    """Return what a file rates, without checking its records.

    Parameters
    ----------
    path
        As :class:`RatedFile` reads it.
    options
        The reader's options.

    Raises
    ------
    FileError, SchemaError, ConfigError
        When the file cannot be read, or has not the columns.
    """
    frame, columns = _read(Path(path), options or {})
    nothing = [None] * len(frame)
    sources = frame.get("source", nothing)
    levels, dimensions, raters = set(), set(), set()
    for column, dimension in columns.items():
        named = frame["dimension"] if dimension is None else [dimension] * len(frame)
        for response, what, source, cell in zip(frame["response"], named, sources, frame[column], strict=True):
            if number(cell) is not None:
                levels.add("dialogue" if is_missing(response) else "turn")
                dimensions.add(str(what).strip())
                raters.add(_source(source))
    return Rated(tuple(level for level in RATED_LEVELS if level in levels), frozenset(dimensions), frozenset(raters))


def texts(path: str | Path, options: Mapping[str, Any] | None = None) -> tuple[list[str], list[str]]:
    """Return the responses of a file, and their references, without checking its records.

    Parameters
    ----------
    path, options
        As :func:`rated` takes them.
    """
    frame, _ = _read(Path(path), options or {})
    responses = [str(cell) for cell in frame["response"] if not is_missing(cell)]
    cells: Any = frame.get("references", [])
    references = [str(text) for row, cell in enumerate(cells, 1) for text in entries(cell, f"{path}, record {row}")]
    return responses, references


def with_hint(column: str) -> str:
    """Return the name of a column that is not used, with the name of ours that may be meant by it."""
    plain = re.sub(r"[\s_-]+", "_", column.strip().lower())
    names = [*COLUMNS, *ALIASES]
    meant = _OTHERS.get(plain) or next(iter(get_close_matches(plain, names, 1, 0.8)), None)
    return f"{column} (did you mean {meant}?)" if meant else column


def _source(cell: object) -> str:
    return "human" if is_missing(cell) else str(cell).strip()


def _read(path: Path, options: Mapping[str, Any]) -> tuple[pd.DataFrame, dict[str, str | None]]:
    """Return a file's records under our names, and its columns of ratings with the dimension of each."""
    for name in options:
        if name not in _OPTIONS:
            raise UnknownNameError("option", str(name), _OPTIONS, where=f"options of {path}")
    columns = options.get("columns") or {}
    if not isinstance(columns, Mapping) or not all(
        isinstance(theirs, str) or (ours == "rating" and _are_names(theirs)) for ours, theirs in columns.items()
    ):
        raise ConfigError(
            f"columns is {shown(columns)}",
            where=f"options of {path}",
            expected="our name -> the file's, such as {response: reply, rating: [warmth, humour]}",
        )
    frame = read_columns(path, COLUMNS, _NEEDED, columns)
    named = columns.get("rating", "rating")
    rated: dict[str, str | None]
    if isinstance(named, str):
        rated = {"rating": None if "dimension" in frame else named}
    elif "dimension" in frame:
        raise SchemaError(
            f"a column 'dimension' beside the columns {', '.join(map(repr, named))} of ratings",
            where=str(path),
            expected="one column of ratings, or no column of dimensions",
        )
    else:
        rated = {name: name for name in named}
    return frame, rated


def _are_names(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(name, str) for name in value)


def _option_scales(option: Any, dimensions: set[str]) -> dict[str, _Scale]:  # noqa: ANN401
    """Return the scale of each dimension that the option ``scale`` says."""
    if option is None:
        return {}
    given = option if isinstance(option, Mapping) else dict.fromkeys(dimensions, option)
    scales = {}
    for name, ends in given.items():
        if name not in dimensions:
            raise UnknownNameError("dimension", str(name), dimensions, where="scale")
        found = [number(end) for end in ends] if isinstance(ends, list | tuple) else []
        if len(found) != 2 or not all(isinstance(end, float) for end in found) or not found[0] < found[1]:  # type: ignore[operator]
            raise ConfigError(f"{shown(ends)}", where="scale", expected="[lowest, highest], such as [1, 5]")
        scales[str(name)] = (float(found[0]), float(found[1]))  # type: ignore[arg-type]
    return scales


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no context has, and take it."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name
