"""What a reader is: upstream files in, tables out. A new one is a file beside this one with one subclass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError

Tables = dict[str, pd.DataFrame]


class Reader(ABC):
    """Turns a dataset's upstream files into tables.

    Parameters
    ----------
    dataset
        The dataset's name, for the ``dataset`` column and for messages.
    files
        The fetched files under the reader's own names for them (``data/sources.yaml``).
    options
        The reader's settings of ``params.yaml``, if it has any.
    """

    def __init__(self, dataset: str, files: Mapping[str, Path], options: Mapping[str, Any] | None = None) -> None:
        self.dataset = dataset
        self.files = files
        self.options = options or {}

    @abstractmethod
    def read(self) -> Tables:
        """Return the tables by name, as in :data:`comperdial.schema.TABLES`."""

    def frame(self, table: str, rows: Iterable[Mapping[str, Any]], origin: Path) -> pd.DataFrame:
        """Make a table of rows, with the ``dataset`` column added, and check it; messages name ``origin``."""
        frame = pd.DataFrame([{"dataset": self.dataset, **row} for row in rows], columns=schema.table(table).columns)
        return schema.validate(frame, table, where=f"{origin}, as table {table!r}")


def get(record: Any, field: str, kind: type, where: str) -> Any:  # noqa: ANN401
    """Return a field of a JSON record.

    Raises
    ------
    SchemaError
        When the record is no object, lacks the field or holds another kind of value there.
    """
    if not isinstance(record, dict):
        raise SchemaError(f"holds {type(record).__name__}", where=where, expected="a JSON object")
    if field not in record:
        raise SchemaError(
            f"no field {field!r}", where=where, expected=f"the fields of this format; it has {', '.join(record)}"
        )
    value = record[field]
    if not isinstance(value, kind):
        raise SchemaError(f"field {field!r} holds {value!r}", where=where, expected=f"a {kind.__name__}")
    return value
