"""Score a user's own file of responses with a metric."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.errors import ItemError, SchemaError
from comperdial.files import check_columns, read_table
from comperdial.metrics import Metric, Scores
from comperdial.scoring import tidy

log = logging.getLogger(__name__)

_COLUMNS = {
    "response": "the text to score (required)",
    "references": "a text, or a list of texts",
    "history": "a list of utterances before the response: texts, or {speaker, text}",
    "facts": "a list of texts",
    "dataset": "a name; default: the file's",
    "context_id": "what it answers; default: the number of the record",
    "system_id": "who wrote it; default: system",
}
_ALIASES = {"reference": "references"}


@dataclass(frozen=True)
class Records:
    """What a user's file of responses holds.

    Attributes
    ----------
    responses
        Table ``responses``, one row a record, in the file's order.
    histories, references, facts
        A list for each record, as the file has it: what its entries are is not checked. None where there is no column.
    """

    responses: pd.DataFrame
    histories: list[list[Any]] | None
    references: list[list[Any]] | None
    facts: list[list[Any]] | None


def read_records(path: str | Path) -> Records:
    """Read a JSONL, CSV or Parquet file of responses.

    Its columns: ``response``, and as far as they are needed ``references`` (or ``reference``), ``history`` and
    ``facts``; in a CSV a list is written as JSON. Optional names: ``dataset``, ``context_id``, ``system_id``.

    Raises
    ------
    SchemaError
        When ``response`` is missing or empty, there are no records, or two have the same names.
    """
    path = Path(path)
    frame = check_columns(read_table(path), [*_COLUMNS, *_ALIASES], path)
    for alias, column in _ALIASES.items():
        if alias in frame and column in frame:
            raise SchemaError(f"columns {alias!r} and {column!r}", where=str(path), expected="one of the two")
    frame = frame.rename(columns=_ALIASES)
    if "response" not in frame:
        raise SchemaError(
            "no column 'response'",
            where=str(path),
            expected="; ".join(f"{column}: {meaning}" for column, meaning in _COLUMNS.items()),
            hint=f"It has: {', '.join(map(str, frame.columns))}",
        )
    if "dataset" not in frame:
        frame["dataset"] = path.stem
    if "context_id" not in frame:
        frame["context_id"] = [str(number) for number in range(1, len(frame) + 1)]
    if "system_id" not in frame:
        frame["system_id"] = "system"
    responses = schema.validate(frame[schema.table("responses").columns], "responses", where=str(path))
    if responses.empty:
        raise SchemaError("no records", where=str(path), expected="one record a response")
    return Records(responses, *(_lists(frame, column, path) for column in ("history", "references", "facts")))


def score_file(metric: Metric, name: str, path: str | Path) -> pd.DataFrame:
    """Score a file of responses, which is read by :func:`read_records`.

    Returns
    -------
    DataFrame
        Table ``scores``.

    Raises
    ------
    SchemaError
        When ``response`` is missing, a record lacks what the metric needs, or two records have the same names.
    """
    records = read_records(path)
    responses = records.responses
    try:
        values = metric.score(list(responses["response"]), records.references, records.histories, records.facts)
    except ItemError as error:
        raise error.at(f"{path}, record {error.index + 1}") from error
    except SchemaError as error:
        raise SchemaError(error.problem, where=str(path), expected=error.expected, hint=error.hint) from error
    _report(values, metric)
    return tidy(responses, values, metric, name)


def _report(values: Scores, metric: Metric) -> None:
    """Say what a reader of the table alone could overlook."""
    missing = {output: np.isnan(values[output]) for output in metric.outputs}
    none = np.logical_and.reduce(list(missing.values()))
    if none.any():
        log.warning("%d of %d responses have no score", int(none.sum()), len(none))
    for output, lacking in missing.items():
        if (lacking & ~none).any():
            log.warning("%d of %d responses have no score of %s", int(lacking.sum()), len(none), output)
    if values.cut is not None and (cut := int((values.cut > 0).sum())):
        log.warning("the input of %d of %d responses did not fit the model and was cut", cut, len(none))


def _lists(frame: pd.DataFrame, column: str, path: Path) -> list[list[Any]] | None:
    if column not in frame:
        return None
    return [_list(cell, f"{path}, record {row}, column {column!r}") for row, cell in enumerate(frame[column], start=1)]


def _list(cell: Any, where: str) -> list[Any]:  # noqa: ANN401
    if isinstance(cell, list | np.ndarray):
        return list(cell)
    if cell is None or cell == "" or (isinstance(cell, float) and np.isnan(cell)):
        return []
    if not isinstance(cell, str):
        raise SchemaError(f"holds {cell!r}", where=where, expected="a text or a list")
    if not cell.startswith("["):
        return [cell]
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        # A text may well start with a bracket: "[laughs] me too".
        return [cell]
    return list(value)
