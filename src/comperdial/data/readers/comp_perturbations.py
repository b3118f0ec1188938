"""The recorded perturbations of Zhang et al. 2024 (AAAI): pairs of an original and a version made worse.

What the files do not say is taken as ``docs/llm-evaluators.md`` explains.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from comperdial import schema
from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.files import read_json
from comperdial.data.readers._comp import (
    CHATBOT,
    PERSON,
    History,
    Line,
    Utterance,
    alternating,
    as_history,
    chatbot_turns,
    context_row,
    labelled,
    numbered,
    plain,
    read_lines,
    system_row,
    trailing_number,
)
from comperdial.data.readers.base import Reader, Tables
from comperdial.schema.evaluated import ORIGINAL, PERTURBED

log = logging.getLogger(__name__)

# Each has two files of the same lines, NAME_original and NAME: context and response.
TURN = (
    "random_response", "pronouns", "entities", "contradiction", "repetition", "paraphrase", "dullness", "speaker",
    "entrainment",
)  # fmt: skip
# The same, but whole dialogues.
PAIRED = ("self_contradiction",)
_LABELS = {"human": PERSON, "model": CHATBOT, "chatbot": CHATBOT}


def _is_reordered(texts: Sequence[str], originals: Sequence[str]) -> bool:
    return sorted(texts) == sorted(originals)


def _has_replaced(texts: Sequence[str], originals: Sequence[str], at_most: int) -> bool:
    return len(texts) == len(originals) and sum(a != b for a, b in zip(texts, originals, strict=True)) <= at_most


def _is_duplicated(texts: Sequence[str], originals: Sequence[str]) -> bool:
    return (
        len(texts) == len(originals)
        and texts[::2] == originals[::2]
        and all(text.startswith(first) for text, first in zip(texts[1::2], originals[1::2], strict=True))
    )


class _Made(NamedTuple):
    """How dialogues were made of the originals: what their texts must keep, and whether in rounds of all originals."""

    keeps: Callable[[Sequence[str], Sequence[str]], bool] | None = None
    rounds: bool = False


# Made of the list of dialogues ``originals``: N lines of each after another, or (``rounds``) each once, N times over.
# What ChatGPT rewrote keeps nothing that could be checked but the original's number in the id.
MADE: Mapping[str, _Made] = {
    "order_shuffle": _Made(_is_reordered),
    "utterance_replacement": _Made(partial(_has_replaced, at_most=1)),
    "two_utterances": _Made(partial(_has_replaced, at_most=2)),
    "three_utterances": _Made(partial(_has_replaced, at_most=3)),
    "duplication": _Made(_is_duplicated, rounds=True),
    "repeating_others": _Made(),
    "generic_utterances": _Made(),
    "content_reduction": _Made(),
}
_Turns = list[tuple[int, History, str]]
_Pair = tuple[_Turns, _Turns]


class CompPerturbations(Reader):
    """Reader of recorded pairs, as one data set without ratings.

    Files: for each perturbation of :data:`TURN` and :data:`PAIRED` ``NAME`` and ``NAME_original``, line by line; for
    each of :data:`MADE` ``NAME``, and for all of them ``originals``.
    """

    def read(self) -> Tables:
        """Return systems, contexts, responses, and the other tables without rows."""
        names = (*TURN, *PAIRED, *MADE)
        known = {*names, "originals", *(f"{name}_original" for name in (*TURN, *PAIRED))}
        for role in self.files:
            if role not in known:
                raise UnknownNameError("file of perturbations", role, known)
        contexts, responses = [], []
        for name in names:
            if name not in self.files:
                continue
            counts: Counter[str] = Counter()
            for number, pair in enumerate(self._pairs(name, counts)):
                counts["pairs"] += 1
                counts["equal"] += pair[0] == pair[1]
                dialogue_id = numbered(name, number)
                for system, turns in zip((ORIGINAL, PERTURBED), pair, strict=True):
                    if not turns:
                        raise SchemaError(
                            f"nothing to score in pair {number}, {system}",
                            where=str(self.files[name]),
                            expected="a text by the speaker that is evaluated",
                        )
                    for turn, history, response in turns:
                        context_id = f"{dialogue_id}-{system}-{turn}"
                        contexts.append(context_row(context_id, dialogue_id, turn, history))
                        responses.append({"context_id": context_id, "system_id": system, "response": response})
            log.info(
                "%s, %s: %d pairs, %d of them equal up to the last turn; rejoined: %d responses; left out: %d turns "
                "without text",
                self.dataset, name, counts["pairs"], counts["equal"], counts["rejoined"], counts["silent"],
            )  # fmt: skip
        path = next(iter(self.files.values()))
        return {
            "systems": self.frame("systems", (system_row(name) for name in (ORIGINAL, PERTURBED)), path),
            "contexts": self.frame("contexts", contexts, path),
            "personas": schema.empty("personas"),
            "responses": self.frame("responses", responses, path),
            "ratings": schema.empty("ratings"),
        }

    def _pairs(self, name: str, counts: Counter[str]) -> Iterator[_Pair]:
        """Yield the turns to score of both versions of each pair."""
        lines = read_lines(self.files[name])
        if name in MADE:
            yield from self._of_originals(name, lines, counts)
            return
        others = self._lines_of(f"{name}_original", name)
        if len(others) != len(lines):
            raise SchemaError(
                f"{len(lines)} lines", where=str(self.files[name]), expected=f"{len(others)}, as in the originals"
            )
        for original, perturbed in zip(others, lines, strict=True):
            if name in TURN:
                yield _responses(original, perturbed, counts)
            else:
                yield _extended(original, perturbed, counts)

    def _lines_of(self, role: str, name: str) -> list[Line]:
        if role not in self.files:
            raise SchemaError(f"no file {role!r}", where=str(self.files[name]), expected="the originals of these lines")
        return read_lines(self.files[role])

    @cached_property
    def _originals(self) -> list[list[str]]:
        path = self.files.get("originals")
        if path is None:
            raise SchemaError("no file 'originals'", where=self.dataset, expected="the dialogues that were perturbed")
        content = read_json(path)
        good = isinstance(content, list) and all(
            isinstance(d, list) and d and all(isinstance(text, str) and text.strip() for text in d) for d in content
        )
        if not good or not content:
            raise SchemaError("no dialogues", where=str(path), expected="a JSON list of lists of texts")
        return [[text.strip() for text in dialogue] for dialogue in content]

    def _of_originals(self, name: str, lines: list[Line], counts: Counter[str]) -> Iterator[_Pair]:
        """Join lines with the dialogues they were made of: by their order, and their texts or ids must say the same."""
        made, count = MADE[name], len(self._originals)
        if len(lines) % count:
            raise SchemaError(f"{len(lines)} lines", where=str(self.files[name]), expected=f"a multiple of {count}")
        for place, line in enumerate(lines):
            number = place % count if made.rounds else place // (len(lines) // count)
            original, dialogue = self._originals[number], labelled(line, _LABELS)
            # The ids of what was made in rounds are all the same: of no use.
            if not made.rounds and trailing_number(line.name) != number:
                raise SchemaError(f"the id is {line.name!r}", where=line.where, expected=f"one of original {number}")
            if made.keeps and not made.keeps([plain(text) for _, text in dialogue], [plain(text) for text in original]):
                raise SchemaError(
                    f"the texts are not made by {name}", where=line.where, expected=f"of original {number}"
                )
            said = [((PERSON, CHATBOT)[turn % 2], text) for turn, text in enumerate(original)]
            yield _turns(said, counts), _turns(dialogue, counts)


def _responses(original: Line, perturbed: Line, counts: Counter[str]) -> _Pair:
    """Return a pair of responses: the same context, another last utterance."""
    *context, response = original.fields
    # Some inserted entities hold a tab, so that the response is in two fields.
    other = " ".join(perturbed.fields[len(context) :])
    if list(perturbed.fields[: len(context)]) != context or not other or not response:
        raise SchemaError(
            "another context, or no response", where=perturbed.where, expected=f"the context of {original.where}"
        )
    counts["rejoined"] += len(perturbed.fields) - len(original.fields)
    turn, history = len(context) // 2, as_history(alternating(context, PERSON))
    return [(turn, history, response)], [(turn, history, other)]


def _extended(original: Line, perturbed: Line, counts: Counter[str]) -> _Pair:
    """Return a pair of dialogues of which one goes on; who speaks last there contradicts what they said, so is B."""
    before, after = labelled(original, _LABELS), labelled(perturbed, _LABELS)
    if after[: len(before)] != before or len(after) != len(before) + 2 or after[-1][0] == after[-2][0]:
        raise SchemaError(
            "the original does not go on by two utterances",
            where=perturbed.where,
            expected=f"{original.where} and two more",
        )
    last = after[-1][0]
    first, second = ([(CHATBOT if who == last else PERSON, text) for who, text in said] for said in (before, after))
    return _turns(first, counts), _turns(second, counts)


def _turns(dialogue: Sequence[Utterance], counts: Counter[str]) -> _Turns:
    """Return the chatbot's turns, and count those without a text."""
    turns = list(chatbot_turns(dialogue))
    counts["silent"] += sum(speaker == CHATBOT for speaker, _ in dialogue) - len(turns)
    return turns
