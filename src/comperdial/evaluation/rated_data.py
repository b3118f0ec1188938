"""A user's responses with human and judge ratings, from a file, a frame or a folder of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, FileError, SchemaError
from comperdial.core.names import Output
from comperdial.data.columns import NAMES, Layout, markup, scores_in
from comperdial.data.files import File
from comperdial.data.readers.table import notes, read_content
from comperdial.evaluation import aggregate
from comperdial.evaluation.samples import HUMAN, Sample, Tables
from comperdial.metrics import Batch
from comperdial.metrics.score_files import read_records

UNIT = ["dataset", "level", "item_id", "system_id"]
# Our columns by which subsets can be selected.
_ATTRIBUTES = {"dialogue_id", "turn", "kind"}
_MEAN, _OF_DIALOGUES = "mean", " (dialogues)"


@dataclass(frozen=True)
class Data:
    """Responses with human and judge ratings, as tables (docs/data-model.md).

    Without ``systems`` no response is a reference; references are only in ``contexts``. ``scores`` are those of judges and
    metrics in columns of the file, ``attributes`` the unit of each record of the file and its further columns, ``notes`` how
    the file was read, in sentences.
    """

    responses: pd.DataFrame
    ratings: pd.DataFrame
    contexts: pd.DataFrame | None
    systems: pd.DataFrame | None
    scores: pd.DataFrame
    attributes: pd.DataFrame | None
    notes: tuple[str, ...]
    batch: Batch

    def __repr__(self) -> str:
        """Summarize the sizes and how the data were read."""
        counts = f"{len(self.responses):,} responses, {len(self.ratings):,} ratings"
        return "\n".join([f"{counts}, {self.responses['system_id'].nunique():,} systems", *self.notes])

    @property
    def sources(self) -> list[str]:
        """Return the sources of ratings."""
        return sorted(self.ratings["source"].unique())

    def tables(self, scores: pd.DataFrame, source: str) -> Tables:
        """Return the tables for making samples."""
        return Tables(scores, self.ratings, self.contexts, self.systems, source, self.attributes)


_EMPTY = [schema.empty(name) for name in ("responses", "ratings", "scores")]
NOTHING = Data(_EMPTY[0], _EMPTY[1], None, None, _EMPTY[2], None, (), Batch([], [], [], []))


def read_data(
    source: str | Path | pd.DataFrame,
    options: Mapping[str, Any] | None = None,
    *,
    rated: bool = True,
    file: File | None = None,
) -> Data:
    """Read responses and their ratings.

    ``source`` is a file (:func:`comperdial.data.readers.table.read_content`), a frame with the same columns, or a folder of
    tables; ``options`` say how to read a file: ``columns``, ``scale``, ``labels``, ``lower_is_better``, ``sheet``,
    ``strip_markup``. Unless ``rated``, ratings are optional. ``file`` is the file's content, if it has been read. Raises a
    SchemaError, FileError or ConfigError if it cannot be read, with the record or column, and what was expected.
    """
    if file is None and isinstance(source, pd.DataFrame):
        file = File(source.reset_index(drop=True), range(1, len(source) + 1))
    path = Path("data") if isinstance(source, pd.DataFrame) else Path(source)
    folder = file is None and path.is_dir()
    if options and (folder or not rated):
        raise ConfigError(
            "options say how a file with its own ratings is read",
            where=", ".join("--" + name.replace("_", "-") for name in options),
            expected="none of them, with a folder or with ratings in a file of their own",
        )
    if folder:
        names = ("responses", "contexts", "systems")
        files = {name: path / f"{name}.parquet" for name in names if (path / f"{name}.parquet").is_file()}
        if lacking := [name for name in names[:2] if name not in files]:
            problem = f"no table `{lacking[0]}` in it"
            raise FileError(problem, where=str(path), expected="a folder of one data set's tables")
        tables = {name: schema.read(file, name) for name, file in files.items()}
        return _of_tables({**tables, "ratings": schema.ratings_in(path)}, None, schema.empty("scores"), [])
    if not rated:
        with suppress(SchemaError):
            return read_data(source)
        records = read_records(path, file)
        units = records.responses.rename(columns={"context_id": "item_id"}).assign(level="turn")
        attributes, scores, lines = _columns(records.layout, units, path)
        empty = schema.empty("ratings")
        return Data(records.responses, empty, None, None, scores, attributes, tuple(lines), records.batch())
    content = read_content(path.stem, path, options, file)
    attributes, scores, lines = _columns(content.layout, content.units.assign(dataset=path.stem), path)
    lines += [*markup(content.layout), *notes(content, used=scores["metric"].unique())]
    return _of_tables(content.tables, attributes, scores, lines)


def _of_tables(
    tables: Mapping[str, pd.DataFrame], attributes: pd.DataFrame | None, scores: pd.DataFrame, lines: Sequence[str]
) -> Data:
    contexts, systems, responses = tables["contexts"], tables.get("systems"), tables["responses"]
    if systems is not None:
        references = systems.loc[systems["kind"] == "reference", "system_id"]
        responses = responses[~responses["system_id"].isin(references)].reset_index(drop=True)
    held = contexts.set_index("context_id").loc[responses["context_id"]]
    batch = Batch(list(responses["response"]), *(list(held[name]) for name in ("references", "history", "facts")))
    known = contexts[["dataset", "context_id", "dialogue_id", "turn"]]
    return Data(responses, tables["ratings"], known, systems, scores, attributes, tuple(lines), batch)


def _columns(layout: Layout, units: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return each record's unit with its further columns, the scores in these, and notes."""
    ours = {*NAMES, *UNIT, *layout.dimensions} - _ATTRIBUTES
    others = layout.frame.drop(columns=[name for name in layout.frame if name in ours])
    attributes = units[UNIT].reset_index(drop=True).join(others.set_axis(range(len(others))))
    scores, lines = column_scores(attributes, scores_in(others), str(path), layout.frame.get("dimension"))
    return attributes, scores, [*layout.notes, *lines]


def column_scores(
    attributes: pd.DataFrame | None, names: Sequence[str], where: str, dimension: pd.Series | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """Return the scores, such as a judge's, in some columns of a file, and notes.

    In table ``scores`` each column is a metric. Its output is ``score``; or, if a response has rows for several dimensions with
    different values, the dimension. Otherwise values are averaged. SchemaError: a cell is not a number.
    """
    parts, lines = [], []
    frame = pd.DataFrame(attributes)
    for name in names:
        value = aggregate.numbers(frame[name], where, name)
        rows = frame[UNIT].assign(value=value, metric=name, output="score")
        if dimension is not None and (rows.dropna().groupby(UNIT)["value"].nunique() > 1).any():
            rows["output"] = dimension.map(str).to_numpy()
        rows = rows.dropna(subset=["item_id", "value"])
        if rows.empty:
            raise SchemaError("no numbers", where=f"{where}, column {name!r}", expected="the scores of responses")
        by = rows.groupby([*UNIT, "metric", "output"])["value"]
        if several := int((by.nunique() > 1).sum()):
            lines.append(f"{name}: several values of {several} responses, whose mean counts")
        parts.append(by.mean().reset_index())
    return _as_scores(parts, "column of the rated file"), lines


def judge_scores(data: Data, source: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the mean ratings by other sources as scores by dimension; and why some are not compared."""
    of_source = data.ratings["source"] == source
    rated = pd.MultiIndex.from_frame(data.ratings.loc[of_source, UNIT])
    targets = {*data.ratings.loc[of_source, "dimension"].unique()}
    parts, apart = [], {}
    for name, ratings in data.ratings[~of_source].groupby("source"):
        own = ratings[pd.MultiIndex.from_frame(ratings[UNIT]).isin(rated)]
        if own.empty:
            apart[str(name)] = f"rated nothing that {source} rated"
            continue
        metric = "human ratings" if name == HUMAN[0] else str(name)
        by = own.groupby([*UNIT, "dimension"])["rating"].mean().rename("value").reset_index()
        if not targets & {*by["dimension"]}:
            by = by.groupby(UNIT)["value"].mean().reset_index().assign(dimension=_MEAN)
        parts.append(by.rename(columns={"dimension": "output"}).assign(metric=metric))
    return _as_scores(parts, "ratings by another source"), apart


def _as_scores(parts: Sequence[pd.DataFrame], signature: str) -> pd.DataFrame:
    if not parts:
        return schema.empty("scores")
    made = pd.concat(parts, ignore_index=True).assign(cut=0, signature=signature)
    # An output has scores of one level: those of dialogues get their own name.
    several = made.groupby(["metric", "output"])["level"].transform("nunique") > 1
    made.loc[several & (made["level"] == "dialogue"), "output"] += _OF_DIALOGUES
    return schema.validate(made, "scores")


def of_judge(sample: Sample, judge: str) -> Output | None:
    """Return a judge's output to compare with a sample's ratings: of the same dimension, or overall."""
    for output in (sample.target, "score", _MEAN):
        for ending in (_OF_DIALOGUES, "") if sample.against == "dialogue" else ("",):
            if (judge, output + ending) in sample.names:
                return judge, output + ending
    return None
