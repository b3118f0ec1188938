"""Requests that a service refuses for good: answers of the ledger too, so that nobody asks again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from comperdial.judges._answers import REFUSED
from comperdial.judges.base import Answer, Completion, Parsed

if TYPE_CHECKING:
    from comperdial.judges._report import Report
    from comperdial.judges.ledger import Shelf


def refusal(messages: str, sample: int, reason: str, when: int | None) -> Answer:
    """Return the answer that says that there is none."""
    return Answer(messages, sample, Completion(reason, finish=REFUSED), cost=0.0, time=when)


def rating(completion: Completion, parse: Callable[[Completion], Parsed]) -> Parsed:
    """Return what is found in an answer; in a refusal, nothing is looked for."""
    if completion.finish == REFUSED:
        return Parsed({}, failure=f"{REFUSED}: {completion.text}")
    return parse(completion)


class Refusals:
    """The refusals of a run until its end: only then it is known whether the service answers anything else."""

    def __init__(self) -> None:
        self._met: dict[str, Answer] = {}
        self._slots: Counter[str] = Counter()

    def add(self, name: str, messages: str, sample: int, reason: str) -> None:
        """Note a request's refusal under its key."""
        self._met[name] = refusal(messages, sample, reason, int(time.time()))

    def end(self, name: str) -> None:
        """Note that a slot ends here; not, if its request failed in another way."""
        self._slots[name] += name in self._met

    def settle(self, shelf: Shelf, report: Report) -> int:
        """Keep all of them if the service answered any of their family, else count them as failed.

        Returns
        -------
        int
            How many slots that judges.

        Raises
        ------
        FileError
            When they cannot be kept.
        """
        if not self._met:
            return 0
        if not shelf.answered:
            report.failed += [(name, answer.completion.text) for name, answer in self._met.items()]
            return 0
        shelf.add(list(self._met.values()))
        slots = self._slots.total()
        report.refused += len(self._met)
        report.unparsed += slots
        report.done += slots
        return slots
