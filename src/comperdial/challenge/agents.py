"""Run an agent of CPD Task 1 on dialogues, turn by turn with gold history, or with itself (ComperDial, A.6).

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
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, PositiveInt

from comperdial.challenge import pairs
from comperdial.challenge.dialogues import SPEAKERS, Conversation, Dialogue, conversation, read_dialogues
from comperdial.challenge.records import Filled, checked
from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.core.files import read_jsonl

T = TypeVar("T")
Message = dict[str, str]
"""A part of a prompt: ``role`` and ``content``."""


class Limits(NamedTuple):
    """What an agent may use; the defaults are the challenge's. Tokens are sums over one dialogue (API track)."""

    batch: int = 50
    load_seconds: float = 300.0
    # For all turns of one batch, measured after each turn.
    run_seconds: float = 3600.0
    # Of the language model, for one utterance (API track).
    calls: int = 2
    input_tokens: int = 10_000
    output_tokens: int = 1_000


class AgentError(ComperdialError):
    """An agent, or the language model that it asks for, failed or broke a limit."""


class Completion(NamedTuple):
    """One answer of a language model, with the tokens that it is charged for."""

    text: str
    input_tokens: int
    output_tokens: int


class Model(Protocol):
    """The language model of the API track, a class of the user's."""

    def count(self, messages: Sequence[Message]) -> int:
        """Return how many input tokens the messages cost, without calling."""

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Completion:
        """Answer the messages with at most ``max_tokens`` tokens."""


def load(spec: str, options: Mapping[str, Any] | None = None, *, seconds: float | None = None) -> Any:  # noqa: ANN401
    """Construct the class that ``FILE[:CLASS]`` names, by default ``UserAgent``; modules beside the file can be imported.

    Code that raises, or takes longer than ``seconds``, is an :class:`AgentError`.
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


class _ApiTurn(BaseModel):
    use_api: bool
    prompts: list[list[Message]] = []
    max_generated_tokens: list[PositiveInt] = []
    final_responses: Any = None


class _Session:
    """A batch of dialogues with an agent, and what they have used of the limits so far."""

    def __init__(self, agent: Any, limits: Limits, model: Model | None) -> None:  # noqa: ANN401
        self.agent, self.limits, self.model = agent, limits, model
        self.seconds = 0.0
        self.used: dict[str, Counter[str]] = defaultdict(Counter)
        # An agent of the second generation needs a second argument, or may take one of that name.
        parameters = inspect.signature(agent.generate_responses).parameters
        needed = [p for p in parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
        self.of_api_track = "api_responses" in parameters or len(needed) > 1
        if self.of_api_track and model is None:
            raise AgentError("wants a language model (API track)", expected="--api FILE:CLASS")

    def ask(self, shown: dict[str, Conversation], what: str) -> dict[str, str]:
        """Return the agent's responses to conversations, by dialogue."""
        where = f"{what} of {len(shown)} conversations from {next(iter(shown))!r}"
        start = time.monotonic()
        if self.model is not None and self.of_api_track:
            given = self._ask_with_model(shown, where, self.model)
        else:
            given = _call(where, self.agent.generate_responses, [*shown.values()])
        self.seconds += time.monotonic() - start
        _check_time(self.seconds, self.limits.run_seconds, f"{where}, with the turns before")
        return _one_each(shown, checked(list[Filled], given, where), where)

    def _ask_with_model(self, shown: dict[str, Conversation], where: str, model: Model) -> Any:  # noqa: ANN401
        answers: list[str] | None = None
        for calls in range(self.limits.calls + 1):
            given = _call(where, self.agent.generate_responses, [*shown.values()], answers)
            turn = checked(_ApiTurn, given, where)
            if not turn.use_api:
                return turn.final_responses
            if calls == self.limits.calls:
                break
            prompts = _one_each(shown, turn.prompts, f"{where}, prompts")
            most = _one_each(shown, turn.max_generated_tokens, f"{where}, max_generated_tokens")
            at = f"{where}, language model"
            answers = [self._complete(prompts[name], most[name], self.used[name], at, model) for name in shown]
        raise AgentError(f"wants more than {self.limits.calls} calls an utterance", where=where)

    def _complete(self, prompt: list[Message], most: int, used: Counter[str], where: str, model: Model) -> str:
        # A conversation for which the agent needs no call has an empty prompt.
        if not prompt:
            return ""

        def check(kind: str, tokens: int, limit: int) -> None:
            if tokens > limit:
                raise AgentError(f"more than {limit:,} {kind} tokens in one dialogue", where=where)

        # Before the call, so that a call that would exceed the limit is never paid for.
        check("input", used["input"] + _call(where, model.count, prompt), self.limits.input_tokens)
        answer = _call(where, model.complete, prompt, most)
        used.update(input=answer.input_tokens, output=answer.output_tokens)
        check("input", used["input"], self.limits.input_tokens)
        check("output", used["output"], self.limits.output_tokens)
        return answer.text


def _one_each(shown: dict[str, Conversation], given: list[T], where: str) -> dict[str, T]:
    if len(given) != len(shown):
        raise AgentError(f"gave {len(given)} for {len(shown)} conversations", where=where, expected="one each")
    return dict(zip(shown, given, strict=True))


def run_agent(
    agent: Any,  # noqa: ANN401
    dialogues: Sequence[Dialogue],
    *,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    model: Model | None = None,
) -> dict[tuple[str, int], str]:
    """Let an agent answer every turn of B, with gold history; return its responses by dialogue and turn.

    An agent that raises, answers with anything else than one text a conversation, or exceeds a limit is a
    :class:`~comperdial.core.errors.ComperdialError`.
    """
    responses: dict[tuple[str, int], str] = {}
    for first in range(0, len(dialogues), limits.batch):
        batch = dialogues[first : first + limits.batch]
        session = _Session(agent, limits, model)
        for turn in range(max(one.turns for one in batch)):
            shown = {
                one.dialogue_id: one.conversation(turn, persona_a=not session.of_api_track)
                for one in batch
                if turn < one.turns
            }
            answers = session.ask(shown, f"turn {turn}")
            responses |= {(name, turn): text for name, text in answers.items()}
    return responses


# Self-chats


def self_chat(
    agent: Any,  # noqa: ANN401
    system_id: str,
    openings: Sequence[Dialogue],
    turns: int,
    *,
    model: Model | None = None,
) -> list[pairs.Dialogue]:
    """Let an agent play both speakers of dialogues, each of which speaks ``turns`` times; errors are those of `run_agent`.

    Of ``openings`` the personas and the first utterance are taken. An agent of the challenge answers A as B. When A is to
    speak, the speakers change names and personas, so that the agent answers as B again.
    """
    limits = Limits()
    chats = {one.dialogue_id: [one.texts[0]] for one in openings}
    for first in range(0, len(openings), limits.batch):
        batch = openings[first : first + limits.batch]
        session = _Session(agent, limits, model)
        for number in range(2, 2 * turns + 1):
            # The last to speak is A, and the other, whose turn it is, is B.
            last, other = SPEAKERS if number % 2 == 0 else SPEAKERS[::-1]
            shown = {
                one.dialogue_id: conversation(
                    None if session.of_api_track else one.personas[last], one.personas[other], chats[one.dialogue_id]
                )
                for one in batch
            }
            for name, text in session.ask(shown, f"utterance {number}").items():
                chats[name].append(text)
    lines = {name: tuple(zip(cycle(SPEAKERS), texts, strict=False)) for name, texts in chats.items()}
    return [pairs.Dialogue(name, system_id, "B", spoken) for name, spoken in lines.items()]


class _Pair(BaseModel):
    context: str
    response: str


class _Chat(BaseModel):
    utterances: list[pairs.Utterance]


def read_training(path: str | Path) -> list[list[str]]:
    """Read the dialogues that an agent was trained on, each as its texts.

    ``.json`` has dialogues in ComperDial's form; ``.jsonl`` has records with ``context`` and ``response``, each a text, or with
    ``utterances``, as a file of dialogues has them. An error names the record at fault.
    """
    if Path(path).suffix == ".json":
        return [list(dialogue.texts) for dialogue in read_dialogues(path)]
    read = []
    for number, record in read_jsonl(path):
        entry = checked(_Chat if "utterances" in record else _Pair, record, f"{path}, line {number}")
        chat = isinstance(entry, _Chat)
        read.append([one.text for one in entry.utterances] if chat else [entry.context, entry.response])
    return read


class Faults(NamedTuple):
    """What is wrong with an agent's self-chats; without a training text nothing of it is counted as known."""

    dialogues: int
    # Dialogues in which the agent repeats an utterance, by either speaker.
    repeating: int
    # Dialogues that end in a cycle: the last utterances, however many, are those just before them.
    looping: int
    # The agent's utterances, and how many of them repeat an earlier one of their dialogue.
    utterances: int
    repeated: int
    # How many of them, and of the call-response pairs that they end, are word for word in the training text.
    known_utterances: int | None = None
    known_pairs: int | None = None

    def report(self, system_id: str) -> str:
        """Return the counts as a sentence."""
        shares = (
            (self.repeated, "repeated"),
            (self.known_utterances, "in the training text"),
            (self.known_pairs, "with the one before in the training text"),
        )
        texts = [f"{n / max(1, self.utterances):.1%} {what}" for n, what in shares if n is not None]
        return (
            f"{system_id}: {self.dialogues} self-chats, {self.repeating} repeat an utterance, {self.looping} end in a "
            f"loop; of {self.utterances} utterances, {', '.join(texts)}"
        )


def faults(dialogues: Sequence[pairs.Dialogue], training: Sequence[Sequence[str]] | None = None) -> Faults:
    """Count loops and copies in self-chats; the first utterance of each was given and is not the agent's."""
    chats = [_plain([text for _, text in dialogue.utterances]) for dialogue in dialogues]
    repeats = [sum(text in texts[:i] for i, text in enumerate(texts)) for texts in chats]
    replies = [pair for texts in chats for pair in pairwise(texts)]
    loops = sum(any(t[-n:] == t[-2 * n : -n] for n in range(1, len(t) // 2 + 1)) for t in chats)
    counts = Faults(len(chats), sum(count > 0 for count in repeats), loops, len(replies), sum(repeats))
    if training is None:
        return counts
    known = [_plain(texts) for texts in training]
    known_texts, known_pairs = {t for texts in known for t in texts}, {p for texts in known for p in pairwise(texts)}
    return counts._replace(
        known_utterances=sum(text in known_texts for _, text in replies),
        known_pairs=sum(pair in known_pairs for pair in replies),
    )


def _plain(texts: Sequence[str]) -> list[str]:
    """Return texts in lower case, with single spaces."""
    return [" ".join(text.casefold().split()) for text in texts]
