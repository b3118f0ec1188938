"""A researcher's responses and their ratings, from a file or a folder of tables: what ``comperdial compare`` reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, FileError, SchemaError
from comperdial.data.own_files import number, read_columns
from comperdial.data.readers.table import COLUMNS, RatedFile
from comperdial.evaluation import aggregate
from comperdial.metrics import Batch, scoring
from comperdial.metrics.score_files import read_records

# What a column may be called that says nothing of a response by which a subset could be chosen.
_NO_ATTRIBUTES = {*COLUMNS} - {"dialogue_id", "turn", "kind", "source"} | {"dataset"}


@dataclass(frozen=True)
class RatedData:
    """Responses to score and the ratings to hold scores against.

    Attributes
    ----------
    parts
        Responses and what each has to be scored with, part by part; to be gone through once.
    ratings, contexts, systems
        Tables ``ratings``, ``contexts`` (at least dataset, context_id, dialogue_id) and ``systems``; None where there is
        none of the last two.
    units
        For each record of a file, in order: dataset, system_id, context_id of its response, dialogue_id of a whole dialogue.
        None for a folder of tables.
    """

    parts: Iterable[tuple[pd.DataFrame, Batch]]
    ratings: pd.DataFrame
    contexts: pd.DataFrame | None
    systems: pd.DataFrame | None
    units: pd.DataFrame | None = None


def read_rated(
    path: str | Path | None,
    *,
    ratings: Sequence[str | Path] = (),
    contexts: str | Path | None = None,
    dataset: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> RatedData:
    """Read responses with their ratings.

    Parameters
    ----------
    path
        A folder of tables; a file of rated responses (:class:`comperdial.data.readers.table.RatedFile`); or, where the
        ratings are in a file of their own, a file of responses (:func:`comperdial.metrics.score_files.read_records`). None:
        there is nothing to score.
    ratings, contexts
        Files that go before what the folder or the file has.
    dataset
        The name of the data set for ratings that do not say; default: that of the responses.
    options
        How a file of rated responses is read.

    Raises
    ------
    ConfigError
        When there are no ratings at all.
    """
    if options and (path is None or Path(path).is_dir() or ratings):
        raise ConfigError(
            "--columns and --scale say how a file with its own ratings is read",
            where=str(path or "compare"),
            expected="neither, with a folder or with ratings in a file of their own",
        )
    if path is not None and Path(path).is_dir():
        found = _read_folder(Path(path))
    elif path is not None:
        found = _read_responses(Path(path)) if ratings else _read_file(Path(path), options or {})
    else:
        found = RatedData([], schema.empty("ratings"), None, None)
    if dataset is None and isinstance(found.parts, list) and found.parts:
        names = found.parts[0][0]["dataset"].unique()
        dataset = str(names[0]) if len(names) == 1 else None
    found = RatedData(
        found.parts,
        aggregate.read_ratings_of(ratings, dataset=dataset) if ratings else found.ratings,
        aggregate.read_contexts(contexts, dataset=dataset) if contexts else found.contexts,
        found.systems,
        found.units,
    )
    if found.ratings.empty:
        raise ConfigError(
            "no ratings",
            where=str(path) if path else None,
            expected="a column `rating` beside the responses, or --ratings",
        )
    return found


def _read_folder(folder: Path) -> RatedData:
    if not (folder / "responses.parquet").is_file():
        raise FileError("no table `responses` in it", where=str(folder), expected="a folder of one data set's tables")

    def table(name: str) -> pd.DataFrame | None:
        path = folder / f"{name}.parquet"
        frame = schema.read(path, name) if path.is_file() else None
        return None if frame is None or frame.empty else frame

    return RatedData(scoring.batches(folder), schema.ratings_in(folder), table("contexts"), table("systems"))


def _read_file(path: Path, options: Mapping[str, Any]) -> RatedData:
    """Read a file of responses with their ratings, as a data set of one's own is read."""
    reader = RatedFile(path.stem, {"table": path}, options)
    tables = reader.read()
    kinds = tables["systems"].set_index("system_id")["kind"]
    responses = tables["responses"]
    responses = responses[responses["system_id"].map(kinds) != "reference"].reset_index(drop=True)
    contexts = tables["contexts"].set_index("context_id").loc[responses["context_id"]]
    columns = (list(contexts[column]) for column in ("references", "history", "facts"))
    batch = Batch(list(responses["response"]), *columns)
    units = reader.units().assign(dataset=responses["dataset"].iloc[0])
    return RatedData([(responses, batch)], tables["ratings"], tables["contexts"], tables["systems"], units)


def _read_responses(path: Path) -> RatedData:
    """Read a file of responses whose ratings are in another."""
    records = read_records(path)
    units = records.responses[["dataset", "system_id", "context_id"]].assign(dialogue_id=None)
    return RatedData([(records.responses, records.batch())], schema.empty("ratings"), None, None, units)


def own_columns(path: str | Path, data: RatedData, options: Mapping[str, Any] | None = None) -> list[pd.DataFrame]:
    """Return what a file of responses says of them in columns that no table has, by the names the tables have.

    Parameters
    ----------
    path, options
        As :func:`read_rated` was given them; a folder of tables has no such columns.
    data
        What it returned.

    Returns
    -------
    list of DataFrame
        For :func:`comperdial.evaluation.options.subset`: of responses, with dataset, context_id and system_id, and of
        whole dialogues, with dataset, dialogue_id and system_id.
    """
    if data.units is None:
        return []
    mapped = (options or {}).get("columns") or {}
    frame = read_columns(path, COLUMNS, ["response"], mapped)
    rated = mapped.get("rating", [])
    ours = {*_NO_ATTRIBUTES, *([rated] if isinstance(rated, str) else rated)}
    own = frame[[name for name in frame.columns if name not in ours]].set_axis(data.units.index)
    said = [
        data.units.loc[data.units[item].notna(), ["dataset", "system_id", item]].join(
            own.drop(columns=item, errors="ignore")
        )
        for item in ("context_id", "dialogue_id")
    ]
    return [rows for rows in said if len(rows)]


def column_scores(
    path: str | Path, data: RatedData, names: Sequence[str], options: Mapping[str, Any] | None = None
) -> pd.DataFrame | None:
    """Return the scores that a file of responses holds in columns of its own, such as a judge's.

    Parameters
    ----------
    path, data, options
        As :func:`own_columns` takes them.
    names
        The columns, as the file calls them.

    Returns
    -------
    DataFrame
        Table ``scores``: a metric a column, with the output ``score``; None for no names.

    Raises
    ------
    SchemaError
        When a cell is no number, or the rows of one response differ.
    """
    if not names or data.units is None:
        return None
    frame = read_columns(path, COLUMNS, ["response"], (options or {}).get("columns") or {})
    units = data.units.assign(
        level=np.where(data.units["context_id"].notna(), "turn", "dialogue"),
        item_id=data.units["context_id"].where(data.units["context_id"].notna(), data.units["dialogue_id"]),
    )
    found = []
    for name in names:
        seen: dict[tuple[str, ...], tuple[float, int]] = {}
        keys = units[["dataset", "level", "item_id", "system_id"]].itertuples(index=False, name=None)
        for record, (key, cell) in enumerate(zip(keys, frame[name], strict=True), start=1):
            value = number(cell)
            if value is None or pd.isna(key[2]):
                continue
            where = f"{path}, record {record}, column {name!r}"
            if isinstance(value, str):
                raise SchemaError(f"holds {value}", where=where, expected="a number, one score a response")
            first, earlier = seen.setdefault(key, (value, record))
            if first != value:
                raise SchemaError(
                    f"holds {value:g}, and {first:g} in record {earlier} of the same response",
                    where=where,
                    expected="one score a response",
                )
        if not seen:
            raise SchemaError(f"no number in column {name!r}", where=str(path), expected="the scores of responses")
        rows = pd.DataFrame(list(seen), columns=["dataset", "level", "item_id", "system_id"])
        found.append(rows.assign(value=[value for value, _ in seen.values()], metric=name))
    made = pd.concat(found, ignore_index=True).assign(output="score", cut=0, signature="column of the rated file")
    return schema.validate(made, "scores", where=str(path))


def columns_of(path: str | Path, options: Mapping[str, Any] | None = None) -> list[str]:
    """Return the columns of a file of responses that are none of ours, ratings included."""
    mapped = (options or {}).get("columns") or {}
    rated = mapped.get("rating", [])
    taken = {*COLUMNS, *([rated] if isinstance(rated, str) else rated)}
    return [str(name) for name in read_columns(path, COLUMNS, ["response"], mapped) if name not in taken]
