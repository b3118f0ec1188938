"""Read and write files: atomic writes, UTF-8, and clear errors for unexpected content."""

from __future__ import annotations

import codecs
import csv
import difflib
import hashlib
import io
import json
import logging
import secrets
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.core.errors import FileError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

# Suffixes of tables and figures.
FORMS = (".csv", ".html", ".md", ".pdf", ".png", ".svg", ".tex")
TABLE_SUFFIXES = (".jsonl", ".csv", ".parquet")


def check_input(path: str | Path, *, expected: str = "a file") -> Path:
    """Return ``path``; reject a folder, pipe, device or socket, since reading a pipe could block forever."""
    path = Path(path)
    try:
        path.stat()
    except FileNotFoundError:
        return path
    except (OSError, ValueError) as error:
        # A symlink loop, or an impossible file name.
        reason = error.strerror if isinstance(error, OSError) else error
        raise FileError(f"cannot be used ({reason})", where=str(path), expected=expected) from error
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "is a pipe, a device or a socket"
        raise FileError(problem, where=str(path), expected=expected)
    return path


def check_output(path: str | Path) -> Path:
    """Return the file that writing ``path`` would replace: ``path`` itself, or the target of a symbolic link.

    Raises
    ------
    FileError
        If it is not a regular file, or is a link to a read-only file, as in DVC's cache.
    """
    path = check_input(path, expected="a new or existing file name")
    if not path.is_symlink():
        return path
    if path.exists() and not path.stat().st_mode & 0o222:
        raise FileError(
            "is a link to a read-only file", where=str(path), expected="a file to replace", hint="Remove the link first"
        )
    return path.resolve()


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path next to ``path``; rename it to ``path`` if the block succeeds.

    The temporary name keeps the suffix, which some writers depend on. A symbolic link is kept and its target replaced.
    Raises as :func:`check_output`.
    """
    target = check_output(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Named before it exists, so that cleanup works after any interrupt.
    temporary = target.with_name(f".{target.stem}-{secrets.token_hex(4)}{target.suffix}")
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def printable(text: str) -> str:
    """Escape lone surrogates, as in odd file names, so that the text can be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` atomically as UTF-8 with Unix line endings."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, value: Any) -> None:  # noqa: ANN401
    """Write ``value`` atomically as sorted, indented JSON."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file as hex."""
    with check_input(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_text(path: str | Path) -> str:
    """Read a UTF-8 file, with or without a byte order mark.

    Raises
    ------
    FileError
        If the file cannot be opened, or is not valid UTF-8; the message gives the line and byte offset.
    """
    try:
        data = check_input(path).read_bytes()
        return data.decode("utf-8").removeprefix("\ufeff")
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror})", where=str(path)) from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8",
            where=f"{path}, line {line}",
            expected="UTF-8 text",
            hint="Convert the file, for example with `iconv -t UTF-8`",
        ) from error


def read_json(path: str | Path) -> Any:  # noqa: ANN401
    """Read a JSON file; errors give the line and column, and say if the file is truncated."""
    return parse_json(read_text(path), str(path), expected="one complete JSON value")


def parse_json(text: str, where: str, *, expected: str, line: int = 0) -> Any:  # noqa: ANN401
    """Parse JSON strictly: also reject duplicate keys and lone surrogates.

    ``line`` is the line number, if the text is one line of a file.

    Raises
    ------
    FileError
        For a syntax error; the message gives the line.
    """
    place, hint = f"{where}, line {line}" if line else where, None
    try:
        value = json.loads(text, object_pairs_hook=_distinct)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except FileError as error:
        error.where = place
        raise
    except UnicodeEncodeError:
        problem = "a lone surrogate, which is not a character"
    except json.JSONDecodeError as error:
        place, problem = f"{where}, line {line or error.lineno}, column {error.colno}", f"not valid JSON ({error.msg})"
        # The JSON is truncated: it ends between values, inside a string or inside a word.
        rest = text[error.pos :].strip()
        in_a_word = any(word.startswith(rest) for word in ("true", "false", "null", "-"))
        if not line and (in_a_word or error.msg.startswith("Unterminated string")):
            problem = "the JSON ends in the middle: the file is truncated"
            hint = "Fetch or copy the file again"
    except RecursionError:
        problem = "the JSON cannot be read (nested too deeply)"
    except ValueError as error:
        # For example a number with thousands of digits.
        problem = f"the JSON cannot be read ({error})"
    raise FileError(problem, where=place, expected=expected, hint=hint)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        problem = f"the key {twice!r} is given twice in one object"
        raise FileError(problem, expected="each key once", hint="Delete one of them")
    return value


def read_jsonl(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read a file with one JSON object per line; yield the line number, starting at 1, and the object.

    Raises
    ------
    FileError
        If the file cannot be opened, or a line is not an object.
    """
    expected = "one JSON object per line"
    try:
        # As bytes, since text mode also splits lines at characters such as U+2028, which JSON strings may contain.
        with check_input(path).open("rb") as file:
            for number, data in enumerate(file, start=1):
                try:
                    line = data.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode().removesuffix("\n")
                except UnicodeDecodeError:
                    # Raises an error that locates the fault in the whole file.
                    read_text(path)
                    raise
                if line.strip():
                    record = parse_json(line, str(path), expected=expected, line=number)
                    if not isinstance(record, dict):
                        problem = f"a JSON {type(record).__name__}"
                        raise FileError(problem, where=f"{path}, line {number}", expected=expected)
                    yield number, record
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror})", where=str(path)) from error


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a JSONL, CSV or Parquet file into a frame; the suffix decides the format.

    CSV cells stay text: "007" is not a number and an empty cell is not a missing value; :mod:`comperdial.schema` converts
    them. This reads files written by programs; for files from people and spreadsheets use
    :func:`comperdial.data.files.read_file`.
    """
    import pandas as pd

    path = Path(path)
    check_suffix(path)
    if path.suffix == ".csv":
        return _read_csv(path)
    if path.suffix == ".jsonl":
        records = [record for _, record in read_jsonl(path)]
        if not records:
            raise FileError("no records", where=str(path), expected="one JSON object per line")
        return pd.DataFrame(records)
    return read_parquet(path)


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file; raise a :class:`FileError` if it is invalid or has duplicate column names."""
    import pandas as pd
    from pyarrow.fs import LocalFileSystem

    try:
        # Use Arrow's own file system: pandas would open a Python file that Arrow's threads may still hold at exit.
        frame = pd.read_parquet(check_input(path), filesystem=LocalFileSystem())
    except FileNotFoundError:
        raise FileError("no such file", where=str(path)) from None
    except (OSError, ValueError) as error:
        raise FileError("not a readable Parquet file", where=str(path), expected="Parquet") from error
    if not frame.columns.is_unique:
        raise FileError("two columns have one name", where=str(path), expected="each name once")
    return frame


def check_suffix(path: Path, known: Sequence[str] = TABLE_SUFFIXES) -> None:
    """Raise an error if the suffix is not that of a table, or not a known one."""
    if path.suffix not in known:
        expected = "a name ending in " + ", ".join(known)
        raise FileError(f"unknown kind of file {path.suffix!r}", where=str(path), expected=expected)


def _read_csv(path: Path) -> pd.DataFrame:
    import pandas as pd

    # Not pandas: if a row is too long, it takes the first cell as an index and shifts the others.
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    rows: list[list[str]] = []
    try:
        header = next(reader, None)
        if not header:
            raise FileError("the file is empty", where=str(path), expected="a header line and records")
        for row in filter(None, reader):
            if len(row) != len(header):
                expected = f"{len(header)}, as in the header"
                raise FileError(f"{len(row)} cells", where=f"{path}, line {reader.line_num}", expected=expected)
            rows.append(row)
    except csv.Error as error:
        raise FileError(f"not valid CSV ({error})", where=f"{path}, line {reader.line_num}") from error
    if len(set(header)) < len(header):
        raise FileError("two columns have one name", where=f"{path}, line 1", expected="each name once")
    return pd.DataFrame(rows, columns=header, dtype="str")


def check_columns(frame: pd.DataFrame, known: Collection[str], path: Path) -> pd.DataFrame:
    """Reject a misspelled column name, and log which columns are ignored; return the frame."""
    others = [str(column) for column in frame.columns if column not in known]
    for column in others:
        near = difflib.get_close_matches(column, known, n=1, cutoff=0.8)
        if near and near[0] not in frame:
            raise UnknownNameError("column", column, known, where=str(path))
    if others:
        log.info("%s: columns not used: %s", path, ", ".join(others))
    return frame


def form_path(stem: str | Path, suffix: str) -> Path:
    """Return the path of a table or figure in another format; the stem may contain dots or have another suffix."""
    path = Path(stem)
    return path.with_name((path.stem if path.suffix in FORMS else path.name) + suffix)


def write_table(path: str | Path, frame: pd.DataFrame) -> None:
    """Write a frame atomically as JSONL, CSV or Parquet (zstd); the suffix decides the format."""
    path = Path(path)
    check_suffix(path)
    with replacing(path) as temporary:
        if path.suffix == ".parquet":
            frame.to_parquet(temporary, index=False, compression="zstd")
        elif path.suffix == ".csv":
            frame.to_csv(temporary, index=False, lineterminator="\n")
        else:
            # Not to_json(), which rounds to ten decimals: too few for a BLEU of 6.4e-10.
            records = frame.astype(object).where(frame.notna(), None).to_dict("records")
            lines = (json.dumps(record, ensure_ascii=False, default=lambda v: v.tolist()) for record in records)
            temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
