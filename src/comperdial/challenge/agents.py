"""Run an agent of CPD Task 1 on dialogues, turn by turn with gold history, within the challenge's limits (ComperDial, A.6).

An agent is a class ``UserAgent`` in a Python file; it need not inherit from anything (docs/adding-a-system.md). It sees up to
50 conversations at the same turn and answers as persona B. First generation: ``generate_responses(test_data) -> list[str]``.
Second generation (API track): the agent asks for calls of a language model instead of making them,
``generate_responses(test_data, api_responses) -> {use_api, prompts, max_generated_tokens, final_responses}``.

It runs in this process, with the rights of whoever starts it.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, PositiveInt

from comperdial.challenge.dialogues import Conversation, Dialogue
from comperdial.challenge.records import Filled, checked
from comperdial.core.errors import ComperdialError, ConfigError

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """What an agent may use; the defaults are the challenge's.

    Attributes
    ----------
    batch
        Conversations a call.
    load_seconds
        To construct the agent.
    run_seconds
        For all turns of one batch, measured after each turn.
    calls
        Calls of the language model an utterance (API track).
    input_tokens, output_tokens
        Sums over the utterances of one dialogue (API track).
    """

    batch: int = 50
    load_seconds: float = 300.0
    run_seconds: float = 3600.0
    calls: int = 2
    input_tokens: int = 10_000
    output_tokens: int = 1_000


class AgentError(ComperdialError):
    """An agent, or the language model that it asks for, failed or broke a limit."""


@dataclass(frozen=True)
class Completion:
    """One answer of a language model, with the tokens that it is charged for."""

    text: str
    input_tokens: int
    output_tokens: int


class Model(Protocol):
    """The language model of the API track, a class of the user's."""

    def count(self, messages: Sequence[Mapping[str, str]]) -> int:
        """Return how many input tokens the messages cost, without calling."""

    def complete(self, messages: Sequence[Mapping[str, str]], max_tokens: int) -> Completion:
        """Answer the messages with at most ``max_tokens`` tokens."""


class _Message(BaseModel):
    role: str
    content: str


class _ApiTurn(BaseModel):
    use_api: bool
    prompts: list[list[_Message]] = []
    max_generated_tokens: list[PositiveInt] = []
    final_responses: Any = None


def load(spec: str, options: Mapping[str, Any] | None = None, *, seconds: float | None = None) -> Any:  # noqa: ANN401
    """Construct the class that ``FILE[:CLASS]`` names, by default ``UserAgent``; modules beside the file can be imported.

    Raises
    ------
    ConfigError
        When there is no such Python file or class.
    AgentError
        When the code raises, or takes longer than ``seconds``.
    """
    file, _, name = spec.partition(":")
    path, name, where = Path(file).resolve(), name or "UserAgent", f"{spec}, loading"
    if not path.is_file() or path.suffix != ".py":
        raise ConfigError("no such file", where=str(path), expected="a Python file, .py")
    sys.path.insert(0, str(path.parent))
    # Registered, as dataclasses and pickle want it, but never in place of a module that is there already.
    module_name = path.stem if path.stem not in sys.modules else f"agent_{path.stem}"
    module_spec = importlib.util.spec_from_file_location(module_name, path)
    assert module_spec is not None and module_spec.loader is not None  # noqa: S101 - a .py file has a loader
    module = sys.modules[module_name] = importlib.util.module_from_spec(module_spec)
    start = time.monotonic()
    _call(where, module_spec.loader.exec_module, module)
    if not hasattr(module, name):
        raise ConfigError(f"no class {name!r}", where=str(path), expected="FILE:CLASS, or a class UserAgent")
    made = _call(where, getattr(module, name), **(options or {}))
    _check_time(time.monotonic() - start, seconds, where)
    return made


def _call(where: str, function: Callable[..., T], *arguments: Any, **options: Any) -> T:  # noqa: ANN401
    """Call other people's code, which may raise anything."""
    try:
        return function(*arguments, **options)
    except ComperdialError:
        raise
    except (Exception, SystemExit) as error:
        raise AgentError(f"raised {type(error).__name__}: {error}", where=where) from error


def _check_time(taken: float, limit: float | None, where: str) -> None:
    if limit is not None and taken > limit:
        raise AgentError(f"took {taken:,.1f} s", where=where, expected=f"at most {limit:g} s")


class Session:
    """A batch of conversations with an agent, and what each has used of the limits so far.

    Raises
    ------
    AgentError
        When the agent is of the API track and there is no model.
    """

    def __init__(self, agent: Any, size: int, limits: Limits, model: Model | None) -> None:  # noqa: ANN401
        self._agent, self._limits, self._model = agent, limits, model
        self._seconds = 0.0
        self._used = [Counter[str]() for _ in range(size)]
        self.of_api_track = takes_api_responses(agent)
        if self.of_api_track and model is None:
            raise AgentError("wants a language model (API track)", expected="--api FILE:CLASS")

    def ask(self, conversations: Sequence[Conversation], places: Sequence[int], where: str) -> list[str]:
        """Return the agent's responses to conversations, each of which is at one of the batch's ``places``.

        Raises
        ------
        ComperdialError
            When the agent raises, answers with anything else than one text a conversation, or exceeds a limit.
        """
        start = time.monotonic()
        if self._model is not None and self.of_api_track:
            given = self._ask_with_model(conversations, places, where, self._model)
        else:
            given = _call(where, self._agent.generate_responses, list(conversations))
        self._seconds += time.monotonic() - start
        _check_time(self._seconds, self._limits.run_seconds, f"{where}, with the turns before")
        return _one_each(checked(list[Filled], given, where), len(conversations), where)

    def _ask_with_model(
        self, conversations: Sequence[Conversation], places: Sequence[int], where: str, model: Model
    ) -> Any:  # noqa: ANN401
        """Make the calls that the agent wants, until it gives its final responses."""
        answers: list[str] | None = None
        calls = 0
        while True:
            given = _call(where, self._agent.generate_responses, list(conversations), answers)
            turn = checked(_ApiTurn, given, where)
            if not turn.use_api:
                return turn.final_responses
            calls += 1
            if calls > self._limits.calls:
                raise AgentError(f"wants more than {self._limits.calls} calls an utterance", where=where)
            prompts = _one_each(turn.prompts, len(conversations), f"{where}, prompts")
            limits = _one_each(turn.max_generated_tokens, len(conversations), f"{where}, max_generated_tokens")
            answers = [
                self._complete([message.model_dump() for message in prompt], limit, self._used[place], where, model)
                for prompt, limit, place in zip(prompts, limits, places, strict=True)
            ]

    def _complete(self, prompt: list[dict[str, str]], limit: int, used: Counter[str], where: str, model: Model) -> str:
        # A conversation for which the agent needs no call has an empty prompt.
        if not prompt:
            return ""
        # Before the call, so that a call that would exceed the limit is never paid for.
        expected = _call(f"{where}, language model", model.count, prompt)
        self._check_tokens("input", used["input"] + expected, where)
        answer = _call(f"{where}, language model", model.complete, prompt, limit)
        used.update(input=answer.input_tokens, output=answer.output_tokens)
        self._check_tokens("input", used["input"], where)
        self._check_tokens("output", used["output"], where)
        return answer.text

    def _check_tokens(self, kind: str, used: int, where: str) -> None:
        limit = {"input": self._limits.input_tokens, "output": self._limits.output_tokens}[kind]
        if used > limit:
            raise AgentError(f"more than {limit:,} {kind} tokens in one dialogue", where=where)


def _one_each(given: list[T], count: int, where: str) -> list[T]:
    if len(given) != count:
        raise AgentError(f"gave {len(given)} for {count} conversations", where=where, expected="one each")
    return given


def takes_api_responses(agent: Any) -> bool:  # noqa: ANN401
    """Return whether an agent is of the second generation: ``generate_responses`` needs an argument besides ``test_data``.

    It may be optional if it is named ``api_responses``; other arguments with a default are the agent's own affair.
    """
    parameters = inspect.signature(agent.generate_responses).parameters
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters.values() if p.kind in positional and p.default is p.empty]
    return "api_responses" in parameters or len(needed) > 1


def run_agent(
    agent: Any,  # noqa: ANN401
    dialogues: Sequence[Dialogue],
    *,
    limits: Limits | None = None,
    model: Model | None = None,
) -> dict[tuple[str, int], str]:
    """Let an agent answer every turn of B, with gold history.

    Returns
    -------
    dict
        (dialogue_id, turn) -> response, complete.

    Raises
    ------
    ComperdialError
        As :meth:`Session.ask`.
    """
    limits = limits or Limits()
    responses: dict[tuple[str, int], str] = {}
    for first in range(0, len(dialogues), limits.batch):
        batch = dialogues[first : first + limits.batch]
        session = Session(agent, len(batch), limits, model)
        for turn in range(max(dialogue.turns for dialogue in batch)):
            places = [place for place, dialogue in enumerate(batch) if turn < dialogue.turns]
            shown = [batch[place].conversation(turn, persona_a=not session.of_api_track) for place in places]
            where = f"turn {turn} of {len(places)} conversations from {batch[places[0]].dialogue_id!r}"
            for place, text in zip(places, session.ask(shown, places, where), strict=True):
                responses[batch[place].dialogue_id, turn] = text
    return responses
