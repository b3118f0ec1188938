"""A real language model for agents of the API track: the judges' asker behind the challenge's interface."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from comperdial.challenge.api import Completion
from comperdial.config.checking import Expected, Maybe, Strict, Text, VariableName, checked, rule
from comperdial.config.secrets import refuse_secrets
from comperdial.core.errors import ConfigError
from comperdial.judges.answers import AnswerFile
from comperdial.judges.asking import Asker
from comperdial.judges.prices import FREE, PRICES, Price, estimate_input, estimate_tokens, find_price
from comperdial.judges.requests import Answer, Family, JudgeError, Message, Request, encode
from comperdial.judges.services import Service, address, find
from comperdial.judges.tasks import ANY_ROLE, Judge


class ChatApi:
    """A model behind chat completions; any number of threads may use it. Close it in the end.

    Parameters
    ----------
    price, budget
        Of the model, and what all calls together may cost, in US dollars. A service that costs money needs both.
    attempts
        How often to try a call.
    answers
        Where answers are kept: a run that asks the same again, in the same order, has the same answers and pays nothing.
        None: nothing is kept.

    Attributes
    ----------
    known
        How many calls were answered from there.
    """

    def __init__(
        self,
        service: Service,
        *,
        price: Price = FREE,
        budget: float | None = None,
        attempts: int = 6,
        answers: Path | None = None,
    ) -> None:
        if service.paid and not budget:
            raise ConfigError(
                f"{service.judge.model} costs money, and there is no budget",
                expected="`budget`: US dollars that a run may cost",
            )
        if why := service.unavailable():
            raise JudgeError(f"{service.judge.model} cannot be asked: {why}")
        self.known = 0
        # How often each request was made in this run: an agent that asks twice wants two answers.
        self._asked: Counter[str] = Counter()
        self._stack = ExitStack()
        with self._stack:
            self._answers = self._stack.enter_context(AnswerFile(answers, "api-track"))
            self._stack.enter_context(self._answers.asking())
            before = self._answers.spent
            limit = None if budget is None else before + budget
            connection = {**service.judge.connection, "attempts": attempts}
            # One agent's mistakes are not another's.
            self._asker = Asker(service, self._answers, connection, price=price, budget=limit, accept_refused=True)
            # A service belongs to one event loop, and agents are run from several threads.
            runner = self._stack.enter_context(asyncio.Runner())
            self._loop = runner.get_loop()
            self._stack.callback(lambda: runner.run(service.close()))
            thread = threading.Thread(target=self._loop.run_forever, name="chat-api", daemon=True)
            thread.start()
            self._stack.callback(thread.join)
            self._stack.callback(self._loop.call_soon_threadsafe, self._loop.stop)
            self._stack = self._stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; closing twice does nothing."""
        self._stack.close()

    @property
    def spent(self) -> float:
        """Return what the calls have cost so far, in US dollars; those that may have been billed at their most."""
        return self._asker.report.cost + self._asker.report.charged

    def count(self, messages: Sequence[Message]) -> int:
        """Estimate how many input tokens the messages cost, without calling."""
        return estimate_input(messages)

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Completion:
        """Answer the messages with at most ``max_tokens`` tokens; faults that may pass are tried again.

        Raises
        ------
        JudgeError
            When there is no answer, or the call might pass the budget and is not made.
        """
        asked = self._ask(encode(messages), max_tokens)
        answer = asyncio.run_coroutine_threadsafe(asked, self._loop).result()
        read = self.count(messages) if answer.input_tokens is None else answer.input_tokens
        written = estimate_tokens(answer.text) if answer.output_tokens is None else answer.output_tokens
        return Completion(answer.text, read, written)

    async def _ask(self, messages: str, max_tokens: int) -> Answer:
        service = self._asker.service
        judge = service.judge
        parameters = {**judge.parameters, **service.identity(), "max_tokens": max_tokens}
        family = Family(judge.name, judge.service, judge.model, parameters, "of an agent", "")
        name = f"{max_tokens} {messages}"
        request = Request(family, messages, self._asked[name])
        self._asked[name] += 1
        answer = self._answers.get(request.key)
        if answer is not None:
            self.known += 1
        else:
            answer = await self._asker.ask(request)
        if answer is None:
            stopped = self._asker.report.stopped
            raise stopped or JudgeError(next(reversed(self._asker.report.failures), "no answer"))
        if answer.refused:
            raise JudgeError(f"the service refuses the request: {answer.text}")
        return answer


class _Entry(Strict):
    service: Text
    model: Text
    key: Maybe[VariableName] = None
    base_url: Maybe[Annotated[str, Expected("a URL", hidden=True)]] = None
    budget: Maybe[Annotated[int | float, Field(gt=0), Expected("US dollars above 0, or no budget")]] = None
    parameters: dict[str, Any] = Field(default={})

    @model_validator(mode="after")
    def _leaves_the_length_to_agents(self) -> _Entry:
        for name in ("max_tokens", "max_completion_tokens"):
            if name in self.parameters:
                expected = "the agent to say how much it wants"
                raise rule(f"`{name}` among the parameters", expected, "parameters", name)
        return self


def make_api(options: Mapping[str, Any], where: str, *, prices: Path = PRICES, ledger: Path | None = None) -> ChatApi:
    """Make the model that a roster's entry ``api`` describes.

    Parameters
    ----------
    options
        ``service`` and ``model``; maybe ``key`` (the environment variable that holds it), ``base_url``, ``budget`` (US
        dollars that a run may cost) and ``parameters`` (temperature, …).
    where
        File and entry, for messages.
    prices
        The price list.
    ledger
        The folder of answers that are kept; None: nothing is kept.

    Raises
    ------
    ConfigError, JudgeError
        Name the entry at fault.
    """
    entry = checked(_Entry, options, where)
    try:
        refuse_secrets(entry.parameters, "parameters")
        connection = {name: value for name in ("key", "base_url") if (value := getattr(entry, name))}
        identity = {"base_url": address(entry.base_url)} if entry.base_url else {}
        judge = Judge(
            entry.model,
            entry.service,
            entry.model,
            ANY_ROLE,
            "generate",
            entry.parameters,
            None,
            connection,
            None,
            identity,
        )
        service = find(entry.service)(judge)
        price = find_price(prices, entry.model) if service.paid else FREE
        # Not the judges' file: agents may be run while judges are asked.
        answers = ledger / "api-track.sqlite" if ledger else None
        return ChatApi(service, price=price, budget=entry.budget, answers=answers)
    except (ConfigError, JudgeError) as error:
        kind = JudgeError if isinstance(error, JudgeError) else ConfigError
        raise kind(error.problem, where=where, expected=error.expected, hint=error.hint) from error
