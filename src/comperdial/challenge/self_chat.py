"""Agents that talk to themselves, and what goes wrong when they do: loops, and copies of what they were trained on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from comperdial.challenge.agents import Limits, Model, Session
from comperdial.challenge.dialogues import SPEAKERS, Conversation
from comperdial.challenge.dialogues import Dialogue as Gold
from comperdial.challenge.dialogues import read_dialogues as read_gold
from comperdial.challenge.pairs.dialogues import Dialogue, Utterance
from comperdial.challenge.records import checked
from comperdial.core.files import read_jsonl


def self_chat(
    agent: Any,  # noqa: ANN401
    system_id: str,
    openings: Sequence[Gold],
    turns: int,
    *,
    model: Model | None = None,
) -> list[Dialogue]:
    """Let an agent play both speakers of each dialogue.

    An agent of the challenge answers A as B. When A is to speak, the speakers change names and personas, so that the agent
    answers as B again.

    Parameters
    ----------
    agent, model
        As :func:`~comperdial.challenge.agents.run_agent` takes them.
    system_id
        The agent's name.
    openings
        Dialogues whose personas and first utterance are taken.
    turns
        How often each of the two speaks.

    Raises
    ------
    ComperdialError
        As :meth:`~comperdial.challenge.agents.Session.ask`.
    """
    limits = Limits()
    dialogues: list[Dialogue] = []
    for first in range(0, len(openings), limits.batch):
        batch = openings[first : first + limits.batch]
        session = Session(agent, len(batch), limits, model)
        chats = [[opening.texts[0]] for opening in batch]
        for number in range(2, 2 * turns + 1):
            shown = [
                _conversation(opening, texts, with_a=not session.of_api_track)
                for opening, texts in zip(batch, chats, strict=True)
            ]
            where = f"utterance {number} of {len(batch)} self-chats from {batch[0].dialogue_id!r}"
            for texts, answer in zip(chats, session.ask(shown, range(len(batch)), where), strict=True):
                texts.append(answer)
        for opening, texts in zip(batch, chats, strict=True):
            lines = tuple(zip(cycle(SPEAKERS), texts, strict=False))
            dialogues.append(Dialogue(opening.dialogue_id, system_id, "B", lines))
    return dialogues


def _conversation(opening: Gold, texts: Sequence[str], *, with_a: bool) -> Conversation:
    """Return what the agent is shown: the last to speak is A, and the other, whose turn it is, is B."""
    names = SPEAKERS if len(texts) % 2 else SPEAKERS[::-1]
    personas = dict(zip(names, (opening.personas["A"], opening.personas["B"]), strict=True))
    shown: Conversation = {"persona A": list(personas["A"])} if with_a else {}
    utterances = [{"persona_id": name, "text": text} for name, text in zip(cycle(names), texts, strict=False)]
    return shown | {"persona B": list(personas["B"]), "dialogue": utterances}


class _Pair(BaseModel):
    context: str
    response: str


class _Dialogue(BaseModel):
    utterances: list[Utterance]


def read_training(path: str | Path) -> list[list[str]]:
    """Read the dialogues that an agent was trained on, each as its texts.

    Parameters
    ----------
    path
        ``.json``: dialogues in ComperDial's form. ``.jsonl``: records with ``context`` and ``response``, each a text, or
        with ``utterances``, as a file of dialogues has them.

    Raises
    ------
    ComperdialError
        Names the record at fault.
    """
    if Path(path).suffix == ".json":
        return [list(dialogue.texts) for dialogue in read_gold(path)]
    read = []
    for number, record in read_jsonl(path):
        where = f"{path}, line {number}"
        if "utterances" in record:
            read.append([utterance.text for utterance in checked(_Dialogue, record, where).utterances])
        else:
            pair = checked(_Pair, record, where)
            read.append([pair.context, pair.response])
    return read


class Faults(NamedTuple):
    """What is wrong with an agent's self-chats.

    Attributes
    ----------
    dialogues
        How many there are.
    repeating
        Dialogues in which the agent repeats an utterance, by either speaker.
    looping
        Dialogues that end in a cycle: the last utterances, however many, are those just before them.
    utterances, repeated
        The agent's utterances, and how many of these repeat an earlier one of their dialogue.
    known_utterances, known_pairs
        How many of them, and of the call-response pairs that they end, are word for word in the training text; None
        without one.
    """

    dialogues: int
    repeating: int
    looping: int
    utterances: int
    repeated: int
    known_utterances: int | None = None
    known_pairs: int | None = None


def faults(dialogues: Sequence[Dialogue], training: Sequence[Sequence[str]] | None = None) -> Faults:
    """Count loops and copies in self-chats; the first utterance of each was given and is not the agent's."""
    chats = [_plain([text for _, text in dialogue.utterances]) for dialogue in dialogues]
    repeats = [sum(text in texts[:i] for i, text in enumerate(texts)) for texts in chats]
    pairs = [pair for texts in chats for pair in pairwise(texts)]
    loops = sum(any(t[-n:] == t[-2 * n : -n] for n in range(1, len(t) // 2 + 1)) for t in chats)
    counts = Faults(len(chats), sum(count > 0 for count in repeats), loops, len(pairs), sum(repeats))
    if training is None:
        return counts
    known = [_plain(texts) for texts in training]
    known_texts, known_pairs = {t for texts in known for t in texts}, {p for texts in known for p in pairwise(texts)}
    return counts._replace(
        known_utterances=sum(text in known_texts for _, text in pairs),
        known_pairs=sum(pair in known_pairs for pair in pairs),
    )


def report(system_id: str, counts: Faults) -> str:
    """Return the counts as a sentence."""
    shares = (
        (counts.repeated, "repeated"),
        (counts.known_utterances, "in the training text"),
        (counts.known_pairs, "with the one before in the training text"),
    )
    texts = [f"{n / max(1, counts.utterances):.1%} {what}" for n, what in shares if n is not None]
    return (
        f"{system_id}: {counts.dialogues} self-chats, {counts.repeating} repeat an utterance, {counts.looping} end in a "
        f"loop; of {counts.utterances} utterances, {', '.join(texts)}"
    )


def _plain(texts: Sequence[str]) -> list[str]:
    """Return texts in lower case, with single spaces."""
    return [" ".join(text.casefold().split()) for text in texts]
