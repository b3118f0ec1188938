"""Items of files in UniEval's form, joined to the responses of a data set by dialogue, system and text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.files import read_json
from comperdial.data.readers.base import get
from comperdial.data.recorded.base import Rated

# UniEval's names of the dimensions that people rated, and USR's.
DIMENSIONS = {
    "naturalness": "Natural",
    "coherence": "Maintains Context",
    "engagingness": "Engaging",
    "groundedness": "Uses Knowledge",
    "understandability": "Understandable",
    "overall": "Overall",
}
# The files have ten digits of a mean.
_TOLERANCE = 1e-6

_Text = tuple[tuple[str, ...], str, str]
Means = dict[tuple[str, str, str], float]


class Item(NamedTuple):
    """One item of a file, with the response that it is of; ``where`` names it in messages."""

    number: int
    content: dict[str, Any]
    context_id: str
    system_id: str
    where: str


def read_items(path: Path, rated: Rated) -> Iterator[Item]:
    """Read a JSON list of items, and find the response of each: the place in the list does not count.

    Raises
    ------
    SchemaError
        When the file is no such list, an item is of no response or of several, or its human ``scores`` are not what the
        data set's own ratings give.
    """
    items = read_json(path)
    if not isinstance(items, list) or not items:
        raise SchemaError("no list of items", where=str(path), expected="a JSON list of scored responses")
    known = _responses(rated)
    means = human_means(rated)
    for number, item in enumerate(items):
        where = f"{path}, item {number}"
        context_id, system_id = _match(item, known, rated.dataset, where)
        if means is not None:
            _check_means(get(item, "scores", dict, where), means, (context_id, system_id), where)
        yield Item(number, item, context_id, system_id, where)


def human_means(rated: Rated) -> Means | None:
    """Return people's mean rating by context, system and dimension; None without ratings."""
    if rated.ratings is None:
        return None
    human = rated.ratings[(rated.ratings["source"] == "human") & (rated.ratings["level"] == "turn")]
    if human.empty:
        return None
    means: Any = human.groupby(["item_id", "system_id", "dimension"])["rating"].mean().to_dict()
    return cast(Means, means)


def finite(scores: dict[str, Any], name: str, where: str) -> float:
    """Return a score by name, or raise :class:`SchemaError`."""
    value = scores[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SchemaError(f"the score of {name!r} is {value!r}", where=where, expected="a finite number")
    return float(value)


def _responses(rated: Rated) -> dict[_Text, list[str]]:
    """Map dialogue, system and text of each response to the contexts where it was given."""
    contexts: pd.Series[Any] = rated.contexts.set_index("context_id")["history"]
    histories = {key: _lines("\n".join(said["text"] for said in history)) for key, history in contexts.items()}
    found: dict[_Text, list[str]] = {}
    rows = rated.responses[["context_id", "system_id", "response"]]
    for context_id, system_id, response in rows.itertuples(index=False, name=None):
        found.setdefault((histories[context_id], system_id, response.strip()), []).append(context_id)
    return found


def _match(item: Any, known: dict[_Text, list[str]], dataset: str, where: str) -> tuple[str, str]:  # noqa: ANN401
    lines = _lines(get(item, "source", str, where))
    system, text = (get(item, field, str, where).strip() for field in ("system_id", "system_output"))
    contexts = known.get((lines, system, text), [])
    if len(contexts) != 1:
        count = f"{len(contexts)} responses" if contexts else "no response"
        raise SchemaError(
            f"{count} of {dataset!r} by {system!r} with this dialogue and text: {_short(text)}",
            where=where,
            expected="exactly one",
            hint=f"The dialogue ends in {_short(lines[-1])}",
        )
    return contexts[0], system


def _check_means(scores: dict[str, Any], means: Means, item: tuple[str, str], where: str) -> None:
    """Hold the human scores of an item against the means of our ratings."""
    if not scores:
        raise SchemaError("`scores` is of nothing", where=where, expected=", ".join(DIMENSIONS))
    for name in scores:
        if name not in DIMENSIONS:
            raise UnknownNameError("dimension", name, DIMENSIONS, where=where)
        theirs = finite(scores, name, where)
        ours = means.get((*item, DIMENSIONS[name]), math.nan)
        if not abs(theirs - ours) <= _TOLERANCE:
            raise SchemaError(
                f"the human score of {name!r} is {theirs:.6g}",
                where=where,
                expected=f"{ours:.6g}, which is our mean of {DIMENSIONS[name]!r} of {item[0]!r}, {item[1]!r}",
            )


def _lines(dialogue: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in dialogue.strip().split("\n"))


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
