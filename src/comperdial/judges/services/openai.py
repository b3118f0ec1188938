"""OpenAI, and every server that speaks its protocol at an address of its own: vLLM, Ollama, llama.cpp, …."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from comperdial.judges.services.base import Connection, Service, address

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
_TOP = 20


class OpenAI(Service):
    """Chat completions over HTTP.

    Without an address it is OpenAI, whose key is in ``OPENAI_API_KEY`` unless the judge names another variable. To
    any other address no key is sent but one from the variable that the judge names.
    """

    name = "openai"

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.paid = not is_loopback(self.base_url)

    @property
    def base_url(self) -> str:
        """Return the judge's address, or OpenAI's. The variable ``OPENAI_BASE_URL`` is not asked."""
        return self.connection.base_url or OPENAI_URL

    @property
    def key_variable(self) -> str | None:
        """Return the environment variable of the key."""
        return self.connection.key_variable or (None if self.connection.base_url else OPENAI_KEY)

    def weighting(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return what asks for the 20 most probable first tokens, the most that OpenAI gives."""
        return {"logprobs": True, "top_logprobs": _TOP}

    def unavailable(self) -> str | None:
        """Return that the model or the key is missing."""
        if not self.connection.model:
            return "no model is named"
        if self.key_variable and not self.api_key:
            return f"the environment variable {self.key_variable} is not set"
        return None


def is_loopback(url: str) -> bool:
    """Return whether an address is this machine's own: what answers there is nobody else's to charge for."""
    host = urlsplit(address(url)).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
