"""Scores, judgements and coverage out of a judge's answers that others recorded."""

from __future__ import annotations

import hashlib
import logging
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.files import sha256, write_text
from comperdial.data import sources
from comperdial.data.catalogue import load_catalogue
from comperdial.data.recorded import Rated, origin
from comperdial.judges.parsing import PARSER_VERSION, parse
from comperdial.judges.recorded import find, systems_of
from comperdial.stats.correlation import correlate

log = logging.getLogger(__name__)

VERSION = 1

COVERAGE = [
    "metric", "dimension", "target", "items", "answers", "unread", "why", "n", "pearson", "kendall", "owners_pearson",
    "owners_kendall",
]  # fmt: skip


def take_answers(
    judge: Mapping[str, str],
    files: Mapping[str, str],
    folder: Path,
    output: Path,
    *,
    catalogue: Path,
    judgements_to: Path,
    coverage_to: Path,
) -> None:
    """Take a judge's recorded answers about a data set.

    Parameters
    ----------
    judge
        Its ``name``, the ``format`` of the files, the ``model`` and the ``prompt``.
    files
        Fetched files of the catalogue by what the format calls them.
    folder
        The data set's tables.
    output
        Table ``scores``.
    judgements_to, coverage_to
        Table ``judgements``, and a CSV of how many answers can be read and how they agree with people.
    """
    known = load_catalogue(catalogue)
    found = {name: known.file(source) for name, source in files.items()}
    recorded = RecordedJudge(
        **judge,
        paths={name: sources.require(file) for name, file in found.items()},
        origins={name: origin(file) for name, file in found.items()},
    )
    tables = {name: schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses", "systems")}
    reader = find(recorded.format)
    human = schema.read(folder / "ratings.parquet", "ratings")
    rated = Rated(**tables, ratings=human)
    read = ratings(recorded, rated)
    schema.write(output, scores(recorded, read, rated), "scores")
    schema.write(judgements_to, judgements(recorded, read, rated), "judgements")
    counted = coverage(recorded.name, read, human[human["level"] == reader.level], reader.targets)
    write_text(coverage_to, counted.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


@dataclass(frozen=True)
class RecordedJudge:
    """A judge of whom answers are recorded.

    Attributes
    ----------
    name
        Its name, and the metric's: never that of a judge that is asked here.
    format
        How the files are laid out: one of :func:`comperdial.judges.recorded.formats`.
    model
        The model as the source names it.
    prompt
        The prompt's name.
    paths
        The files, under the format's names for them.
    origins
        Where each file comes from, ``owner/name@commit7/file``; never a machine's path.
    """

    name: str
    format: str
    model: str
    prompt: str
    paths: Mapping[str, Path]
    origins: Mapping[str, str]

    def signature(self) -> str:
        """Return what a score of this judge depends on.

        Of several files, it has what their origins share up to a slash, and a sha256 over theirs.
        """
        reader = find(self.format)
        digests = {name: sha256(path) for name, path in sorted(self.paths.items())}
        if len(digests) == 1:
            (digest,), (origin,) = digests.values(), self.origins.values()
        else:
            digest = hashlib.sha256("".join(f"{name} {sum}\n" for name, sum in digests.items()).encode()).hexdigest()
            origin = posixpath.commonpath(map(posixpath.dirname, self.origins.values()))
        parts = [
            f"format:{self.format}", f"prompt:{self.prompt}", f"model:{self.model}", f"from:{origin}",
            f"sha256:{digest[:12]}", f"samples:{reader.samples}", "mean", f"parser:{PARSER_VERSION}",
            f"v:{VERSION}.{reader.version}",
        ]  # fmt: skip
        return "|".join(["recorded-judge", *parts])


@dataclass(frozen=True)
class Ratings:
    """What recorded answers say.

    Attributes
    ----------
    values
        One row an item and dimension: ``place``, ``item_id``, ``system_id``, ``dimension``, ``value`` (the mean of the
        answers that could be read; NaN where none could), ``answers`` and ``parsed`` (how many), and ``owners`` (the
        mean as those who published the answers read them; NaN where that is not known).
    singles
        One row an answer: as the format has it, with ``value``, ``owners``, and ``failure`` where it cannot be read.
    """

    values: pd.DataFrame
    singles: pd.DataFrame

    @property
    def failures(self) -> pd.DataFrame:
        """Return the answers that could not be read: ``place``, ``dimension``, ``sample`` and ``failure``."""
        unread = self.singles[self.singles["failure"].notna()]
        return unread[["place", "dimension", "sample", "failure"]].reset_index(drop=True)


def ratings(judge: RecordedJudge, rated: Rated | None = None) -> Ratings:
    """Read what a recorded judge's answers say of each item.

    Raises
    ------
    FileError, SchemaError
        When a file is not what its format says, or is of something that is in no table.
    """
    reader = find(judge.format)(judge.paths)
    rows = reader.read(rated)

    @cache
    def read(dimension: str, text: str) -> tuple[float, float, str | None]:
        parsed, owners = parse(text, reader.form(dimension)), reader.owners_reading(text)
        return parsed.values.get(dimension, np.nan), np.nan if owners is None else owners, parsed.failure

    found = [read(dimension, text) for dimension, text in zip(rows["dimension"], rows["answer"], strict=True)]
    columns = pd.DataFrame(found, columns=["value", "owners", "failure"], index=rows.index).astype({"failure": object})
    singles = rows.join(columns)
    items = singles.groupby(["place", "item_id", "system_id", "dimension"], sort=False)
    means = items.agg(
        value=("value", "mean"), answers=("value", "size"), parsed=("value", "count"), owners=("owners", "mean")
    )
    return Ratings(means.reset_index(), singles)


def scores(judge: RecordedJudge, found: Ratings, rated: Rated) -> pd.DataFrame:
    """Return a recorded judge's ratings of a data set's responses as table ``scores``, one output a dimension.

    A score is the mean of an item's answers that could be read; an item without any has none. The references are
    left out: they are what the others are held against.

    Raises
    ------
    SchemaError
        When an item is of no response (or dialogue), or rated twice.
    """
    values = found.values
    _check_items(values, rated, judge)
    unread, of_references = values["value"].isna(), values["system_id"].isin(rated.references)
    kept = values[~unread & ~of_references]
    if kept.empty:
        raise SchemaError(
            f"no rating of {judge.name!r} is of a response that is evaluated",
            where=str(next(iter(judge.paths.values()))),
            expected=f"ratings of {rated.dataset!r}",
        )
    log.info(
        "%s: %d scores; %d of %d answers could not be read; left out: %d items without any rating, %d of references",
        *(judge.name, len(kept), len(found.failures), values["answers"].sum(), unread.sum(), of_references.sum()),
    )
    return _table("scores", judge, rated, kept, cut=0, signature=judge.signature())


def judgements(judge: RecordedJudge, found: Ratings, rated: Rated) -> pd.DataFrame:
    """Return a recorded judge's single answers as table ``judgements``, those to references left out.

    What they cost, and why they are what they are, was not recorded.
    """
    kept = found.singles[~found.singles["system_id"].isin(rated.references)]
    return _table("judgements", judge, rated, kept, tries=1)


def _table(name: str, judge: RecordedJudge, rated: Rated, rows: pd.DataFrame, **columns: Any) -> pd.DataFrame:  # noqa: ANN401
    shared: dict[str, Any] = {"dataset": rated.dataset, "level": find(judge.format).level, "metric": judge.name}
    table = rows.rename(columns={"dimension": "output"}).astype({"value": "float32"}).assign(**shared, **columns)
    return schema.validate(
        table.reindex(columns=schema.table(name).columns), name, where=f"{judge.name}, as table {name!r}"
    )


def coverage(name: str, found: Ratings, human: pd.DataFrame, targets: Mapping[str, str]) -> pd.DataFrame:
    """Count a recorded judge's answers, and correlate its means with the mean human ratings.

    Parameters
    ----------
    name
        The judge's.
    found
        What its answers say: of all items, references included, as the studies that publish such answers have them.
    human
        Table ``ratings`` at the level that was judged; people's ratings are taken from it.
    targets
        For the judge's dimensions the rated dimension each is held against, where it has another name.

    Returns
    -------
    DataFrame
        One row a dimension: :data:`COVERAGE`. ``why`` counts the reasons of answers that could not be read. ``pearson``
        pools all items; ``kendall`` is tau-b within each context, averaged over the contexts where it is defined, as
        Chiang and Lee 2023 have it; ``owners_…`` are the same of the answers as those who published them read them.
        Where people rated nothing, there is nothing to correlate with: ``n`` is 0.

    Raises
    ------
    UnknownNameError
        When people rated, but not what a dimension is held against.
    """
    people = human[human["source"] == "human"]
    rated = people.groupby(["item_id", "system_id", "dimension"])["rating"].mean()
    known = sorted(people["dimension"].unique())
    rows = []
    for dimension, group in found.values.groupby("dimension", sort=False):
        target = targets.get(str(dimension), str(dimension))
        if known and target not in known:
            raise UnknownNameError("rated dimension", target, known, where=f"{name}, {dimension}")
        keys = pd.MultiIndex.from_frame(group[["item_id", "system_id"]].assign(dimension=target))
        human_means = rated.reindex(keys).to_numpy()
        pairs, theirs = (
            pd.DataFrame(
                {"judge": group[reading].to_numpy(), "people": human_means, "context": group["item_id"]}
            ).dropna()
            for reading in ("value", "owners")
        )
        failures = found.failures[found.failures["dimension"] == dimension]["failure"].value_counts()
        rows.append(
            {
                "metric": name,
                "dimension": dimension,
                "target": target,
                "items": len(group),
                "answers": int(group["answers"].sum()),
                "unread": int(group["answers"].sum() - group["parsed"].sum()),
                "why": "; ".join(f"{count} {why}" for why, count in failures.items()),
                "n": len(pairs),
                "pearson": _pooled(pairs),
                "kendall": _within(pairs),
                "owners_pearson": _pooled(theirs),
                "owners_kendall": _within(theirs),
            }
        )
    return pd.DataFrame(rows, columns=COVERAGE)


def _pooled(pairs: pd.DataFrame) -> float:
    return correlate(pairs["judge"], pairs["people"], "pearson").value


def _within(pairs: pd.DataFrame) -> float:
    """Return tau-b within each context, averaged over the contexts where it is defined."""
    found = [correlate(part["judge"], part["people"], "kendall").value for _, part in pairs.groupby("context")]
    return float(pd.Series(found, dtype="float64").mean())


def _check_items(values: pd.DataFrame, rated: Rated, judge: RecordedJudge) -> None:
    if find(judge.format).level == "dialogue":
        what, noun = "dialogue", "dialogue"
        known = {(dialogue, system) for dialogue, names in systems_of(rated).items() for system in names}
    else:
        what, noun = "context", "response"
        known = set(zip(rated.responses["context_id"], rated.responses["system_id"], strict=True))
    first: dict[tuple[str, ...], str] = {}
    for place, *item in values[["place", "item_id", "system_id", "dimension"]].itertuples(index=False, name=None):
        said, where = f"{what} {item[0]!r}, system {item[1]!r}", f"{judge.name}, {place}"
        if (item[0], item[1]) not in known:
            raise SchemaError(f"{said}: no such {noun}", where=where, expected=f"a {noun} of {rated.dataset!r}")
        if first.setdefault(tuple(item), place) != place:
            raise SchemaError(f"{said} was rated in {first[tuple(item)]} already", where=where, expected="each once")
