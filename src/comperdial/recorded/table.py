"""Scores by name: a JSONL, CSV or Parquet file with ``context_id``, ``system_id`` and ``value``."""

from __future__ import annotations

from numbers import Real

import pandas as pd

from comperdial import schema
from comperdial.errors import SchemaError
from comperdial.files import check_columns, read_table
from comperdial.recorded.base import Format, frame

_NEEDED = ("context_id", "system_id", "value")
_KNOWN = (*_NEEDED, "item_id", "dataset", "level", "metric", "output", "signature", "cut")
_OUTPUT = "score"


class Table(Format):
    """Reader of tables of scores, such as ``comperdial score`` writes (there ``context_id`` is called ``item_id``).

    Optional columns: ``output`` (default: ``score``), ``cut``, and ``dataset`` and ``level``, which must then be this
    data set and ``turn``. An empty value is a response without a score. The name in a column ``metric`` is not used.
    """

    def read(self) -> pd.DataFrame:
        """Return the scores of the file, named by record."""
        content = self._columns()
        places = [f"record {number}" for number in range(1, len(content) + 1)]
        for column, expected in (("dataset", self.rated.dataset), ("level", "turn")):
            if column in content:
                self._check_constant(content[column], places, expected)
        if "metric" in content and content["metric"].nunique() > 1:
            names = ", ".join(map(repr, content["metric"].unique()))
            raise SchemaError(
                f"column 'metric' holds {names}", where=str(self.path), expected="the scores of one metric a file"
            )
        outputs = content["output"].map(str) if "output" in content else [_OUTPUT] * len(content)
        contexts, systems = content["context_id"].map(str), content["system_id"].map(str)
        found = frame(zip(places, contexts, systems, outputs, self._values(content["value"], places), strict=True))
        return found.assign(cut=content["cut"].to_numpy()) if "cut" in content else found

    def _columns(self) -> pd.DataFrame:
        content = check_columns(read_table(self.path), _KNOWN, self.path)
        if "item_id" in content and "context_id" in content:
            raise SchemaError("columns 'item_id' and 'context_id'", where=str(self.path), expected="one of the two")
        if self.path.suffix == ".csv":
            content = schema.parse_cells(content, "scores", self.path)
        content = content.rename(columns={"item_id": "context_id"})
        if missing := [column for column in _NEEDED if column not in content]:
            raise SchemaError(
                f"no column {', '.join(map(repr, missing))}",
                where=str(self.path),
                expected="at least " + ", ".join(_NEEDED),
            )
        return content

    def _check_constant(self, column: pd.Series, places: list[str], expected: str) -> None:
        wrong = (column != expected).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            raise SchemaError(
                f"column {column.name!r} holds {column.iloc[row]!r}",
                where=f"{self.path}, {places[row]}",
                expected=f"{expected!r}, or no such column",
            )

    def _values(self, column: pd.Series, places: list[str]) -> list[float]:
        cells = column.astype(object)
        cells = cells.where(cells.notna() & (cells != ""), float("nan"))
        for place, cell in zip(places, cells, strict=True):
            if isinstance(cell, bool) or not isinstance(cell, Real):
                raise SchemaError(f"column 'value' holds {cell!r}", where=f"{self.path}, {place}", expected="a number")
        return [float(cell) for cell in cells]
