"""The answers of a family, or of one of its shards, as its files have them."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges import _parts
from comperdial.judges._journal import Row
from comperdial.judges._parts import SCHEMA, Listing


class Content:
    """Answers that lie in files, each key once: the first counts."""

    def __init__(self, family_id: str, tables: list[pa.Table]) -> None:
        table = _parts.joined(tables)
        found = _parts.keys(family_id, table)
        self.rows: dict[str, int] = {}
        kept = []
        for row, digest in enumerate(found):
            if digest not in self.rows:
                self.rows[digest] = len(self.rows)
                kept.append(row)
        self.table = table.take(kept) if len(kept) < len(found) else table

    def row(self, digest: str) -> Row:
        """Return the answer as a row."""
        place = self.rows[digest]
        code, *others = (values[place] for values in self._values)
        return {"messages": self._messages.dictionary[code].as_py(), **dict(zip(SCHEMA.names[1:], others, strict=True))}

    @cached_property
    def _messages(self) -> pa.DictionaryArray:
        return _parts.whole(self.table)

    @cached_property
    def _values(self) -> list[list[Any]]:
        """Return the columns as lists, and of the messages their numbers: a cell of an Arrow column is slow to get."""
        others = [self.table.column(name).to_pylist() for name in SCHEMA.names[1:]]
        return [self._messages.indices.to_pylist(), *others]


def load(folder: Path, family_id: str, shard: Shard = WHOLE) -> Content:
    """Read what a family's files hold of a shard.

    Raises
    ------
    FileError
        When a file is altered or broken.
    """
    # Each file is read once, although others fold meanwhile: the answers of a journal that went are in a part, too.
    tables: dict[Path, pa.Table] = {}
    journals: dict[Path, dict[tuple[str, int], Row]] = {}

    def read(found: Listing) -> Content:
        for path in found.journals:
            if path not in journals:
                journals[path] = _parts.appended([path], warn=True, shard=shard)
        for path in found.parts:
            if path not in tables:
                tables[path] = _parts.read_part(path, shard)
        rows = (row for path in found.journals for row in journals[path].values())
        return Content(family_id, [*(tables[path] for path in found.parts), _parts.to_table(rows)])

    return _parts.steadily(folder, read)
