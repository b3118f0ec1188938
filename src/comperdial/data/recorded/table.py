"""Scores by name: a JSONL, CSV or Parquet file with the names of items and systems, and ``value``."""

from __future__ import annotations

from numbers import Real

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.core.files import check_columns, read_table
from comperdial.core.names import plain_name
from comperdial.data.recorded.base import Format, frame

# The column that names what is scored, and of which levels it can be.
_ITEMS = {"context_id": ("turn",), "dialogue_id": ("dialogue",), "item_id": ("turn", "dialogue")}
_NEEDED = ("system_id", "value")
_KNOWN = (*_ITEMS, *_NEEDED, "dataset", "level", "metric", "output", "signature", "cut")
_OUTPUT = "score"


class Table(Format):
    """Reader of tables of scores, such as ``comperdial score`` writes.

    ``context_id`` names a turn, ``dialogue_id`` a dialogue, ``item_id`` either: what a column ``level`` says, or a turn
    without one. Other optional columns: ``output`` (default: ``score``), ``cut``, and ``dataset``, which must then be
    this data set. An empty value is a turn or a dialogue without a score. The name in a column ``metric`` is not used.
    """

    def read(self) -> pd.DataFrame:
        """Return the scores of the file, named by record."""
        content, item = self._columns()
        places = [f"record {number}" for number in range(1, len(content) + 1)]
        for column, expected in (("dataset", (self.rated.dataset,)), ("level", _ITEMS[item])):
            if column in content:
                self._check_values(content[column], places, expected)
        if "metric" in content and content["metric"].nunique() > 1:
            names = ", ".join(map(repr, content["metric"].unique()))
            raise SchemaError(
                f"column 'metric' holds {names}", where=str(self.path), expected="the scores of one metric a file"
            )
        levels = content["level"] if "level" in content else [_ITEMS[item][0]] * len(content)
        outputs = content["output"].map(str) if "output" in content else [_OUTPUT] * len(content)
        items, systems = (content[name].map(plain_name).map(str) for name in (item, "system_id"))
        values = self._values(content["value"], places)
        found = frame(zip(places, levels, items, systems, outputs, values, strict=True))
        return found.assign(cut=content["cut"].to_numpy()) if "cut" in content else found

    def _columns(self) -> tuple[pd.DataFrame, str]:
        """Return the file's content, and which column names what is scored."""
        content = check_columns(read_table(self.path), _KNOWN, self.path)
        items = [column for column in _ITEMS if column in content]
        if len(items) > 1:
            raise SchemaError(
                f"columns {' and '.join(map(repr, items))}",
                where=str(self.path),
                expected="one of " + ", ".join(_ITEMS),
            )
        needed = (items[0] if items else "context_id", *_NEEDED)
        if missing := [column for column in needed if column not in content]:
            raise SchemaError(
                f"no column {', '.join(map(repr, missing))}",
                where=str(self.path),
                expected=f"at least {', '.join(needed)}; dialogues are named by dialogue_id",
            )
        if self.path.suffix == ".csv":
            content = schema.parse_cells(content, "scores", self.path)
        return content, needed[0]

    def _check_values(self, column: pd.Series, places: list[str], expected: tuple[str, ...]) -> None:
        wrong = ~column.isin(expected).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            raise SchemaError(
                f"column {column.name!r} holds {column.iloc[row]!r}",
                where=f"{self.path}, {places[row]}",
                expected=" or ".join(map(repr, expected)) + ", or no such column",
            )

    def _values(self, column: pd.Series, places: list[str]) -> list[float]:
        cells = column.astype(object)
        cells = cells.where(cells.notna() & (cells != ""), float("nan"))
        for place, cell in zip(places, cells, strict=True):
            if isinstance(cell, bool) or not isinstance(cell, Real):
                raise SchemaError(f"column 'value' holds {cell!r}", where=f"{self.path}, {place}", expected="a number")
        return [float(cell) for cell in cells]
