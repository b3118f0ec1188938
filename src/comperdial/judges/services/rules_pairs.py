"""Chooses between two conversations by rules: what ``rules`` is, for prompts that show a pair.

It rates each conversation as ``rules`` rates one, all in all, and chooses the one that it rates higher, whatever the
question. Of two that it rates alike it chooses the first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from comperdial.judges.requests import Answer, Message
from comperdial.judges.services import rules

VERSION = 1
"""Goes up with every change that can change an answer."""

# A text under judgement is one line that begins with its speaker, so that it cannot be taken for a header.
_CONVERSATION = re.compile(r"^### Conversation ([12]):\n(.*?)(?=^### )", re.MULTILINE | re.DOTALL)
_FORM = "### Output Format:\noverall - x\n### Instruction:\nRate it from 1 (worst) to 5 (best).\n"


class PairRules(rules.Rules):
    """The rule-based judge of pairs."""

    def identity(self) -> dict[str, Any]:
        """Return the versions of the rules."""
        return {"rules": rules.VERSION, "rules_pairs": VERSION}

    async def complete(self, chat: Sequence[Message], parameters: Mapping[str, Any]) -> Answer:
        """Answer 1 or 2, or say in a sentence without a number why not."""
        prompt = "\n".join(message["content"] for message in chat)
        shown = dict(_CONVERSATION.findall(prompt))
        try:
            first, second = (_overall(shown.get(number, ""), f"Speaker {number}") for number in "12")
            answer = "2" if second > first else "1"
        except rules.UnreadableError as error:
            answer = f"This prompt cannot be answered: {error}."
        tokens = rules.count_tokens(prompt), rules.count_tokens(answer)
        return Answer(answer, "stop", *tokens, f"rules-{rules.VERSION}")


def _overall(conversation: str, judged: str) -> float:
    """Return how the rules rate whoever is judged, from 1 to 5."""
    lines = conversation.rstrip("\n").split("\n")
    # The rules rate the last speaker: what follows the judged one's last line is no part of that.
    while lines and not lines[-1].startswith(f"{judged}: "):
        lines.pop()
    if not lines:
        raise rules.UnreadableError(f"{judged.replace('1', 'one').replace('2', 'two')} says nothing")
    ratings, _ = rules.rate(rules.read("\n".join(["### Conversation:", *lines, _FORM])))
    return ratings["overall"]
