"""Score tables and files with a metric."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.errors import SchemaError
from comperdial.files import read_table
from comperdial.metrics import Metric

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


def score_tables(metric: Metric, name: str, folder: str | Path) -> pd.DataFrame:
    """Score the responses of a dataset's tables.

    Parameters
    ----------
    metric
        The metric.
    name
        What to call it in the table: its name in ``params.yaml``.
    folder
        Holds ``contexts``, ``responses`` and ``systems`` as Parquet. Systems of kind ``reference`` are not scored:
        their responses are what the others are held against.

    Returns
    -------
    DataFrame
        Table ``scores``, turn level; responses that the metric could not score are absent.
    """
    folder = Path(folder)
    contexts = schema.read(folder / "contexts.parquet", "contexts").set_index("context_id")
    systems = schema.read(folder / "systems.parquet", "systems")
    responses = schema.read(folder / "responses.parquet", "responses")
    scored = systems.loc[systems["kind"] != "reference", "system_id"]
    responses = responses[responses["system_id"].isin(scored)]
    unknown = responses.loc[~responses["context_id"].isin(contexts.index), "context_id"]
    if len(unknown):
        raise SchemaError(
            f"a response to the unknown context {unknown.iloc[0]!r}", where=str(folder / "responses.parquet")
        )
    context = contexts.loc[responses["context_id"]]
    values = metric.score(
        list(responses["response"]), list(context["references"]), list(context["history"]), list(context["facts"])
    )
    return tidy(responses, values, metric, name)


def tidy(responses: pd.DataFrame, values: dict[str, Any], metric: Metric, name: str) -> pd.DataFrame:
    """Lay a metric's outputs out as table ``scores``, without the values that are missing."""
    parts = [
        pd.DataFrame(
            {
                "dataset": responses["dataset"].to_numpy(),
                "level": "turn",
                "item_id": responses["context_id"].to_numpy(),
                "system_id": responses["system_id"].to_numpy(),
                "metric": name,
                "output": output,
                "value": np.asarray(column, dtype=np.float32),
                "signature": metric.signature(),
            }
        )
        for output, column in values.items()
    ]
    frame = pd.concat(parts, ignore_index=True)
    return schema.validate(frame[frame["value"].notna()], "scores")


def score_file(metric: Metric, name: str, path: str | Path) -> pd.DataFrame:
    """Score a JSONL, CSV or Parquet file of responses.

    Its columns: ``response``, and as far as the metric needs them ``references`` (or ``reference``), ``history`` and
    ``facts``; in a CSV a list is written as JSON. Optional names: ``dataset``, ``context_id``, ``system_id``.

    Returns
    -------
    DataFrame
        Table ``scores``.

    Raises
    ------
    SchemaError
        When ``response`` is missing, a record lacks what the metric needs, or two records have the same names.
    """
    path = Path(path)
    frame = read_table(path).rename(columns=_ALIASES)
    if "response" not in frame:
        raise SchemaError(
            "no column 'response'",
            where=str(path),
            expected="; ".join(f"{column}: {meaning}" for column, meaning in _COLUMNS.items()),
            hint=f"It has: {', '.join(map(str, frame.columns))}",
        )
    frame["dataset"] = frame["dataset"].astype(str) if "dataset" in frame else path.stem
    numbers = [str(number) for number in range(1, len(frame) + 1)]
    frame["context_id"] = frame["context_id"].astype(str) if "context_id" in frame else numbers
    frame["system_id"] = frame["system_id"].astype(str) if "system_id" in frame else "system"
    names = ["dataset", "context_id", "system_id", "response"]
    responses = schema.validate(frame[names], "responses", where=str(path))
    histories = _lists(frame, "history", path)
    references, facts = _lists(frame, "references", path), _lists(frame, "facts", path)
    try:
        values = metric.score(
            list(responses["response"]),
            references,
            None if histories is None else [_utterances(history) for history in histories],
            facts,
        )
    except SchemaError as error:
        where = f"{path}, {error.where}" if error.where else str(path)
        raise SchemaError(error.problem, where=where, expected=error.expected, hint=error.hint) from error
    return tidy(responses, values, metric, name)


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
    except json.JSONDecodeError:
        # A text may well start with a bracket: "[laughs] me too".
        return [cell]
    return value if isinstance(value, list) else [cell]


def _utterances(history: Sequence[Any]) -> list[dict[str, str]]:
    last = len(history) - 1
    return [
        u if isinstance(u, dict) else {"speaker": "AB"[(last - number) % 2], "text": str(u)}
        for number, u in enumerate(history)
    ]


def read_ratings(path: str | Path) -> pd.DataFrame:
    """Read ratings: table ``turn_ratings``, or a file with at least ``context_id``, ``system_id`` and ``rating``.

    What such a short file leaves out is filled in: one annotator, one dimension named ``rating``, source ``human``, and
    the range of the ratings found as their scale.
    """
    path = Path(path)
    frame = read_table(path)
    needed = ["context_id", "system_id", "rating"]
    if missing := [column for column in needed if column not in frame]:
        raise SchemaError(
            f"no column {', '.join(map(repr, missing))}", where=str(path), expected="at least " + ", ".join(needed)
        )
    try:
        rating = pd.to_numeric(frame["rating"])
    except ValueError as error:
        raise SchemaError(f"column 'rating' is not numeric ({error})", where=str(path), expected="numbers") from error
    filled = {
        "dataset": path.stem,
        "annotator_id": "1",
        "position": None,
        "dimension": "rating",
        "scale_min": rating.min(),
        "scale_max": rating.max(),
        "source": "human",
    }
    for column, value in filled.items():
        if column not in frame:
            frame[column] = value
    return schema.validate(frame[schema.table("turn_ratings").columns], "turn_ratings", where=str(path))
