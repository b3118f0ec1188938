"""Read files of scores, ratings and contexts: our tables, or short files of users and other programs."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.core.files import check_columns, read_json
from comperdial.core.names import plain_name
from comperdial.data.columns import NAMES, plain
from comperdial.data.files import File, read_file
from comperdial.data.logs import Log
from comperdial.data.own_files import is_missing, number
from comperdial.schema.dimensions import OVERALL, OVERALL_SCALE

log = logging.getLogger(__name__)

UNNAMED = "(no data set named)"
"""Placeholder for the data set of scores whose file does not name it."""
# Possible names of the item column in files of scores or ratings.
_ITEMS = ("context_id", "dialogue_id", "item_id")
_KNOWN = {name: (*schema.table(name).columns, *_ITEMS) for name in ("scores", "ratings", "contexts")}
# Columns without synonyms: in a file of scores these would mean another column.
_NO_ALIASES = ("source", "value", "output", "dimension", "item_id")
_NO_SCORE = re.compile(
    r"^$|^unnamed|(?:^|_)(?:ids?|idx|index|turn|row|seed|epoch|fold|time|seconds|timestamp|tstamp)(?:_|$)"
)


def read_ratings_of(
    paths: Sequence[str | Path],
    *,
    dataset: str | None = None,
    dimension: str = "rating",
    scale: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """Read and join files of ratings, for example of turns and of dialogues.

    Each is table ``ratings``, or a JSONL, CSV or Parquet file with ``context_id``, ``system_id`` and ``rating``.
    ``dialogue_id``, or ``item_id`` with an optional ``level``, may replace ``context_id``. Defaults for what is missing: one
    annotator, source ``human``, ``dataset`` (the file's name), ``dimension`` and ``scale`` (lowest and highest possible rating;
    otherwise the range of the ratings, with a warning). Empty ratings are skipped.
    """
    joined = pd.concat([_ratings(Path(path), dataset, dimension, scale) for path in paths], ignore_index=True)
    return schema.validate(joined, "ratings", where=", ".join(map(str, paths)))


def _ratings(path: Path, dataset: str | None, dimension: str, scale: tuple[float, float] | None) -> pd.DataFrame:
    frame = _records(_named(read_file(path).frame, "ratings"), path, "ratings", "rating")
    low, high = scale or (frame["rating"].min(), frame["rating"].max())
    key = [name for name in schema.table("ratings").key if name in frame]
    if "annotator_id" not in frame and frame.duplicated(key).any():
        expected = "a column `annotator_id` that says whose each is"
        raise SchemaError("a response has several ratings", where=str(path), expected=expected)
    if scale is None and not {"scale_min", "scale_max"} <= set(frame):
        # A typo such as 55 for 5 would silently widen an undeclared scale.
        text = "%s: no columns scale_min and scale_max: the scale is taken to be the range of the ratings, %g to %g"
        log.warning(text, path, low, high)
    defaults = {"dataset": dataset or path.stem, "annotator_id": "1", "position": None, "dimension": dimension}
    return _completed(frame, "ratings", path, defaults | {"scale_min": low, "scale_max": high, "source": "human"})


def read_scores(paths: Sequence[str | Path], *, unnamed: bool = False) -> pd.DataFrame:
    """Read and join scores: tables ``scores``, or files of other programs.

    Such a file has ``context_id`` and ``system_id`` (or common synonyms such as ``id`` and ``model``), and a ``value`` per row
    or a numeric column per metric; or it is a log of an evaluation tool (:mod:`comperdial.data.logs`). ``dialogue_id``, or
    ``item_id`` with an optional ``level``, may replace ``context_id``. Defaults: the file's name as ``metric``, ``score`` as
    ``output``. Empty values are skipped. With ``unnamed`` the data set may be missing too, and becomes :data:`UNNAMED`. Raises a
    SchemaError if a column is missing, a value is not a number, a score appears twice, or a metric has several signatures.
    """
    tables, ours = [], {*schema.table("scores").columns}
    for path in map(Path, paths):
        # In a table with our columns a missing value is an error.
        of_ours = path.suffix == ".parquet" and path.is_file() and ours <= {*schema.column_names(path)}
        tables.append(schema.read(path, "scores") if of_ours else scores_in(read_file(path), path, unnamed=unnamed))
    scores, where = pd.concat(tables, ignore_index=True), ", ".join(map(str, paths))
    for metric, signatures in scores[["metric", "signature"]].drop_duplicates().groupby("metric")["signature"]:
        if len(signatures) > 1:
            raise SchemaError(
                f"metric {metric!r} was made in {len(signatures)} ways: {', '.join(signatures)}",
                where=where,
                expected="one signature a metric",
                hint="Score one of them under another --name",
            )
    # Keys are unique within a table; two tables can share one only if they share a metric.
    if scores["metric"].nunique() < sum(table["metric"].nunique() for table in tables):
        return schema.validate(scores, "scores", where=where)
    return scores


def scores_in(file: File, path: Path, *, unnamed: bool = False) -> pd.DataFrame:
    """Return the scores in a file, as :func:`read_scores`; ``path`` is its name in messages and as a metric."""
    defaults = {"dataset": UNNAMED, "metric": path.stem, "output": "score", "cut": 0, "signature": "computed elsewhere"}
    if file.log is None:
        frame = _wide_to_long(_named(file.frame, "scores"), path)
    else:
        frame = _of_log(file.log, file.notes).assign(**({} if unnamed else {"dataset": path.stem}))
    needed = () if unnamed else ("dataset",)
    return _completed(_records(frame, path, "scores", "value", needed), "scores", path, defaults)


def _of_log(made: Log, notes: Sequence[str]) -> pd.DataFrame:
    """Return the scores in an evaluation tool's log, each with its judge."""
    for note in notes:
        log.info("%s", note)
    rows = []
    for record in made.records:
        for name, value in record["scores"].items():
            metric, _, output = name.partition(":")
            judge = f"|judge:{made.judges[name]}" if name in made.judges else ""
            rows.append(
                (record["context_id"], record["system_id"], metric, output or "score", value, made.tool + judge)
            )
    return pd.DataFrame(rows, columns=["context_id", "system_id", "metric", "output", "value", "signature"])


def _wide_to_long(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Convert a file with a column per metric to one row per score; a file with a column of values is kept."""
    ours = [name for name in frame.columns if name in _KNOWN["scores"]]
    others = frame.columns.difference(ours, sort=False)
    names = [name for name in others if not _NO_SCORE.search(plain(name)) and _are_numbers(frame[name])]
    # Without items and systems, scores cannot be distinguished from other numbers.
    if "value" in frame or not names or "system_id" not in frame or not {*_ITEMS} & {*frame}:
        return frame
    if names == ["score"] or ("metric" in frame and len(names) == 1):
        return frame.rename(columns={names[0]: "value"})
    if "metric" in frame or difflib.get_close_matches("value", names, 1, 0.8):
        return frame
    log.info("%s: one metric a column: %s", path, ", ".join(names))
    return frame.assign(**{name: numbers(frame[name], str(path), name) for name in names}).melt(ours, names, "metric")


def _are_numbers(cells: pd.Series) -> bool:
    values = [number(cell) for cell in cells]
    return 0 < 2 * sum(isinstance(value, float) for value in values) >= sum(value is not None for value in values)


def _named(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """Rename columns with common synonyms to our names."""
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    written = {name: plain(name) for name in frame.columns}
    names: dict[str, str] = {}
    for ours in _KNOWN[table]:
        has_item = ours in _ITEMS and {*_ITEMS} & {*written.values()} - {ours}
        if ours in frame or (has_item and ours not in written.values()):
            continue
        aliases = [ours, *(() if ours in _NO_ALIASES else NAMES.get(ours, ()))]
        there = [name for alias in aliases for name in written if written[name] == alias and name not in names]
        if there and there[0] not in _KNOWN[table]:
            names[there[0]] = ours
    return frame.rename(columns=names)


def _records(frame: pd.DataFrame, path: Path, table: str, value: str, needed: Sequence[str] = ()) -> pd.DataFrame:
    """Return the records with a value, with our column names, ``level`` and ``item_id``."""
    frame = _checked(frame, path, table, ["system_id", value, *needed])
    items = [name for name in _ITEMS if name in frame]
    # A response may also name its dialogue.
    if len(items) != 1 and items != ["context_id", "dialogue_id"]:
        raise SchemaError(
            f"columns {' and '.join(map(repr, items))}" if items else "no column 'context_id'",
            where=str(path),
            expected="context_id, or dialogue_id for whole dialogues",
            hint=f"It has: {', '.join(frame.columns)}",
        )
    frame = frame.drop(columns=items).assign(item_id=frame[items[0]])
    frame = _filled(frame, "level", "dialogue" if items[0] == "dialogue_id" else "turn")
    frame[value] = numbers(frame[value], str(path), value)
    kept = frame[frame[value].notna()]
    if kept.empty:
        raise SchemaError(f"no {table}", where=str(path), expected=f"numbers in column {value!r}")
    if lost := len(frame) - len(kept):
        log.info("%s: %d of %d records have no %s", path, lost, len(frame), value)
    return kept


def _checked(frame: pd.DataFrame, path: Path, table: str, needed: Sequence[str]) -> pd.DataFrame:
    if missing := [name for name in needed if name not in frame]:
        raise SchemaError(
            f"no column {', '.join(map(repr, missing))}",
            where=str(path),
            expected=f"at least {', '.join(needed)}",
            hint=f"It has: {', '.join(frame.columns) or '(none)'}",
        )
    return check_columns(frame, _KNOWN[table], path)


def numbers(cells: pd.Series, where: str, column: str) -> pd.Series:
    """Return a column as numbers, NaN for empty cells."""
    values = [number(cell) for cell in cells]
    if wrong := next(((row, cell) for row, cell in enumerate(values, start=1) if isinstance(cell, str)), None):
        at = f"{where}, record {wrong[0]}, column {column!r}"
        raise SchemaError(f"holds {wrong[1]}", where=at, expected="a number, or nothing")
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
    """Read the dialogue of each context: table ``contexts``, or a file with ``context_id`` and ``dialogue_id``.

    ``dataset`` is the data set if the file does not give it (default: the file's name). The columns are dataset, context_id,
    dialogue_id and, if present, turn.
    """
    path, names = Path(path), ["dataset", "context_id", "dialogue_id"]
    frame = _checked(_named(read_file(path).frame, "contexts"), path, "contexts", names[1:])
    frame = _filled(frame, "dataset", dataset or path.stem)[[*names, *(["turn"] if "turn" in frame else [])]]
    frame[names] = frame[names].map(lambda cell: str(plain_name(cell)))
    if len(twice := frame.loc[frame.duplicated(names[:2]), "context_id"]):
        raise SchemaError(f"context {twice.iloc[0]!r} is in two rows", where=str(path), expected="each context once")
    return frame


def add_ratings(folder: str | Path, *, turn: str | Path | None = None, dialogue: str | Path | None = None) -> None:
    """Validate ratings against a folder of tables, and write them there as table ``ratings``, possibly empty.

    ``folder`` has ``contexts`` and ``responses`` of one data set; ``turn`` and ``dialogue`` are files for
    :func:`read_ratings_of`, with ComperDial's defaults: Overall, from 1 to 5. A SchemaError is raised if a rated item is in no
    table; ratings of a skipped submission are skipped too.
    """
    folder = Path(folder)
    contexts, responses = (schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses"))
    submissions = folder / "submissions.json"
    failed = read_json(submissions)["failed"] if submissions.is_file() else ()
    left_out = {*failed} - {*responses["system_id"]}
    answered = responses.merge(contexts[["context_id", "dialogue_id"]], on="context_id")
    dataset, tables = str(contexts["dataset"].iloc[0]), [schema.empty("ratings")]
    for item, path in (("context_id", turn), ("dialogue_id", dialogue)):
        if path is None:
            continue
        ratings = read_ratings_of([path], dataset=dataset, dimension=OVERALL, scale=OVERALL_SCALE)
        kept = ratings[~ratings["system_id"].isin(left_out)]
        units = pd.MultiIndex.from_frame(kept[["dataset", "item_id", "system_id"]]).unique()
        if len(unknown := units[~units.isin(pd.MultiIndex.from_frame(answered[["dataset", item, "system_id"]]))]):
            problem = f"{len(unknown)} rated items are in no table, the first: {', '.join(map(str, unknown[0]))}"
            raise SchemaError(problem, where=str(path), expected=f"dataset, {item} and system_id of {folder}")
        if lost := len(ratings) - len(kept):
            log.warning("%s: %d ratings are of submissions that were left out", path, lost)
        tables.append(kept)
    schema.write(folder / "ratings.parquet", pd.concat(tables, ignore_index=True), "ratings")
