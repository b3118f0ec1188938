"""The file in which UniEval's authors keep what their evaluator gave for USR-TopicalChat (Zhong et al. 2022)."""

from __future__ import annotations

import logging
import math
from typing import Any, cast

import pandas as pd

from comperdial.datasets.base import get
from comperdial.errors import SchemaError, UnknownNameError
from comperdial.files import read_json
from comperdial.recorded.base import Format, Row, frame

log = logging.getLogger(__name__)

MAIN = "overall"
# UniEval's names of the dimensions that people rated, and USR's.
DIMENSIONS = {
    "naturalness": "Natural",
    "coherence": "Maintains Context",
    "engagingness": "Engaging",
    "groundedness": "Uses Knowledge",
    "understandability": "Understandable",
    MAIN: "Overall",
}
# The file has ten digits of a mean.
_TOLERANCE = 1e-6

_Text = tuple[tuple[str, ...], str, str]
_Means = dict[tuple[str, str, str], float]


class UniEval(Format):
    """A JSON list of ``{source, system_id, system_output, context, scores, predict_scores}``.

    ``source`` is the dialogue before the response, an utterance a line; ``context`` is the fact, which is not needed.
    An item is of the response that has the same dialogue, system and text: its place in the list does not count. Its
    ``scores`` are means of the human ratings, and must be what the data set's own ratings give. ``predict_scores`` are
    the evaluator's: one output a dimension.
    """

    def read(self) -> pd.DataFrame:
        """Return the ``predict_scores``, overall first, named by item (counted from 0)."""
        items = read_json(self.path)
        if not isinstance(items, list) or not items:
            raise SchemaError("no list of items", where=str(self.path), expected="a JSON list of scored responses")
        known = self._responses()
        means = self._means()
        rows: list[Row] = []
        outputs: list[str] = []
        for number, item in enumerate(items):
            where = f"{self.path}, item {number}"
            context_id, system_id = self._match(item, known, where)
            if means is not None:
                self._check_means(get(item, "scores", dict, where), means, (context_id, system_id), where)
            scores = get(item, "predict_scores", dict, where)
            outputs = outputs or sorted(scores, key=lambda output: output != MAIN)
            if not scores or set(scores) != set(outputs):
                expected = ", ".join(outputs or DIMENSIONS)
                raise SchemaError(
                    f"`predict_scores` is of {', '.join(scores) or 'nothing'}", where=where, expected=expected
                )
            rows += [
                (f"item {number}", context_id, system_id, output, _finite(scores, output, where)) for output in outputs
            ]
        return frame(rows)

    def _responses(self) -> dict[_Text, list[str]]:
        """Map dialogue, system and text of each response to the contexts where it was given."""
        contexts = self.rated.contexts.set_index("context_id")["history"]
        histories = {key: _lines("\n".join(said["text"] for said in history)) for key, history in contexts.items()}
        found: dict[_Text, list[str]] = {}
        rows = self.rated.responses[["context_id", "system_id", "response"]]
        for context_id, system_id, response in rows.itertuples(index=False, name=None):
            found.setdefault((histories[context_id], system_id, response.strip()), []).append(context_id)
        return found

    def _match(self, item: Any, known: dict[_Text, list[str]], where: str) -> tuple[str, str]:  # noqa: ANN401
        lines = _lines(get(item, "source", str, where))
        system, text = (get(item, field, str, where).strip() for field in ("system_id", "system_output"))
        contexts = known.get((lines, system, text), [])
        if len(contexts) != 1:
            count = f"{len(contexts)} responses" if contexts else "no response"
            raise SchemaError(
                f"{count} of {self.rated.dataset!r} by {system!r} with this dialogue and text: {_short(text)}",
                where=where,
                expected="exactly one",
                hint=f"The dialogue ends in {_short(lines[-1])}",
            )
        return contexts[0], system

    def _means(self) -> _Means | None:
        ratings = self.rated.ratings
        human = None if ratings is None else ratings[ratings["source"] == "human"]
        if human is None or human.empty:
            log.warning("%s: no human ratings of %s to check the items with", self.path.name, self.rated.dataset)
            return None
        means: Any = human.groupby(["context_id", "system_id", "dimension"])["rating"].mean().to_dict()
        return cast(_Means, means)

    def _check_means(self, scores: dict[str, Any], means: _Means, item: tuple[str, str], where: str) -> None:
        """Hold the human scores of an item against the means of our ratings."""
        if not scores:
            raise SchemaError("`scores` is of nothing", where=where, expected=", ".join(DIMENSIONS))
        for name in scores:
            if name not in DIMENSIONS:
                raise UnknownNameError("dimension", name, DIMENSIONS, where=where)
            theirs = _finite(scores, name, where)
            ours = means.get((*item, DIMENSIONS[name]), math.nan)
            if not abs(theirs - ours) <= _TOLERANCE:
                raise SchemaError(
                    f"the human score of {name!r} is {theirs:.6g}",
                    where=where,
                    expected=f"{ours:.6g}, which is our mean of {DIMENSIONS[name]!r} of {item[0]!r}, {item[1]!r}",
                )


def _finite(scores: dict[str, Any], name: str, where: str) -> float:
    value = scores[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SchemaError(f"the score of {name!r} is {value!r}", where=where, expected="a finite number")
    return float(value)


def _lines(dialogue: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in dialogue.strip().split("\n"))


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
