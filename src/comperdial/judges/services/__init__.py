"""The services that answer prompts, one file each, with a class derived from :class:`Service`."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from comperdial.core.errors import ConfigError
from comperdial.judges.requests import Answer, Message

if TYPE_CHECKING:
    from comperdial.judges.tasks import Judge

NAMES = {"openai": "OpenAI", "rules": "Rules", "transformers": "Transformers"}
"""The services that an entry of ``judges`` can name, with their classes."""


class Service(ABC):
    """A service that answers chats."""

    deterministic = False  # always gives the same answer to a prompt, so one sample is enough
    paid = False  # answers cost money
    remote = False  # behind a network, so an answer may be an error page
    concurrency = 16  # concurrent calls, unless the judge's entry sets a number

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def identity(self) -> dict[str, Any]:
        """Return settings that answers depend on besides the judge's parameters; they are not sent."""
        return {}

    def weighting(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return the parameters that request label probabilities instead of text; raise a ConfigError if unsupported."""
        raise ConfigError(f"service {self.judge.service!r} gives no probabilities", expected="`mode: generate`")

    def unavailable(self) -> str | None:
        """Return why the service cannot answer here, or None. Starts and sends nothing."""
        return None

    @abstractmethod
    async def complete(self, chat: Sequence[Message], parameters: Mapping[str, Any]) -> Answer:
        """Answer a chat once.

        Raises
        ------
        TransientError, RefusedError, ComperdialError
            If a retry may succeed; if this request is refused; if no request can be answered.
        """

    async def close(self) -> None:  # noqa: B027 - most services have nothing to release
        """Release the service's resources."""


def find(name: str) -> type[Service]:
    """Return a service by name."""
    service: type[Service] = getattr(import_module(f"{__name__}.{name}"), NAMES[name])
    return service


def address(url: str, *, where: str | None = None) -> str:
    """Return a URL without user, password and query; raise a ConfigError, without showing it, if it is invalid."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not re.search(r"\s", url)
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError("base_url is not a valid URL", where=where, expected="one such as http://localhost:8000/v1")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}{parts.path.rstrip('/')}"
