"""Answers on their way to the disk: one group at a time, in a thread, and whoever brought one waits for its group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from comperdial.judges.base import Answer

if TYPE_CHECKING:
    from comperdial.judges.ledger import Shelf


class Writer:
    """Adds answers to a shelf. While one group is written, the next one gathers.

    Parameters
    ----------
    shelf
        Open for writing.
    kept
        Is told of each group that is on the disk.
    """

    def __init__(self, shelf: Shelf, kept: Callable[[Sequence[Answer]], None]) -> None:
        self._shelf = shelf
        self._kept = kept
        self._waiting: list[tuple[Answer, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._closed = False

    async def put(self, answer: Answer) -> None:
        """Return when the answer is on the disk. It gets there also if the caller is cancelled meanwhile."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((answer, done))
        self._wake.set()
        await done

    def close(self) -> None:
        """Let ``serve`` end when all is written."""
        self._closed = True
        self._wake.set()

    async def serve(self) -> None:
        """Write until closed.

        Raises
        ------
        ComperdialError
            After closing, when an answer whose bringer was gone could not be kept.
        """
        lost: Exception | None = None
        while not self._closed or self._waiting:
            await self._wake.wait()
            self._wake.clear()
            group, self._waiting = self._waiting, []
            if not group:
                continue
            answers = [answer for answer, _ in group]
            try:
                await asyncio.to_thread(self._shelf.add, answers)
            except Exception as error:
                if not _tell(group, error):
                    lost = error
            else:
                self._kept(answers)
                _tell(group, None)
        if lost:
            raise lost


def _tell(group: Sequence[tuple[Answer, asyncio.Future[None]]], error: Exception | None) -> bool:
    """Wake those who wait for a group; return whether anybody still did."""
    waiting = [done for _, done in group if not done.done()]
    for done in waiting:
        if error:
            done.set_exception(error)
        else:
            done.set_result(None)
    return bool(waiting)
