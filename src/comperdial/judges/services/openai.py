"""OpenAI, and every server that speaks its protocol at an address of its own: vLLM, Ollama, llama.cpp, ….

The only code that talks to the network for a judge, through the openai client: one request, one raw answer. Nothing is
tried again here, and nothing that leaves here holds the key.
"""

from __future__ import annotations

import asyncio
import dataclasses
import email.utils
import functools
import ipaddress
import json
import logging
import math
import re
import ssl
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

import httpx2
import openai

from comperdial.core.errors import ConfigError, shown
from comperdial.judges.base import DECLINED, Completion, JudgeError, Message, Refused, Transient
from comperdial.judges.services.base import Connection, Service, address
from comperdial.judges.weighting import RAW_SPACES

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Codes of errors that no request is to blame for, whatever their status."""

_TOP = 20
# Tokens of a label, at most.
_LONGEST = 8
_TIMEOUT = 60.0
# A long answer with the probabilities of 20 tokens at each place takes some megabytes.
_MOST_BYTES = 16 << 20
# More tokens than any model reads: a service that reports more is not to be believed.
_MOST_TOKENS = 1 << 31
_FINITE = sys.float_info.max
# Shorter than any key that is worth hiding in an answer, whose words must stay as they are.
_SHORT = 8
_MOST = 300
_SECRET = re.compile(r"\bsk-[\w*.…-]+|(?<=bearer )\S+", re.IGNORECASE)
_MISTAKES = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)
_NOT_REACHED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
# Of whoever stands before the service, and does not know what that has done: it may have answered, and charge.
_GATEWAY = frozenset({408, 502, 504, 520, 522, 524})
# What we set ourselves, and what would give answers that we do not read.
_OURS = ("model", "messages", "stream", "n")


class OpenAI(Service):
    """Chat completions over HTTP.

    Without an address it is OpenAI, whose key is in ``OPENAI_API_KEY`` unless the judge names another variable. To
    any other address no key is sent but one from the variable that the judge names.
    """

    name = "openai"

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.paid = not is_loopback(self.base_url)
        self._open: list[openai.AsyncOpenAI] = []
        self._free: list[openai.AsyncOpenAI] = []
        self._trust: ssl.SSLContext | bool | None = None

    @property
    def base_url(self) -> str:
        """Return the judge's address, or OpenAI's. The variable ``OPENAI_BASE_URL`` is not asked."""
        return self.connection.base_url or OPENAI_URL

    @property
    def key_variable(self) -> str | None:
        """Return the environment variable of the key."""
        return self.connection.key_variable or (None if self.connection.base_url else OPENAI_KEY)

    @property
    def pace_name(self) -> str | None:
        """Return what shares a limit: the address, the model and the key's variable."""
        return "\n".join((address(self.base_url), self.connection.model, self.key_variable or ""))

    def weighting(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return what asks for the 20 most probable first tokens, the most that OpenAI gives."""
        return {"logprobs": True, "top_logprobs": _TOP}

    def identity(self) -> dict[str, Any]:
        """Return what else answers depend on; with a seed, that each sample has its own."""
        seeded = {"seeds": "seed + sample"} if "seed" in self.connection.options else {}
        return super().identity() | seeded

    def unavailable(self) -> str | None:
        """Return that the model or the key is missing."""
        if not self.connection.model:
            return "no model is named"
        if self.key_variable and not self.api_key:
            return f"the environment variable {self.key_variable} is not set"
        return None

    async def __aenter__(self) -> Self:
        if reason := self.unavailable():
            raise JudgeError(f"service {self.name!r} cannot answer: {reason}")
        if self.api_key and not re.fullmatch(r"[!-~]+", self.api_key):
            raise JudgeError(f"what {self.key_variable} holds cannot be a key", expected="ASCII letters and marks")
        for name in ("httpx2", "httpcore2"):
            # A line a request otherwise, and headers at the level of debugging.
            if logging.getLogger(name).level == logging.NOTSET:
                logging.getLogger(name).setLevel(logging.WARNING)
        # Reading the certificates takes longer than many a call of a server of this machine.
        self._trust = httpx2.create_ssl_context() if self.base_url.lower().startswith("https:") else False
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._open:
            await client.close()
        self._open, self._free, self._trust = [], [], None

    async def complete(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> Completion:
        """Ask once."""
        body = self.body(messages, parameters)
        client, timeout = self.client(), self.connection.timeout or _TIMEOUT
        try:
            # httpx2's timeout is one of silence; a service that drips would never meet it.
            async with asyncio.timeout(timeout):
                # The response as it is: building the openai client's models costs more than the rest of a call.
                response = await client.post("/chat/completions", body=body, cast_to=httpx2.Response)
        except TimeoutError:
            raise self._late() from None
        except _TooLargeError as error:
            raise _invalid(str(error)) from None
        except openai.APIConnectionError as error:
            raise self.lost(error) from None
        except openai.APIStatusError as error:
            self.fail(error)
        except UnicodeEncodeError:
            raise Refused("not Unicode", "the prompt holds half of a character") from None
        finally:
            self._free.append(client)
        try:
            return self._keyless(read_completion(response.content))
        except Transient as fault:
            raise Transient(fault.kind, self.clean(str(fault)), charged=fault.charged) from None

    def body(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a request.

        Raises
        ------
        ConfigError
            When a parameter asks for what is not read: a stream, several answers.
        """
        if taken := [name for name in _OURS if name in parameters]:
            raise ConfigError(
                f"parameter {taken[0]!r} of a judge cannot be set", expected="one answer a request, in one piece"
            )
        return {"model": self.connection.model or self.name, "messages": list(messages), **parameters}

    def client(self, most: int = _MOST_BYTES) -> openai.AsyncOpenAI:
        """Return a client with a connection of its own, until it is given back; no body may be larger than ``most``.

        One client with many connections looks at each of them before every call, which takes a quarter of the time.
        """
        if self._trust is None:
            raise RuntimeError("use the service as an asynchronous context manager")
        if self._free:
            return self._free.pop()
        timeout = httpx2.Timeout(self.connection.timeout or _TIMEOUT)
        bound = functools.partial(_bound, most=most)
        key = self.api_key or "none"
        # A compressed body could be a thousand times as large as what came.
        headers: dict[str, Any] = {"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"}
        if self.connection.base_url:
            # Read from the environment otherwise, and of no concern to another service.
            headers |= {"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit}
        client = openai.AsyncOpenAI(
            api_key=key,
            admin_api_key="",
            base_url=self.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=httpx2.AsyncClient(timeout=timeout, verify=self._trust, event_hooks={"response": [bound]}),
            default_headers=headers,
        )
        self._open.append(client)
        return client

    def lost(self, error: openai.APIConnectionError) -> Transient:
        """Return what it means that there was no answer."""
        cause = error.__cause__
        where = address(self.base_url)
        reason = self.clean(f"{type(cause).__name__}: {cause}" if cause else str(error))
        if isinstance(cause, _MISTAKES):
            raise JudgeError(f"a request cannot be sent ({reason})", where=where)
        if isinstance(cause, _NOT_REACHED):
            return Transient("not reached", f"{where} cannot be reached ({reason})")
        if isinstance(error, openai.APITimeoutError):
            return self._late()
        return Transient("cut", f"the connection was cut ({reason})", charged=True)

    def fail(self, error: openai.APIStatusError) -> NoReturn:
        """Raise what an answer with an error status means."""
        status, where = error.status_code, address(self.base_url)
        said = self.clean(read_error(error.body) or error.response.text)
        problem = f"status {status}: {said}" if said else f"status {status}"
        if {str(error.code), str(error.type)} & SPENT or status == 402:
            hint = "The account has no quota left: see to it, and run again"
            raise JudgeError(problem, where=where, hint=hint) from None
        if status in (408, 409, 425, 429) or status >= 500:
            after = read_wait(error.response.headers)
            raise Transient(str(status), problem, after=after, charged=status in _GATEWAY) from None
        if status < 400 or status in (401, 403, 404, 405):
            raise JudgeError(problem, where=where, hint=self._advice(status)) from None
        raise Refused(str(status), problem) from None

    def clean(self, text: str) -> str:
        """Return a text on one line, not too long, and without anything that is or looks like a key."""
        text = _SECRET.sub("[key]", self.without_key(text))
        text = shown(" ".join(text.split()), at_most=len(text))
        return text if len(text) <= _MOST else text[: _MOST - 1] + "…"

    def without_key(self, text: str) -> str:
        """Return a text without the key, should a server echo it."""
        key = self.api_key
        return text.replace(key, "[key]") if key and len(key) >= _SHORT else text

    def _late(self) -> Transient:
        return Transient("timed out", f"no answer within {self.connection.timeout or _TIMEOUT:g} s", charged=True)

    def _advice(self, status: int) -> str:
        where = address(self.base_url)
        if status in (401, 403):
            variable = self.key_variable
            return f"Is the key in {variable} right?" if variable else "Name the key's variable: `key`, --key"
        if not where.endswith("/v1"):
            return f"The base_url of most servers ends in /v1: is it {where}/v1?"
        return "Are the judge's base_url and model right?"

    def _keyless(self, completion: Completion) -> Completion:
        """Return an answer without the key: answers are kept, and shared."""
        key = self.api_key
        if key is None or len(key) < _SHORT:
            return completion
        texts = {name: getattr(completion, name) for name in ("text", "finish", "model")}
        echoed = {name: text.replace(key, "[key]") for name, text in texts.items() if text and key in text}
        if completion.logprobs and any(key in token for token in completion.logprobs):
            return dataclasses.replace(completion, logprobs=None, **echoed)
        return dataclasses.replace(completion, **echoed) if echoed else completion


def is_loopback(url: str) -> bool:
    """Return whether an address is this machine's own: what answers there is nobody else's to charge for."""
    host = urlsplit(address(url)).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class _TooLargeError(Exception):
    """A body that is not read to its end."""


class _Bounded(httpx2.AsyncByteStream):
    """A body of which no more is read than an answer can have."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream, self._most = stream, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._stream:
            if (read := read + len(chunk)) > self._most:
                raise _TooLargeError(f"it has more than {self._most >> 20} MiB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response, most: int) -> None:
    """Bound the body of a response, before any of it is read."""
    if (encoding := response.headers.get("content-encoding", "identity")) != "identity":
        raise _TooLargeError(f"it is encoded ({encoding[:20]!r}), which the request forbade")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream, most)


def read_completion(content: bytes) -> Completion:
    """Return what an answer says.

    Raises
    ------
    Transient
        When it does not have the shape of a chat completion.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise _invalid("it is not JSON") from None
    if not isinstance(body, dict) or not isinstance(body.get("choices"), list):
        said = read_error(body)
        raise _invalid(f"it says {said!r}" if said else "it has no list of choices")
    choice = body["choices"][0] if body["choices"] else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise _invalid("it has no message")
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Completion(
        text=_text(message),
        finish=_finish(choice, message),
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        model=None if (model := _string(body.get("model"))) is None else shown(model, at_most=_MOST),
        logprobs=_first_word(choice.get("logprobs")),
    )


def read_codes(body: object) -> set[str]:
    """Return the codes and types that an error body names."""
    found: set[str] = set()
    while isinstance(body, dict):
        found |= {str(body[name]) for name in ("code", "type") if body.get(name) is not None}
        body = body.get("error")
    return found


def read_error(body: object) -> str | None:
    """Return the text of an error body: the protocol's, or one of the shapes that other servers have."""
    while isinstance(body, dict):
        said = [value for name in ("message", "error", "detail") if (value := body.get(name))]
        body = next((value for value in said if isinstance(value, str | dict)), None)
    return body if isinstance(body, str) else None


def read_wait(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the service asks to wait: ``retry-after-ms``, or ``retry-after`` in either form."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _invalid(reason: str) -> Transient:
    return Transient("invalid answer", f"invalid answer: {reason}", charged=True)


def _text(message: Mapping[str, Any]) -> str:
    """Return an answer's text; the model's own refusal is one.

    Without content it is empty: a model that thinks can use up its tokens before it says anything, or call a tool.
    """
    text = message.get("content")
    if isinstance(text, list):
        # In parts, of which thoughts are some.
        parts = [part for part in text if isinstance(part, dict) and part.get("type") in ("text", "output_text")]
        text = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    if text is None:
        text = message.get("refusal") or ""
    if not isinstance(text, str):
        raise _invalid("its message has no text")
    return _whole(text)


def _finish(choice: Mapping[str, Any], message: Mapping[str, Any]) -> str | None:
    """Return why an answer ended; a model that refuses says so beside it."""
    if not message.get("content") and isinstance(message.get("refusal"), str) and message["refusal"]:
        return DECLINED
    finish = _string(choice.get("finish_reason"))
    return None if finish is None else shown(finish, at_most=_MOST)


def _whole(text: str) -> str:
    """Return a text with halves of characters, which JSON can hold and no file can, as U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _string(value: object) -> str | None:
    return _whole(value) if isinstance(value, str) else None


def _count(value: object) -> int | None:
    if isinstance(value, int | float) and value >= _MOST_TOKENS:
        raise _invalid(f"it counts {str(value)[:20]}… tokens")
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _first_word(logprobs: object) -> dict[str, float] | None:
    """Return how the answer may begin, and the log probabilities, where the answer has them.

    These are the most probable first tokens; of tokens with the same text, the sum. Where the answer's own first token is
    a part of a number or a word, it is followed by what may come next, as long as it is one: ``10`` may be the tokens ``1`` and
    ``0``. What is left of such a token is the whole word, which a space after it says.
    """
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    entries = [entry for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
    if not entries or not (found := _top(entries[0])):
        return None
    begun = entries[0].get("token")
    for entry in entries[1:_LONGEST]:
        if not isinstance(begun, str) or begun not in found or not (top := _top(entry)):
            break
        mass = found[begun]
        following = {token: log for token, log in top.items() if _goes_on(begun, token)}
        rest = 1 - sum(math.exp(min(log, 0.0)) for log in following.values())
        del found[begun]
        if rest > 0:
            _add(found, f"{begun} ", mass + math.log(rest))
        for token, log in following.items():
            _add(found, begun + token, mass + log)
        begun = begun + entry["token"] if entry.get("token") in following else None
    return found


def _top(entry: Mapping[str, Any]) -> dict[str, float]:
    """Return the most probable tokens at a place and their log probabilities."""
    found: dict[str, float] = {}
    top = entry.get("top_logprobs")
    for each in top if isinstance(top, list) else ():
        token, value = (each.get("token"), each.get("logprob")) if isinstance(each, dict) else (None, None)
        # No finite float is less: JSON can hold -Infinity and integers of any length.
        if isinstance(token, str) and isinstance(value, int | float) and abs(value) <= _FINITE:
            _add(found, _whole(token), float(value))
    return found


def _add(found: dict[str, float], text: str, log: float) -> None:
    known = found.get(text)
    if known is None:
        found[text] = log
    else:
        found[text] = max(known, log) + math.log1p(math.exp(-abs(known - log)))


def _goes_on(begun: str, token: str) -> bool:
    """Say whether a token goes on with the number or the word that a text ends with."""
    last, first = begun[-1:], token[:1]
    if first in RAW_SPACES:
        return False
    return (last.isdecimal() and first.isdecimal()) or (last.lower() != last.upper() and first.lower() != first.upper())
