"""Agents that take another agent's answer and do something to it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from comperdial.challenge.agent import ApiAgent, Conversation
from comperdial.challenge.agents import create
from comperdial.challenge.agents._base import SingleAgent
from comperdial.core.errors import ConfigError


class WrappingAgent(SingleAgent):
    """An agent around another one; its subclasses call :meth:`base_answer`.

    Parameters
    ----------
    base
        Kind of the agent inside: any first-generation kind, also a wrapping one.
    options
        Options of the agent inside. Its seed is made from this agent's own where none is given.
    """

    def __init__(self, *, base: str, options: Mapping[str, object] | None = None, seed: int = 0) -> None:
        super().__init__(seed=seed)
        if options is not None and not isinstance(options, Mapping):
            raise ConfigError(f"the options of the base kind {base!r} are {options!r}", expected="a mapping")
        # Not the same seed: both would read the same random stream, and fail on the same conversations.
        inner_seed = zlib.crc32(f"{seed} {base}".encode())
        self.base = create(base, **{"seed": inner_seed, **(options or {})})
        if isinstance(self.base, ApiAgent):
            raise ConfigError(f"the base kind {base!r} is of the API track", expected="a first-generation kind")

    def base_answer(self, conversation: Conversation) -> str:
        """Return what the agent inside says."""
        return self.base.generate_responses([conversation])[0]
