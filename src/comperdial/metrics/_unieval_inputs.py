"""UniEval's questions about a response, the form of its inputs, and how they are truncated.

The questions and field names are part of the metric's definition and are copied as data from Zhong et al. 2022,
*Towards a Unified Multi-Dimensional Evaluator for Text Generation*, and its published code (maszhongming/UniEval,
``utils.py``; the form of history and fact: its README and ``reproduce/data/dialogue/topical_chat.json``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from comperdial.metrics.base import Utterance

_CHUNK = 512


@dataclass(frozen=True)
class Dimension:
    """A question about a response, and the fields of its input."""

    question: str
    history: bool = False
    fact: bool = False
    by_sentence: bool = False
    """Asked of each sentence of the response; the answers are summed."""


DIMENSIONS = {
    "naturalness": Dimension("Is this a natural response in the dialogue?"),
    "coherence": Dimension("Is this a coherent response given the dialogue history?", history=True),
    "engagingness": Dimension(
        "Is this an engaging and informative response according to the dialogue history and fact?",
        history=True,
        fact=True,
        by_sentence=True,
    ),
    "groundedness": Dimension("Is this response consistent with knowledge in the fact?", fact=True),
    "understandability": Dimension("Is this an understandable response in the dialogue?"),
}


class Input(NamedTuple):
    """A text for the model; the history is its characters ``start`` to ``stop``."""

    text: str
    start: int = 0
    stop: int = 0


def history_text(history: Sequence[Utterance]) -> str:
    r"""Return the utterances as in UniEval's data: joined by ``" \n "``, ended by ``" \n\n"``, without speakers."""
    return " \n ".join(utterance["text"].strip() for utterance in history) + " \n\n" if history else ""


def fact_text(facts: Sequence[str]) -> str:
    r"""Return the facts, one per line, each ended by ``"\n"`` as in UniEval's data."""
    return "".join(f"{fact.strip()}\n" for fact in facts)


def ask(dimension: Dimension, response: str, history: str, fact: str) -> Input | None:
    """Return the input for one question, or None if the history or fact that it needs is empty."""
    if (dimension.history and not history) or (dimension.fact and not fact):
        return None
    text = f"question: {dimension.question} </s> response: {response}"
    start = stop = 0
    if dimension.history:
        text += " </s> dialogue history: "
        start, stop = len(text), len(text) + len(history)
        text += history
    if dimension.fact:
        text += f" </s> fact: {fact}"
    return Input(text, start, stop)


def encode(
    tokenizer: Any,  # noqa: ANN401
    inputs: Sequence[Input],
    limit: int,
    progress: Callable[[Sequence[int], int], Iterable[int]] = lambda items, total: items,
) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.int32]]:
    """Return the tokens of each input, at most ``limit``, and the number removed from each."""
    tokens: list[npt.NDArray[np.int64]] = []
    cut = np.zeros(len(inputs), dtype=np.int32)
    # In chunks and as arrays: lists of all tokens of a dataset would take gigabytes.
    starts = range(0, len(inputs), _CHUNK)
    for first in progress(starts, len(starts)):
        texts = [entry.text for entry in inputs[first : first + _CHUNK]]
        for number, ids in enumerate(tokenizer(texts)["input_ids"], start=first):
            tokens.append(np.array(ids, dtype=np.int64))
            if len(ids) > limit:
                offsets = tokenizer(inputs[number].text, return_offsets_mapping=True)["offset_mapping"]
                tokens[number] = tokens[number][_kept(offsets, inputs[number], limit)]
                cut[number] = len(ids) - limit
    return tokens, cut


def _kept(offsets: Sequence[tuple[int, int]], entry: Input, limit: int) -> list[int]:
    """Return the positions of the tokens to keep: the oldest of the history go first, then the end of the input."""
    history = [k for k, (begin, end) in enumerate(offsets) if begin < end and end > entry.start and begin < entry.stop]
    dropped = set(history[: len(offsets) - limit])
    kept = [position for position in range(len(offsets)) if position not in dropped]
    # The last token ends the input (</s>); the published code's tokenizer keeps it too.
    return kept if len(kept) <= limit else [*kept[: limit - 1], kept[-1]]
