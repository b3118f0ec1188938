"""The tables as they are defined: columns, types, keys, and what each value must satisfy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from comperdial.errors import UnknownNameError

UTTERANCES = pa.list_(pa.struct([("speaker", pa.string()), ("text", pa.string())]))
TEXTS = pa.list_(pa.string())

SYSTEM_KINDS = ("agent", "human", "reference")
LEVELS = ("turn", "dialogue", "system")
COEFFICIENTS = ("pearson", "spearman", "kendall")


@dataclass(frozen=True)
class Field:
    """One column: its storage type, whether a value may be missing, and what each value must satisfy.

    ``identifier`` marks names, for which a whole number is taken as the text that it is written as. A column with a
    ``default`` may be left out, and is then filled with it.
    """

    name: str
    type: pa.DataType
    nullable: bool = False
    check: Callable[[Any], bool] | None = None
    expected: str = ""
    identifier: bool = False
    default: int | None = None


@dataclass(frozen=True)
class RowCheck:
    """A rule that several columns of one row must keep: which rows keep it, and how to name one that does not."""

    holds: Callable[[pd.DataFrame], pd.Series]
    problem: Callable[[pd.Series], str]
    expected: Callable[[pd.Series], str]


@dataclass(frozen=True)
class Table:
    """A table: its columns in order, its key, and a check that looks at whole rows."""

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    row_check: RowCheck | None = None

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns in order."""
        return [field.name for field in self.fields]

    def arrow(self) -> pa.Schema:
        """Return the Parquet schema."""
        return pa.schema([pa.field(f.name, f.type) for f in self.fields])


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(_filled(text) for text in value)


def _utterances(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(u, dict) and set(u) == {"speaker", "text"} and _filled(u["speaker"]) and _filled(u["text"])
        for u in value
    )


def _name(name: str) -> Field:
    return Field(name, pa.string(), check=_filled, expected="a name that is not empty", identifier=True)


def _number(name: str) -> Field:
    return Field(name, pa.float64(), check=math.isfinite, expected="a finite number")


def _count(name: str, default: int | None = None) -> Field:
    return Field(name, pa.int32(), check=lambda value: value >= 0, expected="a count", default=default)


def _one_of(name: str, values: tuple[str, ...]) -> Field:
    return Field(name, pa.string(), check=values.__contains__, expected="one of " + ", ".join(values))


def _optional(name: str, type: pa.DataType, check: Callable[[Any], bool], expected: str) -> Field:
    return Field(name, type, nullable=True, check=check, expected=expected)


def _list_of_texts(name: str) -> Field:
    return Field(name, TEXTS, check=_texts, expected="a list of texts, none of them empty")


def _ratings(level: str, item: str) -> Table:
    return Table(
        f"{level}_ratings",
        (
            _name("dataset"),
            _name(item),
            _name("system_id"),
            _name("annotator_id"),
            _optional("position", pa.int32(), lambda value: value >= 0, "a whole number of 0 or more"),
            _name("dimension"),
            _number("rating"),
            _number("scale_min"),
            _number("scale_max"),
            _name("source"),
        ),
        key=("dataset", item, "system_id", "annotator_id", "dimension"),
        row_check=RowCheck(
            holds=lambda frame: frame["rating"].between(frame["scale_min"], frame["scale_max"]),
            problem=lambda row: f"rating {row['rating']:g} is outside its scale",
            expected=lambda row: f"{row['scale_min']:g} to {row['scale_max']:g}",
        ),
    )


TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        Table(
            "systems",
            (
                _name("dataset"),
                _name("system_id"),
                _one_of("kind", SYSTEM_KINDS),
                _optional("track", pa.string(), _is_text, "a text"),
                Field("description", pa.string(), check=_is_text, expected="a text"),
            ),
            key=("dataset", "system_id"),
        ),
        Table(
            "contexts",
            (
                _name("dataset"),
                _name("context_id"),
                _name("dialogue_id"),
                Field("turn", pa.int32(), check=lambda v: v >= 0, expected="a turn counted from 0"),
                Field("history", UTTERANCES, check=_utterances, expected="a list of {speaker, text}"),
                _list_of_texts("references"),
                _list_of_texts("facts"),
            ),
            key=("dataset", "context_id"),
        ),
        Table(
            "personas",
            (
                _name("dataset"),
                _name("dialogue_id"),
                _name("speaker"),
                _list_of_texts("sentences"),
                _list_of_texts("kinds"),
            ),
            key=("dataset", "dialogue_id", "speaker"),
            row_check=RowCheck(
                holds=lambda frame: frame["sentences"].map(len) == frame["kinds"].map(len),
                problem=lambda row: f"{len(row['sentences'])} sentences and {len(row['kinds'])} kinds",
                expected=lambda _row: "one kind a sentence",
            ),
        ),
        Table(
            "responses",
            (
                _name("dataset"),
                _name("context_id"),
                _name("system_id"),
                Field("response", pa.string(), check=_filled, expected="a response that is not empty"),
            ),
            key=("dataset", "context_id", "system_id"),
        ),
        _ratings("turn", "context_id"),
        _ratings("dialogue", "dialogue_id"),
        Table(
            "scores",
            (
                _name("dataset"),
                _one_of("level", LEVELS),
                _name("item_id"),
                _name("system_id"),
                _name("metric"),
                _name("output"),
                Field("value", pa.float32(), check=math.isfinite, expected="a finite number"),
                _count("cut", default=0),
                _name("signature"),
            ),
            key=("dataset", "level", "item_id", "system_id", "metric", "output"),
        ),
        Table(
            "judgements",
            (
                _name("dataset"),
                _one_of("level", LEVELS),
                _name("item_id"),
                _name("system_id"),
                _name("metric"),
                _count("sample"),
                _optional("key", pa.string(), _is_text, "a text"),
                _count("tries"),
                _optional("value", pa.float32(), math.isfinite, "a finite number"),
                _optional("failure", pa.string(), _filled, "a text that is not empty"),
                _optional("rationale", pa.string(), _filled, "a text that is not empty"),
                _optional("input_tokens", pa.int32(), lambda value: value >= 0, "a count"),
                _optional("output_tokens", pa.int32(), lambda value: value >= 0, "a count"),
                _optional("cost", pa.float64(), lambda value: value >= 0, "US dollars"),
            ),
            key=("dataset", "level", "item_id", "system_id", "metric", "sample"),
            row_check=RowCheck(
                holds=lambda frame: frame["value"].isna() != frame["failure"].isna(),
                problem=lambda row: f"value {row['value']} and failure {row['failure']!r}",
                expected=lambda _row: "either a value or why there is none",
            ),
        ),
        Table(
            "correlations",
            (
                _name("dataset"),
                _one_of("level", LEVELS),
                _name("target"),
                _name("metric"),
                _name("output"),
                _one_of("coefficient", COEFFICIENTS),
                Field("value", pa.float64(), nullable=True, check=lambda v: -1.0001 <= v <= 1.0001, expected="-1 to 1"),
                Field("p", pa.float64(), nullable=True, check=lambda v: 0 <= v <= 1, expected="0 to 1"),
                _count("n"),
                Field("coverage", pa.float64(), check=lambda v: 0 <= v <= 1, expected="0 to 1"),
                _count("cut"),
                _name("signature"),
            ),
            key=("dataset", "level", "target", "metric", "output", "coefficient"),
        ),
    )
}


def table(name: str) -> Table:
    """Return a table by name, or raise :class:`UnknownNameError` with the nearest names."""
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    return TABLES[name]
