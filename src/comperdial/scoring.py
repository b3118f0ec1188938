"""Score tables with a metric."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema, sharding
from comperdial.errors import MissingResourceError, SchemaError
from comperdial.metrics import Batch, Metric, Scores
from comperdial.sharding import WHOLE, Shard

log = logging.getLogger(__name__)

# The columns of a context that hold what a metric needs, in a batch's order.
_HELD = {"references": "references", "histories": "history", "facts": "facts"}
# Responses that are read and scored at once: enough to share work, few enough to keep memory flat. Whole blocks.
_PART = 16 * sharding.BLOCK


def score_tables(metric: Metric, name: str, folder: str | Path, shard: Shard = WHOLE) -> pd.DataFrame:
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
    shard
        Which of the table's rows are scored (:meth:`Shard.rows`); default: all. A response's scores are the same, to
        the last digit, whatever the shards.

    Returns
    -------
    DataFrame
        Table ``scores``, turn level; responses that lack what the metric needs, or that it could not score, are absent,
        and the log says how many lack what.
    """
    frames = [frame for frame in _scored({name: metric}, folder, shard) if len(frame)]
    return schema.validate(pd.concat(frames, ignore_index=True), "scores") if frames else schema.empty("scores")


def write_scores(metric: Metric, name: str, folder: str | Path, output: str | Path, shard: Shard = WHOLE) -> None:
    """Score a dataset's tables as :func:`score_tables` does, into a Parquet file, in memory that does not grow.

    The files of all shards, merged (:func:`comperdial.schema.merge`), are the file that is written without shards.
    """
    total = schema.count(Path(folder) / "responses.parquet", "responses")
    made = f"{name} ({metric.signature()}), {total:,} responses"
    with schema.writing_sorted(output, "scores", shard, made) as add:
        for frame in _scored({name: metric}, folder, shard):
            add(frame)


def _scored(metrics: Mapping[str, Metric], folder: str | Path, shard: Shard = WHOLE) -> Iterator[pd.DataFrame]:
    """Score the responses that have what a metric needs, some thousand at a time; log how many had not."""
    lacking: Counter[tuple[str, str]] = Counter()
    total = 0
    for responses, context in parts(folder, shard=shard):
        total += len(responses)
        # The tables are checked: once for all metrics is enough.
        columns = [list(responses["response"]), *(list(context[column]) for column in _HELD.values())]
        there = {need: context[column].map(len).to_numpy() > 0 for need, column in _HELD.items()}
        for name, metric in metrics.items():
            whole = np.ones(len(responses), dtype=np.bool_)
            for need in metric.needs:
                lacking[name, need] += int((~there[need]).sum())
                whole &= there[need]
            for held in (whole & block for block in _blocks(metric, responses)):
                if held.any():
                    values = metric.compute(Batch(*(list(compress(column, held)) for column in columns)))
                    yield tidy(responses[held], values, metric, name)
    for (name, need), count in lacking.items():
        if count:
            log.warning("%s: %d of %d responses have no %s and no score", name, count, total, _HELD[need])


def _blocks(metric: Metric, responses: pd.DataFrame) -> Iterator[npt.NDArray[np.bool_]]:
    """Say which responses of a part are computed at once: all of them, or one block after another.

    A model's numbers depend, in their last digits, on what else is in a batch. Where vectors are kept, they come from
    batches of texts, and how these are made is up to the encoder.
    """
    if metric.keeps_vectors or not metric.runs_model:
        yield np.ones(len(responses), dtype=np.bool_)
        return
    blocks = responses.index.to_numpy() // sharding.BLOCK
    for block in np.unique(blocks):
        yield blocks == block


def score_all(
    metrics: Mapping[str, Metric], folder: str | Path, output: str | Path, embeddings: str | Path | None = None
) -> None:
    """Score a dataset's tables with many metrics, each by its name, in one process and into one Parquet file.

    Each metric's rows are those that :func:`write_scores` writes. Memory does not grow with the responses.
    ``embeddings`` is the folder that keeps vectors; default: as ``COMPERDIAL_EMBEDDINGS`` says.

    Raises
    ------
    MissingResourceError
        When a metric cannot run on this machine.
    """
    for name, metric in metrics.items():
        if problem := metric.unavailable():
            raise MissingResourceError(problem, where=f"metric {name!r}", hint="Leave it out, or get what it needs")
    with _vectors_in(embeddings), schema.writing_sorted(output, "scores") as add:
        for frame in _scored(metrics, folder):
            add(frame)


def expected_of(metric: Metric) -> dict[str, Any]:
    """Return a metric's signature and what each of its outputs needs of a context, as JSON can hold it."""
    outputs = {output: [_HELD[need] for need in metric.needed_by(output)] for output in metric.outputs}
    return {"signature": metric.signature(), "outputs": outputs}


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


def parts(
    folder: str | Path, rows: int | None = None, shard: Shard = WHOLE
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield a dataset's responses to score, some thousand at a time, and as many rows with the context of each.

    Parameters
    ----------
    folder
        Holds ``contexts``, ``responses`` and ``systems`` as Parquet.
    rows
        Of the table of responses, how many are read for a part; default: 4096. A response's index is its place among
        them: those of reference systems are left out.
    shard
        Which rows of the table are read (:meth:`Shard.rows`); default: all.
    """
    folder = Path(folder)
    contexts = schema.read(folder / "contexts.parquet", "contexts").set_index("context_id")
    systems = schema.read(folder / "systems.parquet", "systems").set_index("system_id")
    path = folder / "responses.parquet"
    span = shard.rows(schema.count(path, "responses"))
    for part in schema.read_parts(path, "responses", rows or _PART, span.start, span.stop):
        _check_known(part, "context_id", contexts.index, path)
        _check_known(part, "system_id", systems.index, path)
        scored = part[part["system_id"].map(systems["kind"]) != "reference"]
        if len(scored):
            yield scored, contexts.loc[scored["context_id"]]


def _check_known(responses: pd.DataFrame, column: str, known: pd.Index, path: Path) -> None:
    unknown = responses.loc[~responses[column].isin(known), column]
    if len(unknown):
        raise SchemaError(
            f"{len(unknown)} responses name {column} {unknown.iloc[0]!r}, which is in no table", where=str(path)
        )


def tidy(responses: pd.DataFrame, values: Scores, metric: Metric, name: str) -> pd.DataFrame:
    """Lay a metric's outputs out as table ``scores``, without the values that are missing.

    What a model computed is rounded to single precision, which is more than holds on another machine; all else to
    twelve significant digits, so that equal scores tie whatever they were computed by: nlg-eval's BLEU tells responses
    apart by the tenth.
    """
    rounded = _single if metric.runs_model or metric.keeps_vectors else significant
    frames = [
        pd.DataFrame(
            {
                "dataset": responses["dataset"].to_numpy(),
                "level": "turn",
                "item_id": responses["context_id"].to_numpy(),
                "system_id": responses["system_id"].to_numpy(),
                "metric": name,
                "output": output,
                "value": rounded(column),
                "cut": 0 if values.cut is None else values.cut,
                "signature": metric.signature(),
            }
        )
        for output, column in values.items()
    ]
    frame = pd.concat(frames, ignore_index=True)
    return schema.validate(frame[frame["value"].notna()], "scores")


def _single(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(values, dtype=np.float32).astype(np.float64)


def significant(values: npt.NDArray[np.float64], digits: int = 12) -> npt.NDArray[np.float64]:
    """Round to significant digits; 0 and NaN stay."""
    table = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(table))))
        rounded = np.round(table * scale) / scale
    return np.where(np.isfinite(rounded), rounded, table)
