"""Read a user's file of responses, with or without ratings, as input for metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ItemError, SchemaError
from comperdial.core.files import check_columns
from comperdial.data.columns import NAMES, Layout, lay_out, scores_in
from comperdial.data.files import File, read_file
from comperdial.data.own_files import entries, utterances
from comperdial.metrics import Batch


@dataclass(frozen=True)
class Records:
    """The content of a user's file of responses.

    Attributes
    ----------
    responses
        Table ``responses``, one row per record, in the file's order.
    histories, references, facts
        A list for each record, as in the file, with unchecked entries. None if there is no such column.
    path
        The file's path.
    layout
        All columns of the file, and notes on how they were read.
    """

    responses: pd.DataFrame
    histories: list[list[Any]] | None
    references: list[list[Any]] | None
    facts: list[list[Any]] | None
    path: Path
    layout: Layout

    def batch(self) -> Batch:
        """Return the responses with their contexts; raise an error for a record whose entries are not text."""
        try:
            return Batch.checked(list(self.responses["response"]), self.references, self.histories, self.facts)
        except ItemError as error:
            raise error.at(f"{self.path}, record {error.index + 1}") from error


def read_records(path: str | Path, file: File | None = None, columns: Mapping[str, Any] | None = None) -> Records:
    """Read a JSONL, CSV or Parquet file of responses.

    Columns are ``response`` and, if a metric needs them, ``references`` (or ``reference``), ``history`` and ``facts``; a
    CSV contains lists as JSON. Optional columns are ``dataset``, ``context_id`` and ``system_id``. ``file`` is the file's
    content if it has already been read; ``path`` is then only used in messages. ``columns`` maps our column names to the
    file's.

    Raises
    ------
    SchemaError
        If ``response`` is missing or empty, there are no records, or two records have the same ids.
    """
    path = Path(path)
    layout = lay_out(file or read_file(path), path, columns, ratings=False)
    frame = layout.frame
    known = {*NAMES, *layout.columns, *layout.dimensions, *scores_in(frame), "dataset", "reference", "system"}
    check_columns(frame, known, path)
    if "dataset" not in frame:
        frame["dataset"] = path.stem
    if "context_id" not in frame:
        frame["context_id"] = [str(number) for number in range(1, len(frame) + 1)]
    responses = schema.validate(frame[schema.table("responses").columns], "responses", where=str(path))
    if responses.empty:
        raise SchemaError("no records", where=str(path), expected="one record a response")
    return Records(
        responses,
        _lists(frame, "history", path, utterances),
        _lists(frame, "references", path),
        _lists(frame, "facts", path),
        path,
        layout,
    )


def _lists(
    frame: pd.DataFrame, column: str, path: Path, read: Callable[[object, str], list[Any]] = entries
) -> list[list[Any]] | None:
    if column not in frame:
        return None
    return [read(cell, f"{path}, record {row}, column {column!r}") for row, cell in enumerate(frame[column], start=1)]
