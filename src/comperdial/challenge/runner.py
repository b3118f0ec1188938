"""Run agents on dialogues, turn by turn with gold history, within the challenge's limits."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from comperdial.challenge.api import Api
from comperdial.challenge.dialogues import Dialogue
from comperdial.challenge.limits import AgentError, Limits
from comperdial.challenge.process import AgentProcess, Group
from comperdial.challenge.submissions import writing_submission
from comperdial.core.files import printable, write_json

log = logging.getLogger(__name__)


@dataclass
class Run:
    """What came of one agent.

    Attributes
    ----------
    system_id
        The agent's name.
    responses
        (dialogue_id, turn) -> response, complete; empty when the agent failed.
    problem
        Why it failed; None when it did not.
    seconds
        Wall time, loading included.
    calls, input_tokens, output_tokens
        What it used of the language model, over all dialogues (API track).
    """

    system_id: str
    responses: dict[tuple[str, int], str] = field(default_factory=dict)
    problem: str | None = None
    seconds: float = 0.0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def report(self) -> dict[str, Any]:
        """Return the run without its responses and without its time, which differs from run to run."""
        found = asdict(self)
        found["responses"] = len(self.responses)
        del found["seconds"]
        return found


def run_agent(
    system_id: str,
    spec: Mapping[str, Any],
    dialogues: Sequence[Dialogue],
    *,
    limits: Limits | None = None,
    api: Api | None = None,
    show: bool = False,
    group: Group | None = None,
) -> Run:
    """Run one agent in a process of its own on all dialogues.

    Parameters
    ----------
    system_id
        The agent's name, for messages and for the submission.
    spec
        As :func:`comperdial.challenge.worker.load` takes it.
    dialogues
        What to answer: every turn of B, with gold history.
    limits
        Default: the challenge's.
    api
        The language model for agents of the API track.
    show
        Pass on what the agent prints, to standard error.
    group
        Those that the agent's process is killed with.

    Returns
    -------
    Run
        With all responses or with a problem: an agent that raises, hangs, answers wrongly or exceeds a limit never
        raises here.
    """
    limits = limits or Limits()
    run = Run(system_id)
    start = time.monotonic()
    try:
        with AgentProcess(spec, load_seconds=limits.load_seconds, show=show, group=group) as agent:
            if agent.takes_api_responses and api is None:
                raise AgentError("it wants a language model (API track), and none was given")
            for first in range(0, len(dialogues), limits.batch):
                _run_batch(agent, dialogues[first : first + limits.batch], limits, api, run)
    except AgentError as error:
        run.responses = {}
        run.problem = printable(str(error))
        if group is None or not group.killed:
            log.warning("%s failed: %s", system_id, run.problem)
    run.seconds = time.monotonic() - start
    return run


def run_roster(
    roster: Sequence[Mapping[str, Any]],
    dialogues: Sequence[Dialogue],
    *,
    limits: Limits | None = None,
    api: Api | None = None,
    jobs: int = 1,
) -> Iterator[Run]:
    """Run every agent of a roster (entries with ``id``, and ``kind`` or ``file``), ``jobs`` at a time.

    Yields
    ------
    Run
        In the roster's order, whatever order they ended in. At most ``2 * jobs`` agents are under way or wait for one
        that was named before them, so that the responses of all are never held at once.
    """

    def one(entry: Mapping[str, Any]) -> Run:
        return run_agent(entry["id"], entry, dialogues, limits=limits, api=api, group=group)

    group = Group()
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        with tqdm(total=len(roster), desc="agents", disable=None) as shown:
            waiting: deque[Future[Run]] = deque()
            rest = iter(roster)
            while True:
                waiting.extend(pool.submit(one, entry) for entry in islice(rest, 2 * jobs - len(waiting)))
                if not waiting:
                    return
                run = waiting.popleft().result()
                shown.update()
                yield run
    finally:
        # Where the run was interrupted, agents are still at work, which may take them hours.
        group.kill()
        pool.shutdown(wait=False, cancel_futures=True)


def write_runs(
    runs: Iterable[Run], output: str | Path, report: str | Path | None, *, named: bool
) -> list[dict[str, Any]]:
    """Write what came of agents: their responses as one submission, a report of each, and a line for each that failed.

    Parameters
    ----------
    runs
        As they end.
    output
        The submission, a .jsonl file; with ``named``, each line says whose it is.
    report
        A .json file for the reports, if wanted.

    Returns
    -------
    list of dict
        The reports.
    """
    reports, spent = [], 0.0
    with writing_submission(output, named=named) as add:
        for run in runs:
            if run.problem is None:
                add(run.system_id, run.responses)
            reports.append(run.report())
            spent += run.seconds
    if report:
        write_json(report, {"agents": reports})
    failed = [found for found in reports if found["problem"] is not None]
    for found in failed:
        print(f"{found['system_id']}: no submission: {found['problem']}")  # noqa: T201 - the command's, and the job's log
    complete = len(reports) - len(failed)
    print(f"{output}: {complete} of {len(reports)} agents, {spent:.0f} s of agents")  # noqa: T201
    return reports


def _run_batch(agent: AgentProcess, batch: Sequence[Dialogue], limits: Limits, api: Api | None, run: Run) -> None:
    deadline = time.monotonic() + limits.run_seconds
    used = {dialogue.dialogue_id: [0, 0] for dialogue in batch}
    for turn in range(max(dialogue.turns for dialogue in batch)):
        chosen = [dialogue for dialogue in batch if turn < dialogue.turns]
        doing = f"turn {turn} of {len(chosen)} conversations from {chosen[0].dialogue_id!r}"
        data = [dialogue.conversation(turn, persona_a=not agent.takes_api_responses) for dialogue in chosen]
        if agent.takes_api_responses and api is not None:
            texts = _ask_with_api(agent, data, [used[d.dialogue_id] for d in chosen], limits, api, deadline, doing, run)
        else:
            texts = agent.ask({"test_data": data}, deadline - time.monotonic(), doing)
        for dialogue, text in zip(chosen, _checked(texts, len(chosen), doing), strict=True):
            run.responses[dialogue.dialogue_id, turn] = text


def _checked(texts: Any, count: int, doing: str) -> list[str]:  # noqa: ANN401
    if not isinstance(texts, list):
        raise AgentError(f"{doing}: returned {_kind(texts)}, not a list of texts")
    if len(texts) != count:
        raise AgentError(f"{doing}: returned {len(texts)} responses for {count} conversations")
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise AgentError(f"{doing}: response {number} is {_kind(text)}, not a text")
        if not text.strip():
            raise AgentError(f"{doing}: response {number} is empty")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise AgentError(f"{doing}: response {number} holds half of a surrogate pair") from None
    return texts


def _kind(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, dict) and set(value) == {"type"}:
        return f"a {value['type']}"
    return f"{value!r:.60} ({type(value).__name__})"


def _ask_with_api(
    agent: AgentProcess,
    data: Sequence[Mapping[str, Any]],
    used: Sequence[list[int]],
    limits: Limits,
    api: Api,
    deadline: float,
    doing: str,
    run: Run,
) -> Any:  # noqa: ANN401
    """Ask an agent of the API track, making the calls it wants, until it gives its final responses.

    ``used`` holds [input tokens, output tokens] of each conversation's dialogue so far, and is added to.
    """
    answers: list[str] | None = None
    for call in range(limits.calls + 1):
        request = {"test_data": data, "api_responses": answers}
        turn = agent.ask(request, deadline - time.monotonic(), doing)
        if not isinstance(turn, dict) or not isinstance(turn.get("use_api"), bool):
            raise AgentError(f"{doing}: returned {_kind(turn)}, not an object with use_api")
        if not turn["use_api"]:
            return turn.get("final_responses")
        if call == limits.calls:
            raise AgentError(f"{doing}: wants more than {limits.calls} calls an utterance")
        prompts, most = turn.get("prompts"), turn.get("max_generated_tokens")
        if prompts is None or most is None or not _is_prompts(prompts, len(data)) or not _is_counts(most, len(data)):
            raise AgentError(f"{doing}: prompts and max_generated_tokens are not one a conversation")
        answers = [
            _complete(api, prompt, tokens, spent, limits, f"{doing}, conversation {n}", run)
            for n, (prompt, tokens, spent) in enumerate(zip(prompts, most, used, strict=True), start=1)
        ]
    raise AssertionError("the last round returns or raises")


def _is_prompts(value: Any, count: int) -> bool:  # noqa: ANN401
    return (
        isinstance(value, list)
        and len(value) == count
        and all(isinstance(p, list) and all(_is_message(message) for message in p) for p in value)
    )


def _is_message(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, dict) and isinstance(value.get("role"), str) and isinstance(value.get("content"), str)


def _is_counts(value: Any, count: int) -> bool:  # noqa: ANN401
    return isinstance(value, list) and len(value) == count and all(type(n) is int and n > 0 for n in value)


def _complete(
    api: Api,
    prompt: Sequence[Mapping[str, str]],
    most: int,
    spent: list[int],
    limits: Limits,
    doing: str,
    run: Run,
) -> str:
    # A conversation for which the agent needs no call has an empty prompt.
    if not prompt:
        return ""
    try:
        # Before the call, so that a call that would break the limit is never paid for.
        if spent[0] + api.count(prompt) > limits.input_tokens:
            raise AgentError(f"{doing}: more than {limits.input_tokens} input tokens in one dialogue")
        answer = api.complete(prompt, most)
    except AgentError:
        raise
    # A model's client may raise anything. The other agents of a roster must not pay for it.
    except Exception as error:
        raise AgentError(f"{doing}: the language model failed: {type(error).__name__}: {error}") from error
    spent[0] += answer.input_tokens
    spent[1] += answer.output_tokens
    run.calls += 1
    run.input_tokens += answer.input_tokens
    run.output_tokens += answer.output_tokens
    if spent[0] > limits.input_tokens:
        raise AgentError(f"{doing}: more than {limits.input_tokens} input tokens in one dialogue")
    if spent[1] > limits.output_tokens:
        raise AgentError(f"{doing}: more than {limits.output_tokens} output tokens in one dialogue")
    return answer.text
