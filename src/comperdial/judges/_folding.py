"""What journals hold becomes parts: each process makes one of its own, and of those that nobody writes any more."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from comperdial.core.errors import FileError
from comperdial.judges import _parts
from comperdial.judges._disk import sync_folder, write_durably, writing_errors
from comperdial.judges._journal import Row, left
from comperdial.judges._locks import briefly

# One dictionary page holds all messages, so that zstd sees the template and each context once. A key would cost 16
# bytes a row whatever one does, and statistics repeat whole messages. A row group is what a shard's reader holds.
_LAYOUT = {
    "compression": "zstd",
    "compression_level": 19,
    "use_dictionary": True,
    "dictionary_pagesize_limit": 1 << 30,
    "data_page_size": 1 << 24,
    "row_group_size": 1 << 17,
    "write_statistics": False,
    "store_schema": False,
}


def write_part(folder: Path, lock: Path, rows: Iterable[Row]) -> Path:
    """Write the next part of a family. Its bytes depend on the rows alone, not on their order.

    Parameters
    ----------
    lock
        The file whose lock those hold who choose a number.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(_parts.to_table(rows), sink, **_LAYOUT)
    data = sink.getvalue().to_pybytes()
    with briefly(lock):
        path = folder / f"part-{_parts.last(folder) + 1:04d}-{hashlib.sha256(data).hexdigest()[:8]}.parquet"
        write_durably(path, data)
    return path


def fold(folder: Path, lock: Path, own: list[Path]) -> None:
    """Move the answers of journals to a new part: of our own, and of those whose processes are gone.

    The journals go only when the part is on the disk. When the process ends in between, answers stand twice, and
    reading drops the second.

    Parameters
    ----------
    folder
        The family's.
    lock
        As in :func:`write_part`.
    own
        Our journals, in the order in which they count. The requests that they answer are in no part.

    Raises
    ------
    FileError
        When the part cannot be written; the journals stay.
    """
    with ExitStack() as stack:
        others = [path for path in _parts.listing(folder).journals if path not in own]
        # While their locks are ours, nobody else makes a part of them.
        others = [path for path in others if stack.enter_context(left(path))]
        try:
            rows = _parts.appended(own, warn=False)
            found = _parts.appended(others, warn=False)
        except FileNotFoundError as error:
            raise FileError(
                "a journal is gone while its process writes it",
                where=str(error.filename),
                expected="locks that hold for all processes and nodes",
                hint="See docs/judges.md on judging from several machines",
            ) from error
        _parts.drop_held(found, _parts.listing(folder).parts)
        rows = {**found, **rows}
        if rows:
            write_part(folder, lock, rows.values())
        with writing_errors(folder):
            for path in [*own, *others]:
                path.unlink()
            sync_folder(folder)
