"""What is judged: the responses of a data set turn by turn, or its dialogues whole, as values for a prompt."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges.prompting import Prompt, fact_lines, history_lines, render
from comperdial.judges.tasks import Judging, Task, slug
from comperdial.metrics.scoring import parts

_encoded = json.JSONEncoder(ensure_ascii=False).encode

Turns = pd.DataFrame | str | Path
"""Table ``scores`` of the turns that a dialogue is judged after, or a file with it."""


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
        if shard.count == 1 or shard.holds(item.messages or "\0".join((item.dataset, item.item_id, item.system_id))):
            yield item


def sample(items: Iterable[Item], count: int) -> list[Item]:
    """Return so many of the items that have what the prompt needs, in their order: those with the smallest hash of their names.

    It is the same sample everywhere, for each way of asking, and a larger one holds it.
    """
    ranked = (
        (hashlib.sha256("\0".join((item.item_id, item.system_id)).encode()).digest(), place, item)
        for place, item in enumerate(items)
        if item.messages is not None
    )
    chosen = heapq.nsmallest(count, ranked, key=lambda ranked: ranked[:2])
    return [item for _, _, item in sorted(chosen, key=lambda ranked: ranked[1])]


def items_of(
    judging: Judging, task: Task, folder: str | Path, turns: Turns | None = None, shard: Shard = WHOLE
) -> Iterator[Item]:
    """Yield what a task judges.

    Parameters
    ----------
    folder
        The data set's tables.
    turns
        The scores of the task's turns, which a task at dialogue level needs.
    shard
        Which requests: only their items.

    Of a judge that is asked of some items only, these are a :func:`sample`.
    """
    prompt, wanted = judging.prompt(task), task.judge.items
    if task.variant.turns is None:
        make = whole_items if task.variant.level == "dialogue" else turn_items
        every = make(folder, prompt)
        return of_shard(every if wanted is None else sample(every, wanted), shard)
    if turns is None:
        raise ConfigError(
            f"{task.name} needs the scores of {task.turns}", expected="`turns`: table scores, or a file with it"
        )
    output = slug(judging.variants[task.variant.turns].form.main)
    return of_shard(dialogue_items(folder, prompt, turns, output), shard)


def turn_items(folder: str | Path, prompt: Prompt) -> Iterator[Item]:
    """Yield one item a response of a data set's tables; references are not judged."""
    for responses, contexts in parts(folder):
        # Contexts come once for each system that answered: their text is put together once a part.
        known: dict[str, Mapping[str, Any]] = {}
        names = responses[["dataset", "context_id", "system_id"]].itertuples(index=False, name=None)
        given = contexts[["history", "references", "facts"]].itertuples(index=False, name=None)
        for name, response, context in zip(names, responses["response"], given, strict=True):
            if name[1] not in known:
                known[name[1]] = context_values(*context)
            yield turn_item(prompt, name, known[name[1]], response)


def turn_item(prompt: Prompt, names: tuple[str, str, str], values: Mapping[str, Any], response: str) -> Item:
    """Return the item of one response: of a data set, context and system, with the context's values."""
    if "reference" in prompt.fields and "reference" not in values:
        return Item(*names, None, "no reference")
    return Item(*names, message(render(prompt, {**values, "response": response})))


def context_values(history: Any, references: Any, facts: Any) -> dict[str, str]:  # noqa: ANN401 - cells of a frame
    """Return what a prompt is given of a context; of several references, the first."""
    values = {"history": history_lines(list(history)), "fact": fact_lines(list(facts))}
    return values | ({"reference": references[0]} if len(references) else {})


def dialogue_items(folder: str | Path, prompt: Prompt, turns: Turns, output: str) -> Iterator[Item]:
    """Yield one item a dialogue and system, with an output of the scores of its turns.

    A dialogue one of whose turns has no score lacks it, and is not judged.
    """
    for dialogue in spoken(folder, turn_scores(turns, output)):
        names = (dialogue.dataset, dialogue.dialogue_id, dialogue.system_id)
        scores = [said.score for said in dialogue.said if said.score is not None]
        unscored = {said.turn for said in dialogue.said if said.score is None}
        if missing := dialogue.turns - len({said.turn for said in dialogue.said} - unscored):
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


Key = tuple[str, str, str]
"""Of a response, or of its score: data set, context, system."""

# Scores that are read at once.
_ROWS = 65_536


class Said(NamedTuple):
    """What a system said in one context: which turn of which dialogue that is, and the score of it, if it has one."""

    key: Key
    dialogue_id: str
    turn: int
    history: Sequence[Mapping[str, str]]
    response: str
    score: float | None = None


class Spoken(NamedTuple):
    """All that a system said in a dialogue, by turn, and how many turns the dialogue has."""

    dataset: str
    dialogue_id: str
    system_id: str
    said: list[Said]
    turns: int


def spoken(folder: str | Path, scores: Iterable[tuple[Key, float]] | None = None) -> Iterator[Spoken]:
    """Yield what each system said in each dialogue of a data set's tables; references are left out.

    A dialogue is yielded as soon as the last of its contexts has passed; only those under way are in memory.

    Parameters
    ----------
    folder
        Holds ``contexts``, ``responses`` and ``systems``; responses are read sorted by context.
    scores
        Of the turns, sorted by key, for what was said to have its own; none without.
    """
    rows = _rows(folder) if scores is None else _with_scores(_rows(folder), iter(scores))
    columns = ["dataset", "context_id", "dialogue_id", "turn"]
    contexts = schema.read(Path(folder) / "contexts.parquet", "contexts")[columns]
    ordered = contexts.sort_values(["dataset", "context_id"], kind="stable")
    place = {context: number for number, context in enumerate(ordered["context_id"])}
    dialogues = ordered["dialogue_id"].tolist()
    # Not the contexts: a turn has several where a system answered it several times, or each its own history.
    turns = {dialogue: int(count) for dialogue, count in ordered.groupby("dialogue_id")["turn"].nunique().items()}
    last = {dialogue: number for number, dialogue in enumerate(dialogues)}
    held: dict[str, dict[tuple[str, str], list[Said]]] = {}
    passed = 0

    def ended(until: int) -> Iterator[Spoken]:
        for number in range(passed, until):
            dialogue = dialogues[number]
            if last[dialogue] == number:
                for (dataset, system), said in sorted(held.pop(dialogue, {}).items()):
                    said.sort(key=lambda row: row.turn)
                    yield Spoken(dataset, dialogue, system, said, turns[dialogue])

    for row in rows:
        dataset, context, system = row.key
        if place[context] > passed:
            yield from ended(place[context])
            passed = place[context]
        held.setdefault(row.dialogue_id, {}).setdefault((dataset, system), []).append(row)
    yield from ended(len(dialogues))


def turn_scores(turns: Turns, output: str) -> Iterator[tuple[Key, float]]:
    """Yield the scores of turns that have a certain output, sorted by key; of a Parquet file only some rows are in memory.

    Raises
    ------
    SchemaError
        When there is none, or a turn has two.
    """
    name = "table scores" if isinstance(turns, pd.DataFrame) else str(turns)
    before: Key | None = None
    for part in _score_parts(turns):
        chosen = part[(part["level"] == "turn") & (part["output"] == output)]
        keys = zip(chosen["dataset"], chosen["item_id"], chosen["system_id"], strict=True)
        for key, value in zip(keys, chosen["value"], strict=True):
            if key == before:
                raise SchemaError(
                    f"two scores with output {output!r} for {', '.join(key[1:])}", where=name, expected="one"
                )
            before = key
            yield key, float(value)
    if before is None:
        raise SchemaError(
            f"no turn scores with output {output!r}", expected="the scores of the variant that `turns` names"
        )


def _score_parts(turns: Turns) -> Iterable[pd.DataFrame]:
    if not isinstance(turns, pd.DataFrame):
        if Path(turns).suffix == ".parquet":
            return schema.read_parts(turns, "scores", _ROWS)
        turns = schema.read(turns, "scores")
    return [turns.sort_values(["dataset", "item_id", "system_id"], kind="stable")]


def _rows(folder: str | Path) -> Iterator[Said]:
    for responses, contexts in parts(folder):
        keys = responses[["dataset", "context_id", "system_id"]].itertuples(index=False, name=None)
        columns = (contexts[name] for name in ("dialogue_id", "turn", "history"))
        yield from map(Said, keys, *columns, responses["response"])


def _with_scores(rows: Iterable[Said], scores: Iterator[tuple[Key, float]]) -> Iterator[Said]:
    """Give what was said its score, from two sorted streams side by side."""
    found = next(scores, None)
    for row in rows:
        while found is not None and found[0] < row.key:
            found = next(scores, None)
        yield row._replace(score=found[1]) if found is not None and found[0] == row.key else row
    # To the end, where it is seen that no turn has two.
    for _ in scores:
        pass
