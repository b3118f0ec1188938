"""Reading scores, ratings and contexts, and how raters agree by position."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.core.files import check_columns, read_json
from comperdial.core.names import plain_name
from comperdial.data.own_files import is_missing, number, read_columns
from comperdial.schema.dimensions import OVERALL, OVERALL_SCALE
from comperdial.stats import Coefficient
from comperdial.stats.agreement import pairwise_agreement

log = logging.getLogger(__name__)

# What a file of scores or ratings may call an item.
_ITEMS = ("context_id", "dialogue_id", "item_id")
_AGREEMENT: tuple[Coefficient, ...] = ("pearson", "spearman")
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
    filled in: one annotator, one dimension, source ``human``, and a scale.

    Parameters
    ----------
    dataset, dimension
        Which data set the ratings are of (default: the file's name) and what was rated, for a file that does not say.
    scale
        Lowest and highest rating possible, for a file that does not say; default: the lowest and highest found,
        and a warning with them.
    """
    path = Path(path)
    columns = schema.table("ratings").columns
    frame = read_columns(path, [*columns, *_ITEMS], ["system_id", "rating"])
    frame = check_columns(_named_items(frame, path), columns, path)
    if path.suffix == ".csv":
        frame = schema.parse_cells(frame, "ratings", path)
    if "annotator_id" not in frame and frame.duplicated([c for c in columns if c in frame and c != "rating"]).any():
        raise SchemaError(
            "a response has several ratings",
            where=str(path),
            expected="a column `annotator_id` that says whose each is",
        )
    numbers = [value for value in map(number, frame["rating"]) if isinstance(value, float)]
    low, high = scale or (min(numbers, default=np.nan), max(numbers, default=np.nan))
    guessed = scale is None and not {"scale_min", "scale_max"} <= set(frame)
    filled: dict[str, Any] = {"dataset": dataset or path.stem, "annotator_id": "1", "position": None}
    filled |= {"dimension": dimension, "scale_min": low, "scale_max": high, "source": "human"}
    frame = frame.assign(**{column: value for column, value in filled.items() if column not in frame})
    checked = schema.validate(frame[columns], "ratings", where=str(path))
    if guessed:
        # A typing error, 55 for 5, would widen a scale that nobody stated, and pass.
        log.warning(
            "%s: no columns scale_min and scale_max: the scale is taken to be the range of the ratings, %g to %g",
            path, checked["scale_min"].min(), checked["scale_max"].max(),
        )  # fmt: skip
    return checked


def read_ratings_of(paths: Sequence[str | Path], *, dataset: str | None = None) -> pd.DataFrame:
    """Read and join files of ratings, each as :func:`read_ratings` does: of turns and of dialogues, for example."""
    joined = pd.concat([read_ratings(path, dataset=dataset) for path in paths], ignore_index=True)
    return schema.validate(joined, "ratings", where=", ".join(map(str, paths)))


def read_contexts(path: str | Path, *, dataset: str | None = None) -> pd.DataFrame:
    """Read which dialogue a context belongs to: table ``contexts``, or a file with ``context_id`` and ``dialogue_id``.

    ``dataset`` names the data set of a file that does not say (default: the file's name). The columns are dataset,
    context_id, dialogue_id and, if the file has it, turn.
    """
    path = Path(path)
    needed, known = ["context_id", "dialogue_id"], schema.table("contexts").columns
    frame = check_columns(read_columns(path, known, needed), known, path)
    if "dataset" not in frame:
        frame["dataset"] = dataset or path.stem
    frame = frame[["dataset", *needed, *(["turn"] if "turn" in frame else [])]].copy()
    for column in ("dataset", *needed):
        frame[column] = frame[column].map(plain_name).astype(str)
    if (twice := frame.duplicated(["dataset", "context_id"])).any():
        name = frame.loc[twice, "context_id"].iloc[0]
        raise SchemaError(f"context {name!r} is in two rows", where=str(path), expected="each context once")
    return frame


def add_ratings(folder: str | Path, *, turn: str | Path | None = None, dialogue: str | Path | None = None) -> None:
    """Check ratings against a folder of tables, and write them there as table ``ratings``, empty without any.

    ``folder`` holds ``contexts`` and ``responses`` of one data set; ``turn`` and ``dialogue`` are files as
    :func:`read_ratings` takes them, and what a short file leaves out is ComperDial's: Overall, from 1 to 5. A SchemaError is
    raised if something was rated that is in no table; ratings of a submission that was left out are left out with it.
    """
    folder = Path(folder)
    contexts, responses = (schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses"))
    report = folder / "submissions.json"
    submissions = read_json(report) if report.is_file() else {"failed": {}}
    if not isinstance(submissions, dict) or not isinstance(failed := submissions.get("failed"), dict):
        raise SchemaError(
            "no mapping `failed`", where=str(report), expected="what `comperdial challenge tables` writes"
        )
    left_out = set(failed) - set(responses["system_id"])
    answered = responses.merge(contexts[["context_id", "dialogue_id"]], on="context_id")
    tables = [schema.empty("ratings")]
    for level, item, path in (("turn", "context_id", turn), ("dialogue", "dialogue_id", dialogue)):
        if path is None:
            continue
        ratings = read_ratings(path, dataset=str(contexts["dataset"].iloc[0]), dimension=OVERALL, scale=OVERALL_SCALE)
        if (other := ratings["level"] != level).any():
            raise SchemaError(
                f"{int(other.sum())} ratings of another level", where=str(path), expected=f"ratings of level {level!r}"
            )
        without = ratings[~ratings["system_id"].isin(left_out)]
        rated = pd.MultiIndex.from_frame(without[["dataset", "item_id", "system_id"]]).unique()
        unknown = rated[~rated.isin(pd.MultiIndex.from_frame(answered[["dataset", item, "system_id"]]))]
        if len(unknown):
            raise SchemaError(
                f"{len(unknown)} rated items are in no table, the first: {', '.join(map(str, unknown[0]))}",
                where=str(path),
                expected=f"dataset, {item} and system_id of {folder}",
            )
        if len(without) < len(ratings):
            log.warning("%s: %d ratings are of submissions that were left out", path, len(ratings) - len(without))
        tables.append(without)
    schema.write(folder / "ratings.parquet", pd.concat(tables, ignore_index=True), "ratings")


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
    columns = schema.table("scores").columns
    # A complete table is read as what it is: without a value where one should be, it is broken.
    if path.suffix == ".parquet" and path.is_file() and set(columns) <= set(schema.column_names(path)):
        return schema.read(path, "scores")
    frame = read_columns(path, [*columns, *_ITEMS], ["system_id", "value", *([] if unnamed else ["dataset"])])
    if set(columns) == set(frame.columns):
        return schema.read(path, "scores")
    frame = _named_items(frame, path)
    if others := [name for name in frame.columns if name not in {*columns, *_ITEMS}]:
        log.info("%s: columns not used: %s", path, ", ".join(others))
    values = [number(cell) for cell in frame["value"]]
    for record, value in enumerate(values, start=1):
        if isinstance(value, str):
            raise SchemaError(
                f"holds {value}", where=f"{path}, record {record}, column 'value'", expected="a number, or nothing"
            )
    named = frame.assign(value=pd.Series(values, dtype="float64", index=frame.index))
    if "cut" not in named:
        named["cut"] = 0
    filled = {"dataset": UNNAMED, "metric": path.stem, "output": "score", "signature": _ELSEWHERE}
    for column, value in filled.items():
        cells = named.get(column, pd.Series(None, index=named.index, dtype=object))
        named[column] = cells.where(~cells.map(is_missing), value)
    without = named["value"].isna()
    if without.all():
        raise SchemaError("no scores", where=str(path), expected="numbers in column 'value'")
    if without.any():
        log.info("%s: %d of %d records have no value", path, int(without.sum()), len(named))
    named = named.loc[~without, columns]
    return schema.validate(schema.parse_cells(named, "scores", path), "scores", where=str(path))


def _named_items(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return records with ``level`` and ``item_id``, which a file may give as ``context_id`` or ``dialogue_id``."""
    items = [name for name in _ITEMS if name in frame]
    if len(items) != 1 and items != ["context_id", "dialogue_id"]:
        raise SchemaError(
            f"columns {' and '.join(map(repr, items))}" if items else "no column 'context_id'",
            where=str(path),
            expected="context_id, or dialogue_id for whole dialogues",
            hint=f"It has: {', '.join(frame.columns)}",
        )
    # Of a response the dialogue may be named too.
    named = frame.drop(columns=items).assign(item_id=frame[items[0]])
    level = "dialogue" if items[0] == "dialogue_id" else "turn"
    if "level" not in named:
        return named.assign(level=level)
    return named.assign(level=named["level"].where(~named["level"].map(is_missing), level))


def rated_dimensions(ratings: pd.DataFrame, source: str) -> set[str]:
    """Return the dimensions that a source rated."""
    return set(map(str, ratings.loc[ratings["source"] == source, "dimension"].unique()))


def without_references(ratings: pd.DataFrame, systems: pd.DataFrame | None) -> pd.DataFrame:
    """Leave out the ratings of references, which are never scored; without a table ``systems``, none."""
    if systems is None:
        return ratings
    names = systems.loc[systems["kind"] == "reference", ["dataset", "system_id"]]
    references = pd.MultiIndex.from_frame(names)
    return ratings[~pd.MultiIndex.from_frame(ratings[["dataset", "system_id"]]).isin(references)]


def agreement(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return inter-annotator agreement as USR's Table 1 has it: mean correlation over the pairs of rater positions.

    ``ratings`` is a table of one data set and level, with positions; all responses count, references included. The columns
    are dataset, dimension, coefficient (pearson, spearman), value, n (responses); sorted by data set and dimension.
    """
    if ratings["position"].isna().any():
        raise SchemaError("ratings without a position", expected="a position for each rating: the column of its rater")
    rows: list[dict[str, Any]] = []
    for (dataset, dimension), group in ratings.groupby(["dataset", "dimension"], sort=True):
        if group.duplicated(["dataset", "item_id", "system_id", "position"]).any() or group["position"].nunique() < 2:
            raise SchemaError(
                f"the positions of dimension {dimension!r} are not one a rater",
                where=f"dataset {dataset!r}",
                expected="two raters or more, each response rated once a position",
            )
        table = group.pivot(index=["item_id", "system_id"], columns="position", values="rating").to_numpy(np.float64)
        about = {"dataset": dataset, "dimension": dimension}
        for coefficient in _AGREEMENT:
            value = pairwise_agreement(table, coefficient)
            rows.append(about | {"coefficient": coefficient, "value": value, "n": len(table)})
    return pd.DataFrame(rows)
