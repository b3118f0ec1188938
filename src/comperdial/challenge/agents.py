"""Run an agent on dialogues, turn by turn with gold history, or with itself (ComperDial, A.6).

An agent is a class ``UserAgent`` in a Python file; it needs no base class (docs/adding-a-system.md). Its method
``generate_responses(test_data) -> list[str]`` gets up to 50 conversations at the same turn and answers each as persona B. It
runs in this process, with the user's permissions.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

from comperdial.challenge import pairs
from comperdial.challenge.dialogues import SPEAKERS, Conversation, Dialogue, conversation
from comperdial.challenge.records import Filled, checked
from comperdial.core.errors import ComperdialError, ConfigError

T = TypeVar("T")
# Conversations per call, as in the challenge.
_BATCH = 50


class AgentError(ComperdialError):
    """An agent failed, or did not return one text per conversation."""


def load(spec: str, options: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401
    """Create an instance of the class in ``FILE[:CLASS]``, by default ``UserAgent``; modules next to the file can be imported.

    Code that raises is an :class:`AgentError`.
    """
    file, _, name = spec.partition(":")
    path, name, where = Path(file).resolve(), name or "UserAgent", f"{spec}, loading"
    if not path.is_file() or path.suffix != ".py":
        raise ConfigError("no such file", where=str(path), expected="a Python file, .py")
    sys.path.insert(0, str(path.parent))
    # Registered, as dataclasses and pickle require, but never in place of an existing module.
    module_name = path.stem if path.stem not in sys.modules else f"agent_{path.stem}"
    module_spec = importlib.util.spec_from_file_location(module_name, path)
    assert module_spec is not None and module_spec.loader is not None  # noqa: S101 - a .py file has a loader
    module = sys.modules[module_name] = importlib.util.module_from_spec(module_spec)
    _call(where, module_spec.loader.exec_module, module)
    if not hasattr(module, name):
        raise ConfigError(f"no class {name!r}", where=str(path), expected="FILE:CLASS, or a class UserAgent")
    return _call(where, getattr(module, name), **(options or {}))


def _call(where: str, function: Callable[..., T], *arguments: Any, **options: Any) -> T:  # noqa: ANN401
    """Call user code, which may raise anything."""
    try:
        return function(*arguments, **options)
    except ComperdialError:
        raise
    except (Exception, SystemExit) as error:
        raise AgentError(f"raised {type(error).__name__}: {error}", where=where) from error


def _ask(agent: Any, what: str, shown: Mapping[str, Conversation]) -> dict[str, str]:  # noqa: ANN401
    """Return an agent's responses to conversations, by dialogue."""
    where = f"{what} of {len(shown)} conversations from {next(iter(shown))!r}"
    given = checked(list[Filled], _call(where, agent.generate_responses, [*shown.values()]), where)
    if len(given) != len(shown):
        raise AgentError(f"gave {len(given)} for {len(shown)} conversations", where=where, expected="one each")
    return dict(zip(shown, given, strict=True))


def _batches(dialogues: Sequence[Dialogue]) -> Iterator[Sequence[Dialogue]]:
    return (dialogues[first : first + _BATCH] for first in range(0, len(dialogues), _BATCH))


def run_agent(agent: Any, dialogues: Sequence[Dialogue]) -> dict[tuple[str, int], str]:  # noqa: ANN401
    """Let an agent answer all of B's turns, with gold history; return its responses by dialogue and turn.

    Raises a :class:`~comperdial.core.errors.ComperdialError` if the agent raises, or does not return one text per conversation.
    """
    responses: dict[tuple[str, int], str] = {}
    for batch in _batches(dialogues):
        for turn in range(max(one.turns for one in batch)):
            shown = {one.dialogue_id: one.conversation(turn) for one in batch if turn < one.turns}
            responses |= {(name, turn): text for name, text in _ask(agent, f"turn {turn}", shown).items()}
    return responses


def self_chat(agent: Any, system_id: str, openings: Sequence[Dialogue], turns: int) -> list[pairs.Dialogue]:  # noqa: ANN401
    """Let an agent play both speakers of dialogues for ``turns`` turns each; errors as in `run_agent`.

    ``openings`` provide the personas and the first utterance. A challenge agent always answers A as B: when it is A's turn,
    names and personas are exchanged.
    """
    chats = {one.dialogue_id: [one.texts[0]] for one in openings}
    for batch in _batches(openings):
        for number in range(2, 2 * turns + 1):
            # The last speaker is A, and the other, who answers, is B.
            last, other = SPEAKERS if number % 2 == 0 else SPEAKERS[::-1]
            shown = {
                one.dialogue_id: conversation(one.personas[last], one.personas[other], chats[one.dialogue_id])
                for one in batch
            }
            for name, text in _ask(agent, f"utterance {number}", shown).items():
                chats[name].append(text)
    lines = {name: tuple(zip(cycle(SPEAKERS), texts, strict=False)) for name, texts in chats.items()}
    return [pairs.Dialogue(name, system_id, "B", spoken) for name, spoken in lines.items()]
