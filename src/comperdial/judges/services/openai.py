"""OpenAI, and every server with the same protocol: Azure, vLLM, Ollama, llama.cpp, ….

One call gives one raw answer. This module does not retry, and never passes on the API key.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from comperdial.core.errors import ConfigError, shown
from comperdial.judges.requests import DECLINED, Answer, JudgeError, Message, RefusedError, TransientError
from comperdial.judges.services import Service, address

# Imported only when asking: the client takes a second to import, and Snakemake uses services when it plans.
if TYPE_CHECKING:
    import openai

    from comperdial.judges.tasks import Judge

OPENAI_URL, OPENAI_KEY = "https://api.openai.com/v1", "OPENAI_API_KEY"
_HERE = ("localhost", "127.0.0.1", "::1")
# Account problems, not the fault of a request, whatever their status.
_ACCOUNT = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_TRY_AGAIN = {408, 409, 425, 429}
_REFUSED = {400, 413, 422}
# Status codes of gateways: the service behind one may still have answered and billed the call.
_GATEWAY = {408, 502, 504, 520, 522, 524}
# Parameters that we set, or whose answers we cannot parse.
_OURS = ("model", "messages", "stream", "n")
_SECRET = re.compile(r"\bsk-[\w*.…-]+|(?<=bearer )\S+", re.IGNORECASE)


class Server(NamedTuple):
    """A known server: its default address, and how to talk to it."""

    url: str  # may begin with the name of an environment variable
    key: str  # environment variable with the key
    paid: bool = False  # requires the key, and costs money
    limit: str = "max_tokens"  # parameter that limits an answer's length


SERVERS = {
    # OpenAI's reasoning models accept only `max_completion_tokens`; all others accept both.
    "openai": Server(OPENAI_URL, OPENAI_KEY, paid=True, limit="max_completion_tokens"),
    "azure": Server(
        "$AZURE_OPENAI_ENDPOINT/openai/v1", "AZURE_OPENAI_API_KEY", paid=True, limit="max_completion_tokens"
    ),
    "ollama": Server("http://localhost:11434/v1", "OLLAMA_API_KEY"),
    "vllm": Server("http://localhost:8000/v1", "VLLM_API_KEY"),
    "llama.cpp": Server("http://localhost:8080/v1", "LLAMA_API_KEY"),
}


class OpenAI(Service):
    """Chat completions over HTTP.

    Without an address this is OpenAI, with the key in ``OPENAI_API_KEY`` unless the judge names another variable. Other
    addresses get a key only if the judge names its variable.
    """

    remote = True

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        if taken := [name for name in _OURS if name in judge.parameters]:
            raise ConfigError(f"parameter {taken[0]!r} of a judge cannot be set", expected="one answer a request")
        self.url = judge.base_url or OPENAI_URL
        # Servers on this machine are free unless the entry says otherwise.
        self.paid = urlsplit(self.url).hostname not in _HERE if judge.free is None else not judge.free
        self._timeout: float = judge.timeout or 60.0
        self._variable = judge.key or (None if judge.base_url else OPENAI_KEY)
        self._client: openai.AsyncOpenAI | None = None

    @property
    def _key(self) -> str:
        return os.environ.get(self._variable, "").strip() if self._variable else ""

    def identity(self) -> dict[str, Any]:
        """Return what else affects answers: the URL of a judge without an entry, and how samples are seeded if a seed is set."""
        own = {"base_url": self.url} if self.judge.own_server else {}
        return own | ({"seeds": "seed + sample"} if "seed" in self.judge.parameters else {})

    def weighting(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return the parameters that request the 20 most probable first tokens, OpenAI's maximum."""
        return {"logprobs": True, "top_logprobs": 20}

    def unavailable(self) -> str | None:
        """Return whether the model or the key is missing, as a message."""
        if not self.judge.model:
            return "no model is named"
        if self._variable and not self._key:
            return f"the environment variable {self._variable} is not set"
        if find_spec("openai") is None:
            return "the package openai is not installed: pip install 'comperdial[judge]'"
        return None

    def _connected(self) -> openai.AsyncOpenAI:
        """Return the client, created late because only asking needs a key."""
        if self._client is None:
            if why := self.unavailable():
                raise JudgeError(f"{self.judge.name} cannot be asked: {why}")
            import openai

            key = self._key or "none"
            if not re.fullmatch(r"[!-~]*", key):
                raise JudgeError(f"what {self._variable} holds cannot be a key", expected="ASCII letters and marks")
            # The client would read these from the environment and send them to another service.
            names = ("OpenAI-Organization", "OpenAI-Project") if self.judge.base_url else ()
            headers: dict[str, Any] = {"Authorization": f"Bearer {key}", **dict.fromkeys(names, openai.omit)}
            self._client = openai.AsyncOpenAI(
                base_url=self.url, api_key=key, max_retries=0, timeout=self._timeout, default_headers=headers
            )
        return self._client

    async def complete(self, chat: Sequence[Message], parameters: Mapping[str, Any]) -> Answer:
        """Send a request once."""
        client = self._connected()
        import httpx2
        import openai

        body = {"model": self.judge.model, "messages": list(chat), **parameters}
        try:
            # The client's timeout limits each read, so a server that sends slowly would never reach it.
            async with asyncio.timeout(self._timeout):
                # The raw response: building the client's models costs more than the rest of a call.
                response = await client.post("/chat/completions", body=body, cast_to=httpx2.Response)
        except (TimeoutError, openai.APITimeoutError):
            raise TransientError(f"no answer within {self._timeout:g} s", charged=True) from None
        except openai.APIConnectionError as error:
            unreachable = isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
            problem = self._clean(f"{address(self.url)}: connection failed ({error.__cause__ or error})")
            raise TransientError(problem, charged=not unreachable, unreachable=unreachable) from None
        except openai.APIStatusError as error:
            raise self._failure(error) from None
        except UnicodeEncodeError:
            raise RefusedError("the prompt holds half of a character") from None
        content = response.content
        if len(self._key) > 7:
            # Answers are stored and shared, so they must not contain the key.
            content = content.replace(self._key.encode(), b"[key]")
        return self._read(content)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
        self._client = None

    def _failure(self, error: openai.APIStatusError) -> Exception:
        """Convert an error status to an exception."""
        status, where = error.status_code, address(self.url)
        text = self._clean(_message_of(error.body) or error.response.text)
        problem = f"status {status}: {text}" if text else f"status {status}"
        if {str(error.code), str(error.type)} & _ACCOUNT or status == 402:
            return JudgeError(problem, where=where, hint="The account has no quota left: see to it, and run again")
        if status in _TRY_AGAIN or status >= 500:
            return TransientError(problem, retry_after=_wait(error.response.headers), charged=status in _GATEWAY)
        if status in _REFUSED:
            return RefusedError(problem)
        hint = "Are the model and the server's URL right? The URL of most servers ends in /v1"
        if status in (401, 403):
            hint = (
                f"Is the key in {self._variable} right?" if self._variable else "Name the key's variable: `key`, --key"
            )
        return JudgeError(problem, where=where, hint=hint)

    def _clean(self, text: str) -> str:
        """Return a text on one line, truncated, without anything that is or looks like a key."""
        key = self._key
        text = _SECRET.sub("[key]", text.replace(key, "[key]") if len(key) > 7 else text)
        return shown(" ".join(text.split()), at_most=300)

    def _read(self, content: bytes) -> Answer:
        """Parse a response; fields that are not read here differ between servers."""
        completion: Any = None
        try:
            completion = json.loads(content)
            choice, usage = completion["choices"][0], completion.get("usage")
            text, refusal = choice["message"].get("content"), choice["message"].get("refusal")
            finish, model = choice.get("finish_reason"), completion.get("model")
            if isinstance(text, list):
                # A list of parts, some of which are reasoning.
                text = "".join(str(part["text"]) for part in text if part.get("type") in ("text", "output_text"))
            finish = DECLINED if refusal and not text else finish
            counts = usage if isinstance(usage, dict) else {}
            return Answer(
                _whole(text or refusal or ""),
                None if finish is None else shown(_whole(finish), at_most=100),
                _count(counts.get("prompt_tokens")),
                _count(counts.get("completion_tokens")),
                None if model is None else shown(_whole(model), at_most=100),
                _first_token(choice.get("logprobs")),
            )
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            problem = self._clean(_message_of(completion) or repr(content[:100]))
            raise TransientError(f"invalid answer: it says {problem}", charged=True) from None


def _message_of(body: object) -> str | None:
    """Return the message of an error body, in the protocol's or another common format."""
    while isinstance(body, dict):
        values = [body.get(name) for name in ("message", "error", "detail")]
        body = next((value for value in values if value and isinstance(value, str | dict)), None)
    return body if isinstance(body, str) else None


def _wait(headers: Mapping[str, str]) -> float | None:
    """Return the requested delay in seconds: ``retry-after-ms``, or ``retry-after`` in either form."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 60 else None


def _whole(text: str) -> str:
    """Replace lone surrogates, valid in JSON but not in files, with U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _first_token(logprobs: Any) -> dict[str, float] | None:  # noqa: ANN401 - whatever a server sends
    """Return the most probable first tokens with their log probabilities, summing tokens with the same text."""
    logs: dict[str, float] = {}
    try:
        for top in logprobs["content"][0]["top_logprobs"]:
            token, log = _whole(top["token"]), max(float(top["logprob"]), -9999.0)
            if (known := logs.get(token)) is not None:
                log = max(log, known) + math.log1p(math.exp(-abs(log - known)))
            logs[token] = log
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError):
        return None
    return logs or None
