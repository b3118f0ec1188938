"""A real language model for agents of the API track: the judges' asker behind the challenge's interface."""

from __future__ import annotations

import asyncio
import re
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
from comperdial.judges.ask import Asker, Limits
from comperdial.judges.base import Answer, Family, JudgeError, Message, Parsed, canonical, key
from comperdial.judges.ledger import Ledger
from comperdial.judges.prices import PRICES, Price, Prices, estimate_input, estimate_tokens
from comperdial.judges.services import find
from comperdial.judges.services.base import Connection, Service, address

_DATASET = "api-track"


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
    limits
        How often to try, and how long to wait.
    ledger
        Where answers are kept: a run that asks the same again, in the same order, has the same answers and pays
        nothing. A second process that asks the same at the same time waits for the first. None: nothing is kept.

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
        limits: Limits | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        if service.paid and budget is None:
            raise ConfigError(
                f"the service {service.name} costs money, and there is no budget",
                expected="`budget`: US dollars that a run may cost",
            )
        if budget is not None and budget <= 0:
            raise ConfigError(f"the budget is {budget!r}", expected="US dollars above 0, or no budget")
        self.known = 0
        # How often each request was made in this run: an agent that asks twice wants two answers.
        self._asked: Counter[str] = Counter()
        self._guard = threading.Lock()
        self._stack = ExitStack()
        model = service.connection.model
        name = re.sub("[^A-Za-z0-9._-]+", "-", model).lstrip(".") or service.name
        identity = {**(parameters or {}), **service.identity()}
        family = Family(name, service.name, model, identity, "of an agent", "")
        with self._stack:
            opened = (ledger or Ledger(None)).open(_DATASET, family, paid=service.paid)
            self._writer = self._stack.enter_context(opened)
            self._asker = Asker(
                service,
                self._writer,
                # Each request says how long its answer may be.
                parameters={**identity, "max_tokens": 1},
                read=lambda completion: Parsed({}),
                limits=limits or Limits(attempts=6),
                price=price,
                budget=budget,
                # One agent's mistakes are not another's.
                accept_refused=True,
            )
            # A service belongs to one event loop, and agents are run from several threads.
            runner = self._stack.enter_context(asyncio.Runner())
            self._loop = runner.get_loop()
            asking = self._asker.asking()
            runner.run(asking.__aenter__())
            self._stack.callback(lambda: runner.run(asking.__aexit__(None, None, None)))
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
        """Return what the calls have cost so far, in US dollars; those that may have been charged at their most."""
        return self._asker.report.paid

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
        request = canonical({"max_tokens": max_tokens, "messages": [dict(message) for message in messages]})
        with self._guard:
            sample = self._asked[request]
            self._asked[request] += 1
        reply = self._answer(request, sample).completion
        read = self.count(messages) if reply.input_tokens is None else reply.input_tokens
        written = estimate_tokens(reply.text) if reply.output_tokens is None else reply.output_tokens
        return Completion(reply.text, read, written)

    def _answer(self, request: str, sample: int) -> Answer:
        """Return what the ledger has, or else what the service says, which it has from then on."""
        if kept := self._writer.get(key(self._writer.family.id, request, sample)):
            with self._guard:
                self.known += 1
            return kept
        return asyncio.run_coroutine_threadsafe(self._asker.require(request, sample), self._loop).result()


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
