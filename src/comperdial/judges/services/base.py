"""The small interface of everything that answers a judge's prompts: one file a service, one method."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from comperdial.core.errors import ConfigError
from comperdial.judges.base import Completion, Message


@dataclass(frozen=True)
class Connection:
    """How a judge is reached: nothing here changes an answer but the model.

    Attributes
    ----------
    service
        A module of :mod:`comperdial.judges.services`.
    model
        What the service is asked for; empty where it has one model only.
    base_url
        Where the service listens, up to and with ``/v1``; None for the service's own place.
    key_variable
        The environment variable that holds the key. A key is read from nowhere else. None: no key is sent.
    timeout
        Seconds that one call may take in all. None: 60 at an address, without end in this process.
    options
        The judge's parameters, for a service that needs them to start (a local model's device, say).
    identity
        What else the answers depend on, and is not sent.
    """

    service: str
    model: str = ""
    base_url: str | None = None
    key_variable: str | None = None
    timeout: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)


def address(url: str) -> str:
    """Return a URL without user, password and query.

    Raises
    ------
    ConfigError
        When it is not a URL of a server. The message does not show it: it may hold a password.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not re.search(r"\s", url)
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError("base_url is not a valid URL", expected="one such as http://localhost:8000/v1")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}{parts.path.rstrip('/')}"


class Service(ABC):
    """Answers chats, at an address or inside this process; an asynchronous context manager.

    A module of this package defines one subclass; it is found by the module's name.

    Attributes
    ----------
    name
        The module's name.
    deterministic
        The same prompt has the same answer, always: one sample is all there is to have.
    needs_seed
        It draws its answers here: each request brings a seed, so that the same request has the same answer again.
    concurrency
        How many calls are under way at a time, where a judge's entry does not say.
    paid
        Its answers cost money. One that is reached at this machine's own address costs none.
    shares_prompts
        Requests that wait at the same time and begin alike cost less together than one after the other.
    """

    name: ClassVar[str]
    deterministic: ClassVar[bool] = False
    needs_seed: ClassVar[bool] = False
    concurrency: ClassVar[int] = 16
    paid: bool = False
    shares_prompts: bool = False

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    @abstractmethod
    async def complete(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> Completion:
        """Answer a chat once.

        Parameters
        ----------
        messages
            The chat so far.
        parameters
            Those of the request, without what :meth:`identity` says; with ``seed`` where the service needs one.

        Raises
        ------
        Transient
            When another try may succeed.
        Refused
            When this request can never be answered.
        JudgeError
            When no request can be answered.
        """

    @property
    def api_key(self) -> str | None:
        """Return the key, from the environment variable that the judge names; None without one."""
        variable = self.key_variable
        return (os.environ.get(variable, "").strip() or None) if variable else None

    @property
    def key_variable(self) -> str | None:
        """Return the environment variable that holds the key, or None if no key is sent."""
        return self.connection.key_variable

    @property
    def pace_name(self) -> str | None:
        """Return under which name all processes share rate limits and pauses; None in this process, without limits."""
        return None

    def identity(self) -> dict[str, Any]:
        """Return what belongs to the parameters of a family because answers depend on it; it is not sent."""
        return dict(self.connection.identity)

    def weighting(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return the parameters that ask for the probabilities of a scale's labels instead of a text.

        Raises
        ------
        ConfigError
            When the service cannot give them.
        """
        raise ConfigError(f"service {self.name!r} gives no probabilities", expected="`mode: generate`")

    def unavailable(self) -> str | None:
        """Return why the service cannot answer here and now, or None. Starts nothing and asks no one."""
        return None
