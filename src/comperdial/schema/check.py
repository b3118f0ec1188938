"""Check a frame against its table; the first record at fault is named."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.names import plain_name
from comperdial.schema.tables import Field, Table, table

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
    frame = _with_columns(frame, spec, where)
    if frame.empty:
        return spec.arrow().empty_table().to_pandas()
    faults = [(field, wrong) for field in spec.fields if (wrong := _wrong(frame[field.name], field)).any()]
    if faults:
        # Of several, the one in the first record is named.
        field, wrong = min(faults, key=lambda fault: int(fault[1].argmax()))
        value = frame[field.name].iloc[int(wrong.argmax())]
        value = value.item() if isinstance(value, np.generic) else value
        missing = value is None or (not isinstance(value, list) and pd.isna(value))
        problem = f"no value in column {field.name!r}" if missing else f"column {field.name!r} holds {value!r}"
        raise _error(problem, frame, spec, wrong, where, field.expected)
    numbers = {f.name: _numbers(frame[f.name]) for f in spec.fields if f.is_number}
    checked = frame.assign(**numbers).astype({f.name: DTYPES[f.type] for f in spec.fields if f.type in DTYPES})
    if rule := spec.row_rule:
        wrong = ~rule.holds(checked).to_numpy(dtype=bool)
        if wrong.any():
            row = checked.iloc[int(wrong.argmax())].to_dict()
            raise _error(rule.problem(row), checked, spec, wrong, where, rule.expected(row))
    repeated = checked.duplicated(list(spec.key)).to_numpy()
    if repeated.any():
        expected = "each (" + ", ".join(spec.key) + ") once"
        raise _error("the same key a second time", checked, spec, repeated, where, expected)
    return checked


def _with_columns(frame: pd.DataFrame, spec: Table, where: str) -> pd.DataFrame:
    """Return a frame with the columns of a table in order, names as all tables spell them, and defaults filled in."""
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
    frame = frame[spec.columns].reset_index(drop=True)
    return frame.assign(**{f.name: _as_names(frame[f.name]) for f in spec.fields if f.identifier})


def _error(
    problem: str, frame: pd.DataFrame, spec: Table, wrong: npt.NDArray[np.bool_], where: str, expected: str
) -> SchemaError:
    row, count = int(wrong.argmax()), int(wrong.sum())
    key = ", ".join(f"{column}={frame[column].iloc[row]}" for column in spec.key if column != "dataset")
    hint = f"{count} records in all have this fault" if count > 1 else None
    return SchemaError(problem, where=f"{where}, record {row + 1} ({key})", expected=expected, hint=hint)


def _wrong(column: pd.Series, field: Field) -> npt.NDArray[np.bool_]:
    """Say which values of a column break its rules."""
    missing = column.isna().to_numpy()
    if field.is_number:
        numbers = _numbers(column).to_numpy(dtype=np.float64, na_value=np.nan)
        with np.errstate(over="ignore"):
            numbers = numbers.astype(np.float32).astype(np.float64) if field.type == pa.float32() else numbers
        good = (numbers >= field.low) & (numbers <= field.high)
        if field.type == pa.int32():
            good &= numbers == np.floor(numbers)
    else:
        codes, distinct = _distinct(column)
        good = np.fromiter(map(field.check, distinct), dtype=bool, count=len(distinct))[codes]
    return np.where(missing, not field.nullable, ~good)


def _distinct(column: pd.Series) -> tuple[npt.NDArray[np.intp], list[object]]:
    """Return the place of each value among the different ones, and these, so that each is looked at once; None is last."""
    try:
        codes, distinct = pd.factorize(column)
    except TypeError:
        # Lists, and what else is no text.
        return np.arange(len(column)), list(column)
    return codes, [*distinct, None]


def _numbers(column: pd.Series) -> pd.Series:
    """Return a column as numbers; what is none is missing."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    lists = column.map(lambda value: isinstance(value, list | dict))
    return pd.to_numeric(column.mask(lists), errors="coerce")


def _as_names(column: pd.Series) -> pd.Series:
    """Return a column of names as all tables spell them."""
    codes, distinct = _distinct(column)
    plain = [plain_name(name) for name in distinct]
    if all(isinstance(old, str) and old == new for old, new in zip(distinct, plain, strict=True)):
        return column
    names = np.empty(len(plain), dtype=object)
    names[:] = plain
    return pd.Series(names[codes], index=column.index, dtype=object)
