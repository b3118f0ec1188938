"""The small interface of everything that answers a judge's prompts."""

from __future__ import annotations

import os
import re
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import urlsplit

from comperdial.core.errors import ConfigError

if TYPE_CHECKING:
    import httpx2


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
    """Answers chat completions, at an address or inside this process.

    A module of this package defines one subclass; it is found by the module's name.

    Attributes
    ----------
    name
        The module's name.
    deterministic
        The same prompt has the same answer, always: one sample is all there is to have.
    needs_seed
        It draws its answers here: each request brings a seed, so that the same request has the same answer again.
    paid
        Its answers cost money. One that is reached at this machine's own address costs none.
    """

    name: ClassVar[str]
    deterministic: ClassVar[bool] = False
    needs_seed: ClassVar[bool] = False
    paid: bool = False

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @property
    def base_url(self) -> str:
        """Return the address that requests go to; one that cannot be reached for a service in process."""
        return self.connection.base_url or f"http://{self.name}.invalid/v1"

    @property
    def key_variable(self) -> str | None:
        """Return the environment variable that holds the key, or None if no key is sent."""
        return self.connection.key_variable

    @property
    def api_key(self) -> str | None:
        """Return the key, from that variable; None without one."""
        variable = self.key_variable
        return (os.environ.get(variable, "").strip() or None) if variable else None

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

    async def __aenter__(self) -> Self:
        """Open what the service needs."""
        return self

    async def __aexit__(self, *_: object) -> None:  # noqa: B027
        """Close it."""

    def transport(self) -> httpx2.AsyncBaseTransport | None:
        """Return what serves requests in this process; None to go to the address."""
        return None
