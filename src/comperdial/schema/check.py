"""Check a frame against its table; the first record at fault is named."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.names import plain_name
from comperdial.schema.fields import Field
from comperdial.schema.tables import Table, table

_IN_WORDS = {pa.string(): "a text", pa.int32(): "a whole number", pa.float64(): "a number", pa.float32(): "a number"}
DTYPES = {pa.string(): "str", pa.int32(): "Int32", pa.float64(): "float64", pa.float32(): "float32"}
"""The types that a table's columns have as a frame; lists are Python objects."""


def validate(frame: pd.DataFrame, name: str, *, where: str | None = None) -> pd.DataFrame:
    """Check a frame against a table and return it with the table's types and order of columns.

    For frames from outside. What is written is checked on the way (:func:`comperdial.schema.write`,
    :func:`comperdial.schema.writing`), and what was written is not checked again when it is read.

    Raises
    ------
    SchemaError
        Names the first record at fault (1-based, with its key), the column, the value and what was expected, and says
        how many more are wrong.
    """
    spec = table(name)
    where = where or f"table {name}"
    left_out = [field for field in spec.fields if field.name not in frame]
    defaults = {f.name: f.default for f in left_out if f.default is not None or f.may_lack}
    if defaults:
        frame = frame.assign(**defaults)
    _check_columns(frame, spec, where)
    frame = frame[spec.columns].reset_index(drop=True)
    for field in spec.fields:
        if field.identifier:
            frame[field.name] = _as_names(frame[field.name])
    if frame.empty:
        return spec.arrow().empty_table().to_pandas()
    _check_values(frame, spec, where)
    numbers = {f.name: _numbers(frame[f.name]) for f in spec.fields if f.type in DTYPES and f.type != pa.string()}
    checked = frame.assign(**numbers).astype({f.name: DTYPES[f.type] for f in spec.fields if f.type in DTYPES})
    if spec.row_check:
        wrong = ~spec.row_check.holds(checked).to_numpy(dtype=bool)
        if wrong.any():
            row = int(wrong.argmax())
            raise SchemaError(
                spec.row_check.problem(checked.iloc[row]),
                where=f"{where}, {_record(checked, spec, row)}",
                expected=spec.row_check.expected(checked.iloc[row]),
                hint=_how_many(int(wrong.sum())),
            )
    repeated = checked.duplicated(list(spec.key)).to_numpy()
    if repeated.any():
        raise SchemaError(
            "the same key a second time",
            where=f"{where}, {_record(checked, spec, int(repeated.argmax()))}",
            expected="each (" + ", ".join(spec.key) + ") once",
            hint=_how_many(int(repeated.sum())),
        )
    return checked


def _check_values(frame: pd.DataFrame, spec: Table, where: str) -> None:
    """Check each column by itself; of several faults, the one in the first record is named."""
    faults = [(field, wrong) for field in spec.fields if (wrong := _wrong(frame[field.name], field)).any()]
    if not faults:
        return
    field, wrong = min(faults, key=lambda fault: int(fault[1].argmax()))
    row = int(wrong.argmax())
    value = frame[field.name].iloc[row]
    value = value.item() if isinstance(value, np.generic) else value
    missing = value is None or (not isinstance(value, list) and pd.isna(value))
    raise SchemaError(
        f"no value in column {field.name!r}" if missing else f"column {field.name!r} holds {value!r}",
        where=f"{where}, {_record(frame, spec, row)}",
        expected=field.expected or _IN_WORDS.get(field.type, str(field.type)),
        hint=_how_many(int(wrong.sum())),
    )


def _wrong(column: pd.Series, field: Field) -> npt.NDArray[np.bool_]:
    """Say which values of a column break its rules; each is looked at once however often it occurs."""
    missing = column.isna().to_numpy()
    wrong = np.zeros(len(column), dtype=bool) if field.nullable else missing.copy()
    if field.type in DTYPES and field.type != pa.string():
        numbers = _numbers(column).to_numpy(dtype=np.float64, na_value=np.nan)
        with np.errstate(invalid="ignore", over="ignore"):
            whole = (numbers % 1 == 0) & (np.abs(numbers) < 2**31)
            column = pd.Series(numbers.astype(np.float32) if field.type == pa.float32() else numbers)
        wrong |= ~missing & (np.isnan(numbers) | (field.type == pa.int32() and ~whole))
    if field.check is None:
        return wrong
    try:
        codes, distinct = pd.factorize(column)
        values = list(distinct)
    except TypeError:
        # Lists, and what else no text is.
        codes, values = np.arange(len(column)), list(column)
    good = np.fromiter(map(field.check, values), dtype=bool, count=len(values))
    return wrong | (~missing & ~np.append(good, True)[codes])


def _numbers(column: pd.Series) -> pd.Series:
    """Return a column as numbers; what is none is missing."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    lists = column.map(lambda value: isinstance(value, list | dict))
    return pd.to_numeric(column.mask(lists), errors="coerce")


def _as_names(column: pd.Series) -> pd.Series:
    """Return a column of names as all tables spell them; each is looked at once however often it occurs."""
    try:
        codes, distinct = pd.factorize(column, use_na_sentinel=False)
    except TypeError:
        # Lists, and what else is no name.
        return column.map(plain_name).astype(object)
    names = list(distinct)
    plain = [plain_name(name) for name in names]
    if all(isinstance(name, str) and name == new for name, new in zip(names, plain, strict=True)):
        return column
    found = np.empty(len(plain), dtype=object)
    found[:] = plain
    return pd.Series(found[codes], index=column.index, dtype=object)


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


def _record(frame: pd.DataFrame, spec: Table, row: int) -> str:
    key = ", ".join(f"{c}={frame[c].iloc[row]}" for c in spec.key if c != "dataset")
    return f"record {row + 1} ({key})"
