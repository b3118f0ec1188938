"""Import scores computed elsewhere, with their origin (docs/recorded-scores.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.core.files import check_columns, read_json, sha256
from comperdial.core.names import plain_name
from comperdial.data.catalogue import Catalogue, Source
from comperdial.data.files import read_file
from comperdial.data.own_files import is_missing, shown
from comperdial.data.readers import face
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
_KEY = ["level", "item_id", "system_id"]


@dataclass(frozen=True)
class Rated:
    """The tables of the data set that the scores belong to; ``ratings`` may be None."""

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
        """Return the reference systems, which are never evaluated."""
        return frozenset(self.systems.loc[self.systems["kind"] == "reference", "system_id"])

    def items(self) -> pd.DataFrame:
        """Return the level, item and system of each response and dialogue."""
        rows = self.responses.merge(self.contexts[["context_id", "dialogue_id"]], on="context_id")
        turns, dialogues = rows.assign(item_id=rows["context_id"]), rows.assign(item_id=rows["dialogue_id"])
        return pd.concat([turns.assign(level="turn"), dialogues.assign(level="dialogue")])[_KEY].drop_duplicates()


# The section `recorded` of params.yaml


def origin(file: Source | Path) -> str:
    """Return a file's origin for a signature: ``owner/name@commit/file``, or the name of a local file."""
    if isinstance(file, Path):
        return file.name
    commit = f"@{file.commit[:7]}" if file.commit else ""
    return f"{file.repository}{commit}/{PurePosixPath(file.path).name}"


@dataclass(frozen=True)
class Entry:
    """Recorded scores (an entry of ``recorded``), or a judge's answers (of ``recorded_judges``).

    ``files`` are keyed by the entry's names, ``scores`` for a file of scores; ``about`` says who computed the scores, and how.
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
        """Return the origin of the file of scores, for a signature."""
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
    """Validate the section ``recorded`` or ``recorded_judges`` of ``params.yaml`` and return its entries by name.

    Names must not be in ``taken``; data sets, formats (default: :data:`FORMATS`) and sources must exist. ``key`` is the
    section's name.

    Raises
    ------
    ConfigError
        If a name is taken.
    UnknownNameError
        If a data set, format or source does not exist.
    """
    entries = {}
    for name, entry in (section or {}).items():
        where = f"params.yaml, {key}.{name}"
        if name in taken:
            problem = f"{name!r} is the name of a metric that is computed here"
            raise ConfigError(problem, where=where, expected="another name", hint=f"Call it {name}_recorded")
        for kind, known in (("dataset", datasets), ("format", formats or FORMATS)):
            if entry[kind] not in known:
                raise UnknownNameError(kind, entry[kind], known, where=where)
        sources = entry.get("sources") or ({"scores": entry["source"]} if "source" in entry else {})
        files: dict[str, Source | Path] = {file: catalogue.file(source) for file, source in sources.items()}
        files |= {"scores": Path(entry["path"])} if "path" in entry else {}
        details = {part: entry[part] for part in ("about", "model", "prompt") if part in entry}
        entries[name] = Entry(name, entry["dataset"], entry["format"], files, **details)
    return entries


# From a file to table `scores`


def signature(path: str | Path, *, format: str, origin: str, about: str) -> str:
    """Return the signature of scores: ``recorded|format:…|from:…|sha256:…|about:…|v:1``, with 12 digits of the sha256.

    Parameters as :func:`import_scores`; raise a :class:`ConfigError` if one is empty, or contains a line break or a bar, which
    separates the parts.
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
    """Read recorded scores of a data set's responses, dialogues or both as table ``scores``.

    Missing scores are absent. Scores of systems of kind ``reference`` are dropped.

    Parameters
    ----------
    name
        The metric's name in the table; must differ from the metrics of this package.
    folder
        Folder with the data set's ``contexts``, ``responses`` and ``systems`` as Parquet.
    path, format
        The file of scores, in one of :data:`FORMATS`.
    origin, about
        For the signature: the file's origin (repository, commit and file, or the file's name, never a local path), and who
        computed the scores, and how.
    ratings
        Table ``ratings``, to log how many scored items were rated.

    Raises
    ------
    UnknownNameError
        If the format does not exist.
    FileError, SchemaError
        If the file does not have this format, or scores an unknown item or an item twice; gives the file and item.
    """
    folder, path = Path(folder), Path(path)
    if format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    tables = {name: schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses", "systems")}
    rated = Rated(**tables, ratings=schema.read(ratings, "ratings") if ratings else None)
    made_by = signature(path, format=format, origin=origin, about=about)
    scores, items = FORMATS[format](path, rated).reset_index(drop=True), rated.items()
    _check(scores, items, rated.dataset, path)
    of_references = scores["system_id"].isin(rated.references)
    kept = scores[~of_references & scores["value"].notna()]
    if kept.empty:
        expected = f"scores of {rated.dataset!r}"
        raise SchemaError("no score of a response that is evaluated", where=str(path), expected=expected)
    for level, what in (("turn", "responses"), ("dialogue", "dialogues")):
        of_level, given = kept[kept["level"] == level][_KEY].drop_duplicates(), scores["level"] == level
        count = (~items["system_id"].isin(rated.references) & (items["level"] == level)).sum()
        people = (
            None if rated.ratings is None else rated.ratings[rated.ratings["level"] == level][_KEY].drop_duplicates()
        )
        both = None if people is None or people.empty else len(of_level.merge(people))
        if given.any():
            log.info(
                "%s: scores of %d of the %d evaluated %s of %s%s; left out: %d %s of references, %d empty values",
                name, len(of_level), count, what, rated.dataset, "" if both is None else f", {both} of them rated",
                len(scores[given & of_references][_KEY].drop_duplicates()), what, scores[given]["value"].isna().sum(),
            )  # fmt: skip
        if both == 0 and len(of_level):
            log.warning("%s: none of the %d scored %s was rated as such", name, len(of_level), what)
    frame = kept.drop(columns="place").assign(dataset=rated.dataset, metric=name, signature=made_by)
    return schema.validate(frame, "scores", where=f"{path}, as table 'scores'")


def _check(scores: pd.DataFrame, items: pd.DataFrame, dataset: str, path: Path) -> None:
    """Reject a score that is not a number, or whose item is unknown, scored twice, or of the other level."""
    known = pd.MultiIndex.from_frame(scores[_KEY]).isin(pd.MultiIndex.from_frame(items))
    again = scores.duplicated([*_KEY, "output"])
    if (wrong := ~known | again).any():
        one = scores[wrong].iloc[0]
        kind, what = ("context", "response") if one["level"] == "turn" else ("dialogue", "dialogue")
        problem, expected = f"no such {what}", f"names of data set {dataset!r}'s {what}s"
        if known[one.name]:
            before = scores.merge(one[[*_KEY, "output"]].to_frame().T)["place"].iloc[0]
            problem, expected = f"output {one['output']!r} was scored in {before} already", "each once"
        named = f"{kind} {one['item_id']!r}, system {one['system_id']!r}: {problem}"
        raise SchemaError(named, where=f"{path}, {one['place']}", expected=expected)
    levels = scores.groupby("output")["level"].nunique()
    if (levels > 1).any():
        problem, expected = f"output {levels.idxmax()!r} is of turns and of dialogues", "one level for each output"
        raise SchemaError(problem, where=str(path), expected=expected, hint="Name them apart in the column `output`")


# The formats. Each returns one row per score; `place` is the item's name in messages ("item 3").


def _finite(path: Path, scores: pd.DataFrame) -> pd.DataFrame:
    """Return scores as numbers or NaN; reject anything else."""
    for place, value in zip(scores["place"], scores["value"], strict=True):
        if isinstance(value, str | bool) or not np.isscalar(value) or np.isinf(value):
            raise SchemaError(f"the score is {value!r}", where=f"{path}, {place}", expected="a finite number")
    return scores.astype({"value": "float64"})


# Columns that identify the scored item, and its possible levels.
_ITEMS = {"context_id": ("turn",), "dialogue_id": ("dialogue",), "item_id": ("turn", "dialogue")}
_NEEDED = ("system_id", "value")
_KNOWN = (*_ITEMS, *_NEEDED, "dataset", "level", "metric", "output", "signature", "cut")


def _table(path: Path, rated: Rated) -> pd.DataFrame:
    """Read a table with one row per score, such as ``comperdial score`` writes, in any format of :func:`read_file`.

    ``context_id`` identifies a turn, ``dialogue_id`` a dialogue, ``item_id`` either, by a column ``level`` (default: turn).
    Other optional columns: ``output`` (default: ``score``), ``cut``, and ``dataset``, which must match. An empty value means no
    score. The column ``metric`` is ignored.
    """
    content = check_columns(read_file(path).frame, _KNOWN, path).reset_index(drop=True)
    items = [column for column in _ITEMS if column in content] or ["context_id"]
    if len(items) > 1:
        problem = f"columns {' and '.join(map(repr, items))}"
        raise SchemaError(problem, where=str(path), expected="one of " + ", ".join(_ITEMS))
    item, *_ = needed = (items[0], *_NEEDED)
    if missing := [column for column in needed if column not in content]:
        expected = f"at least {', '.join(needed)}; dialogues are named by dialogue_id"
        raise SchemaError(f"no column {', '.join(map(repr, missing))}", where=str(path), expected=expected)
    for column, known in (("dataset", (rated.dataset,)), ("level", _ITEMS[item])):
        for record, cell in enumerate(content.get(column, ()), start=1):
            if cell not in known:
                problem = f"column {column!r} holds {cell!r}"
                expected = " or ".join(map(repr, known)) + ", or no such column"
                raise SchemaError(problem, where=f"{path}, record {record}", expected=expected)
    if "metric" in content and content["metric"].nunique() > 1:
        names = ", ".join(map(repr, content["metric"].unique()))
        raise SchemaError(f"column 'metric' holds {names}", where=str(path), expected="the scores of one metric a file")
    columns = {
        "place": "record " + (content.index + 1).astype(str),
        "level": content.get("level", _ITEMS[item][0]),
        "item_id": content[item].map(plain_name).map(str),
        "system_id": content["system_id"].map(plain_name).map(str),
        "output": content["output"].map(str) if "output" in content else "score",
        "value": _numbers(content["value"]),
        "cut": _numbers(content["cut"]) if "cut" in content else 0,
    }
    return _finite(path, pd.DataFrame(columns, index=content.index))


def _numbers(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Parse a numeric column, possibly text; empty cells become NaN, and invalid ones stay."""
    empty, numbers = cells.map(is_missing).astype(bool), pd.to_numeric(cells, errors="coerce")
    return cells.astype(object).where(numbers.isna() & ~empty, numbers.astype(object))


def _unieval(path: Path, rated: Rated) -> pd.DataFrame:
    """Read the scores of UniEval's authors for USR-TopicalChat (Zhong et al. 2022): ``predict_scores`` of each item."""
    rows = [
        (f"item {item.number}", "turn", item.context_id, item.system_id, output, score)
        for item in read_items(path, rated)
        for output, score in get(item.content, "predict_scores", dict, item.where).items()
    ]
    columns = ["place", *_KEY, "output", "value"]
    return _finite(path, pd.DataFrame(rows, columns=columns, dtype=object).assign(cut=0))


def _face(path: Path, rated: Rated) -> pd.DataFrame:
    """Read the scores of FACE's authors for CRSArena-Eval (Joko and Hasibi 2026): the same dialogues in the same order."""
    records, rows = read_json(path), []
    if (count := rated.contexts["dialogue_id"].nunique()) != len(records):
        problem = f"{len(records)} dialogues, of which sessions cannot be numbered as in {rated.dataset!r}"
        raise SchemaError(problem, where=str(path), expected=f"its {count}, in the same order")
    names = face.dialogue_names(rated.dataset, records, path)
    for number, (record, (dialogue_id, system)) in enumerate(zip(records, names, strict=True)):
        where = f"{path}, item {number}"
        scored = [("dialogue", dialogue_id, get(record, "dial_level_pred", dict, where))]
        for turn in get(record, "turns", list, where):
            name = face.context_id(dialogue_id, get(turn, "turn_ind", int, where))
            scored.append(("turn", name, get(turn, "turn_level_pred", dict, where)))
        rows += [
            (f"item {number}", level, name, system, output, score)
            for level, name, scores in scored
            for output, score in scores.items()
        ]
    columns = ["place", *_KEY, "output", "value"]
    return _finite(path, pd.DataFrame(rows, columns=columns, dtype=object).assign(cut=0))


FORMATS: Mapping[str, Callable[[Path, Rated], pd.DataFrame]] = {"table": _table, "unieval": _unieval, "face": _face}
"""Formats of files of scores, by the name that ``recorded`` in ``params.yaml`` gives them."""


class Item(NamedTuple):
    """An item in UniEval's format, with the response that it scores; ``where`` names it in messages."""

    number: int
    content: dict[str, Any]
    context_id: str
    system_id: str
    where: str


def read_items(path: Path, rated: Rated) -> Iterator[Item]:
    """Read a JSON list of ``{source, system_id, system_output, …}``, and match each item to its response.

    ``source`` is the dialogue before the response, one utterance per line. Items match by dialogue, system and text, whatever
    their order.

    Raises
    ------
    SchemaError
        If the file is not such a list, or an item matches no response or several.
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
    for place, item in enumerate(items):
        where = f"{path}, item {place}"
        lines = _lines(get(item, "source", str, where))
        system, text = (get(item, field, str, where).strip() for field in ("system_id", "system_output"))
        fitting = known.get((lines, system, text), [])
        if len(fitting) != 1:
            count = f"{len(fitting)} responses" if fitting else "no response"
            problem = f"{count} of {rated.dataset!r} by {system!r} with this dialogue and text: {shown(text)}"
            raise SchemaError(
                problem, where=where, expected="exactly one", hint=f"The dialogue ends in {shown(lines[-1])}"
            )
        yield Item(place, item, fitting[0], system, where)


def _lines(dialogue: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in dialogue.strip().split("\n"))
