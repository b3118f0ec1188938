"""How fast a judge is asked: rate limits, backoff, and one pause that all workers share."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from math import inf
from pathlib import Path

from comperdial.core.errors import ConfigError
from comperdial.judges._pace import Level, Memory, Pace, Shared, Store

_MINUTE = 60.0
# Seconds: a call is promised its turn so long before it may go, and one more may be promised then.
_AHEAD = 1.0


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

    Parameters
    ----------
    rate
        So much a minute.
    level
        What is in it; others may have it, too, one at a time.
    """

    def __init__(self, rate: float, level: Level) -> None:
        self._second = rate / _MINUTE
        self._full = max(1.0, self._second)
        self._level = level

    def debt(self, now: float) -> float:
        """Return the seconds until nothing is owed any more.

        Clocks of several machines differ: one that is behind fills nothing, and takes back nothing. One that is behind
        by more than a minute was put back.
        """
        level = self._level
        if now > level.then:
            level.amount = min(self._full, level.amount + (now - level.then) * self._second)
        if now > level.then or level.then - now > _MINUTE:
            level.then = now
        # Filling begins then, which a clock that is behind has not reached.
        return max(0.0, level.then - now - level.amount / self._second) if level.amount < 0 else 0.0

    def take(self, amount: float, now: float) -> float:
        """Take an amount; return the seconds to wait before it may be used."""
        self.debt(now)
        self._level.amount -= amount
        return self.debt(now)


class Throttle:
    """Lets a call go when it may.

    Parameters
    ----------
    limits
        The judge's.
    shared
        The file with which all processes that ask this service keep its limits and its pauses together; None: this
        process is the only one.
    clock, sleep
        The time in seconds, and how to let it pass; other than the system's in tests. The clocks of those who share a
        file have one start.
    seed
        Of the jitter, which changes nothing but when calls are sent.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        shared: Path | None = None,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        seed: int | None = None,
    ) -> None:
        self.limits = limits
        self._clock = clock or (time.time if shared else time.monotonic)
        self._sleep = sleep
        self._random = random.Random(seed)  # noqa: S311
        self._store: Store = Shared(shared) if shared else Memory()
        # Who waits for the file waits for all of this process: calls go in the order in which they came.
        self._turn: AbstractAsyncContextManager[object] = asyncio.Lock() if shared else nullcontext()
        # What a process that is killed owes is little then.
        self._patience = _AHEAD if shared else inf
        self._slowed = True

    async def ready(self, tokens: float = 0.0) -> None:
        """Wait until a call of so many tokens may be sent."""
        async with self._turn:
            wait, taken = self._take(tokens)
            while not taken:
                await self._sleep(wait)
                wait, taken = self._take(tokens)
        while wait > 0:
            await self._sleep(wait)
            # A pause may have begun in the meantime.
            with self._store.open() as pace:
                wait = self._pause(pace, self._clock())

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
        with self._store.open() as pace:
            now = self._clock()
            if self._pause(pace, now) <= 0:
                pace.slowed = pace.slowed + 1 if now - pace.paused_until <= _MINUTE else 1
                pace.paused_until = now + self.backoff(pace.slowed, after)
            elif after is not None:
                pace.paused_until = max(pace.paused_until, now + self.backoff(pace.slowed, after))
            self._slowed = True

    def passed(self) -> None:
        """Note that a call went through: the next pause is a short one again."""
        if self._slowed:
            with self._store.open() as pace:
                pace.slowed = 0
            self._slowed = False

    def _take(self, tokens: float) -> tuple[float, bool]:
        """Return the seconds to wait, and whether the call may go then; if not, it has to ask again."""
        limits = self.limits
        with self._store.open() as pace:
            now = self._clock()
            self._slowed = self._slowed or pace.slowed > 0
            if (pause := self._pause(pace, now)) > 0:
                return pause, False
            wanted = [
                (Bucket(rate, level), amount)
                for rate, level, amount in ((limits.requests, pace.requests, 1.0), (limits.tokens, pace.tokens, tokens))
                if rate
            ]
            debt = max((bucket.debt(now) for bucket, _ in wanted), default=0.0)
            if debt > self._patience:
                return debt - self._patience / 2, False
            return max((bucket.take(amount, now) for bucket, amount in wanted), default=0.0), True

    def _pause(self, pace: Pace, now: float) -> float:
        """Return the seconds that a pause lasts still. One that is longer than any: the clock was put back."""
        longest = max(self.limits.patience, self.limits.most) + self.limits.backoff
        pace.paused_until = min(pace.paused_until, now + longest)
        return pace.paused_until - now
