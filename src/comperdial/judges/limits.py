"""How fast a judge is asked: rate limits, backoff, and one pause that all workers share."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from comperdial.errors import ConfigError

_MINUTE = 60.0


@dataclass(frozen=True)
class Limits:
    """What a service allows, and how patient a run is.

    Attributes
    ----------
    requests, tokens
        So many a minute; None: no limit. Tokens are those of a request, estimated, and of its longest answer: what
        OpenAI counts against its limit.
    attempts
        How often one call is tried before it is given up.
    backoff, most
        Seconds: a pause after the n-th fault is drawn evenly from 0 to backoff x 2^(n-1), ``most`` at most.
    patience
        Seconds: a service that asks to wait longer than this ends the run.
    """

    requests: float | None = None
    tokens: float | None = None
    attempts: int = 8
    backoff: float = 0.5
    most: float = 60.0
    patience: float = 600.0

    def __post_init__(self) -> None:
        for name in ("requests", "tokens"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"a judge's limit of {name} a minute is {value!r}", expected="a number above 0")
        if self.attempts < 1:
            raise ConfigError(f"a judge's attempts are {self.attempts!r}", expected="1 or more")


class Bucket:
    """A token bucket: in any t seconds it lets pass no more than rate x (t + 1) / 60, and one piece if that is more.

    Who takes more than is there goes into debt and waits until it is paid, so that those who come later wait longer.
    """

    def __init__(self, rate: float, now: float) -> None:
        self._second = rate / _MINUTE
        self._full = max(1.0, self._second)
        self._level = self._full
        self._then = now

    def take(self, amount: float, now: float) -> float:
        """Take an amount; return the seconds to wait before it may be used."""
        self._level = min(self._full, self._level + (now - self._then) * self._second) - amount
        self._then = now
        return max(0.0, -self._level / self._second)


class Throttle:
    """Lets a call go when it may.

    Parameters
    ----------
    limits
        The judge's.
    clock, sleep
        The time in seconds from any start, and how to let it pass; other than the system's in tests.
    seed
        Of the jitter, which changes nothing but when calls are sent.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        seed: int | None = None,
    ) -> None:
        self.limits = limits
        self._clock = clock
        self._sleep = sleep
        self._random = random.Random(seed)  # noqa: S311
        self._requests = Bucket(limits.requests, clock()) if limits.requests else None
        self._tokens = Bucket(limits.tokens, clock()) if limits.tokens else None
        self._paused_until = clock()
        self._slowed = 0

    async def ready(self, tokens: float = 0.0) -> None:
        """Wait until a call of so many tokens may be sent."""
        now = self._clock()
        wait = max(
            self._requests.take(1.0, now) if self._requests else 0.0,
            self._tokens.take(tokens, now) if self._tokens else 0.0,
        )
        if wait > 0:
            await self._sleep(wait)
        # The pause may have been made longer in the meantime.
        while (wait := self._paused_until - self._clock()) > 0:
            await self._sleep(wait)

    def backoff(self, faults: int, after: float | None = None) -> float:
        """Return the seconds to wait after so many faults: full jitter, on top of what the service asks for."""
        limits = self.limits
        if after is not None:
            return after + self._random.uniform(0, limits.backoff)
        return self._random.uniform(0, min(limits.most, limits.backoff * 2.0 ** min(faults - 1, 30)))

    async def rest(self, faults: int, after: float | None = None) -> None:
        """Wait as long as :meth:`backoff` says."""
        await self._sleep(self.backoff(faults, after))

    def hold(self, after: float | None = None) -> None:
        """Pause all calls: the service says that there are too many.

        Calls that were on their way when a pause began are no reason to make it longer, unless the service says so.
        """
        now = self._clock()
        if now >= self._paused_until:
            self._slowed += 1
            self._paused_until = now + self.backoff(self._slowed, after)
        elif after is not None:
            self._paused_until = max(self._paused_until, now + self.backoff(self._slowed, after))

    def passed(self) -> None:
        """Note that a call went through: the next pause is a short one again."""
        self._slowed = 0
