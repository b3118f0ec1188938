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


def read_ratings(
    path: str | Path,
    *,
    dataset: str | None = None,
    dimension: str = "rating",
    scale: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """Read ratings: table ``ratings``, or a file with at least ``context_id``, ``system_id`` and ``rating``.

    For ``context_id`` there may be ``dialogue_id``, or ``item_id`` with or without ``level``. What such a file leaves out is
    filled in: one annotator, one dimension, source ``human``, and a scale.

    Parameters
    ----------
    path
        A JSONL, CSV or Parquet file.
    dataset
        Which data set the ratings are of, for a file that does not say; default: the file's name.
    dimension
        What was rated, for a file that does not say.
    scale
        Lowest and highest rating possible, for a file that does not say; default: the lowest and highest found,
        and a warning that says them.
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
    found = [value if isinstance(value := number(cell), float) else None for cell in frame["rating"]]
    numbers = pd.Series(found, dtype="float64")
    filled = {
        "dataset": dataset or path.stem,
        "annotator_id": "1",
        "position": None,
        "dimension": dimension,
        "scale_min": scale[0] if scale else numbers.min(),
        "scale_max": scale[1] if scale else numbers.max(),
        "source": "human",
    }
    guessed = scale is None and not {"scale_min", "scale_max"} <= set(frame)
    for column, value in filled.items():
        if column not in frame:
            frame[column] = value
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
    found = pd.concat([read_ratings(path, dataset=dataset) for path in paths], ignore_index=True)
    return schema.validate(found, "ratings", where=", ".join(map(str, paths)))


def read_contexts(path: str | Path, *, dataset: str | None = None) -> pd.DataFrame:
    """Read which dialogue a context belongs to: table ``contexts``, or a file with ``context_id`` and ``dialogue_id``.

    Parameters
    ----------
    path
        A JSONL, CSV or Parquet file.
    dataset
        Which data set it is of, for a file that does not say; default: the file's name.

    Returns
    -------
    DataFrame
        Columns dataset, context_id, dialogue_id.
    """
    path = Path(path)
    needed = ["context_id", "dialogue_id"]
    known = schema.table("contexts").columns
    frame = check_columns(read_columns(path, known, needed), known, path)
    if "dataset" not in frame:
        frame["dataset"] = dataset or path.stem
    turn = ["turn"] if "turn" in frame else []
    frame = frame[["dataset", *needed, *turn]].copy()
    for column in ("dataset", *needed):
        frame[column] = frame[column].map(plain_name).astype(str)
    if frame.duplicated(["dataset", "context_id"]).any():
        name = frame.loc[frame.duplicated(["dataset", "context_id"]), "context_id"].iloc[0]
        raise SchemaError(f"context {name!r} stands twice", where=str(path), expected="each context once")
    return frame


def add_ratings(folder: str | Path, *, turn: str | Path | None = None, dialogue: str | Path | None = None) -> None:
    """Check ratings against a folder of tables, and write them there as table ``ratings``.

    Parameters
    ----------
    folder
        Holds ``contexts`` and ``responses`` of one data set.
    turn, dialogue
        As :func:`read_ratings` takes them; what a short file leaves out is ComperDial's: Overall, from 1 to 5. Without
        either, the table is empty.

    Raises
    ------
    SchemaError
        When something was rated that is in no table; ratings of a submission that was left out are left out with it.
    """
    folder = Path(folder)
    contexts = schema.read(folder / "contexts.parquet", "contexts")
    responses = schema.read(folder / "responses.parquet", "responses")
    report = folder / "submissions.json"
    said = read_json(report) if report.is_file() else {"failed": {}}
    if not isinstance(said, dict) or not isinstance(failed := said.get("failed"), dict):
        raise SchemaError(
            "no mapping `failed`", where=str(report), expected="what `comperdial challenge tables` writes"
        )
    left_out = set(failed) - set(responses["system_id"])
    answered = responses.merge(contexts[["context_id", "dialogue_id"]], on="context_id")
    found = [schema.empty("ratings")]
    for level, item, path in (("turn", "context_id", turn), ("dialogue", "dialogue_id", dialogue)):
        if path is None:
            continue
        ratings = read_ratings(path, dataset=str(contexts["dataset"].iloc[0]), dimension=OVERALL, scale=OVERALL_SCALE)
        if (other := ratings["level"] != level).any():
            raise SchemaError(
                f"{int(other.sum())} ratings of another level", where=str(path), expected=f"ratings of level {level!r}"
            )
        without = ratings[~ratings["system_id"].isin(left_out)]
        known = set(answered[["dataset", item, "system_id"]].itertuples(index=False, name=None))
        rated = without[["dataset", "item_id", "system_id"]].drop_duplicates().itertuples(index=False, name=None)
        if unknown := [names for names in rated if names not in known]:
            raise SchemaError(
                f"{len(unknown)} rated items are in no table, the first: {', '.join(map(str, unknown[0]))}",
                where=str(path),
                expected=f"dataset, {item} and system_id of {folder}",
            )
        if len(without) < len(ratings):
            log.warning("%s: %d ratings are of submissions that were left out", path, len(ratings) - len(without))
        found.append(without)
    schema.write(folder / "ratings.parquet", pd.concat(found, ignore_index=True), "ratings")


UNNAMED = "(no data set named)"
"""Placeholder for the data set of scores whose file does not name it."""
_ELSEWHERE = "computed elsewhere"


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
    for metric, of_metric in scores[["metric", "signature"]].drop_duplicates().groupby("metric"):
        signatures = of_metric["signature"].unique()
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
    filled: dict[str, Any] = {
        "dataset": UNNAMED,
        "metric": path.stem,
        "output": "score",
        "cut": 0,
        "signature": _ELSEWHERE,
    }
    named = frame.assign(value=pd.Series(values, dtype="float64", index=frame.index))
    for column, value in filled.items():
        if column not in named:
            named[column] = value
        elif column != "cut":
            named[column] = named[column].where(~named[column].map(is_missing), value)
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

    Parameters
    ----------
    ratings
        Table ``ratings`` of one dataset and level, with positions; all responses count, references included.

    Returns
    -------
    DataFrame
        Columns dataset, dimension, coefficient (pearson, spearman), value, n (responses); sorted by data set and
        dimension.
    """
    if ratings["position"].isna().any():
        raise SchemaError("ratings without a position", expected="a position for each rating: the column of its rater")
    rows = []
    for (dataset, dimension), group in ratings.groupby(["dataset", "dimension"], sort=True):
        if group.duplicated(["dataset", "item_id", "system_id", "position"]).any() or group["position"].nunique() < 2:
            raise SchemaError(
                f"the positions of dimension {dimension!r} are not one a rater",
                where=f"dataset {dataset!r}",
                expected="two raters or more, each response rated once a position",
            )
        table = group.pivot(index=["item_id", "system_id"], columns="position", values="rating")
        for coefficient in _AGREEMENT:
            value = pairwise_agreement(table.to_numpy(dtype=np.float64), coefficient)
            rows.append(
                {
                    "dataset": dataset,
                    "dimension": dimension,
                    "coefficient": coefficient,
                    "value": value,
                    "n": len(table),
                }
            )
    return pd.DataFrame(rows)
