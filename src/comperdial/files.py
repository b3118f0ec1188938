"""Reading and writing files: whole or not at all, UTF-8, one clear message when a file is not what it should be."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.errors import FileError

if TYPE_CHECKING:
    import pandas as pd

TABLE_SUFFIXES = (".jsonl", ".csv", ".parquet")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path in the folder of ``path``; rename it to ``path`` when the block ends without an error.

    The temporary name keeps the suffix, so that writers which go by it behave the same.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files that only their owner can read; results are for everybody.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` as UTF-8 with Unix line ends, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, value: Any) -> None:  # noqa: ANN401
    """Write ``value`` as sorted, indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_text(path: str | Path) -> str:
    """Read a UTF-8 file.

    Raises
    ------
    FileError
        When the file cannot be opened, or holds a byte that is not UTF-8 (named by line and byte offset).
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror})", where=str(path)) from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8",
            where=f"{path}, line {line}",
            expected="UTF-8 text",
            hint="Convert the file, for example with `iconv -t UTF-8`",
        ) from error


def read_json(path: str | Path) -> Any:  # noqa: ANN401
    """Read a JSON file; a syntax error is named by line and column."""
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut_short = _cut_short(text, error)
        raise FileError(
            "the JSON ends in the middle: the file is truncated" if cut_short else f"not valid JSON ({error.msg})",
            where=f"{path}, line {error.lineno}, column {error.colno}",
            expected="one complete JSON value",
            hint="Fetch or copy the file again" if cut_short else None,
        ) from error


def _cut_short(text: str, error: json.JSONDecodeError) -> bool:
    """Say whether the JSON is at fault only because it ends: between values, inside a string or inside a word."""
    rest = text[error.pos :].strip()
    return error.msg.startswith("Unterminated string") or any(
        w.startswith(rest) for w in ("true", "false", "null", "-")
    )


def sha256(path: str | Path) -> str:
    """Return the hex SHA-256 of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a JSONL, CSV or Parquet file into a frame, chosen by suffix.

    In CSV, a cell that starts with ``[`` or ``{`` stays a string here; :mod:`comperdial.schema` parses list columns.
    An empty cell of a CSV stays an empty string and is not turned into a missing value.
    """
    import pandas as pd

    path = Path(path)
    if path.suffix == ".parquet":
        try:
            return pd.read_parquet(path)
        except (OSError, ValueError) as error:
            raise FileError("not a readable Parquet file", where=str(path), expected="Parquet") from error
    if path.suffix == ".csv":
        return _read_csv(path)
    if path.suffix == ".jsonl":
        return pd.DataFrame.from_records(_read_jsonl(path))
    raise FileError(
        f"unknown kind of file {path.suffix!r}",
        where=str(path),
        expected="a name ending in " + ", ".join(TABLE_SUFFIXES),
    )


def _read_csv(path: Path) -> pd.DataFrame:
    import io

    import pandas as pd

    text = read_text(path)
    try:
        return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values={})
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise FileError(f"not valid CSV ({error})", where=str(path)) from error


def _read_jsonl(path: Path) -> list[dict[str, Any]]:
    records = []
    # Not splitlines(): it also breaks at characters such as U+2028, which JSON strings may hold.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise FileError(f"not valid JSON ({error.msg}, column {error.colno})", where=where) from error
        if not isinstance(record, dict):
            raise FileError(f"a JSON {type(record).__name__}", where=where, expected="one JSON object a line")
        records.append(record)
    if not records:
        raise FileError("no records", where=str(path), expected="one JSON object a line")
    return records


def write_table(path: str | Path, frame: pd.DataFrame) -> None:
    """Write a frame as JSONL, CSV or Parquet (zstd), chosen by suffix, atomically."""
    path = Path(path)
    if path.suffix not in TABLE_SUFFIXES:
        raise FileError(
            f"unknown kind of file {path.suffix!r}",
            where=str(path),
            expected="a name ending in " + ", ".join(TABLE_SUFFIXES),
        )
    with replacing(path) as temporary:
        if path.suffix == ".parquet":
            frame.to_parquet(temporary, index=False, compression="zstd")
        elif path.suffix == ".csv":
            frame.to_csv(temporary, index=False, lineterminator="\n")
        else:
            frame.to_json(temporary, orient="records", lines=True, force_ascii=False)
