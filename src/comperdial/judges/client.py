"""The only code that talks to a judge's service: one request in, one raw answer out, through the openai client.

Nothing is tried again here (:mod:`comperdial.judges.running` does that), and nothing that leaves here holds the key.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
import re
import ssl
from collections.abc import Container, Mapping, Sequence
from typing import Any, NoReturn, Self

import httpx2
import openai

from comperdial.core.errors import ConfigError
from comperdial.judges._answers import (
    SPENT,
    JudgeError,
    Refused,
    Transient,
    read_completion,
    read_error,
    read_wait,
)
from comperdial.judges.base import Completion, Message
from comperdial.judges.services.base import Connection, Service, address

__all__ = ["Client", "Connection", "JudgeError", "Refused", "Transient"]

_TIMEOUT = 60.0
_NO_KEY = "none"
# Shorter than any key that is worth hiding in an answer, whose words must stay as they are.
_SHORT = 8
_MOST = 300
_SECRET = re.compile(r"\bsk-[\w*.…-]+|(?<=bearer )\S+", re.IGNORECASE)
_MISTAKES = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)
_NOT_REACHED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
# What we set ourselves, and what would give answers that we do not read.
_OURS = ("model", "messages", "stream", "n")


class Client:
    """A service's chat completions; use it as an asynchronous context manager.

    Parameters
    ----------
    service
        Who answers.

    Raises
    ------
    JudgeError
        When the service cannot answer here.
    ConfigError
        When its address is none.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        if reason := service.unavailable():
            raise JudgeError(f"service {service.name!r} cannot answer: {reason}")
        self._transport = service.transport()
        self._timeout = service.connection.timeout or (None if self._transport else _TIMEOUT)
        self._key = service.api_key
        if self._key and not re.fullmatch(r"[!-~]+", self._key):
            raise JudgeError(f"what {service.key_variable} holds cannot be a key", expected="ASCII letters and marks")
        self._claimed = frozenset(service.identity())
        self._where = address(service.base_url)
        self._open: list[openai.AsyncOpenAI] = []
        self._free: list[openai.AsyncOpenAI] = []
        self._trust: ssl.SSLContext | None = None

    async def __aenter__(self) -> Self:
        for name in ("httpx2", "httpcore2"):
            # A line a request otherwise, and headers at the level of debugging.
            if logging.getLogger(name).level == logging.NOTSET:
                logging.getLogger(name).setLevel(logging.WARNING)
        self._trust = httpx2.create_ssl_context()
        return self

    async def __aexit__(self, *_: object) -> None:
        for lane in self._open:
            await lane.close()
        self._open, self._free, self._trust = [], [], None

    def _lane(self) -> openai.AsyncOpenAI:
        """Return a client with a connection of its own.

        One client with many connections looks at each of them before every call, which takes a quarter of the time.
        """
        if self._trust is None:
            raise RuntimeError("use the client as an asynchronous context manager")
        if self._free:
            return self._free.pop()
        timeout = httpx2.Timeout(self._timeout)
        key = self._key or _NO_KEY
        headers: dict[str, Any] = {"Authorization": f"Bearer {key}"}
        if self.service.connection.base_url or self._transport:
            # Read from the environment otherwise, and of no concern to another service.
            headers |= {"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit}
        lane = openai.AsyncOpenAI(
            api_key=key,
            admin_api_key="",
            base_url=self.service.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=httpx2.AsyncClient(transport=self._transport, timeout=timeout, verify=self._trust),
            default_headers=headers,
        )
        self._open.append(lane)
        return lane

    async def complete(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> Completion:
        """Ask once.

        Parameters
        ----------
        messages
            The chat so far.
        parameters
            Sent as they are, but for those by which the service identifies itself.

        Raises
        ------
        Transient
            When another try may succeed.
        Refused
            When this request can never be answered.
        JudgeError
            When no request can be answered.
        ConfigError
            When a parameter asks for what is not read: a stream, several answers.
        """
        body = request_body(self.service, self._claimed, messages, parameters)
        lane = self._lane()
        try:
            # httpx2's timeout is one of silence; a service that drips would never meet it.
            async with asyncio.timeout(self._timeout):
                # The response as it is: building the openai client's models costs more than the rest of a call.
                response = await lane.post("/chat/completions", body=body, cast_to=httpx2.Response)
        except TimeoutError:
            raise self._late() from None
        except openai.APIConnectionError as error:
            raise self._lost(error) from None
        except openai.APIStatusError as error:
            self._fail(error)
        except UnicodeEncodeError:
            raise Refused("not Unicode", "the prompt holds half of a character") from None
        finally:
            self._free.append(lane)
        try:
            return self._keyless(read_completion(response.content))
        except Transient as fault:
            raise Transient(fault.kind, self._clean(str(fault)), charged=fault.charged) from None

    def _late(self) -> Transient:
        return Transient("timed out", f"no answer within {self._timeout or math.inf:g} s", charged=True)

    def _lost(self, error: openai.APIConnectionError) -> Transient:
        """Return what it means that there was no answer."""
        cause = error.__cause__
        reason = self._clean(f"{type(cause).__name__}: {cause}" if cause else str(error))
        if isinstance(cause, _MISTAKES):
            raise JudgeError(f"a request cannot be sent ({reason})", where=self._where)
        if isinstance(cause, _NOT_REACHED):
            return Transient("not reached", f"{self._where} cannot be reached ({reason})")
        if isinstance(error, openai.APITimeoutError):
            return self._late()
        return Transient("cut", f"the connection was cut ({reason})", charged=True)

    def _fail(self, error: openai.APIStatusError) -> NoReturn:
        """Raise what an answer with an error status means."""
        status = error.status_code
        said = self._clean(read_error(error.body) or error.response.text)
        problem = f"status {status}: {said}" if said else f"status {status}"
        if {str(error.code), str(error.type)} & SPENT or status == 402:
            hint = "The account has no quota left: see to it, and run again"
            raise JudgeError(problem, where=self._where, hint=hint) from None
        if status in (408, 409, 425, 429) or status >= 500:
            raise Transient(str(status), problem, after=read_wait(error.response.headers)) from None
        if status < 400 or status in (401, 403, 404, 405):
            raise JudgeError(problem, where=self._where, hint=self._advice(status)) from None
        raise Refused(str(status), problem) from None

    def _advice(self, status: int) -> str:
        if status in (401, 403):
            variable = self.service.key_variable
            return f"Is the key in {variable} right?" if variable else "Name the key's variable: `key`, --key"
        if not self._where.endswith("/v1"):
            return f"The base_url of most servers ends in /v1: is it {self._where}/v1?"
        return "Are the judge's base_url and model right?"

    def _clean(self, text: str) -> str:
        """Return a text on one line, not too long, and without anything that is or looks like a key."""
        text = _SECRET.sub("[key]", text.replace(self._key, "[key]") if self._key else text)
        text = " ".join(text.split())
        return text if len(text) <= _MOST else text[: _MOST - 1] + "…"

    def _keyless(self, completion: Completion) -> Completion:
        """Return an answer without the key, should a server echo it: answers are kept, and shared."""
        key = self._key
        if key is None or len(key) < _SHORT:
            return completion
        texts = {name: getattr(completion, name) for name in ("text", "finish", "model")}
        echoed = {name: text.replace(key, "[key]") for name, text in texts.items() if text and key in text}
        if completion.logprobs and any(key in token for token in completion.logprobs):
            return dataclasses.replace(completion, logprobs=None, **echoed)
        return dataclasses.replace(completion, **echoed) if echoed else completion


def request_body(
    service: Service, claimed: Container[str], messages: Sequence[Message], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the body of a request.

    Parameters
    ----------
    claimed
        Parameters by which the service identifies itself; they are not sent.

    Raises
    ------
    ConfigError
        When a parameter asks for what is not read: a stream, several answers.
    """
    sent = {name: value for name, value in parameters.items() if name not in claimed}
    if taken := [name for name in _OURS if name in sent]:
        raise ConfigError(
            f"parameter {taken[0]!r} of a judge cannot be set", expected="one answer a request, in one piece"
        )
    return {"model": service.connection.model or service.name, "messages": list(messages), **sent}
