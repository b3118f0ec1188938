"""What an agent of CPD Task 1 is, in both generations of the challenge.

An agent sees up to 50 conversations at the same turn and answers as persona B. A user's own agent need not inherit from
anything: a Python file with a class ``UserAgent`` that has ``generate_responses`` is one (docs/adding-a-system.md).

First generation: ``generate_responses(test_data) -> list[str]``. Second generation (API track): the agent asks for
calls of a language model instead of making them, ``generate_responses(test_data, api_responses) -> ApiTurn``.
"""

from __future__ import annotations

import inspect
import zlib
from abc import ABC, abstractmethod
from typing import Any, TypedDict

import numpy as np

MAX_BATCH = 50

# The challenge's own keys; "persona A" is not shown to agents of the API track.
Conversation = TypedDict(
    "Conversation",
    {"persona A": list[str], "persona B": list[str], "dialogue": list[dict[str, str]]},
    total=False,
)


class ApiTurn(TypedDict):
    """What an agent of the API track returns: calls to make (``use_api``), or its final responses.

    ``prompts`` holds one list of chat messages ({role, content}) a conversation, ``max_generated_tokens`` one number a
    conversation, ``final_responses`` one text a conversation.
    """

    use_api: bool
    prompts: list[list[dict[str, str]]]
    max_generated_tokens: list[int]
    final_responses: list[str]


class Agent(ABC):
    """An agent of the first generation.

    Parameters
    ----------
    seed
        Starts :meth:`rng`. The same seed gives the same responses, whatever else is in the batch.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    @abstractmethod
    def generate_responses(self, test_data: list[Conversation]) -> list[str]:
        """Return one response by persona B for each conversation; the last utterance of each is by A."""

    def rng(self, conversation: Conversation) -> np.random.Generator:
        """Return a generator that depends on the seed and on the conversation alone."""
        text = "\n".join(utterance["text"] for utterance in conversation["dialogue"])
        return np.random.default_rng([self.seed, zlib.crc32(text.encode())])


class ApiAgent(Agent):
    """An agent of the second generation (API track); it is asked again, with the answers, while it wants calls."""

    @abstractmethod
    def generate_responses(  # type: ignore[override]
        self, test_data: list[Conversation], api_responses: list[str] | None
    ) -> ApiTurn:
        """Return calls to make or final responses; ``api_responses`` is None on the first call of a turn."""


def takes_api_responses(agent: Any) -> bool:  # noqa: ANN401 - any class of a user's
    """Tell the generations apart: the second's ``generate_responses`` needs another argument besides ``test_data``.

    It may be optional where it is named ``api_responses``; other arguments with a default are the agent's own affair.
    """
    parameters = inspect.signature(agent.generate_responses).parameters
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters.values() if p.kind in positional and p.default is p.empty]
    return "api_responses" in parameters or len(needed) >= 2
