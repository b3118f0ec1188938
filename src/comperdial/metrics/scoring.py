"""Score a data set's tables with metrics."""

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

# The columns of contexts by the field of a batch, in a batch's order.
_HELD = {"references": "references", "histories": "history", "facts": "facts"}
# Responses read and scored at once: enough to share work, few enough to bound memory.
_PART = 4096


def score_tables(metric: Metric, name: str, folder: str | Path, part: schema.Part = schema.WHOLE) -> pd.DataFrame:
    """Score the responses of a dataset's tables.

    Parameters
    ----------
    metric
        The metric.
    name
        Its name in the table, from ``params.yaml``.
    folder
        The folder of ``contexts``, ``responses`` and ``systems`` as Parquet. Systems of kind ``reference`` are not scored:
        their responses are references.
    part
        The part of the rows to score; default: all. Scores do not depend on it, except for the last digits if a metric
        runs a model without caching vectors.

    Returns
    -------
    DataFrame
        Table ``scores``, turn level. Responses that lack what the metric needs, or that it could not score, are left out;
        the former are counted in the log.
    """
    frames = [frame for frame in _scored(metric, name, folder, part) if len(frame)]
    return schema.validate(pd.concat(frames, ignore_index=True), "scores") if frames else schema.empty("scores")


def write_scores(
    metric: Metric, name: str, folder: str | Path, output: str | Path, part: schema.Part = schema.WHOLE
) -> None:
    """Score a dataset's tables as :func:`score_tables` does, with constant memory, and write a Parquet file.

    :func:`comperdial.schema.merge` combines the files of all parts; the result equals a run without parts.
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
    """Counts of the responses that lack something that a metric needs, by metric and field."""

    def __init__(self) -> None:
        self.total = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        self._left: Counter[str] = Counter()

    def add(self, name: str, metric: Metric, batch: Batch) -> npt.NDArray[np.bool_]:
        """Update the counts for one metric and a batch; return a mask of the responses that have all it needs."""
        whole = np.ones(len(batch), dtype=np.bool_)
        for need in metric.needs:
            held = batch.has(need)
            self._counts[name, need] += int((~held).sum())
            whole &= held
        self._left[name] += int(whole.sum())
        return whole

    def warn(self, names: Collection[str] | None = None) -> None:
        """Log, for each metric (default: all), how many responses lacked something."""
        for (name, need), count in self._counts.items():
            if count and (names is None or name in names):
                log.warning("%s: %d of %d responses have no %s and no score", name, count, self.total, _HELD[need])

    def reason(self, name: str) -> str | None:
        """Return why a metric scored no response; None if it scored some."""
        if not self.total:
            return "there are no responses to score: all systems are references"
        needs = [_HELD[need] for (of, need), count in self._counts.items() if of == name and count]
        return None if self._left[name] else f"no response has {' and '.join(needs)}"


def batches(folder: str | Path, part: schema.Part = schema.WHOLE) -> Iterator[tuple[pd.DataFrame, Batch]]:
    """Yield a dataset's responses with their contexts, some thousand at a time."""
    for responses, context in parts(folder, part=part):
        # Tables are checked on reading, so the entries are not checked again.
        yield responses, Batch(list(responses["response"]), *(list(context[column]) for column in _HELD.values()))


def compute(
    metrics: Mapping[str, Metric], responses: pd.DataFrame, batch: Batch, lacking: Lacking
) -> Iterator[tuple[pd.DataFrame, Scores, Metric, str]]:
    """Score with each metric the responses that have what it needs; yields the arguments of :func:`tidy`."""
    lacking.total += len(batch)
    for name, metric in metrics.items():
        held = lacking.add(name, metric, batch)
        if held.any():
            yield responses[held], metric.compute(batch.only(held)), metric, name


def score_many(
    metrics: Mapping[str, Metric], parts: Iterable[tuple[pd.DataFrame, Batch]]
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Score responses with many metrics, skipping those that cannot run.

    Parameters
    ----------
    metrics
        The metrics, by their names in the table.
    parts
        Responses and their batches: :func:`batches`, or :meth:`comperdial.metrics.score_files.Records.batch`.

    Returns
    -------
    tuple
        Table ``scores``, and the reason for each metric that was not run. The log counts responses that lack what a
        metric needs, have no score or were cut.
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
    """Score a dataset's tables with many metrics in one process and write one Parquet file.

    ``metrics`` are by name; each one's rows are those of :func:`write_scores`. Memory does not grow with the responses.

    Raises
    ------
    MissingResourceError
        If a metric cannot run on this machine.
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
    """Return a metric's signature and the fields that each of its outputs needs, as JSON-compatible values."""
    outputs = {output: [_HELD[need] for need in metric.needed_by(output)] for output in metric.outputs}
    return {"signature": metric.signature(), "outputs": outputs}


def parts(
    folder: str | Path, rows: int | None = None, part: schema.Part = schema.WHOLE
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield a dataset's responses, some thousand at a time, with their contexts as rows of the same order.

    Parameters
    ----------
    folder
        The folder of ``contexts``, ``responses`` and ``systems`` as Parquet.
    rows
        Number of rows of ``responses`` to read at once; default: 4096. Responses of reference systems are then dropped,
        but the index still counts them.
    part
        The part of the rows to read; default: all.
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
    """Return a metric's outputs as an unchecked table ``scores``, without missing values.

    Scores from a model are rounded to single precision, which exceeds what other machines reproduce; all others to twelve
    significant digits, so that equal scores tie however they were computed: scores of nlg-eval's BLEU can differ only in
    the tenth digit.
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
    """Round to significant digits; 0 and NaN are unchanged."""
    table = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(table))))
        rounded = np.round(table * scale) / scale
    return np.where(np.isfinite(rounded), rounded, table)
