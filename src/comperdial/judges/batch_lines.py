"""The lines of the Batch API's files: a request, and what came of it. Knows the protocol, and no network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from comperdial.core.errors import FileError
from comperdial.core.files import parse_json
from comperdial.judges.base import (
    FOR_GOOD,
    SPENT,
    Completion,
    Message,
    Transient,
    read_codes,
    read_completion,
    read_error,
)
from comperdial.judges.client import request_body
from comperdial.judges.services.base import Service

# What a file may hold: openai 3.52, `openai/resources/batches.py`, on `input_file_id`. All of one model [from memory].
MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
ENDPOINT = "/v1/chat/completions"


@dataclass(frozen=True)
class Result:
    """What came of one request.

    Attributes
    ----------
    key
        The request's key.
    completion
        The answer; None if there is none.
    created
        When it was made: seconds since 1970, UTC; None where it does not say.
    kind, problem
        Why there is no answer: in a word (``batch_expired``, ``400``), and as the service says it.
    refused
        Whether the request's content may be why.
    """

    key: str
    completion: Completion | None = None
    created: int | None = None
    kind: str = ""
    problem: str = ""
    refused: bool = False


class BrokenLineError(ValueError):
    """A line of results that is none; says why."""


def request_line(service: Service, key: str, messages: Sequence[Message], parameters: Mapping[str, object]) -> bytes:
    """Return the line of a request, with the body that :class:`~comperdial.judges.client.Client` would send.

    Raises
    ------
    ConfigError
        When a parameter asks for what is not read: a stream, several answers.
    """
    body = request_body(service, service.identity(), messages, parameters)
    line = {"custom_id": key, "method": "POST", "url": ENDPOINT, "body": body}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_result(line: bytes) -> Result:
    """Read a line of a batch's output or errors.

    Raises
    ------
    BrokenLineError
        When it is not what came of a request.
    """
    try:
        found = parse_json(line.decode(), "the line", expected="JSON")
    except (UnicodeDecodeError, FileError):
        raise BrokenLineError("it is not JSON") from None
    name = found.get("custom_id") if isinstance(found, dict) else None
    if not isinstance(name, str):
        raise BrokenLineError("it has no custom_id")
    answer, error = found.get("response"), found.get("error")
    if isinstance(answer, dict) and answer.get("status_code") == 200:
        body = answer.get("body")
        try:
            completion = read_completion(json.dumps(body).encode())
        except Transient as fault:
            raise BrokenLineError(str(fault)) from None
        created = body.get("created") if isinstance(body, dict) else None
        return Result(name, completion, created if type(created) is int else None)
    if isinstance(answer, dict):
        kind, body = str(answer.get("status_code")), answer.get("body")
        refused = kind in FOR_GOOD and not read_codes(body) & SPENT
        return Result(name, kind=kind, problem=read_error(body) or "", refused=refused)
    if isinstance(error, dict):
        return Result(name, kind=str(error.get("code")), problem=read_error(error) or "")
    raise BrokenLineError("it has neither an answer nor an error")
