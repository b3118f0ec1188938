"""Score tables and files with a metric."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.errors import ItemError, MissingResourceError, SchemaError
from comperdial.files import check_columns, read_table
from comperdial.metrics import Batch, Metric, Scores

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
# The columns of a context that hold what a metric needs, in a batch's order.
_HELD = {"references": "references", "histories": "history", "facts": "facts"}
# Responses that are scored at once: enough to share work, few enough to keep memory flat.
_PART = 4096


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
    frames = [
        tidy(responses, _score(metric, responses, context, folder), metric, name)
        for responses, context in parts(folder)
    ]
    return schema.validate(pd.concat(frames, ignore_index=True), "scores") if frames else schema.empty("scores")


def write_scores(metric: Metric, name: str, folder: str | Path, output: str | Path) -> None:
    """Score a dataset's tables as :func:`score_tables` does, into a Parquet file, in memory that does not grow."""
    with schema.writing_parts(output, "scores") as add:
        for responses, context in parts(folder):
            add(tidy(responses, _score(metric, responses, context, folder), metric, name))


def score_all(
    metrics: Mapping[str, Metric], folder: str | Path, output: str | Path, embeddings: str | Path | None = None
) -> None:
    """Score a dataset's tables with many metrics, each by its name, in one process and into one Parquet file.

    Each metric's rows are those that :func:`write_scores` writes, but a response that lacks what a metric needs is left
    out for this metric, and the log says how many these were. Memory does not grow with the responses. ``embeddings``
    is the folder that keeps vectors; default: as ``COMPERDIAL_EMBEDDINGS`` says.

    Raises
    ------
    MissingResourceError
        When a metric cannot run on this machine.
    """
    for name, metric in metrics.items():
        if problem := metric.unavailable():
            raise MissingResourceError(problem, where=f"metric {name!r}", hint="Leave it out, or get what it needs")
    lacking: Counter[tuple[str, str]] = Counter()
    total = 0
    with _vectors_in(embeddings), schema.writing_parts(output, "scores") as add:
        for responses, context in parts(folder):
            total += len(responses)
            # The tables are checked: once for all metrics is enough.
            columns = [list(responses["response"]), *(list(context[column]) for column in _HELD.values())]
            frames = []
            for name, metric in metrics.items():
                whole = np.ones(len(responses), dtype=np.bool_)
                for need in metric.needs:
                    held = context[_HELD[need]].map(len).to_numpy() > 0
                    lacking[name, need] += int((~held).sum())
                    whole &= held
                if whole.any():
                    values = metric.compute(Batch(*(list(compress(column, whole)) for column in columns)))
                    frames.append(tidy(responses[whole], values, metric, name))
            if frames:
                add(pd.concat(frames, ignore_index=True))
    for (name, need), count in lacking.items():
        if count:
            log.warning("%s: %d of %d responses have no %s", name, count, total, need)


@contextmanager
def _vectors_in(folder: str | Path | None) -> Iterator[None]:
    """Let encoders keep vectors in a folder, if one is named."""
    from comperdial.models.encoder import STORE_VARIABLE

    before = os.environ.get(STORE_VARIABLE)
    if folder is not None:
        os.environ[STORE_VARIABLE] = str(folder)
    try:
        yield
    finally:
        os.environ.pop(STORE_VARIABLE, None)
        if before is not None:
            os.environ[STORE_VARIABLE] = before


def parts(folder: str | Path) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield a dataset's responses to score, some thousand at a time, and as many rows with the context of each."""
    folder = Path(folder)
    contexts = schema.read(folder / "contexts.parquet", "contexts").set_index("context_id")
    systems = schema.read(folder / "systems.parquet", "systems").set_index("system_id")
    path = folder / "responses.parquet"
    for part in schema.read_parts(path, "responses", _PART):
        _check_known(part, "context_id", contexts.index, path)
        _check_known(part, "system_id", systems.index, path)
        scored = part[part["system_id"].map(systems["kind"]) != "reference"]
        if len(scored):
            yield scored, contexts.loc[scored["context_id"]]


def _score(metric: Metric, responses: pd.DataFrame, context: pd.DataFrame, folder: str | Path) -> Scores:
    try:
        return metric.score(
            list(responses["response"]), list(context["references"]), list(context["history"]), list(context["facts"])
        )
    except ItemError as error:
        key = responses.iloc[error.index]
        place = f"{folder}, context {key['context_id']!r}, system {key['system_id']!r}"
        raise error.at(place) from error


def _check_known(responses: pd.DataFrame, column: str, known: pd.Index, path: Path) -> None:
    unknown = responses.loc[~responses[column].isin(known), column]
    if len(unknown):
        raise SchemaError(
            f"{len(unknown)} responses name {column} {unknown.iloc[0]!r}, which is in no table", where=str(path)
        )


def tidy(responses: pd.DataFrame, values: Scores, metric: Metric, name: str) -> pd.DataFrame:
    """Lay a metric's outputs out as table ``scores``, without the values that are missing."""
    frames = [
        pd.DataFrame(
            {
                "dataset": responses["dataset"].to_numpy(),
                "level": "turn",
                "item_id": responses["context_id"].to_numpy(),
                "system_id": responses["system_id"].to_numpy(),
                "metric": name,
                "output": output,
                "value": np.asarray(column, dtype=np.float32),
                "cut": 0 if values.cut is None else values.cut,
                "signature": metric.signature(),
            }
        )
        for output, column in values.items()
    ]
    frame = pd.concat(frames, ignore_index=True)
    return schema.validate(frame[frame["value"].notna()], "scores")


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
    main = values[metric.outputs[0]]
    if missing := int(np.isnan(main).sum()):
        log.warning("%d of %d responses have no score", missing, len(main))
    if values.cut is not None and (cut := int((values.cut > 0).sum())):
        log.warning("the input of %d of %d responses did not fit the model and was cut", cut, len(main))


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
