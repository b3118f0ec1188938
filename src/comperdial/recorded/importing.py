"""Scores computed elsewhere, taken as they are, with where they come from."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.errors import ConfigError, SchemaError
from comperdial.files import sha256
from comperdial.recorded import find
from comperdial.recorded.base import COLUMNS, Rated

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
    """Read recorded scores of a data set's responses.

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
        How it is laid out: one of :func:`comperdial.recorded.formats`.
    origin
        Where it comes from, for the signature: repository, commit and file, or the file's name. Never a machine's path.
    about
        Who computed the scores, with what; for the signature.
    ratings
        Table ``turn_ratings``, to check the join where the file holds ratings too.

    Returns
    -------
    DataFrame
        Table ``scores``, turn level; responses without a recorded score are absent.

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
        ratings=schema.read(ratings, "turn_ratings") if ratings else None,
    )
    if lost := set(rated.responses["context_id"]) - set(rated.contexts["context_id"]):
        raise SchemaError(
            f"responses name context_id {min(lost)!r}, which is in no table", where=str(folder / "responses.parquet")
        )
    made_by = signature(path, format=format, origin=origin, about=about)
    found = find(format)(path, rated).read()
    _check_items(found, rated, path)
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
            "level": "turn",
            "item_id": kept["context_id"],
            "system_id": kept["system_id"],
            "metric": name,
            "output": kept["output"],
            "value": kept["value"],
            "cut": kept["cut"],
            "signature": made_by,
        }
    )
    item = ["context_id", "system_id"]
    log.info(
        "%s: scores of %d of the %d evaluated responses of %s; left out: %d responses of references, %d empty values",
        name,
        len(kept.drop_duplicates(item)),
        int((~rated.responses["system_id"].isin(rated.references)).sum()),
        rated.dataset,
        len(found[is_reference].drop_duplicates(item)),
        int((~has_value).sum()),
    )
    return schema.validate(frame, "scores", where=f"{path}, as table 'scores'")


def _check_items(found: pd.DataFrame, rated: Rated, path: Path) -> None:
    """Raise :class:`SchemaError` for the first item of no response, with a value that is no number, or given twice."""
    known = set(zip(rated.responses["context_id"], rated.responses["system_id"], strict=True))
    seen: dict[tuple[str, str, str], str] = {}
    for place, context, system, output, value in found[[*COLUMNS]].itertuples(index=False, name=None):
        where, item = f"{path}, {place}", f"context {context!r}, system {system!r}"
        if (context, system) not in known:
            raise SchemaError(
                f"{item}: no such response", where=where, expected=f"names of data set {rated.dataset!r}'s responses"
            )
        if math.isinf(value):
            raise SchemaError(f"the score is {value!r}", where=where, expected="a finite number")
        first = seen.setdefault((context, system, output), place)
        if first != place:
            raise SchemaError(
                f"{item}, output {output!r} was scored in {first} already", where=where, expected="each once"
            )
