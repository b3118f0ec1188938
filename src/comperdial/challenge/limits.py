"""The challenge's limits (ComperDial, A.6 and its footnotes), and what it is to exceed one."""

from __future__ import annotations

from dataclasses import dataclass

from comperdial.challenge.agent import MAX_BATCH

TRACKS = ("gpu", "api")


@dataclass(frozen=True)
class Limits:
    """What an agent may use.

    Attributes
    ----------
    batch
        Conversations a call.
    load_seconds
        Until the agent is constructed.
    run_seconds
        For all turns of one batch.
    calls
        Calls of the language model an utterance (API track).
    input_tokens, output_tokens
        Sums over the utterances of one dialogue (API track).
    """

    batch: int = MAX_BATCH
    load_seconds: float = 300.0
    run_seconds: float = 3600.0
    calls: int = 2
    input_tokens: int = 10_000
    output_tokens: int = 1_000


class AgentError(Exception):
    """An agent broke a rule: the message says which and where; it costs the agent's own submission only."""
