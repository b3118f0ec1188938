"""What a run did, and what is missing still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from comperdial.judges._answers import InterruptedRunError, JudgeError
from comperdial.judges.base import Answer

INTERRUPTED = "it was interrupted"
_SHOWN = 5


@dataclass
class Report:
    """What a run did.

    Attributes
    ----------
    total
        How many slots there are; None if nobody said.
    done
        Slots that are judged now, with or without a rating.
    from_ledger
        Of these, slots that needed no call of their own.
    asked
        Calls sent, every try counted.
    repeated
        Calls sent again after a fault.
    answered
        Answers kept.
    faults
        Faults by kind: ``429``, ``timed out``, ….
    parse_failures
        Answers kept that hold no rating; each had a fresh sample drawn, as far as there were retries.
    unparsed
        Slots without a rating after all retries, in the ledger or now.
    refused
        Requests that the service refused for good, kept as such; their slots are judged, without a rating.
    failed
        Calls given up: key and reason.
    input_tokens, output_tokens, cost
        Of the answers kept, as the service counted; cost in US dollars.
    charged
        US dollars that calls without an answer may have cost.
    unpriced
        Answers kept whose cost is not known.
    seconds
        From the first call to the last answer kept.
    stopped
        Why the run ended early; None if it did not.
    """

    total: int | None = None
    done: int = 0
    from_ledger: int = 0
    asked: int = 0
    repeated: int = 0
    answered: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    parse_failures: int = 0
    unparsed: int = 0
    refused: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    charged: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0
    stopped: str | None = None

    def keep(self, answers: Sequence[Answer]) -> None:
        """Count answers that are on the disk."""
        for answer in answers:
            self.answered += 1
            self.input_tokens += answer.completion.input_tokens or 0
            self.output_tokens += answer.completion.output_tokens or 0
            self.cost += answer.cost or 0.0
            self.unpriced += answer.cost is None

    @property
    def price(self) -> str:
        """Return the price so far, as a person reads it."""
        cost = f"${self.cost:.2f}" if self.cost >= 1 or not self.cost else f"${self.cost:.4f}"
        return f"{cost} and {self.unpriced} answers of unknown price" if self.unpriced else cost

    @property
    def missing(self) -> int | None:
        """Return how many slots are not judged; None if it is not known."""
        if self.total is not None:
            return max(0, self.total - self.done)
        return len(self.failed) if self.stopped is None else None

    def check(self, judge: str | None = None) -> None:
        """Say by an error that not everything is judged.

        Raises
        ------
        JudgeError
            Says how many judgements are missing, why, and what to do.
        """
        if self.stopped is None and not self.failed:
            return
        missing = "some" if self.missing is None else f"{self.missing:,}"
        raise (InterruptedRunError if self.stopped == INTERRUPTED else JudgeError)(
            f"{missing} judgements are missing: {self._why()}",
            where=judge,
            hint=self._advice(),
        )

    def _advice(self) -> str:
        if self.answered or self.charged:
            return f"What came is kept ({self.answered:,} answers, {self.price}): run again to go on"
        if self.faults["not reached"]:
            return "Is the server running, and are host and port of the judge's base_url right?"
        return "Nothing was answered: run again when this is mended"

    def _why(self) -> str:
        if self.stopped is not None:
            return self.stopped
        reasons = Counter(reason for _, reason in self.failed).most_common()
        shown = "; ".join(f"{count:,} x {reason}" for reason, count in reasons[:_SHOWN])
        more = f"; and {len(reasons) - _SHOWN:,} other reasons" if len(reasons) > _SHOWN else ""
        keys = ", ".join(key for key, _ in self.failed[:_SHOWN]) + (", …" if len(self.failed) > _SHOWN else "")
        return f"{len(self.failed):,} calls failed ({shown}{more}); keys {keys}"

    def __str__(self) -> str:
        faults = ", ".join(f"{count:,} x {kind}" for kind, count in sorted(self.faults.items()))
        lines = [
            f"{self.done:,} judged, {self.from_ledger:,} of them from the ledger; {self.answered:,} new answers for "
            f"{self.asked:,} calls in {self.seconds:.1f} s; {self.price}"
        ]
        if faults:
            lines.append(f"{self.repeated:,} calls sent again after faults: {faults}")
        if self.parse_failures or self.unparsed:
            lines.append(f"{self.parse_failures:,} answers without a rating; {self.unparsed:,} judgements left without")
        if self.refused:
            lines.append(f"{self.refused:,} requests refused for good")
        if self.charged:
            lines.append(f"${self.charged:.4f} may have been charged for calls without an answer")
        if self.stopped is not None or self.failed:
            lines.append(f"not complete: {self._why()}")
        return "\n".join(lines)
