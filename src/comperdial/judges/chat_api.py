"""A real language model for agents of the API track: the judges' client behind the challenge's interface."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import Field, model_validator

from comperdial.challenge.api import Completion
from comperdial.config.checking import Expected, Maybe, Strict, Text, VariableName, checked, rule
from comperdial.config.secrets import refuse_secrets
from comperdial.core.errors import ConfigError
from comperdial.judges.ask import Limits, Throttle
from comperdial.judges.base import Answer, Family, Message, canonical, key
from comperdial.judges.base import Completion as Reply
from comperdial.judges.client import Client, JudgeError, Refused, Transient
from comperdial.judges.ledger import Ledger
from comperdial.judges.prices import (
    FREE,
    PRICES,
    Budget,
    Price,
    Prices,
    estimate_input,
    estimate_tokens,
    most_input,
)
from comperdial.judges.services import find
from comperdial.judges.services.base import Connection, Service, address

_DATASET = "api-track"

T = TypeVar("T")


class ChatApi:
    """A model behind chat completions; any number of threads may use it. Close it in the end.

    Parameters
    ----------
    service
        Who answers.
    parameters
        What is sent with each call, beside the length that the agent asks for.
    price, budget
        Of the model, and what all calls together may cost, in US dollars. A service that costs money needs both.
    throttle
        How often to try, and how long to wait.
    ledger
        Where answers are kept: a run that asks the same again, in the same order, has the same answers and pays
        nothing. A second process with the same model waits for the first. None: nothing is kept.

    Attributes
    ----------
    known
        How many calls the ledger answered.

    Raises
    ------
    ConfigError
        When a budget could not be kept.
    JudgeError
        When the service cannot answer here.
    """

    def __init__(
        self,
        service: Service,
        *,
        parameters: Mapping[str, Any] | None = None,
        price: Price | None = None,
        budget: float | None = None,
        throttle: Throttle | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self._client = Client(service)
        self._parameters = dict(parameters or {})
        self._price = price if service.paid else FREE
        if service.paid and budget is None:
            raise ConfigError(
                f"the service {service.name} costs money, and there is no budget",
                expected="`budget`: US dollars that a run may cost",
            )
        self._budget = Budget(budget)
        self._budget.check(self._price, {"max_tokens": 1}, service.connection.model)
        self._throttle = throttle or Throttle(Limits(attempts=6))
        self._settled = asyncio.Event()
        self.known = 0
        # How often each request was made in this run: an agent that asks twice wants two answers.
        self._asked: Counter[str] = Counter()
        self._guard = threading.Lock()
        self._stack = ExitStack()
        self._shelf = None
        if ledger:
            model = service.connection.model
            name = re.sub("[^A-Za-z0-9._-]+", "-", model).lstrip(".") or service.name
            identity = {**self._parameters, **service.identity()}
            family = Family(name, service.name, model, identity, "of an agent", "")
            self._shelf = self._stack.enter_context(ledger.writing(_DATASET, family))
        # The client belongs to one event loop, and agents are run from several threads.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chat-api", daemon=True)
        self._thread.start()
        self._wait(self._client.__aenter__())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; closing twice does nothing."""
        if not self._loop.is_closed():
            self._wait(self._client.__aexit__())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        self._stack.close()

    @property
    def spent(self) -> float:
        """Return what the calls have cost so far, in US dollars; those that may have been charged at their most."""
        return self._budget.spent

    def count(self, messages: Sequence[Message]) -> int:
        """Estimate how many input tokens the messages cost, without calling and without the model's own tokenizer.

        See :func:`~comperdial.judges.prices.estimate_tokens`. What a call did cost, the service says.
        """
        return estimate_input(messages)

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Completion:
        """Answer the messages with at most ``max_tokens`` tokens; faults that may pass are tried again.

        Raises
        ------
        JudgeError
            When there is no answer, or the call might pass the budget and is not made.
        """
        reply = self._reply(messages, max_tokens)
        read = self.count(messages) if reply.input_tokens is None else reply.input_tokens
        written = estimate_tokens(reply.text) if reply.output_tokens is None else reply.output_tokens
        return Completion(reply.text, read, written)

    def _reply(self, messages: Sequence[Message], max_tokens: int) -> Reply:
        """Return what the ledger has, or else what the service says, which it has from then on."""
        if self._shelf is None:
            return self._wait(self._ask(messages, max_tokens))[0]
        request = canonical({"max_tokens": max_tokens, "messages": [dict(message) for message in messages]})
        with self._guard:
            sample = self._asked[request]
            self._asked[request] += 1
        if kept := self._shelf.get(key(self._shelf.family.id, request, sample)):
            with self._guard:
                self.known += 1
            return kept.completion
        reply, cost = self._wait(self._ask(messages, max_tokens))
        self._shelf.add([Answer(request, sample, reply, cost, time=int(time.time()))])
        return reply

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _ask(self, messages: Sequence[Message], max_tokens: int) -> tuple[Reply, float]:
        limits = self._throttle.limits
        for attempt in range(1, limits.attempts + 1):
            await self._throttle.ready()
            try:
                answer = await self._try(messages, max_tokens)
            except Refused as refusal:
                raise JudgeError(str(refusal)) from None
            except Transient as fault:
                if attempt == limits.attempts or (fault.after or 0.0) > limits.patience:
                    raise JudgeError(f"{fault}; tried {attempt} times") from None
                if fault.kind == "429" or fault.after is not None:
                    self._throttle.hold(fault.after)
                await self._throttle.rest(attempt, fault.after)
            else:
                self._throttle.passed()
                return answer
        raise AssertionError("the last attempt returns or raises")

    async def _try(self, messages: Sequence[Message], max_tokens: int) -> tuple[Reply, float]:
        worst = charge = await self._reserve(messages, max_tokens)
        try:
            answer = await self._client.complete(messages, {**self._parameters, "max_tokens": max_tokens})
            charge = self._cost(answer, worst)
            return answer, charge
        except Transient as fault:
            charge = worst if fault.charged else 0.0
            if charge and self._shelf is not None:
                self._shelf.charge(charge, fault.kind)
            raise
        except (Refused, JudgeError):
            charge = 0.0
            raise
        finally:
            self._budget.settle(worst, charge)
            self._settled.set()

    async def _reserve(self, messages: Sequence[Message], max_tokens: int) -> float:
        """Set aside what a call can cost at most, when there is room; raise if there never will be."""
        budget = self._budget
        worst = self._price.of(most_input(messages), max_tokens) if self._price else 0.0
        while not budget.reserve(worst):
            if not budget.pending:
                raise JudgeError(
                    f"${budget.spent:,.4f} of the budget of ${budget.limit:,.2f} is spent, and one more call can cost "
                    f"${worst:,.4f}"
                )
            self._settled.clear()
            await self._settled.wait()
        return worst

    def _cost(self, answer: Reply, worst: float) -> float:
        if self._price is None or answer.input_tokens is None or answer.output_tokens is None:
            return worst
        return self._price.of(answer.input_tokens, answer.output_tokens)


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
    ConfigError
        Names the entry at fault.
    JudgeError
        When the service cannot answer here.
    """
    entry = checked(_Entry, options, where)
    try:
        refuse_secrets(entry.parameters, "parameters")
        connection = Connection(
            entry.service,
            entry.model,
            base_url=entry.base_url,
            key_variable=entry.key,
            identity={"base_url": address(entry.base_url)} if entry.base_url else {},
        )
        service = find(entry.service)(connection)
        price = Prices.read(prices).find(entry.model) if service.paid else None
        return ChatApi(
            service,
            parameters=entry.parameters,
            price=price,
            budget=entry.budget,
            ledger=Ledger(ledger) if ledger else None,
        )
    except ConfigError as error:
        raise ConfigError(error.problem, where=where, expected=error.expected, hint=error.hint) from error
    except JudgeError as error:
        raise JudgeError(error.problem, where=where, expected=error.expected, hint=error.hint) from error
