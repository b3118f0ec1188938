"""gpt-3.5-turbo's answers on USR-TopicalChat, by Chiang and Lee 2023 (A Closer Look into Automatic Evaluation)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.data.readers.base import get
from comperdial.data.recorded import DIMENSIONS, Rated, read_items
from comperdial.judges.recorded import AnswerFormat, Row, frame

# What a prompt is given, in the order in which it stands there.
_PARTS = ("source", "context", "system_output")


class Chiang2023(AnswerFormat):
    """Files ``gpt3.5_<quality>_<prompt>.json``, one a quality: items in UniEval's form with two fields more.

    ``prompt`` is the text that was sent, and ``all_responses`` the 20 answers to it. An item is of the response that
    has the same dialogue, system and text; a file may lack items. Where two systems gave the same response in a
    context, the prompts are the same too: the answers for the second are the samples after those for the first.

    The scale is the prompts': 1 to 3, and 0 to 1 for groundedness.
    """

    dimensions: ClassVar[Mapping[str, tuple[float, float]]] = {
        "naturalness": (1, 3),
        "coherence": (1, 3),
        "engagingness": (1, 3),
        "groundedness": (0, 1),
    }
    files: ClassVar[tuple[str, ...]] = tuple(dimensions)
    samples: ClassVar[int] = 20
    words: ClassVar[Mapping[str, Mapping[str, float]]] = {
        "naturalness": {"bad": 1, "ok": 2, "good": 3},
        "coherence": {"no": 1, "somewhat": 2, "yes": 3},
        "engagingness": {"dull": 1, "somewhat interesting": 2, "interesting": 3},
        "groundedness": {"no": 0, "yes": 1},
    }
    targets: ClassVar[Mapping[str, str]] = DIMENSIONS

    def read(self, rated: Rated | None) -> pd.DataFrame:
        """Return the answers, file by file.

        Raises
        ------
        SchemaError
            When an item is of no response, has another number of answers, or was asked with another prompt than the
            items before it.
        """
        if rated is None:
            raise SchemaError("no tables to join the items to", expected="the tables of USR-TopicalChat")
        rows: list[Row] = []
        for dimension, path in self.paths.items():
            known = ""
            asked: dict[str, int] = {}
            for item in read_items(path, rated):
                prompt = get(item.content, "prompt", str, item.where)
                template = _template(prompt, item.content, item.where)
                if template != (known := known or template):
                    raise SchemaError(
                        "the prompt is not that of the items before it", where=item.where, expected="one prompt a file"
                    )
                first = asked.get(prompt, 0)
                asked[prompt] = first + self.samples
                of = (f"{dimension}, item {item.number}", item.context_id, item.system_id, dimension)
                answers = self._answers(item.content, item.where)
                rows += [(*of, first + number, answer) for number, answer in enumerate(answers)]
        return frame(rows)

    def owners_reading(self, answer: str) -> float | None:
        """Return the first digit after the last "rating:": this gives the published correlations to 0.001.

        It takes 0 of 0.5, 2 of 2.5 and the number of a list's item for a rating: see docs/judges.md.
        """
        found = re.search(r"\d", answer.lower().replace("1-3", " ").rpartition("rating:")[2])
        return float(found[0]) if found else None

    def _answers(self, item: dict[str, Any], where: str) -> list[str]:
        answers = get(item, "all_responses", list, where)
        if len(answers) != self.samples or not all(isinstance(answer, str) for answer in answers):
            raise SchemaError(
                f"`all_responses` holds {len(answers)} entries", where=where, expected=f"{self.samples} texts"
            )
        return answers


def _template(prompt: str, item: dict[str, Any], where: str) -> str:
    """Return a prompt with its parts taken out."""
    made, at = "", 0
    for part in _PARTS:
        text = get(item, part, str, where).strip()
        start = prompt.find(text, at) if text else -1
        if start < 0:
            raise SchemaError(f"the prompt does not hold {part!r}", where=where, expected=", then ".join(_PARTS))
        made += f"{prompt[at:start].strip()}\n{{{part}}}\n"
        at = start + len(text)
    return made + prompt[at:].strip()
