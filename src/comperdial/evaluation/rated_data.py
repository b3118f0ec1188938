"""A researcher's responses and their ratings, from a file or a folder of tables: what ``comperdial compare`` reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, FileError, SchemaError
from comperdial.data.own_files import number, read_columns
from comperdial.data.readers.table import COLUMNS, read_content, report
from comperdial.evaluation import aggregate
from comperdial.metrics import Batch, scoring
from comperdial.metrics.score_files import read_records

_UNIT = ["dataset", "level", "item_id", "system_id"]
# Of our columns, those by which a subset can be chosen.
_ATTRIBUTES = {"dialogue_id", "turn", "kind", "source"}


@dataclass(frozen=True)
class RatedData:
    """Responses to score, and their ratings.

    Attributes
    ----------
    parts
        Responses and what each has to be scored with, part by part; to be gone through once.
    ratings, contexts, systems
        Tables of these names; of ``contexts`` at least dataset, context_id and dialogue_id. The last two may be missing.
    path
        The file of responses; None for a folder of tables.
    records
        For each record of that file what it is of (dataset, level, item_id, system_id), and its columns that no table has.
    columns
        The names of those of its columns that are none of ours.
    """

    parts: Iterable[tuple[pd.DataFrame, Batch]]
    ratings: pd.DataFrame
    contexts: pd.DataFrame | None = None
    systems: pd.DataFrame | None = None
    path: Path | None = None
    records: pd.DataFrame | None = None
    columns: tuple[str, ...] = ()

    def attributes(self) -> list[pd.DataFrame]:
        """Return the file's own columns of responses and of dialogues, for :func:`comperdial.evaluation.options.subset`."""
        if self.records is None:
            return []
        frames = []
        for level, item in (("turn", "context_id"), ("dialogue", "dialogue_id")):
            rows = self.records[self.records["level"] == level].drop(columns="level")
            frames.append(rows.drop(columns=item, errors="ignore").rename(columns={"item_id": item}))
        return [rows for rows in frames if len(rows)]

    def scores(self, names: Sequence[str]) -> pd.DataFrame | None:
        """Return the scores, such as a judge's, that some of the file's own columns hold; None for no names.

        In table ``scores`` each column is a metric with the output ``score``. A SchemaError is raised if a cell is no
        number, or the rows of one response differ.
        """
        if not names or self.records is None:
            return None
        parts = []
        for name in names:
            seen: dict[tuple[str, ...], tuple[float, int]] = {}
            keys = self.records[_UNIT].itertuples(index=False, name=None)
            for record, (key, value) in enumerate(zip(keys, map(number, self.records[name]), strict=True), start=1):
                if value is None or pd.isna(key[2]):
                    continue
                problem = f"holds {value}" if isinstance(value, str) else None
                if not problem and (first := seen.setdefault(key, (float(value), record)))[0] != value:
                    problem = f"holds {value:g}, and {first[0]:g} in record {first[1]} of the same response"
                if problem:
                    where = f"{self.path}, record {record}, column {name!r}"
                    raise SchemaError(problem, where=where, expected="a number, one score a response")
            if not seen:
                raise SchemaError(
                    f"no number in column {name!r}", where=str(self.path), expected="the scores of responses"
                )
            rows = pd.DataFrame(list(seen), columns=_UNIT)
            parts.append(rows.assign(value=[value for value, _ in seen.values()], metric=name))
        made = pd.concat(parts, ignore_index=True).assign(output="score", cut=0, signature="column of the rated file")
        return schema.validate(made, "scores", where=str(self.path))


def read_rated(
    path: str | Path | None,
    *,
    ratings: Sequence[str | Path] = (),
    contexts: str | Path | None = None,
    dataset: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> RatedData:
    """Read responses with their ratings; a ConfigError is raised if there are no ratings at all.

    Parameters
    ----------
    path
        A folder of tables; a file of rated responses (:func:`comperdial.data.readers.table.read_content`); or, if the
        ratings are in files of their own, a file of responses (:func:`comperdial.metrics.score_files.read_records`). None:
        there is nothing to score.
    ratings, contexts
        Files that are read instead of what the folder or the file has.
    dataset
        The name of the data set for ratings that do not name it; default: that of the responses.
    options
        How a file of rated responses is read.
    """
    path = None if path is None else Path(path)
    if options and (path is None or path.is_dir() or ratings):
        raise ConfigError(
            "--columns and --scale say how a file with its own ratings is read",
            where=str(path or "compare"),
            expected="neither, with a folder or with ratings in a file of their own",
        )
    if path is None:
        data = RatedData([], schema.empty("ratings"))
    elif path.is_dir():
        data = _read_folder(path)
    elif ratings:
        records = read_records(path)
        units = records.responses.rename(columns={"context_id": "item_id"}).assign(level="turn")
        data = RatedData([(records.responses, records.batch())], schema.empty("ratings"), path=path)
        data = _with_records(data, path, units, {})
    else:
        data = _read_file(path, options or {})
    if dataset is None and data.records is not None and data.records["dataset"].nunique() == 1:
        dataset = str(data.records["dataset"].iloc[0])
    if ratings:
        data = replace(data, ratings=aggregate.read_ratings_of(ratings, dataset=dataset))
    if contexts:
        data = replace(data, contexts=aggregate.read_contexts(contexts, dataset=dataset))
    if data.ratings.empty:
        raise ConfigError(
            "no ratings",
            where=str(path) if path else None,
            expected="a column `rating` beside the responses, or --ratings",
        )
    return data


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
    content = report(path.stem, read_content(path.stem, path, options))
    tables = content.tables
    kinds = tables["systems"].set_index("system_id")["kind"]
    responses = tables["responses"]
    responses = responses[responses["system_id"].map(kinds) != "reference"].reset_index(drop=True)
    contexts = tables["contexts"].set_index("context_id").loc[responses["context_id"]]
    columns = (list(contexts[column]) for column in ("references", "history", "facts"))
    batch = Batch(list(responses["response"]), *columns)
    data = RatedData([(responses, batch)], tables["ratings"], tables["contexts"], tables["systems"], path)
    units = content.units.assign(dataset=tables["responses"]["dataset"].iloc[0])
    return _with_records(data, path, units, options.get("columns") or {})


def _with_records(data: RatedData, path: Path, units: pd.DataFrame, mapped: Mapping[str, Any]) -> RatedData:
    frame = read_columns(path, COLUMNS, ["response"], mapped)
    rated = mapped.get("rating", [])
    ours = {*COLUMNS, *([rated] if isinstance(rated, str) else rated)}
    columns = tuple(str(name) for name in frame.columns if name not in ours)
    kept = [name for name in frame.columns if name in {*columns, *_ATTRIBUTES} - {"dataset"}]
    records = units[_UNIT].reset_index(drop=True).join(frame[kept].set_axis(range(len(frame))))
    return replace(data, records=records, columns=columns)
