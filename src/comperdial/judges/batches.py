"""OpenAI's Batch API: the requests of a file, answered within a day at a lower price. The network part.

Other services that speak the protocol, at an address of their own, may have it too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import httpx2
import openai
from openai.types import Batch as _Batch

from comperdial.judges.ask import Limits, Throttle
from comperdial.judges.client import _SHORT, Client, JudgeError, Refused, Transient
from comperdial.judges.services.base import Service

# Under these names a batch says whose it is.
_TAG = "comperdial"
_FILE = "file"
# Seconds. Files are large, and the service answers after it has read one.
_FILE_TIMEOUT = 600.0
# The service's clock and ours may differ by so much.
_SLACK = 24 * 3600
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_NAMED = 3

T = TypeVar("T")


@dataclass(frozen=True)
class Batch:
    """What the service says of a batch.

    Attributes
    ----------
    id, status
        As the service names them.
    created
        When: seconds since 1970, UTC.
    output, errors
        Files of the answers and of the requests that failed; None where there are none.
    done, failed
        How many requests so far; None where the service does not say.
    problem
        What is wrong with the batch as a whole.
    """

    id: str
    status: str
    created: int
    output: str | None = None
    errors: str | None = None
    done: int | None = None
    failed: int | None = None
    problem: str | None = None

    @property
    def ended(self) -> bool:
        """Return whether nothing more will come."""
        return self.status in _ENDED


class LaterError(JudgeError):
    """The service cannot be asked now; later it may."""


class Batches(Client):
    """A service's Batch API; use it as an asynchronous context manager.

    What can be asked twice is asked again after a fault; a batch is created once, or not at all.

    Parameters
    ----------
    service
        Who answers.
    throttle
        How often to try, and how long to wait; other than the usual in tests.
    """

    def __init__(self, service: Service, *, throttle: Throttle | None = None) -> None:
        super().__init__(service)
        self._throttle = throttle or Throttle(Limits(attempts=6, backoff=1.0))

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._api = self._lane()
        return self

    async def upload(self, path: Path) -> str:
        """Upload a file of requests; return the id that the service gives it."""
        content = (path.name, path.read_bytes())

        async def call() -> str:
            made = await self._api.files.create(file=content, purpose="batch", timeout=_FILE_TIMEOUT)
            found = getattr(made, "id", None)
            if not isinstance(found, str) or not found:
                raise _invalid("the file that was uploaded has no id")
            return found

        return await self._again(call)

    async def find(self, sha256: str, name: str, since: int) -> Batch | None:
        """Look for the batch that was made of a file, by what it says of itself.

        Parameters
        ----------
        sha256, name
            The file's.
        since
            When it may have been made first: seconds since 1970, UTC.
        """

        async def call() -> Batch | None:
            async for batch in self._all():
                made = self._read(batch)
                said = batch.metadata
                if isinstance(said, dict) and (said.get(_TAG), said.get(_FILE)) == (sha256, name):
                    return made
                # The newest come first.
                if made.created < since - _SLACK:
                    return None
            return None

        return await self._again(call)

    async def create(self, file: str, sha256: str, name: str) -> Batch:
        """Make a batch of an uploaded file. This is what costs money.

        Raises
        ------
        JudgeError, Refused
            When it is not made.
        Transient
            When nobody knows; :meth:`find` tells.
        """

        async def call() -> Batch:
            return self._read(
                await self._api.batches.create(
                    input_file_id=file,
                    endpoint="/v1/chat/completions",
                    completion_window="24h",
                    metadata={_TAG: sha256, _FILE: name},
                )
            )

        return await self._once(call)

    async def retrieve(self, batch: str) -> Batch:
        """Ask how far a batch is."""

        async def call() -> Batch:
            return self._read(await self._api.batches.retrieve(batch))

        return await self._again(call)

    async def download(self, file: str) -> bytes:
        """Return a file's content, without the key, should the service echo it."""

        async def call() -> bytes:
            content: bytes = (await self._api.files.content(file, timeout=_FILE_TIMEOUT)).content
            return content

        content = await self._again(call)
        key = self._key
        return content.replace(key.encode(), b"[key]") if key and len(key) >= _SHORT else content

    def clean(self, text: str) -> str:
        """Return a text of the service on one line, not too long, and without anything that looks like a key."""
        return self._clean(text)

    async def _all(self) -> AsyncIterator[_Batch]:
        async for batch in self._api.batches.list(limit=100):
            yield batch

    def _read(self, batch: object) -> Batch:
        if not isinstance(batch, _Batch) or not all(
            isinstance(text, str) and text for text in (batch.id, batch.status)
        ):
            raise _invalid("it is no batch")
        counts = batch.request_counts
        problems = (batch.errors.data if batch.errors else None) or []
        said = "; ".join(dict.fromkeys(str(problem.message or problem.code) for problem in problems[:_NAMED]))
        return Batch(
            id=batch.id,
            status=batch.status,
            created=batch.created_at if type(batch.created_at) is int else 0,
            output=batch.output_file_id or None,
            errors=batch.error_file_id or None,
            done=counts.completed if counts else None,
            failed=counts.failed if counts else None,
            problem=self._clean(said) or None,
        )

    async def _again(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call until there is an answer, or no hope of one."""
        limits = self._throttle.limits
        for attempt in range(1, limits.attempts + 1):
            try:
                return await self._once(call)
            except Refused as refusal:
                raise JudgeError(str(refusal), where=self._where) from None
            except Transient as fault:
                if attempt == limits.attempts or (fault.after or 0.0) > limits.patience:
                    raise LaterError(str(fault), where=self._where, hint="Run the command again later") from None
                await self._throttle.rest(attempt, fault.after)
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await call()
        except openai.APIConnectionError as error:
            raise self._lost(error) from None
        except openai.APIStatusError as error:
            self._fail(error)
        except httpx2.HTTPError as error:
            raise Transient("cut", self._clean(f"the connection was cut ({type(error).__name__}: {error})")) from None
        except (ValueError, openai.OpenAIError) as error:
            # The openai client lets it pass when a body is not the JSON that it says.
            raise _invalid(self._clean(f"{type(error).__name__}: {error}")) from None


def _invalid(reason: str) -> Transient:
    return Transient("invalid answer", f"invalid answer: {reason}")
