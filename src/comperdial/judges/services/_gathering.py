"""Requests that come one by one and are answered many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from comperdial.core.errors import ComperdialError
from comperdial.judges.services._causal import Task
from comperdial.models import runtime

# Seconds in which more requests may come before a batch is begun.
_PAUSE = 0.003


class Gathering:
    """Has requests that wait at the same time done together, in a thread, so that the event loop goes on."""

    def __init__(self, run: Callable[[list[Task]], list[Any]]) -> None:
        self._run = run
        self._waiting: list[tuple[Task, asyncio.Future[Any]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def ask(self, task: Task) -> Any:  # noqa: ANN401
        """Return what the task comes to."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((task, future))
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._pause()
                if batch := self._take():
                    await self._answer(batch)
        except ComperdialError as error:
            _hand_out([(future, error) for _, future in self._waiting])
            self._waiting = []
        finally:
            self._worker = None

    async def _pause(self) -> None:
        """Wait as long as more requests come."""
        before = 0
        while len(self._waiting) > before:
            before = len(self._waiting)
            await asyncio.sleep(_PAUSE)

    def _take(self) -> list[tuple[Task, asyncio.Future[Any]]]:
        """Return the batch that the oldest request is in; those given up meanwhile are left out."""
        self._waiting = alive = [pair for pair in self._waiting if not pair[1].done()]
        groups = runtime.batches([task.size for task, _ in alive])
        chosen = next((set(group) for group in groups if 0 in group), set[int]())
        self._waiting = [pair for place, pair in enumerate(alive) if place not in chosen]
        return [alive[place] for place in sorted(chosen)]

    async def _answer(self, batch: Sequence[tuple[Task, asyncio.Future[Any]]]) -> None:
        try:
            found = await asyncio.to_thread(self._run, [task for task, _ in batch])
        except Exception as error:
            # It belongs to those who wait, and is raised there.
            found = [error] * len(batch)
        _hand_out([(future, value) for (_, future), value in zip(batch, found, strict=True)])


def _hand_out(results: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, value in results:
        if future.done():
            continue
        if isinstance(value, Exception):
            future.set_exception(value)
        else:
            future.set_result(value)
