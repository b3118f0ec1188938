"""Score a user's own file of responses with a metric."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ItemError, MissingResourceError, SchemaError
from comperdial.core.files import check_columns
from comperdial.data.columns import NAMES, Layout, lay_out
from comperdial.data.files import File, read_file
from comperdial.data.own_files import entries, utterances
from comperdial.metrics import Batch, Metric
from comperdial.metrics.named import suited_to
from comperdial.metrics.scoring import score_many

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Records:
    """What a user's file of responses holds.

    Attributes
    ----------
    responses
        Table ``responses``, one row a record, in the file's order.
    histories, references, facts
        A list for each record, as the file has it: what its entries are is not checked. None where there is no column.
    path
        Where it was read.
    layout
        All of the file's columns, and notes on how they were read.
    """

    responses: pd.DataFrame
    histories: list[list[Any]] | None
    references: list[list[Any]] | None
    facts: list[list[Any]] | None
    path: Path
    layout: Layout

    def batch(self) -> Batch:
        """Return what each response has to be scored with; a record whose entries are no texts is an error."""
        try:
            return Batch.checked(list(self.responses["response"]), self.references, self.histories, self.facts)
        except ItemError as error:
            raise error.at(f"{self.path}, record {error.index + 1}") from error


def read_records(path: str | Path, file: File | None = None, columns: Mapping[str, Any] | None = None) -> Records:
    """Read a JSONL, CSV or Parquet file of responses.

    Its columns: ``response``, and as far as they are needed ``references`` (or ``reference``), ``history`` and
    ``facts``; in a CSV a list is written as JSON. Optional names: ``dataset``, ``context_id``, ``system_id``.
    ``file`` is what the file holds, if it has been read; ``path`` is then what messages call it. ``columns`` maps our names
    of columns to the file's.

    Raises
    ------
    SchemaError
        When ``response`` is missing or empty, there are no records, or two have the same names.
    """
    path = Path(path)
    layout = lay_out(file or read_file(path), path, columns, ratings=False)
    frame = layout.frame
    check_columns(frame, {*NAMES, *layout.columns, *layout.dimensions, "dataset", "reference", "system"}, path)
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


def score_file(metric: Metric, name: str, path: str | Path) -> pd.DataFrame:
    """Score a file of responses, which is read by :func:`read_records`.

    Returns
    -------
    DataFrame
        Table ``scores``; responses that lack what the metric needs are absent, and counted in the log. It is empty where
        the metric is for English alone and the responses are in other scripts, as the log says.

    Raises
    ------
    SchemaError
        When ``response`` is missing, no record has what the metric needs, or two records have the same names.
    MissingResourceError
        When the metric needs something that this machine lacks.
    """
    if problem := metric.unavailable():
        raise MissingResourceError(problem, where=f"metric {name!r}")
    records = read_records(path)
    batch = records.batch()
    metrics, unsuited = suited_to({name: metric}, [batch])
    for why in unsuited.values():
        log.warning("%s: not run: %s", name, why)
        return schema.empty("scores")
    scores, not_run = score_many(metrics, [(records.responses, batch)])
    for problem in not_run.values():
        needs = " and ".join(metric.needs)
        raise SchemaError(f"metric {name!r} needs {needs}: {problem}", where=str(path), expected=f"{needs} of a record")
    return scores


def _lists(
    frame: pd.DataFrame, column: str, path: Path, read: Callable[[object, str], list[Any]] = entries
) -> list[list[Any]] | None:
    if column not in frame:
        return None
    return [read(cell, f"{path}, record {row}, column {column!r}") for row, cell in enumerate(frame[column], start=1)]
