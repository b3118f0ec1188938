"""Scores computed elsewhere, taken as they are, with where they come from."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.core.files import sha256
from comperdial.data.recorded import find
from comperdial.data.recorded.base import COLUMNS, Rated

log = logging.getLogger(__name__)


def signature(path: str | Path, *, format: str, origin: str, about: str) -> str:
    """Return where scores come from: ``recorded|format:…|from:…|sha256:…|about:…|v:1``.

    Parameters
    ----------
    path
        The file; twelve digits of its sha256 stand in the signature.
    format, origin, about
        As in :func:`import_scores`.

    Raises
    ------
    ConfigError
        When a part is empty, or holds a line break or the bar that parts the signature.
    """
    for part, text in (("origin", origin), ("about", about)):
        if not text.strip() or set(text) & set("|\n\r"):
            raise ConfigError(f"`{part}` of recorded scores is {text!r}", expected="one line of text without a bar (|)")
    parts = [f"format:{format}", f"from:{origin}", f"sha256:{sha256(path)[:12]}", f"about:{about}"]
    return "|".join(["recorded", *parts, f"v:{find(format).version}"])


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
    """Read recorded scores of a data set's responses, of its dialogues, or of both.

    Parameters
    ----------
    name
        What to call the metric in the table: never the name under which this package computes one.
    folder
        The data set's ``contexts``, ``responses`` and ``systems`` as Parquet. What is recorded of systems of kind
        ``reference`` is left out: they are what the others are held against.
    path
        The file of scores.
    format
        How it is laid out: one of :func:`comperdial.data.recorded.formats`.
    origin
        Where it comes from, for the signature: repository, commit and file, or the file's name. Never a machine's path.
    about
        Who computed the scores, with what; for the signature.
    ratings
        Table ``ratings``, to say how much of what is scored was rated, and to check the join where the file holds ratings
        too.

    Returns
    -------
    DataFrame
        Table ``scores``; what has no recorded score is absent.

    Raises
    ------
    FileError, SchemaError
        When the file is not what its format says, scores something that is in no table, scores it twice, or says
        otherwise about the ratings: names file and item.
    """
    folder, path = Path(folder), Path(path)
    rated = Rated(
        contexts=schema.read(folder / "contexts.parquet", "contexts"),
        responses=schema.read(folder / "responses.parquet", "responses"),
        systems=schema.read(folder / "systems.parquet", "systems"),
        ratings=schema.read(ratings, "ratings") if ratings else None,
    )
    if lost := set(rated.responses["context_id"]) - set(rated.contexts["context_id"]):
        raise SchemaError(
            f"responses name context_id {min(lost)!r}, which is in no table", where=str(folder / "responses.parquet")
        )
    made_by = signature(path, format=format, origin=origin, about=about)
    found = find(format)(path, rated).read()
    _check_items(found, rated, path)
    _check_levels(found, path)
    is_reference = found["system_id"].isin(rated.references)
    has_value = found["value"].notna()
    kept = found[~is_reference & has_value]
    if kept.empty:
        raise SchemaError(
            "no score of a response that is evaluated", where=str(path), expected=f"scores of {rated.dataset!r}"
        )
    frame = pd.DataFrame(
        {
            "dataset": rated.dataset,
            "level": kept["level"],
            "item_id": kept["item_id"],
            "system_id": kept["system_id"],
            "metric": name,
            "output": kept["output"],
            "value": kept["value"],
            "cut": kept["cut"],
            "signature": made_by,
        }
    )
    for level, scored in found.groupby("level", sort=False):
        _report(name, scored, str(level), rated)
    return schema.validate(frame, "scores", where=f"{path}, as table 'scores'")


def _report(name: str, found: pd.DataFrame, level: str, rated: Rated) -> None:
    """Say how much of a level is scored and rated, and what was left out."""
    what = "responses" if level == "turn" else "dialogues"
    is_reference = found["system_id"].isin(rated.references)
    empty = found["value"].isna()
    scored = set(_items(found[~is_reference & ~empty]))
    known = rated.rated_items(level)
    counted = "" if known is None else f", {len(scored & known)} of them rated"
    log.info(
        "%s: scores of %d of the %d evaluated %s of %s%s; left out: %d %s of references, %d empty values",
        name,
        len(scored),
        sum(system not in rated.references for _, system in rated.items(level)),
        what,
        rated.dataset,
        counted,
        len(set(_items(found[is_reference]))),
        what,
        int(empty.sum()),
    )
    if scored and known is not None and not scored & known:
        log.warning("%s: none of the %d scored %s was rated as such", name, len(scored), what)


def _items(found: pd.DataFrame) -> Iterator[tuple[str, str]]:
    return zip(found["item_id"], found["system_id"], strict=True)


def _check_levels(found: pd.DataFrame, path: Path) -> None:
    """Refuse an output of two levels: the evaluation would not know which of the two a dialogue's score is."""
    levels = found.groupby("output", sort=False)["level"].nunique()
    if (levels > 1).any():
        raise SchemaError(
            f"output {levels.idxmax()!r} is of turns and of dialogues",
            where=str(path),
            expected="one level for each output",
            hint="Name them apart in the column `output`",
        )


def _check_items(found: pd.DataFrame, rated: Rated, path: Path) -> None:
    """Raise :class:`SchemaError` for the first item that nobody said, has no number as a value, or is given twice."""
    known = {level: rated.items(level) for level in found["level"].unique()}
    named = {"turn": ("context", "response"), "dialogue": ("dialogue", "dialogue")}
    seen: dict[tuple[str, str, str, str], str] = {}
    for place, level, item, system, output, value in found[[*COLUMNS]].itertuples(index=False, name=None):
        kind, what = named[level]
        where, name = f"{path}, {place}", f"{kind} {item!r}, system {system!r}"
        if (item, system) not in known[level]:
            raise SchemaError(
                f"{name}: no such {what}", where=where, expected=f"names of data set {rated.dataset!r}'s {what}s"
            )
        if math.isinf(value):
            raise SchemaError(f"the score is {value!r}", where=where, expected="a finite number")
        first = seen.setdefault((level, item, system, output), place)
        if first != place:
            raise SchemaError(
                f"{name}, output {output!r} was scored in {first} already", where=where, expected="each once"
            )
