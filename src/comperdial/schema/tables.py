"""Table definitions: columns, types, keys, constraints, and the validation of frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.names import LEVELS, RATED_LEVELS, plain_name

TEXT = pa.string()
UTTERANCES = pa.list_(pa.struct([("speaker", pa.string()), ("text", pa.string())]))
DTYPES = {pa.string(): "str", pa.int32(): "Int32", pa.float64(): "float64", pa.float32(): "float32"}
"""The types that a table's columns have as a frame; lists are Python objects."""
SYSTEM_KINDS = ("agent", "human", "reference")
# The two sides of a pair; their left or right position on the screen is random.
SIDES = ("first", "second")
SPLITS = ("train", "validation", "test")
# What an interval treats as randomly sampled; the rest is fixed.
OVER = ("systems and contexts", "contexts, these systems", "contexts")
# Upper limit of ratings, so that sums of products do not overflow.
LARGEST_RATING = 1e15


@dataclass(frozen=True)
class Field:
    """A column: its type, its constraint (``check``, or a numeric range), and a description of valid values."""

    expected: str
    type: pa.DataType = TEXT
    check: Callable[[Any], bool] = lambda value: isinstance(value, str)
    low: float = -1e100
    high: float = 1e100
    name: str = ""
    # Values may be missing, and so may the column.
    nullable: bool = False
    # Whole numbers are converted to text.
    identifier: bool = False
    # Fills a missing column.
    default: int | None = None

    @property
    def is_number(self) -> bool:
        """Return whether values are numbers."""
        return not (pa.types.is_string(self.type) or pa.types.is_list(self.type))


@dataclass(frozen=True)
class Table:
    """A table: its columns in order, and its key.

    ``rule`` checks several columns of a row: a function that returns the valid rows, the problem, and what is expected.
    """

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    rule: tuple[Callable[[pd.DataFrame], pd.Series], str, str] | None = None

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns in order."""
        return [field.name for field in self.fields]

    def arrow(self) -> pa.Schema:
        """Return the Parquet schema."""
        return pa.schema([pa.field(field.name, field.type) for field in self.fields])


def _filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_utterance(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"speaker", "text"} and all(map(_filled, value.values()))


def _list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _one_of(*values: str) -> Field:
    return Field("one of " + ", ".join(values), check=values.__contains__)


_NAME = Field("a name that is not empty", check=_filled, identifier=True)
_FILLED = Field("a text that is not empty", check=_filled)
_TEXTS = Field("a list of texts, none of them empty", pa.list_(pa.string()), _list_of(_filled))
_NUMBER = Field("a finite number", pa.float64())
_COUNT = Field("a whole number of 0 or more", pa.int32(), low=0, high=2**31 - 1)
_RATING = Field(
    f"a finite number from {-LARGEST_RATING:g} to {LARGEST_RATING:g}",
    pa.float64(),
    low=-LARGEST_RATING,
    high=LARGEST_RATING,
)

# Fields shared by all tables; columns not listed here are names.
_COLUMNS: Mapping[str, Field] = {
    name: field
    for names, field in (
        ("track description key", Field("a text")),
        ("reason failure rationale over loso_system lacking", _FILLED),
        ("response", Field("a response that is not empty", check=_filled)),
        ("references facts sentences kinds", _TEXTS),
        ("history", Field("a list of {speaker, text}", UTTERANCES, _list_of(_is_utterance))),
        ("level", _one_of(*LEVELS)),
        ("kind", _one_of(*SYSTEM_KINDS)),
        ("choice", _one_of(*SIDES, "tie")),
        ("left control", _one_of(*SIDES)),
        ("role", _one_of("interlocutor", "outsider")),
        ("split", _one_of(*SPLITS)),
        ("rating scale_min scale_max", _RATING),
        ("seconds cost", Field("a number of 0 or more", pa.float64(), low=0)),
        ("continued", Field("0 or 1", pa.int32(), low=0, high=1)),
        ("turn position cut sample tries input_tokens output_tokens n size repeats rank rank_wmt", _COUNT),
        ("systems pairs with_human", _COUNT),
        ("began value low high loso_value p p_exact coverage difference p_wmt", _NUMBER),
        ("agreement power threshold ratio ties lowest highest weight p_adjusted p_fdr", _NUMBER),
    )
    for name in names.split()
}


def _table(name: str, columns: str, rule: Any = None, **own: Field) -> Table:  # noqa: ANN401
    """Define a table: ``*`` marks key columns, ``?`` nullable ones; ``own`` overrides shared fields."""
    plain = [column.rstrip("*?") for column in columns.split()]
    fields = [own.get(column) or _COLUMNS.get(column, _NAME) for column in plain]
    named = (
        replace(field, name=column, nullable=f"{column}?" in columns.split())
        for field, column in zip(fields, plain, strict=True)
    )
    return Table(name, tuple(named), tuple(c.rstrip("*") for c in columns.split() if c.endswith("*")), rule)


_SAMPLE = "dataset* level* against* target*"
_PAIR = "metric_a* output_a* metric_b* output_b* difference"
_SCORED = "dataset* level* item_id* system_id* metric* output*"

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        _table("systems", "dataset* system_id* kind track? description"),
        _table("contexts", "dataset* context_id* dialogue_id turn history references facts"),
        _table(
            "personas",
            "dataset* dialogue_id* speaker* sentences kinds",
            (
                lambda frame: frame["sentences"].map(len) == frame["kinds"].map(len),
                "sentences and kinds of different numbers",
                "one kind a sentence",
            ),
        ),
        _table("responses", "dataset* context_id* system_id* response"),
        _table(
            "ratings",
            "dataset* level* item_id* system_id* annotator_id* position? dimension* rating scale_min scale_max source",
            (
                lambda frame: frame["rating"].between(frame["scale_min"], frame["scale_max"]),
                "rating {rating:g} is outside its scale",
                "{scale_min:g} to {scale_max:g}",
            ),
            level=_one_of(*RATED_LEVELS),
        ),
        _table(
            "preferences",
            "dataset* pair_id* first_dialogue_id first_system_id second_dialogue_id second_system_id annotator_id*"
            " question* choice left? control? reason? seconds? source",
            (
                lambda frame: (
                    (frame["first_dialogue_id"] != frame["second_dialogue_id"])
                    | (frame["first_system_id"] != frame["second_system_id"])
                ),
                "{first_system_id!r} in dialogue {first_dialogue_id!r} is compared with itself",
                "another system or another dialogue",
            ),
        ),
        _table("labels", "dataset* item_id* cluster annotator_id* label source"),
        _table("annotators", "dataset* annotator_id* role"),
        _table("continuations", "dataset* context_id* system_id* user_id continued seconds? began? split"),
        _table("scores", f"{_SCORED} value cut signature", cut=replace(_COUNT, default=0)),
        _table(
            "judgements",
            f"{_SCORED} sample* key? tries value? failure? rationale? input_tokens? output_tokens? cost?",
            value=replace(_NUMBER, type=pa.float32()),
        ),
        _table(
            "correlations",
            f"{_SAMPLE} metric* output* grouping* coefficient* value? low? high? over? loso_value? loso_system? p?"
            " p_exact? n coverage cut lacking? signature",
        ),
        _table("ceilings", f"{_SAMPLE} grouping* coefficient* annotator_id* value? n"),
        _table(
            "pairs",
            f"{_SAMPLE} grouping* coefficient* {_PAIR} low? high? over? p? n test",
        ),
        _table(
            "curves",
            f"{_SAMPLE} coefficient* varied* size* metric* output* value? low? high? agreement? repeats",
        ),
        _table("power", f"{_SAMPLE} grouping* coefficient* varied* size* {_PAIR} power?"),
        _table(
            "dimension_correlations",
            "dataset* source* level dimension* metric* output* coefficient* value? low? high? loso_value? loso_system?"
            " p? n coverage signature",
        ),
        _table(
            "ratios",
            "dataset* perturbation* level dimension* metric* output* threshold* ratio? low? high? ties? n coverage"
            " lowest? highest? signature",
        ),
        _table("between_dimensions", "dataset* who* dimension_a* dimension_b* value? n signature?"),
        _table(
            "overall",
            "board* task* coefficient metric* output* value? low? high? n weight coverage rank? rank_wmt? lacking?"
            " signature",
        ),
        _table("overall_pairs", "board* task* dataset* systems pairs with_human"),
        _table(
            "overall_comparisons",
            "board* task* metric_a* output_a* metric_b* output_b* difference p? p_adjusted? p_fdr? p_wmt? test",
        ),
    )
}


def table(name: str) -> Table:
    """Return a table by name; raise :class:`UnknownNameError` with the closest names."""
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    return TABLES[name]


def validate(frame: pd.DataFrame, name: str, *, where: str | None = None) -> pd.DataFrame:
    """Validate a frame and return it with the table's types and column order.

    Raises
    ------
    SchemaError
        Gives the first invalid record (1-based, with its key), the column, the value, what was expected, and the number of
        further errors.
    """
    spec = table(name)
    where = where or f"table {name}"
    frame = _with_columns(frame, spec, where)
    if frame.empty:
        return spec.arrow().empty_table().to_pandas()

    def refuse(wrong: npt.NDArray[np.bool_], problem: str, expected: str) -> None:
        row, count = int(wrong.argmax()), int(wrong.sum())
        key = ", ".join(f"{column}={frame[column].iloc[row]}" for column in spec.key if column != "dataset")
        hint = f"{count} records in all have this fault" if count > 1 else None
        raise SchemaError(problem, where=f"{where}, record {row + 1} ({key})", expected=expected, hint=hint)

    for field in spec.fields:
        given = frame[field.name]
        frame[field.name] = values = _converted(given, field)
        wrong = np.where(given.isna(), not field.nullable, ~_good(values, field))
        if wrong.any():
            value = given.tolist()[int(wrong.argmax())]
            missing = value is None or (not isinstance(value, list) and pd.isna(value))
            column = f"column {field.name!r}"
            refuse(wrong, f"no value in {column}" if missing else f"{column} holds {value!r}", field.expected)
    frame = frame.astype({field.name: DTYPES[field.type] for field in spec.fields if field.type in DTYPES})
    if spec.rule:
        holds, problem, expected = spec.rule
        wrong = ~holds(frame).to_numpy(dtype=bool)
        if wrong.any():
            row = dict(zip(spec.columns, frame.iloc[int(wrong.argmax())], strict=True))
            refuse(wrong, problem.format(**row), expected.format(**row))
    wrong = frame.duplicated(list(spec.key)).to_numpy()
    if wrong.any():
        refuse(wrong, "the same key a second time", f"each ({', '.join(spec.key)}) once")
    return frame


def _with_columns(frame: pd.DataFrame, spec: Table, where: str) -> pd.DataFrame:
    """Return a frame with the table's columns in order, and defaults filled in."""
    left_out = [field for field in spec.fields if field.name not in frame]
    frame = frame.assign(**{f.name: f.default for f in left_out if f.default is not None or f.nullable})
    if missing := [name for name in spec.columns if name not in frame]:
        raise SchemaError(
            f"no column {', '.join(map(repr, missing))}",
            where=where,
            expected=f"the columns of table {spec.name!r}: {', '.join(spec.columns)}",
            hint=f"It has: {', '.join(map(str, frame.columns)) or '(none)'}",
        )
    if not frame.columns.is_unique:
        raise SchemaError("two columns have one name", where=where, expected="each name once")
    if unknown := [str(column) for column in frame if column not in spec.columns]:
        raise UnknownNameError(f"column of table {spec.name!r}:", unknown[0], spec.columns, where=where)
    return frame[spec.columns].reset_index(drop=True)


def _converted(column: pd.Series, field: Field) -> pd.Series:
    """Normalize names and convert numbers; anything else in a numeric column becomes missing."""
    if field.identifier:
        return _mapped(column, plain_name)
    if field.is_number and not pd.api.types.is_numeric_dtype(column):
        lists = column.map(lambda value: isinstance(value, list | dict))
        return pd.to_numeric(column.mask(lists), errors="coerce")
    return column


def _good(column: pd.Series, field: Field) -> npt.NDArray[np.bool_]:
    """Return which values satisfy their column's constraints."""
    if not field.is_number:
        return _mapped(column, field.check).to_numpy(dtype=bool)
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    good: npt.NDArray[np.bool_] = (numbers >= field.low) & (numbers <= field.high)
    return good & (numbers == np.floor(numbers)) if field.type == pa.int32() else good


def _mapped(column: pd.Series, function: Callable[[Any], object]) -> pd.Series:
    """Apply a function to each value, calling it once per distinct text."""
    try:
        codes, distinct = pd.factorize(column)
    except TypeError:
        # Lists.
        return column.map(function)
    # Missing values have code -1.
    made = np.array([*map(function, distinct), function(None)], dtype=object)
    return pd.Series(made[codes], index=column.index)
