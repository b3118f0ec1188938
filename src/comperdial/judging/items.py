"""What is judged: the responses of a data set turn by turn, or its dialogues whole, as values for a prompt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.sharding import Shard
from comperdial.judges.prompting import Prompt, fact_lines, history_lines, render
from comperdial.judging._dialogues import spoken, turn_scores
from comperdial.metrics.scoring import parts

KEY = ("dataset", "item_id", "system_id")
_encoded = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True)
class Item:
    """One thing to judge, as the table ``scores`` names it.

    Attributes
    ----------
    dataset, item_id, system_id
        ``item_id`` is the context at turn level, the dialogue at dialogue level.
    messages
        What the judge is sent, encoded; None where the data set lacks what the prompt needs.
    lacks
        What is lacking, in a few words; None if nothing is.
    """

    dataset: str
    item_id: str
    system_id: str
    messages: str | None
    lacks: str | None = None


def of_shard(items: Iterable[Item], shard: Shard) -> Iterator[Item]:
    """Yield the items that are a shard's: by what is asked, so that no two shards ask the same.

    An item that lacks what the prompt needs is asked about nowhere; it is one shard's by its name.
    """
    for item in items:
        if shard.holds(
            "\0".join((item.dataset, item.item_id, item.system_id)) if item.messages is None else item.messages
        ):
            yield item


def turn_items(folder: str | Path, prompt: Prompt) -> Iterator[Item]:
    """Yield one item a response of a data set's tables; references are not judged.

    Parameters
    ----------
    folder
        Holds ``contexts``, ``responses`` and ``systems``.
    prompt
        At turn level.
    """
    for responses, contexts in parts(folder):
        # Contexts come once for each system that answered: their text is put together once a part.
        known: dict[str, Mapping[str, Any]] = {}
        rows = zip(
            responses["dataset"],
            responses["context_id"],
            responses["system_id"],
            responses["response"],
            contexts[["history", "references", "facts"]].itertuples(index=False, name=None),
            strict=True,
        )
        for dataset, context_id, system_id, response, (history, references, facts) in rows:
            if context_id not in known:
                known[context_id] = context_values(history, references, facts)
            yield turn_item(prompt, (dataset, context_id, system_id), known[context_id], response)


def turn_item(prompt: Prompt, names: tuple[str, str, str], values: Mapping[str, Any], response: str) -> Item:
    """Return the item of one response.

    Parameters
    ----------
    prompt
        At turn level.
    names
        The item's dataset, context and system.
    values
        What :func:`context_values` made of its context.
    response
        What is judged.
    """
    if "reference" in prompt.fields and "reference" not in values:
        return Item(*names, None, "no reference")
    return Item(*names, message(render(prompt, {**values, "response": response})))


def context_values(history: Any, references: Any, facts: Any) -> dict[str, str]:  # noqa: ANN401 - cells of a frame
    """Return what a prompt is given of a context; of several references, the first."""
    values = {"history": history_lines(list(history)), "fact": fact_lines(list(facts))}
    return values | ({"reference": references[0]} if len(references) else {})


def dialogue_items(folder: str | Path, prompt: Prompt, turns: pd.DataFrame | str | Path, output: str) -> Iterator[Item]:
    """Yield one item a dialogue and system, with the scores of its turns.

    Parameters
    ----------
    folder
        Holds ``contexts``, ``responses`` and ``systems``.
    prompt
        At dialogue level.
    turns
        Table ``scores`` of the turns, or a file with it; its values are what the prompt is given. A dialogue one of
        whose turns has no score lacks it, and is not judged.
    output
        Which output of that metric.
    """
    for dialogue in spoken(folder, turn_scores(turns, output)):
        names = (dialogue.dataset, dialogue.dialogue_id, dialogue.system_id)
        scores = [said.score for said in dialogue.said if said.score is not None]
        without = {said.turn for said in dialogue.said if said.score is None}
        if missing := dialogue.turns - len({said.turn for said in dialogue.said} - without):
            yield Item(*names, None, f"{missing} turns without a score")
            continue
        values = {
            "turn_scores": [f"{value:.2f}".rstrip("0").rstrip(".") for value in scores],
            "responses": [said.response for said in dialogue.said],
        }
        yield Item(*names, message(render(prompt, values)))


def whole_items(folder: str | Path, prompt: Prompt) -> Iterator[Item]:
    """Yield one item a dialogue and system, with the whole conversation and no turn scores.

    The conversation is the history of the last context that the system answered, and what it answered there. Where the
    contexts are those of one conversation with the system, that is all of it; in static contexts, whose histories
    others wrote, it is the dialogue with the system's last response.

    Parameters
    ----------
    folder
        Holds ``contexts``, ``responses`` and ``systems``.
    prompt
        At dialogue level.
    """
    for dialogue in spoken(folder):
        *earlier, last = dialogue.said
        speaker = _speaker(last.history, [(len(said.history), said.response) for said in earlier])
        lines = history_lines([*last.history, {"speaker": speaker, "text": last.response}])
        names = (dialogue.dataset, dialogue.dialogue_id, dialogue.system_id)
        yield Item(*names, message(render(prompt, {"dialogue": lines})))


def _speaker(history: Sequence[Mapping[str, str]], said: Sequence[tuple[int, str]]) -> str:
    """Return who speaks after a history: whoever said there what the system answered before, at these places.

    In static contexts nobody did. It is then whoever spoke last before the last speaker, or, where there is none, the
    other of A and B.
    """
    for place, text in reversed(said):
        if place < len(history) and history[place]["text"] == text:
            return history[place]["speaker"]
    speakers = [utterance["speaker"] for utterance in history]
    others = [speaker for speaker in speakers if speaker != speakers[-1]]
    if others:
        return others[-1]
    return "B" if speakers[-1:] == ["A"] else "A"


def message(text: str) -> str:
    """Return a prompt as the one message that is sent: what ``encode_messages`` makes of it, quicker."""
    return f'[{{"content":{_encoded(text)},"role":"user"}}]'
