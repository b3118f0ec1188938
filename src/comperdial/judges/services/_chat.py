"""An endpoint for chat completions inside this process: the openai client speaks to it as to any server."""

from __future__ import annotations

import inspect
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx2

from comperdial.judges.base import Completion, Message

AnswerFunction = Callable[[list[Message], Mapping[str, Any]], Completion | Awaitable[Completion]]
"""Takes the messages and the whole body of a request."""


class Unanswerable(Exception):
    """A request that no further try can answer; the endpoint says so with status 400."""


class ChatTransport(httpx2.AsyncBaseTransport):
    """Serves ``POST …/chat/completions`` by calling a function; every other path is 404.

    Parameters
    ----------
    answer
        What answers, at once or as a coroutine. What it raises other than :class:`Unanswerable` is a fault of the
        program, and goes through to the client.
    """

    def __init__(self, answer: AnswerFunction) -> None:
        self._answer = answer
        self._numbers = itertools.count(1)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        if not request.url.path.endswith("/chat/completions"):
            return _error(404, f"nothing is served at {request.url.path}")
        if request.method != "POST":
            return _error(405, f"chat completions are asked for with POST, not {request.method}")
        try:
            body = _read(await request.aread())
            completion = self._answer(body["messages"], body)
            if inspect.isawaitable(completion):
                completion = await completion
        except Unanswerable as error:
            return _error(400, str(error))
        return _reply(200, self._completion(completion, body))

    def _completion(self, completion: Completion, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the protocol calls a chat completion."""
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": completion.text, "refusal": None},
            "finish_reason": completion.finish or "stop",
            "logprobs": _logprobs(completion.logprobs),
        }
        content = {
            "id": f"chatcmpl-{next(self._numbers)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": completion.model or body["model"],
            "choices": [choice],
        }
        if completion.input_tokens is not None and completion.output_tokens is not None:
            content["usage"] = {
                "prompt_tokens": completion.input_tokens,
                "completion_tokens": completion.output_tokens,
                "total_tokens": completion.input_tokens + completion.output_tokens,
            }
        return content


def _read(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except ValueError as error:  # broken UTF-8 too
        raise Unanswerable("the body is not JSON") from error
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        raise Unanswerable("the body names no model")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise Unanswerable("'messages' must be a list of messages, each with a role and a text")
    if body.get("stream") or body.get("n") not in (None, 1):
        raise Unanswerable("one answer at a time is given, and in one piece")
    return body


def _is_message(message: object) -> bool:
    return (
        isinstance(message, dict) and isinstance(message.get("role"), str) and isinstance(message.get("content"), str)
    )


def _logprobs(first: Mapping[str, float] | None) -> dict[str, Any] | None:
    """Return the probabilities of the answer's first token, most probable first."""
    if not first:
        return None
    ranked = sorted(first.items(), key=lambda pair: -pair[1])
    tokens = [
        {"token": token, "logprob": value, "bytes": list(token.encode(errors="replace"))} for token, value in ranked
    ]
    return {"content": [{**tokens[0], "top_logprobs": tokens}], "refusal": None}


def _error(status: int, message: str) -> httpx2.Response:
    return _reply(status, {"error": {"message": message, "type": "invalid_request_error", "code": None, "param": None}})


def _reply(status: int, content: Mapping[str, Any]) -> httpx2.Response:
    return httpx2.Response(status, headers={"content-type": "application/json"}, content=json.dumps(content).encode())
