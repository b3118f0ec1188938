"""What tables are made of: columns with their types, and what each value must satisfy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

UTTERANCES = pa.list_(pa.struct([("speaker", pa.string()), ("text", pa.string())]))
TEXTS = pa.list_(pa.string())


@dataclass(frozen=True)
class Field:
    """One column: its storage type, whether a value may be missing, and what each value must satisfy.

    ``identifier`` marks names, for which a whole number is taken as the text that it is written as. A column with a
    ``default`` may be left out, and is then filled with it; one that ``may_lack`` is then without values.
    """

    name: str
    type: pa.DataType
    nullable: bool = False
    check: Callable[[Any], bool] | None = None
    expected: str = ""
    identifier: bool = False
    default: int | None = None
    may_lack: bool = False


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


def is_text(value: object) -> bool:
    """Say whether a value is a text."""
    return isinstance(value, str)


def filled(value: object) -> bool:
    """Say whether a value is a text with more than white space."""
    return isinstance(value, str) and bool(value.strip())


def texts(value: object) -> bool:
    """Say whether a value is a list of filled texts."""
    return isinstance(value, list) and all(filled(text) for text in value)


def utterances(value: object) -> bool:
    """Say whether a value is a list of {speaker, text}."""
    return isinstance(value, list) and all(
        isinstance(u, dict) and set(u) == {"speaker", "text"} and filled(u["speaker"]) and filled(u["text"])
        for u in value
    )


def name_field(name: str) -> Field:
    """Return a column of names."""
    return Field(name, pa.string(), check=filled, expected="a name that is not empty", identifier=True)


def number_field(name: str, largest: float = 1e100) -> Field:
    """Return a column of numbers whose products do not overflow."""
    expected = f"a finite number from {-largest:g} to {largest:g}"
    return Field(name, pa.float64(), check=lambda value: abs(value) <= largest, expected=expected)


def count_field(name: str, default: int | None = None) -> Field:
    """Return a column of counts."""
    return Field(name, pa.int32(), check=lambda value: value >= 0, expected="a count", default=default)


def one_of(name: str, values: tuple[str, ...]) -> Field:
    """Return a column that holds one of some values."""
    return Field(name, pa.string(), check=values.__contains__, expected="one of " + ", ".join(values))


def optional(name: str, type: pa.DataType, check: Callable[[Any], bool], expected: str) -> Field:
    """Return a column whose values may be missing."""
    return Field(name, type, nullable=True, check=check, expected=expected)


def list_of_texts(name: str) -> Field:
    """Return a column of lists of texts."""
    return Field(name, TEXTS, check=texts, expected="a list of texts, none of them empty")


def coefficient(name: str) -> Field:
    """Return a column of correlations, which may be missing."""
    return optional(name, pa.float64(), lambda value: -1.0001 <= value <= 1.0001, "-1 to 1")


def p_value(name: str) -> Field:
    """Return a column of p-values or other chances, which may be missing."""
    return optional(name, pa.float64(), lambda value: 0 <= value <= 1, "0 to 1")


def rank(name: str) -> Field:
    """Return a column of ranks, which may be missing."""
    return optional(name, pa.int32(), lambda value: value >= 1, "a rank from 1")


# The lowest value of a correlation without one of the systems, and which system that is.
LEAVE_ONE_OUT = (coefficient("loso_value"), optional("loso_system", pa.string(), filled, "the name of a system"))
