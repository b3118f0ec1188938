"""Scores computed elsewhere, taken as they are, with their origin (docs/recorded-scores.md)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.core.files import check_columns, read_json, read_table, sha256
from comperdial.core.names import plain_name
from comperdial.data.catalogue import Catalogue, Source
from comperdial.data.own_files import shown
from comperdial.data.readers.base import get

log = logging.getLogger(__name__)

DIMENSIONS = {
    "naturalness": "Natural",
    "coherence": "Maintains Context",
    "engagingness": "Engaging",
    "groundedness": "Uses Knowledge",
    "understandability": "Understandable",
    "overall": "Overall",
}
"""UniEval's names of the dimensions that people rated, and USR's."""


@dataclass(frozen=True)
class Rated:
    """The tables of the data set that scores belong to; ``ratings`` may be None."""

    contexts: pd.DataFrame
    responses: pd.DataFrame
    systems: pd.DataFrame
    ratings: pd.DataFrame | None = None

    @property
    def dataset(self) -> str:
        """Return the data set's name."""
        return str(self.contexts["dataset"].iloc[0])

    @property
    def references(self) -> frozenset[str]:
        """Return the systems that others are compared with, which are never evaluated."""
        return frozenset(self.systems.loc[self.systems["kind"] == "reference", "system_id"])

    def items(self, level: str) -> frozenset[tuple[str, str]]:
        """Return item and system of each response (level ``turn``) or of each dialogue."""
        names = self.responses["context_id"]
        if level == "dialogue":
            names = names.map(self.contexts.set_index("context_id")["dialogue_id"])
        return frozenset(zip(names, self.responses["system_id"], strict=True))

    def rated_items(self, level: str) -> frozenset[tuple[str, str]] | None:
        """Return which of them were rated; None without ratings of the level."""
        if self.ratings is None:
            return None
        return frozenset(_items(self.ratings[self.ratings["level"] == level])) or None


def _items(frame: pd.DataFrame) -> Iterator[tuple[str, str]]:
    return zip(frame["item_id"], frame["system_id"], strict=True)


# The section `recorded` of params.yaml


def origin(file: Source | Path) -> str:
    """Return where a file comes from, for a signature: ``owner/name@commit/file``, or a local file's name."""
    if isinstance(file, Path):
        return file.name
    commit = f"@{file.commit[:7]}" if file.commit else ""
    return f"{file.repository}{commit}/{PurePosixPath(file.path).name}"


@dataclass(frozen=True)
class Entry:
    """What others computed: scores (an entry of ``recorded``), or a judge's answers (of ``recorded_judges``).

    ``files`` are by the names that the entry gives them, and one of scores is called ``scores``; ``about`` says who
    computed the scores, with what.
    """

    name: str
    dataset: str
    format: str
    files: Mapping[str, Source | Path]
    about: str = ""
    model: str = ""
    prompt: str = ""

    @property
    def file(self) -> Source | Path:
        """Return the file of scores."""
        return self.files["scores"]

    @property
    def origin(self) -> str:
        """Return where the file of scores comes from, for a signature."""
        return origin(self.file)


def read_entries(
    section: Mapping[str, Mapping[str, Any]] | None,
    *,
    taken: Collection[str],
    datasets: Collection[str],
    catalogue: Catalogue,
    formats: Collection[str] | None = None,
    key: str = "recorded",
) -> dict[str, Entry]:
    """Check the section ``recorded`` or ``recorded_judges`` of ``params.yaml`` and return its entries by name.

    They may not have the names that are ``taken`` by other metrics, and name only the given data sets, formats (default:
    :data:`FORMATS`) and sources of the catalogue. ``key`` is the section's name.

    Raises
    ------
    ConfigError
        When a name is taken.
    UnknownNameError
        When there is no such data set, format or source.
    """
    entries = {}
    for name, entry in (section or {}).items():
        where = f"params.yaml, {key}.{name}"
        if name in taken:
            raise ConfigError(
                f"{name!r} is the name of a metric that is computed here",
                where=where,
                expected="another name, so that nobody takes recorded scores for computed ones",
                hint=f"Call it {name}_recorded",
            )
        for kind, known in (("dataset", datasets), ("format", formats or FORMATS)):
            if entry[kind] not in known:
                raise UnknownNameError(kind, entry[kind], known, where=where)
        files: dict[str, Source | Path] = {"scores": Path(entry["path"])} if "path" in entry else {}
        sources = entry.get("sources") or ({"scores": entry["source"]} if "source" in entry else {})
        files |= {file: catalogue.file(source) for file, source in sources.items()}
        details = {part: entry[part] for part in ("about", "model", "prompt") if part in entry}
        entries[name] = Entry(name, entry["dataset"], entry["format"], files, **details)
    return entries


# From a file to table `scores`


def signature(path: str | Path, *, format: str, origin: str, about: str) -> str:
    """Return where scores come from: ``recorded|format:…|from:…|sha256:…|about:…|v:1``, with 12 digits of the sha256.

    Parameters are those of :func:`import_scores`; a :class:`ConfigError` says that one is empty, or holds a line break or
    the bar that separates the parts.
    """
    for part, text in (("origin", origin), ("about", about)):
        if not text.strip() or set(text) & set("|\n\r"):
            raise ConfigError(f"`{part}` of recorded scores is {text!r}", expected="one line of text without a bar (|)")
    return f"recorded|format:{format}|from:{origin}|sha256:{sha256(path)[:12]}|about:{about}|v:1"


def import_scores(
    name: str,
    folder: str | Path,
    path: str | Path,
    *,
    format: str,
    origin: str,
    about: str,
    ratings: str | Path | None = None,
) -> pd.DataFrame:
    """Read recorded scores of a data set's responses, of its dialogues, or of both, as table ``scores``.

    What has no recorded score is absent. Scores of systems of kind ``reference`` are left out.

    Parameters
    ----------
    name
        What to call the metric in the table: never the name under which this package computes one.
    folder
        The data set's ``contexts``, ``responses`` and ``systems`` as Parquet.
    path, format
        The file of scores, in one of :data:`FORMATS`.
    origin, about
        For the signature: where the file comes from (repository, commit and file, or the file's name; never a machine's
        path), and who computed the scores, with what.
    ratings
        Table ``ratings``, to log how many of the scored items were rated.

    Raises
    ------
    UnknownNameError
        When there is no such format.
    FileError, SchemaError
        When the file does not have its format, or scores an item that is in no table, or one twice: names file and item.
    """
    folder, path = Path(folder), Path(path)
    if format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    tables = {name: schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses", "systems")}
    rated = Rated(**tables, ratings=schema.read(ratings, "ratings") if ratings else None)
    made_by = signature(path, format=format, origin=origin, about=about)
    scores = FORMATS[format](path, rated)
    for level, of_level in scores.groupby("level", sort=False):
        _check_items(of_level, str(level), rated, path)
    if several := [output for output, result in scores.groupby("output")["level"] if result.nunique() > 1]:
        raise SchemaError(
            f"output {several[0]!r} is of turns and of dialogues",
            where=str(path),
            expected="one level for each output",
            hint="Name them apart in the column `output`",
        )
    kept = scores[~scores["system_id"].isin(rated.references) & scores["value"].notna()]
    if kept.empty:
        expected = f"scores of {rated.dataset!r}"
        raise SchemaError("no score of a response that is evaluated", where=str(path), expected=expected)
    for level, of_level in scores.groupby("level", sort=False):
        _report(name, of_level, str(level), rated)
    frame = kept.drop(columns="place").assign(dataset=rated.dataset, metric=name, signature=made_by)
    return schema.validate(frame, "scores", where=f"{path}, as table 'scores'")


def _check_items(scores: pd.DataFrame, level: str, rated: Rated, path: Path) -> None:
    """Refuse an item of a level that does not exist or is scored twice."""
    kind, what = ("context", "response") if level == "turn" else ("dialogue", "dialogue")
    known = rated.items(level)
    seen: dict[tuple[str, ...], str] = {}
    for place, item, system, output in scores[["place", "item_id", "system_id", "output"]].itertuples(index=False):
        problem, expected = None, "each once"
        if (item, system) not in known:
            problem, expected = f"no such {what}", f"names of data set {rated.dataset!r}'s {what}s"
        elif seen.setdefault((item, system, output), place) != place:
            problem = f"output {output!r} was scored in {seen[item, system, output]} already"
        if problem:
            named = f"{kind} {item!r}, system {system!r}: {problem}"
            raise SchemaError(named, where=f"{path}, {place}", expected=expected)


def _report(name: str, scores: pd.DataFrame, level: str, rated: Rated) -> None:
    """Log how much of a level is scored and rated, and what was left out."""
    items = "responses" if level == "turn" else "dialogues"
    of_references, empty = scores["system_id"].isin(rated.references), scores["value"].isna()
    scored, left_out = set(_items(scores[~of_references & ~empty])), set(_items(scores[of_references]))
    evaluated = sum(system not in rated.references for _, system in rated.items(level))
    known = rated.rated_items(level)
    counted = "" if known is None else f", {len(scored & known)} of them rated"
    log.info(
        "%s: scores of %d of the %d evaluated %s of %s%s; left out: %d %s of references, %d empty values",
        name, len(scored), evaluated, items, rated.dataset, counted, len(left_out), items, int(empty.sum()),
    )  # fmt: skip
    if scored and known is not None and not scored & known:
        log.warning("%s: none of the %d scored %s was rated as such", name, len(scored), items)


# The formats. Each returns one row a score; `place` is the item as messages name it ("item 3").


def _finite(path: Path, scores: pd.DataFrame) -> pd.DataFrame:
    """Return scores as numbers, or NaN; refuse anything else."""
    for place, value in zip(scores["place"], scores["value"], strict=True):
        if isinstance(value, bool) or not isinstance(value, Real) or math.isinf(value):
            raise SchemaError(f"the score is {value!r}", where=f"{path}, {place}", expected="a finite number")
    return scores.astype({"value": "float64"})


# The column that names what is scored, and of which levels it can be.
_ITEMS = {"context_id": ("turn",), "dialogue_id": ("dialogue",), "item_id": ("turn", "dialogue")}
_NEEDED = ("system_id", "value")
_KNOWN = (*_ITEMS, *_NEEDED, "dataset", "level", "metric", "output", "signature", "cut")


def _table(path: Path, rated: Rated) -> pd.DataFrame:
    """Read a JSONL, CSV or Parquet file with a row a score, such as ``comperdial score`` writes.

    ``context_id`` names a turn, ``dialogue_id`` a dialogue, ``item_id`` either: what a column ``level`` says, or a turn
    without one. Other optional columns: ``output`` (default: ``score``), ``cut``, and ``dataset``, which must then be
    this data set. An empty value is a turn or a dialogue without a score. The name in a column ``metric`` is not used.
    """
    content = check_columns(read_table(path), _KNOWN, path).reset_index(drop=True)
    items = [column for column in _ITEMS if column in content] or ["context_id"]
    if len(items) > 1:
        problem = f"columns {' and '.join(map(repr, items))}"
        raise SchemaError(problem, where=str(path), expected="one of " + ", ".join(_ITEMS))
    item, *_ = needed = (items[0], *_NEEDED)
    if missing := [column for column in needed if column not in content]:
        expected = f"at least {', '.join(needed)}; dialogues are named by dialogue_id"
        raise SchemaError(f"no column {', '.join(map(repr, missing))}", where=str(path), expected=expected)
    if path.suffix == ".csv":
        content = schema.parse_cells(content, "scores", path)
    for column, known in (("dataset", (rated.dataset,)), ("level", _ITEMS[item])):
        for record, cell in enumerate(content.get(column, ()), start=1):
            if cell not in known:
                expected = " or ".join(map(repr, known)) + ", or no such column"
                raise SchemaError(
                    f"column {column!r} holds {cell!r}", where=f"{path}, record {record}", expected=expected
                )
    if "metric" in content and content["metric"].nunique() > 1:
        names = ", ".join(map(repr, content["metric"].unique()))
        raise SchemaError(f"column 'metric' holds {names}", where=str(path), expected="the scores of one metric a file")
    cells = content["value"].astype(object)
    columns = {
        "place": "record " + (content.index + 1).astype(str),
        "level": content.get("level", _ITEMS[item][0]),
        "item_id": content[item].map(plain_name).map(str),
        "system_id": content["system_id"].map(plain_name).map(str),
        "output": content["output"].map(str) if "output" in content else "score",
        "value": cells.where(cells.notna() & (cells != ""), math.nan),
        "cut": content.get("cut", 0),
    }
    return _finite(path, pd.DataFrame(columns, index=content.index))


def _unieval(path: Path, rated: Rated) -> pd.DataFrame:
    """Read what UniEval's authors recorded for USR-TopicalChat (Zhong et al. 2022): ``predict_scores`` of each item."""
    rows = [
        (f"item {item.number}", "turn", item.context_id, item.system_id, output, score)
        for item in read_items(path, rated)
        for output, score in get(item.content, "predict_scores", dict, item.where).items()
    ]
    columns = ["place", "level", "item_id", "system_id", "output", "value"]
    return _finite(path, pd.DataFrame(rows, columns=columns, dtype=object).assign(cut=0))


FORMATS: Mapping[str, Callable[[Path, Rated], pd.DataFrame]] = {"table": _table, "unieval": _unieval}
"""Formats of files of scores, by the name that ``recorded`` in ``params.yaml`` gives them."""


class Item(NamedTuple):
    """One item of a file in UniEval's form, with the response that it scores; ``where`` names it in messages."""

    number: int
    content: dict[str, Any]
    context_id: str
    system_id: str
    where: str


def read_items(path: Path, rated: Rated) -> Iterator[Item]:
    """Read a JSON list of ``{source, system_id, system_output, …}``, and join each item to its response.

    ``source`` is the dialogue before the response, an utterance a line. An item belongs to the response that has the
    same dialogue, system and text: its place in the list does not count.

    Raises
    ------
    SchemaError
        When the file is no such list, or an item fits no response or several.
    """
    items = read_json(path)
    if not isinstance(items, list) or not items:
        raise SchemaError("no list of items", where=str(path), expected="a JSON list of scored responses")
    contexts = zip(rated.contexts["context_id"], rated.contexts["history"], strict=True)
    histories = {key: _lines("\n".join(one["text"] for one in history)) for key, history in contexts}
    known: dict[tuple[tuple[str, ...], str, str], list[str]] = {}
    rows = rated.responses[["context_id", "system_id", "response"]]
    for context_id, system, response in rows.itertuples(index=False, name=None):
        known.setdefault((histories[context_id], system, response.strip()), []).append(context_id)
    for number, item in enumerate(items):
        where = f"{path}, item {number}"
        lines = _lines(get(item, "source", str, where))
        system, text = (get(item, field, str, where).strip() for field in ("system_id", "system_output"))
        fitting = known.get((lines, system, text), [])
        if len(fitting) != 1:
            count = f"{len(fitting)} responses" if fitting else "no response"
            raise SchemaError(
                f"{count} of {rated.dataset!r} by {system!r} with this dialogue and text: {shown(text)}",
                where=where,
                expected="exactly one",
                hint=f"The dialogue ends in {shown(lines[-1])}",
            )
        yield Item(number, item, fitting[0], system, where)


def _lines(dialogue: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in dialogue.strip().split("\n"))
