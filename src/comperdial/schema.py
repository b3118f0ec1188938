"""The tables that everything flows through: tidy, one row a fact, checked on every write and every read.

A table is described once, as a list of :class:`Field`; the Parquet types and the pandera checks both come from it.
``docs/data-model.md`` explains the tables to their users, and a test holds that page to this module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from comperdial.errors import FileError, SchemaError, UnknownNameError
from comperdial.files import read_table, replacing, write_table

if TYPE_CHECKING:
    import pandera.pandas as pandera

UTTERANCES = pa.list_(pa.struct([("speaker", pa.string()), ("text", pa.string())]))
TEXTS = pa.list_(pa.string())

_IN_WORDS = {pa.string(): "a text", pa.int32(): "a whole number", pa.float64(): "a number", pa.float32(): "a number"}

SYSTEM_KINDS = ("agent", "human", "reference")
LEVELS = ("turn", "dialogue", "system")
COEFFICIENTS = ("pearson", "spearman", "kendall")


@dataclass(frozen=True)
class Field:
    """One column: its storage type, whether a value may be missing, and what each value must satisfy."""

    name: str
    type: pa.DataType
    nullable: bool = False
    check: Callable[[Any], bool] | None = None
    expected: str = ""


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


def _filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(_filled(text) for text in value)


def _utterances(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(u, dict) and set(u) == {"speaker", "text"} and _filled(u["speaker"]) and isinstance(u["text"], str)
        for u in value
    )


def _name(name: str) -> Field:
    return Field(name, pa.string(), check=_filled, expected="a name that is not empty")


def _one_of(name: str, values: tuple[str, ...]) -> Field:
    return Field(name, pa.string(), check=values.__contains__, expected="one of " + ", ".join(values))


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
            Field("position", pa.int32(), nullable=True, check=lambda v: v >= 0, expected="0 or more"),
            _name("dimension"),
            Field("rating", pa.float64()),
            Field("scale_min", pa.float64()),
            Field("scale_max", pa.float64()),
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
                Field("track", pa.string(), nullable=True),
                Field("description", pa.string()),
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
                Field("value", pa.float32()),
                _name("signature"),
            ),
            key=("dataset", "level", "item_id", "system_id", "metric", "output"),
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
                Field("n", pa.int32(), check=lambda v: v >= 0, expected="a count"),
                Field("coverage", pa.float64(), check=lambda v: 0 <= v <= 1, expected="0 to 1"),
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


@cache
def _pandera(name: str) -> pandera.DataFrameSchema:
    """Build the pandera schema of a table (imported here: it takes 0.3 s that plain reading of sources need not pay)."""
    import pandera.pandas as pandera

    dtypes = {pa.string(): "str", pa.int32(): "Int32", pa.float64(): "float64", pa.float32(): "float32"}
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


def validate(frame: pd.DataFrame, name: str, *, where: str | None = None) -> pd.DataFrame:
    """Check a frame against a table and return it with the table's types and order of columns.

    Raises
    ------
    SchemaError
        Names the first record at fault (1-based, with its key), the column, the value and what was expected, and says
        how many more are wrong.
    """
    spec = table(name)
    where = where or f"table {name}"
    _check_columns(frame, spec, where)
    frame = frame[spec.columns].reset_index(drop=True)
    if frame.empty:
        return spec.arrow().empty_table().to_pandas()
    import pandera.errors

    try:
        checked = _pandera(name).validate(frame, lazy=True)
    except pandera.errors.SchemaErrors as errors:
        raise _first_failure(frame, spec, errors.failure_cases, where) from None
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
    for column in frame.columns:
        if column not in spec.columns:
            raise UnknownNameError(f"column of table {spec.name!r}:", str(column), spec.columns, where=where)


def _record(frame: pd.DataFrame, spec: Table, row: int) -> str:
    key = ", ".join(f"{c}={frame[c].iloc[row]}" for c in spec.key if c != "dataset")
    return f"record {row + 1} ({key})"


def _first_failure(frame: pd.DataFrame, spec: Table, cases: pd.DataFrame, where: str) -> SchemaError:
    """Turn pandera's list of failures into one message about the first record at fault."""
    # A value that cannot become the column's type is listed by record beside one entry for the column as a whole.
    by_record = cases[cases["index"].notna()].sort_values("index", kind="stable")
    if by_record.empty:
        case = cases.iloc[0]
        problem = f"column {case['column']!r} cannot be read ({case['failure_case']})"
        return SchemaError(problem, where=where, expected=str(case["check"]))
    case = by_record.iloc[0]
    row = int(case["index"])
    field = next(f for f in spec.fields if f.name == case["column"])
    value = frame[field.name].iloc[row]
    missing = value is None or (not isinstance(value, list) and pd.isna(value))
    return SchemaError(
        f"no value in column {field.name!r}" if missing else f"column {field.name!r} holds {value!r}",
        where=f"{where}, {_record(frame, spec, row)}",
        expected=field.expected or _IN_WORDS.get(field.type, str(field.type)),
        hint=_how_many(int(by_record["index"].nunique())),
    )


def write(path: str | Path, frame: pd.DataFrame, name: str) -> None:
    """Validate a frame as table ``name``, sort it by its key and write it (Parquet, CSV or JSONL by suffix)."""
    spec = table(name)
    checked = validate(frame, name, where=str(path)).sort_values(list(spec.key), kind="stable")
    if Path(path).suffix == ".parquet":
        # With the schema given, an empty list keeps its type and equal content gives equal bytes.
        content = pa.Table.from_pandas(checked, schema=spec.arrow(), preserve_index=False)
        with replacing(path) as temporary:
            pq.write_table(content.replace_schema_metadata(None), temporary, compression="zstd")
    else:
        if Path(path).suffix == ".csv":
            for field in spec.fields:
                if pa.types.is_list(field.type):
                    checked[field.name] = [json.dumps(v, ensure_ascii=False) for v in checked[field.name]]
        write_table(path, checked)


def read(path: str | Path, name: str) -> pd.DataFrame:
    """Read a table from Parquet, CSV or JSONL and validate it; lists come back as Python lists."""
    spec = table(name)
    path = Path(path)
    if path.suffix == ".parquet":
        try:
            content = pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            reason = "no such file" if not path.exists() else "not a readable Parquet file"
            raise FileError(reason, where=str(path), expected=f"table {name!r} as Parquet") from error
        frame = content.to_pandas()
        for field in spec.fields:
            if pa.types.is_list(field.type) and field.name in frame:
                frame[field.name] = pd.Series(content[field.name].to_pylist(), dtype=object)
    else:
        frame = read_table(path)
        if path.suffix == ".csv":
            frame = _parse_csv_cells(frame, spec, path)
    return validate(frame, name, where=str(path))


def _parse_csv_cells(frame: pd.DataFrame, spec: Table, path: Path) -> pd.DataFrame:
    """Turn the JSON text of list columns into lists, and the empty cells of columns that may be missing into missing."""
    for field in spec.fields:
        if field.name not in frame:
            continue
        if pa.types.is_list(field.type):
            values = []
            for row, cell in enumerate(frame[field.name]):
                try:
                    values.append(json.loads(cell))
                except (json.JSONDecodeError, TypeError) as error:
                    raise SchemaError(
                        f"column {field.name!r} holds {cell!r}",
                        where=f"{path}, record {row + 1}",
                        expected='a JSON list, such as ["a text"]',
                    ) from error
            frame[field.name] = pd.Series(values, dtype=object)
        elif field.nullable:
            frame[field.name] = frame[field.name].replace("", None)
    return frame
