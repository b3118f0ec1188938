"""Reading files of scores, ratings and contexts: our tables, or the short files of a researcher or another program."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.core.files import check_columns, read_json
from comperdial.core.names import plain_name
from comperdial.data.own_files import is_missing, number, read_columns
from comperdial.schema.dimensions import OVERALL, OVERALL_SCALE

log = logging.getLogger(__name__)

# What a file of scores or ratings may call an item.
_ITEMS = ("context_id", "dialogue_id", "item_id")
UNNAMED = "(no data set named)"
"""Placeholder for the data set of scores whose file does not name it."""
_ELSEWHERE = "computed elsewhere"


def read_ratings(
    path: str | Path,
    *,
    dataset: str | None = None,
    dimension: str = "rating",
    scale: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """Read ratings: table ``ratings``, or a JSONL, CSV or Parquet file with ``context_id``, ``system_id`` and ``rating``.

    For ``context_id`` there may be ``dialogue_id``, or ``item_id`` with or without ``level``. What such a file leaves out is
    filled in: one annotator, source ``human``, ``dataset`` (default: the file's name), ``dimension`` and ``scale`` (lowest and
    highest rating possible; default: the range of the ratings, with a warning). An empty rating is none.
    """
    path = Path(path)
    frame = _records(path, "ratings", "rating")
    low, high = scale or (frame["rating"].min(), frame["rating"].max())
    key = [name for name in schema.table("ratings").key if name in frame]
    if "annotator_id" not in frame and frame.duplicated(key).any():
        raise SchemaError(
            "a response has several ratings",
            where=str(path),
            expected="a column `annotator_id` that says whose each is",
        )
    if scale is None and not {"scale_min", "scale_max"} <= set(frame):
        # A typing error, 55 for 5, would widen a scale that nobody stated, and pass.
        text = "%s: no columns scale_min and scale_max: the scale is taken to be the range of the ratings, %g to %g"
        log.warning(text, path, low, high)
    defaults = {"dataset": dataset or path.stem, "annotator_id": "1", "position": None, "dimension": dimension}
    return _completed(frame, "ratings", path, defaults | {"scale_min": low, "scale_max": high, "source": "human"})


def read_ratings_of(paths: Sequence[str | Path], *, dataset: str | None = None) -> pd.DataFrame:
    """Read and join files of ratings, each as :func:`read_ratings` does: of turns and of dialogues, for example."""
    joined = pd.concat([read_ratings(path, dataset=dataset) for path in paths], ignore_index=True)
    return schema.validate(joined, "ratings", where=", ".join(map(str, paths)))


def read_scores(paths: Sequence[str | Path], *, unnamed: bool = False) -> pd.DataFrame:
    """Read and join scores: tables ``scores``, or files of any program with at least ``context_id, system_id, value``.

    For ``context_id`` there may be ``dialogue_id``, or ``item_id`` with or without ``level``. What such a file leaves out is
    filled in: its name as ``metric``, ``score`` as ``output``. An empty value is no score. ``unnamed`` says that the data set
    may be left out too, and is then :data:`UNNAMED`.

    Raises
    ------
    SchemaError
        When a column is missing, a value is no number, a score appears twice, or one metric was made in two ways.
    """
    tables = [_read_scores(Path(path), unnamed=unnamed) for path in paths]
    scores = pd.concat(tables, ignore_index=True)
    where = ", ".join(map(str, paths))
    for metric, signatures in scores[["metric", "signature"]].drop_duplicates().groupby("metric")["signature"]:
        if len(signatures) > 1:
            raise SchemaError(
                f"metric {metric!r} was made in {len(signatures)} ways: {', '.join(signatures)}",
                where=where,
                expected="one signature a metric",
                hint="Score one of them under another --name",
            )
    # Each table has a key once; two of them may share one if they share a metric.
    if scores["metric"].nunique() < sum(table["metric"].nunique() for table in tables):
        return schema.validate(scores, "scores", where=where)
    return scores


def _read_scores(path: Path, *, unnamed: bool) -> pd.DataFrame:
    # A complete table is read as what it is: without a value where one should be, it is broken.
    if (
        path.suffix == ".parquet"
        and path.is_file()
        and {*schema.table("scores").columns} <= {*schema.column_names(path)}
    ):
        return schema.read(path, "scores")
    frame = _records(path, "scores", "value", () if unnamed else ("dataset",))
    defaults = {"dataset": UNNAMED, "metric": path.stem, "output": "score", "cut": 0, "signature": _ELSEWHERE}
    return _completed(frame, "scores", path, defaults)


def _records(path: Path, table: str, value: str, needed: Sequence[str] = ()) -> pd.DataFrame:
    """Read the records of a file that have a value, with our names of columns, ``level`` and ``item_id``."""
    known = [*schema.table(table).columns, *_ITEMS]
    frame = check_columns(read_columns(path, known, ["system_id", value, *needed]), known, path)
    items = [name for name in _ITEMS if name in frame]
    if len(items) != 1 and items != ["context_id", "dialogue_id"]:
        raise SchemaError(
            f"columns {' and '.join(map(repr, items))}" if items else "no column 'context_id'",
            where=str(path),
            expected="context_id, or dialogue_id for whole dialogues",
            hint=f"It has: {', '.join(frame.columns)}",
        )
    # Of a response the dialogue may be named too.
    frame = frame.drop(columns=items).assign(item_id=frame[items[0]])
    frame = _filled(frame, "level", "dialogue" if items[0] == "dialogue_id" else "turn")
    frame[value] = numbers(frame[value], str(path), value)
    kept = frame[frame[value].notna()]
    if kept.empty:
        raise SchemaError(f"no {table}", where=str(path), expected=f"numbers in column {value!r}")
    if lost := len(frame) - len(kept):
        log.info("%s: %d of %d records have no %s", path, lost, len(frame), value)
    return kept


def numbers(cells: pd.Series, where: str, column: str) -> pd.Series:
    """Return the numbers that the cells of a file's column hold, and NaN for empty ones."""
    values = [number(cell) for cell in cells]
    for record, cell in enumerate(values, start=1):
        if isinstance(cell, str):
            at = f"{where}, record {record}, column {column!r}"
            raise SchemaError(f"holds {cell}", where=at, expected="a number, or nothing")
    return pd.Series(values, dtype="float64", index=cells.index)


def _filled(frame: pd.DataFrame, column: str, value: object) -> pd.DataFrame:
    cells = frame.get(column, pd.Series(None, index=frame.index, dtype=object))
    return frame.assign(**{column: cells.where(~cells.map(is_missing), value)})


def _completed(frame: pd.DataFrame, table: str, path: Path, defaults: Mapping[str, Any]) -> pd.DataFrame:
    for column, value in defaults.items():
        frame = _filled(frame, column, value)
    frame = schema.parse_cells(frame[schema.table(table).columns], table, path)
    return schema.validate(frame, table, where=str(path))


def read_contexts(path: str | Path, *, dataset: str | None = None) -> pd.DataFrame:
    """Read which dialogue a context belongs to: table ``contexts``, or a file with ``context_id`` and ``dialogue_id``.

    ``dataset`` names the data set of a file that does not say (default: the file's name). The columns are dataset,
    context_id, dialogue_id and, if the file has it, turn.
    """
    path = Path(path)
    names, known = ["dataset", "context_id", "dialogue_id"], schema.table("contexts").columns
    frame = check_columns(read_columns(path, known, names[1:]), known, path)
    frame = _filled(frame, "dataset", dataset or path.stem)[[*names, *(["turn"] if "turn" in frame else [])]]
    frame[names] = frame[names].map(lambda cell: str(plain_name(cell)))
    if len(twice := frame.loc[frame.duplicated(names[:2]), "context_id"]):
        raise SchemaError(f"context {twice.iloc[0]!r} is in two rows", where=str(path), expected="each context once")
    return frame


def add_ratings(folder: str | Path, *, turn: str | Path | None = None, dialogue: str | Path | None = None) -> None:
    """Check ratings against a folder of tables, and write them there as table ``ratings``, empty without any.

    ``folder`` holds ``contexts`` and ``responses`` of one data set; ``turn`` and ``dialogue`` are files as
    :func:`read_ratings` takes them, and what a short file leaves out is ComperDial's: Overall, from 1 to 5. A SchemaError is
    raised if something was rated that is in no table; ratings of a submission that was left out are left out with it.
    """
    folder = Path(folder)
    contexts, responses = (schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses"))
    submissions = folder / "submissions.json"
    failed = set(read_json(submissions)["failed"]) if submissions.is_file() else set()
    left_out = failed - set(responses["system_id"])
    answered = responses.merge(contexts[["context_id", "dialogue_id"]], on="context_id")
    dataset, tables = str(contexts["dataset"].iloc[0]), [schema.empty("ratings")]
    for item, path in (("context_id", turn), ("dialogue_id", dialogue)):
        if path is None:
            continue
        ratings = read_ratings(path, dataset=dataset, dimension=OVERALL, scale=OVERALL_SCALE)
        kept = ratings[~ratings["system_id"].isin(left_out)]
        units = pd.MultiIndex.from_frame(kept[["dataset", "item_id", "system_id"]]).unique()
        if len(unknown := units[~units.isin(pd.MultiIndex.from_frame(answered[["dataset", item, "system_id"]]))]):
            problem = f"{len(unknown)} rated items are in no table, the first: {', '.join(map(str, unknown[0]))}"
            raise SchemaError(problem, where=str(path), expected=f"dataset, {item} and system_id of {folder}")
        if lost := len(ratings) - len(kept):
            log.warning("%s: %d ratings are of submissions that were left out", path, lost)
        tables.append(kept)
    schema.write(folder / "ratings.parquet", pd.concat(tables, ignore_index=True), "ratings")
