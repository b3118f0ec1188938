"""A researcher's responses and their ratings, from a file or a folder of tables: what ``comperdial compare`` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, FileError, SchemaError
from comperdial.data.columns import NAMES, Layout
from comperdial.data.readers.table import read_content, report
from comperdial.evaluation import aggregate
from comperdial.evaluation.samples import Tables
from comperdial.metrics import Batch
from comperdial.metrics.score_files import read_records

Responses = Path | list[tuple[pd.DataFrame, Batch]]
"""A folder of tables, or the responses of a file and what each has to be scored with."""

UNIT = ["dataset", "level", "item_id", "system_id"]
# Of our columns, those by which a subset can be chosen.
_ATTRIBUTES = {"dialogue_id", "turn", "kind"}


def read_rated(
    path: Path | None,
    *,
    ratings: Sequence[str | Path] = (),
    contexts: str | Path | None = None,
    dataset: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Tables, Responses]:
    """Read responses with their ratings: tables without scores yet, and the responses to score.

    Parameters
    ----------
    path
        A folder of tables; a file of rated responses (:func:`comperdial.data.readers.table.read_content`), whose other columns
        become ``attributes``; or, if the ratings are in files of their own, a file of responses
        (:func:`comperdial.metrics.score_files.read_records`). None: there is nothing to score.
    ratings, contexts
        Files that are read instead of what the folder or the file has.
    dataset
        The name of the data set for ratings that do not name it; default: that of the responses.
    options
        How a file of rated responses is read.

    Raises
    ------
    ConfigError
        When there are no ratings.
    """
    if options and (path is None or path.is_dir() or ratings):
        raise ConfigError(
            "--columns and --scale say how a file with its own ratings is read",
            where=str(path or "compare"),
            expected="neither, with a folder or with ratings in a file of their own",
        )
    tables = Tables(schema.empty("scores"), schema.empty("ratings"))
    responses: Responses = []
    if path and path.is_dir():
        if not (path / "responses.parquet").is_file():
            raise FileError("no table `responses` in it", where=str(path), expected="a folder of one data set's tables")
        tables, responses = Tables.read(path), path
    elif path and ratings:
        records = read_records(path)
        units = records.responses.rename(columns={"context_id": "item_id"}).assign(level="turn")
        tables = replace(tables, attributes=_attributes(records.layout, units))
        responses = [(records.responses, records.batch())]
    elif path:
        tables, responses = _read_file(path, options or {})
    if dataset is None and tables.attributes is not None:
        dataset = str(tables.attributes["dataset"].iloc[0])
    if ratings:
        tables = replace(tables, ratings=aggregate.read_ratings_of(ratings, dataset=dataset))
    if contexts:
        tables = replace(tables, contexts=aggregate.read_contexts(contexts, dataset=dataset))
    if tables.ratings.empty:
        raise ConfigError(
            "no ratings",
            where=str(path) if path else None,
            expected="a column `rating` beside the responses, or --ratings",
        )
    return tables, responses


def _read_file(path: Path, options: Mapping[str, Any]) -> tuple[Tables, Responses]:
    """Read a file of responses with their ratings, as a data set of one's own is read."""
    content = report(path.stem, read_content(path.stem, path, options))
    tables = content.tables
    kinds = tables["systems"].set_index("system_id")["kind"]
    responses = tables["responses"]
    units = content.units.assign(dataset=responses["dataset"].iloc[0])
    responses = responses[responses["system_id"].map(kinds) != "reference"].reset_index(drop=True)
    contexts = tables["contexts"].set_index("context_id").loc[responses["context_id"]]
    batch = Batch(list(responses["response"]), *(list(contexts[name]) for name in ("references", "history", "facts")))
    names = ["dataset", "context_id", "dialogue_id", "turn"]
    attributes = _attributes(content.layout, units)
    made = Tables(
        schema.empty("scores"), tables["ratings"], tables["contexts"][names], tables["systems"], attributes=attributes
    )
    return made, [(responses, batch)]


def _attributes(layout: Layout, units: pd.DataFrame) -> pd.DataFrame:
    """Return what each record of a file is of, and its columns that no table has."""
    ours = {*NAMES, *UNIT, *layout.dimensions} - _ATTRIBUTES
    others = layout.frame.drop(columns=[name for name in layout.frame if name in ours])
    return units[UNIT].reset_index(drop=True).join(others.set_axis(range(len(others))))


def column_scores(attributes: pd.DataFrame, names: Sequence[str], where: str) -> pd.DataFrame:
    """Return the scores, such as a judge's, that some columns of a rated file hold.

    In table ``scores`` each column is a metric with the output ``score``. A SchemaError is raised if a cell is no number, or
    the rows of one response differ.
    """
    parts = []
    for name in names:
        at = f"{where}, column {name!r}"
        rows = attributes[UNIT].assign(value=aggregate.numbers(attributes[name], where, name), metric=name)
        rows = rows.dropna(subset=["item_id", "value"]).drop_duplicates()
        if rows.empty:
            raise SchemaError("no numbers", where=at, expected="the scores of responses")
        if len(several := rows[rows.duplicated(UNIT, keep=False)]):
            item, system = several[["item_id", "system_id"]].iloc[0]
            others = several.loc[(several["item_id"] == item) & (several["system_id"] == system), "value"]
            problem = f"holds {' and '.join(map('{:g}'.format, others))} for one response: {item!r}, system {system!r}"
            raise SchemaError(problem, where=at, expected="one score a response")
        parts.append(rows)
    made = pd.concat(parts, ignore_index=True).assign(output="score", cut=0, signature="column of the rated file")
    return schema.validate(made, "scores", where=where)
