"""Score tables with a metric."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.core.errors import MissingResourceError, SchemaError
from comperdial.metrics import Batch, Metric, Scores

log = logging.getLogger(__name__)

# The columns of a context that hold what a metric needs, in a batch's order.
_HELD = {"references": "references", "histories": "history", "facts": "facts"}
# Responses that are read and scored at once: enough to share work, few enough to keep memory flat.
_PART = 4096


def score_tables(metric: Metric, name: str, folder: str | Path, part: schema.Part = schema.WHOLE) -> pd.DataFrame:
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
    part
        Which part of the table's rows is scored; default: all. Scores are the same whatever the parts; of a metric that runs
        a model without keeping vectors, but for the last digits.

    Returns
    -------
    DataFrame
        Table ``scores``, turn level; responses that lack what the metric needs, or that it could not score, are absent,
        and the log says how many lack what.
    """
    frames = [frame for frame in _scored(metric, name, folder, part) if len(frame)]
    return schema.validate(pd.concat(frames, ignore_index=True), "scores") if frames else schema.empty("scores")


def write_scores(
    metric: Metric, name: str, folder: str | Path, output: str | Path, part: schema.Part = schema.WHOLE
) -> None:
    """Score a dataset's tables as :func:`score_tables` does, into a Parquet file, using constant memory.

    :func:`comperdial.schema.merge` makes of all parts' files the one that is written without parts.
    """
    with schema.writing(output, "scores", part) as add:
        for frame in _scored(metric, name, folder, part):
            add(frame)


def _scored(metric: Metric, name: str, folder: str | Path, part: schema.Part) -> Iterator[pd.DataFrame]:
    lacking = Lacking()
    for responses, batch in batches(folder, part):
        yield from (tidy(*found) for found in compute({name: metric}, responses, batch, lacking))
    lacking.warn()


class Lacking:
    """Counts, for each metric and each thing that it needs, the responses without it."""

    def __init__(self) -> None:
        self.total = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        self._left: Counter[str] = Counter()

    def add(self, name: str, metric: Metric, batch: Batch) -> npt.NDArray[np.bool_]:
        """Count for one metric and a batch, and return which of its responses have all that the metric needs."""
        whole = np.ones(len(batch), dtype=np.bool_)
        for need in metric.needs:
            held = batch.has(need)
            self._counts[name, need] += int((~held).sum())
            whole &= held
        self._left[name] += int(whole.sum())
        return whole

    def warn(self, names: Collection[str] | None = None) -> None:
        """Say for each metric (default: all) how many of the responses lacked something."""
        for (name, need), count in self._counts.items():
            if count and (names is None or name in names):
                log.warning("%s: %d of %d responses have no %s and no score", name, count, self.total, _HELD[need])

    def reason(self, name: str) -> str | None:
        """Say why a metric scored nothing; None if it did."""
        if not self.total:
            return "there are no responses to score: all systems are references"
        needs = [_HELD[need] for (of, need), count in self._counts.items() if of == name and count]
        return None if self._left[name] else f"no response has {' and '.join(needs)}"


def batches(folder: str | Path, part: schema.Part = schema.WHOLE) -> Iterator[tuple[pd.DataFrame, Batch]]:
    """Yield a dataset's responses to score, some thousand at a time, with what each has to be scored with."""
    for responses, context in parts(folder, part=part):
        # The tables are checked: their entries need not be looked at again.
        yield responses, Batch(list(responses["response"]), *(list(context[column]) for column in _HELD.values()))


def compute(
    metrics: Mapping[str, Metric], responses: pd.DataFrame, batch: Batch, lacking: Lacking
) -> Iterator[tuple[pd.DataFrame, Scores, Metric, str]]:
    """Score responses with each metric, those that have what it needs; yields what :func:`tidy` takes."""
    lacking.total += len(batch)
    for name, metric in metrics.items():
        held = lacking.add(name, metric, batch)
        if held.any():
            yield responses[held], metric.compute(batch.only(held)), metric, name


def score_many(
    metrics: Mapping[str, Metric], parts: Iterable[tuple[pd.DataFrame, Batch]]
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Score responses with many metrics, each by its name, as far as it can run.

    Parameters
    ----------
    metrics
        By the name to call each in the table.
    parts
        Responses and what each has to be scored with: :func:`batches`, or :meth:`comperdial.metrics.score_files.Records.batch`.

    Returns
    -------
    tuple
        Table ``scores``, and the metrics that were not run: why. That some responses lack what a metric needs, have no
        score or were cut goes into the log.
    """
    not_run = {name: why for name, metric in metrics.items() if (why := metric.unavailable())}
    able = {name: metric for name, metric in metrics.items() if name not in not_run}
    lacking, frames = Lacking(), []
    unscored: Counter[tuple[str, str]] = Counter()
    cut: Counter[str] = Counter()
    scored: Counter[str] = Counter()
    for responses, batch in parts:
        for found in compute(able, responses, batch, lacking):
            _, values, _, name = found
            frames.append(tidy(*found))
            scored[name] += len(found[0])
            missing = {output: np.isnan(column) for output, column in values.items()}
            none = np.logical_and.reduce(list(missing.values()))
            unscored[name, ""] += int(none.sum())
            for output, lacks in missing.items():
                unscored[name, output] += int(lacks.sum())
            cut[name] += 0 if values.cut is None else int((values.cut > 0).sum())
    not_run |= {name: why for name in able if (why := lacking.reason(name))}
    lacking.warn([name for name in able if name not in not_run])
    for name in able:
        for (of, output), count in unscored.items():
            if of == name and count > (unscored[name, ""] if output else 0):
                what = f" of {output}" if output else ""
                log.warning("%s: %d of %d responses have no score%s", name, count, scored[name], what)
        if cut[name]:
            log.warning(
                "%s: the input of %d of %d responses did not fit the model and was cut", name, cut[name], scored[name]
            )
    frame = schema.validate(pd.concat(frames, ignore_index=True), "scores") if frames else schema.empty("scores")
    return frame, not_run


def score_all(metrics: Mapping[str, Metric], folder: str | Path, output: str | Path) -> None:
    """Score a dataset's tables with many metrics, each by its name, in one process and into one Parquet file.

    Each metric's rows are those that :func:`write_scores` writes. Memory does not grow with the responses.

    Raises
    ------
    MissingResourceError
        When a metric cannot run on this machine.
    """
    for name, metric in metrics.items():
        if problem := metric.unavailable():
            raise MissingResourceError(problem, where=f"metric {name!r}", hint="Leave it out, or get what it needs")
    lacking = Lacking()
    with schema.writing(output, "scores") as add:
        for responses, batch in batches(folder):
            frames = [tidy(*found) for found in compute(metrics, responses, batch, lacking)]
            if frames:
                add(pd.concat(frames, ignore_index=True))
    lacking.warn()


def expected_of(metric: Metric) -> dict[str, Any]:
    """Return a metric's signature and what each of its outputs needs of a context, as JSON can hold it."""
    outputs = {output: [_HELD[need] for need in metric.needed_by(output)] for output in metric.outputs}
    return {"signature": metric.signature(), "outputs": outputs}


def parts(
    folder: str | Path, rows: int | None = None, part: schema.Part = schema.WHOLE
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield a dataset's responses to score, some thousand at a time, and as many rows with the context of each.

    Parameters
    ----------
    folder
        Holds ``contexts``, ``responses`` and ``systems`` as Parquet.
    rows
        Of the table of responses, how many are read for a part; default: 4096. A response's index is its place among
        them: those of reference systems are left out.
    part
        Which part of the table's rows is read; default: all.
    """
    folder = Path(folder)
    contexts = schema.read(folder / "contexts.parquet", "contexts").set_index("context_id")
    systems = schema.read(folder / "systems.parquet", "systems").set_index("system_id")
    path = folder / "responses.parquet"
    number, of = part
    count = schema.count(path, "responses")
    span = range(count * (number - 1) // of, count * number // of)
    for some in schema.read_parts(path, "responses", rows or _PART, span.start, span.stop):
        _check_known(some, "context_id", contexts.index, path)
        _check_known(some, "system_id", systems.index, path)
        scored = some[some["system_id"].map(systems["kind"]) != "reference"]
        if len(scored):
            yield scored, contexts.loc[scored["context_id"]]


def _check_known(responses: pd.DataFrame, column: str, known: pd.Index, path: Path) -> None:
    unknown = responses.loc[~responses[column].isin(known), column]
    if len(unknown):
        raise SchemaError(
            f"{len(unknown)} responses name {column} {unknown.iloc[0]!r}, which is in no table", where=str(path)
        )


def tidy(responses: pd.DataFrame, values: Scores, metric: Metric, name: str) -> pd.DataFrame:
    """Lay a metric's outputs out as table ``scores``, not checked yet, without the values that are missing.

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
    return frame[frame["value"].notna()]


def _single(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(values, dtype=np.float32).astype(np.float64)


def significant(values: npt.NDArray[np.float64], digits: int = 12) -> npt.NDArray[np.float64]:
    """Round to significant digits; 0 and NaN stay."""
    table = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(table))))
        rounded = np.round(table * scale) / scale
    return np.where(np.isfinite(rounded), rounded, table)
