"""Hold a frame against its table; the first record at fault is named."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from comperdial.errors import SchemaError, UnknownNameError
from comperdial.schema.tables import TABLES, Table, table

if TYPE_CHECKING:
    import pandera.pandas as pandera

_IN_WORDS = {pa.string(): "a text", pa.int32(): "a whole number", pa.float64(): "a number", pa.float32(): "a number"}


@cache
def _pandera(name: str) -> pandera.DataFrameSchema:
    """Build the pandera schema of a table; pandera is imported here, because that takes 0.3 s."""
    import pandera.pandas as pandera

    # Texts are not coerced: a list would become the text of a list.
    dtypes = {pa.int32(): "Int32", pa.float64(): "float64", pa.float32(): "float32"}
    spec = TABLES[name]
    columns = {
        f.name: pandera.Column(
            dtypes.get(f.type),
            pandera.Check(f.check, element_wise=True, error=f.expected) if f.check else None,
            nullable=f.nullable,
            coerce=f.type in dtypes,
        )
        for f in spec.fields
    }
    return pandera.DataFrameSchema(columns)


def validate(frame: pd.DataFrame, name: str, *, where: str | None = None, before: int = 0) -> pd.DataFrame:
    """Check a frame against a table and return it with the table's types and order of columns.

    ``before`` says how many records of the same file went before this part of it, so that messages count right.

    Raises
    ------
    SchemaError
        Names the first record at fault (1-based, with its key), the column, the value and what was expected, and says
        how many more are wrong.
    """
    spec = table(name)
    where = where or f"table {name}"
    defaults = {f.name: f.default for f in spec.fields if f.default is not None and f.name not in frame}
    if defaults:
        frame = frame.assign(**defaults)
    _check_columns(frame, spec, where)
    frame = frame[spec.columns].reset_index(drop=True)
    for field in spec.fields:
        if field.identifier and frame[field.name].dtype != "str":
            frame[field.name] = frame[field.name].map(_as_name).astype(object)
    if frame.empty:
        return spec.arrow().empty_table().to_pandas()
    import pandera.errors

    try:
        checked = _pandera(name).validate(frame, lazy=True)
    except pandera.errors.SchemaErrors as errors:
        raise _first_failure(frame, spec, errors.failure_cases, where, before) from None
    texts = {field.name: "str" for field in spec.fields if field.type == pa.string()}
    checked = checked.astype(texts)
    if spec.row_check:
        wrong = ~spec.row_check.holds(checked).to_numpy(dtype=bool)
        if wrong.any():
            row = int(wrong.argmax())
            raise SchemaError(
                spec.row_check.problem(checked.iloc[row]),
                where=f"{where}, {_record(checked, spec, row, before)}",
                expected=spec.row_check.expected(checked.iloc[row]),
                hint=_how_many(int(wrong.sum())),
            )
    repeated = checked.duplicated(list(spec.key)).to_numpy()
    if repeated.any():
        raise SchemaError(
            "the same key a second time",
            where=f"{where}, {_record(checked, spec, int(repeated.argmax()), before)}",
            expected="each (" + ", ".join(spec.key) + ") once",
            hint=_how_many(int(repeated.sum())),
        )
    return checked


def sound(content: pa.Table, spec: Table) -> bool:
    """Say whether rows, as they are stored, surely keep all rules but that each key stands once.

    Ten times as fast as :func:`validate`, because each value is looked at once however often it stands there. What is
    not sound may yet be valid; :func:`validate` decides, and says what is wrong.
    """
    if content.schema.names != spec.columns or content.schema.types != spec.arrow().types:
        return False
    for field in spec.fields:
        column = content[field.name]
        if pa.types.is_list(field.type) or (column.null_count and not field.nullable):
            return False
        if pa.types.is_floating(field.type) and pc.any(pc.is_nan(column)).as_py():
            return False
        values = pc.unique(column).to_pylist() if field.check else []
        if not all(field.check(value) for value in values if field.check and value is not None):
            return False
    return spec.row_check is None or bool(spec.row_check.holds(content.to_pandas()).all())


def _as_name(value: object) -> object:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return str(value) if is_whole else value


def _how_many(wrong: int) -> str | None:
    return f"{wrong} records in all have this fault" if wrong > 1 else None


def _check_columns(frame: pd.DataFrame, spec: Table, where: str) -> None:
    missing = [c for c in spec.columns if c not in frame.columns]
    if missing:
        raise SchemaError(
            f"no column {', '.join(map(repr, missing))}",
            where=where,
            expected=f"the columns of table {spec.name!r}: {', '.join(spec.columns)}",
            hint=f"It has: {', '.join(map(str, frame.columns)) or '(none)'}",
        )
    if not frame.columns.is_unique:
        raise SchemaError("a column's name stands twice", where=where, expected="each name once")
    for column in frame.columns:
        if column not in spec.columns:
            raise UnknownNameError(f"column of table {spec.name!r}:", str(column), spec.columns, where=where)


def _record(frame: pd.DataFrame, spec: Table, row: int, before: int) -> str:
    key = ", ".join(f"{c}={frame[c].iloc[row]}" for c in spec.key if c != "dataset")
    return f"record {before + row + 1} ({key})"


def _first_failure(frame: pd.DataFrame, spec: Table, cases: pd.DataFrame, where: str, before: int) -> SchemaError:
    """Turn pandera's list of failures into one message about the first record at fault."""
    by_record = cases[cases["index"].notna()].sort_values("index", kind="stable")
    if by_record.empty:
        # Pandera does not say which record keeps a column from becoming whole numbers.
        column = str(cases.iloc[0]["column"])
        numbers = pd.to_numeric(frame[column], errors="coerce")
        rows = [int(row) for row in (numbers.isna() | (numbers % 1 != 0)).to_numpy().nonzero()[0]]
    else:
        column = str(by_record.iloc[0]["column"])
        rows = [int(row) for row in by_record["index"].unique()]
    field = next(f for f in spec.fields if f.name == column)
    value = frame[column].iloc[rows[0]]
    value = value.item() if isinstance(value, np.generic) else value
    missing = value is None or (not isinstance(value, list) and pd.isna(value))
    return SchemaError(
        f"no value in column {column!r}" if missing else f"column {column!r} holds {value!r}",
        where=f"{where}, {_record(frame, spec, rows[0], before)}",
        expected=field.expected or _IN_WORDS.get(field.type, str(field.type)),
        hint=_how_many(len(rows)),
    )
