"""Agents that talk to themselves, and what goes wrong when they do: loops, and copies of what they were trained on."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from comperdial.challenge.agent import Conversation
from comperdial.challenge.api import Api
from comperdial.challenge.dialogues import SPEAKERS
from comperdial.challenge.dialogues import Dialogue as Gold
from comperdial.challenge.dialogues import read_dialogues as read_gold
from comperdial.challenge.limits import AgentError, Limits
from comperdial.challenge.pairs.dialogues import Dialogue
from comperdial.challenge.process import AgentProcess

# Private there, since an edit of that module would make published submissions stale: one turn, with its checks.
from comperdial.challenge.runner import Run, _ask_with_api, _checked
from comperdial.core.errors import SchemaError
from comperdial.core.files import printable, read_jsonl

log = logging.getLogger(__name__)


@dataclass
class SelfChat:
    """What an agent said to itself.

    Attributes
    ----------
    system_id
        The agent.
    dialogues
        Each begins with a given utterance of A; the agent says the rest, and B is judged. Empty when it failed.
    problem
        Why it failed; None when it did not.
    """

    system_id: str
    dialogues: list[Dialogue] = field(default_factory=list)
    problem: str | None = None


def self_chat(
    entry: Mapping[str, Any],
    openings: Sequence[Gold],
    turns: int,
    *,
    limits: Limits | None = None,
    api: Api | None = None,
) -> SelfChat:
    """Let an agent play both speakers of each dialogue.

    An agent of the challenge answers A as B. When A is to speak, the speakers change names and personas, so that the
    agent answers as B again.

    Parameters
    ----------
    entry
        Of a roster: ``id``, and ``kind`` or ``file``.
    openings
        Dialogues whose personas and first utterance are taken.
    turns
        How often each of the two speaks.
    limits
        Default: the challenge's.
    api
        The language model for agents of the API track.

    Returns
    -------
    SelfChat
        An agent that fails has no dialogues and a problem; it never raises here.
    """
    limits, found = limits or Limits(), SelfChat(entry["id"])
    try:
        with AgentProcess(entry, load_seconds=limits.load_seconds) as agent:
            if agent.takes_api_responses and api is None:
                raise AgentError("it wants a language model (API track), and none was given")
            for first in range(0, len(openings), limits.batch):
                batch = openings[first : first + limits.batch]
                found.dialogues += _batch(agent, entry["id"], batch, turns, limits, api)
    except AgentError as error:
        found.dialogues, found.problem = [], printable(str(error))
        log.warning("%s failed: %s", found.system_id, found.problem)
    return found


def _batch(
    agent: AgentProcess, system: str, batch: Sequence[Gold], turns: int, limits: Limits, api: Api | None
) -> list[Dialogue]:
    deadline = time.monotonic() + limits.run_seconds
    said = [[opening.texts[0]] for opening in batch]
    used: list[list[int]] = [[0, 0] for _ in batch]
    for number in range(1, 2 * turns):
        doing = f"utterance {number + 1} of {len(batch)} self-chats from {batch[0].dialogue_id!r}"
        data = [
            _conversation(opening, texts, with_a=not agent.takes_api_responses)
            for opening, texts in zip(batch, said, strict=True)
        ]
        if agent.takes_api_responses and api is not None:
            answers = _ask_with_api(agent, data, used, limits, api, deadline, doing, Run(system))
        else:
            answers = agent.ask({"test_data": data}, deadline - time.monotonic(), doing)
        for texts, answer in zip(said, _checked(answers, len(batch), doing), strict=True):
            texts.append(answer)
    return [
        Dialogue(opening.dialogue_id, system, "B", tuple((SPEAKERS[i % 2], text) for i, text in enumerate(texts)))
        for opening, texts in zip(batch, said, strict=True)
    ]


def _conversation(opening: Gold, texts: Sequence[str], *, with_a: bool) -> Conversation:
    """Return what the agent is shown: the last to speak is A, and the other, whose turn it is, is B."""
    own, partner = ("B", "A") if len(texts) % 2 else ("A", "B")
    names = ("A", "B") if own == "B" else ("B", "A")
    shown: Conversation = {
        "persona B": list(opening.personas[own]),
        "dialogue": [{"persona_id": names[i % 2], "text": text} for i, text in enumerate(texts)],
    }
    if with_a:
        shown["persona A"] = list(opening.personas[partner])
    return shown


@dataclass(frozen=True)
class Training:
    """Utterances that an agent may have learned, and which follow which: lower-cased, spaces made one."""

    utterances: frozenset[str]
    pairs: frozenset[tuple[str, str]]


def read_training(path: str | Path) -> Training:
    """Read what an agent was trained on.

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
        dialogues: Iterable[Sequence[str]] = [dialogue.texts for dialogue in read_gold(path)]
    else:
        dialogues = [_training_texts(record, f"{path}, line {number}") for number, record in read_jsonl(path)]
    plain = [[_plain(text) for text in texts] for texts in dialogues]
    if not plain:
        raise SchemaError("holds no dialogue", where=str(path), expected="at least one")
    return Training(
        frozenset(text for texts in plain for text in texts),
        frozenset(pair for texts in plain for pair in pairwise(texts)),
    )


def _training_texts(record: Mapping[str, Any], where: str) -> list[str]:
    if isinstance(record.get("context"), str) and isinstance(record.get("response"), str):
        return [record["context"], record["response"]]
    said = record.get("utterances")
    if isinstance(said, list) and said and all(isinstance(u, dict) and isinstance(u.get("text"), str) for u in said):
        return [utterance["text"] for utterance in said]
    raise SchemaError("no dialogue", where=where, expected="context and response, or utterances, each with a text")


@dataclass(frozen=True)
class Faults:
    """What is wrong with an agent's self-chats.

    Attributes
    ----------
    dialogues
        How many there are.
    repeating
        Dialogues in which the agent says what was said before, by either speaker.
    looping
        Dialogues that end in a cycle: the last utterances, however many, are those just before them.
    utterances, repeated
        What the agent said, and how many of these had been said before in their dialogue.
    known_utterances, known_pairs
        How many of them, and of the call-response pairs that they end, stand word for word in the training text; None
        without one.
    """

    dialogues: int
    repeating: int
    looping: int
    utterances: int
    repeated: int
    known_utterances: int | None = None
    known_pairs: int | None = None


def faults(dialogues: Sequence[Dialogue], training: Training | None = None) -> Faults:
    """Count loops and copies in self-chats; the first utterance of each was given and is not the agent's."""
    plain = [[_plain(text) for _, text in dialogue.utterances] for dialogue in dialogues]
    repeats = [sum(text in texts[:i] for i, text in enumerate(texts) if i) for texts in plain]
    said = [(texts[i - 1], texts[i]) for texts in plain for i in range(1, len(texts))]
    return Faults(
        len(plain),
        sum(count > 0 for count in repeats),
        sum(map(_loops, plain)),
        len(said),
        sum(repeats),
        None if training is None else sum(text in training.utterances for _, text in said),
        None if training is None else sum(pair in training.pairs for pair in said),
    )


def _loops(texts: Sequence[str]) -> bool:
    return any(texts[-length:] == texts[-2 * length : -length] for length in range(1, len(texts) // 2 + 1))


def report(found: Iterable[tuple[str, Faults]]) -> Iterator[str]:
    """Yield the lines of a table of faults by agent."""
    rows = [
        ("agent", "dialogues", "repeat something", "end in a loop", "utterances: repeated", "known", "pairs: known")
    ]
    for name, fault in found:
        shares = (fault.repeated, fault.known_utterances, fault.known_pairs)
        texts = ["-" if n is None else f"{n / fault.utterances:.1%}" if fault.utterances else "-" for n in shares]
        rows.append((name, str(fault.dialogues), str(fault.repeating), str(fault.looping), *texts))  # type: ignore[arg-type]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join([row[0].ljust(widths[0]), *cells])


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
