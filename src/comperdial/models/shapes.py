"""Work in batches of fixed shapes, on threads that compute alone: what comes of an item depends on this item only.

The last digits of a matrix product depend on its shape and on how many threads share it, since both decide in which
order numbers are added. So items of equal size make a batch, always as many of them, and each batch is one thread's.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from comperdial.models import runtime

T = TypeVar("T")
R = TypeVar("R")

# Batches that are computed or wait for it, for each thread: one more than it works at, so that it never waits.
_AHEAD = 2


def equal(blocks: Iterable[Sequence[T]], size: Callable[[T], int], tokens: int) -> Iterator[list[T]]:
    """Group items of equal size into batches of ``max(1, tokens // size)``, whatever the blocks that they come in.

    Parameters
    ----------
    blocks
        Items, as many at a time as memory holds; of each block the largest come first, so that a lack of memory shows
        early. What does not fill a batch waits for the next blocks.
    size
        The number of tokens of an item.
    tokens
        The most tokens a batch may have; an item that has more is a batch alone.

    Yields
    ------
    list
        Items; only the last batch of a size may have fewer than it should: it is for the caller to fill it up.
    """
    waiting: dict[int, list[T]] = {}
    for block in blocks:
        for item in sorted(block, key=size, reverse=True):
            group = waiting.setdefault(size(item), [])
            group.append(item)
            if len(group) == rows(size(item), tokens):
                yield waiting.pop(size(item))
    for number in sorted(waiting, reverse=True):
        yield waiting[number]


def rows(size: int, tokens: int) -> int:
    """Return how many items of a size make a batch."""
    return max(1, tokens // max(1, size))


def run(function: Callable[[T], R], batches: Iterable[T]) -> Iterator[tuple[T, R]]:
    """Yield batches and what a function makes of them, in their order.

    On a cpu as many batches are computed at the same time as torch would use threads, each by one thread, and some
    few wait. Any other device gets one after the other. An error of the function comes up here, and so does Ctrl-C;
    what had not begun then is dropped.
    """
    if runtime.device().type != "cpu":
        for batch in batches:
            yield batch, function(batch)
        return
    import torch

    waiting: deque[tuple[T, Future[R]]] = deque()
    count = torch.get_num_threads()
    with _threads(count) as pool:
        for batch in batches:
            waiting.append((batch, pool.submit(function, batch)))
            if len(waiting) >= _AHEAD * count:
                first, found = waiting.popleft()
                yield first, found.result()
        while waiting:
            first, found = waiting.popleft()
            yield first, found.result()


@contextmanager
def _threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Give threads in each of which torch computes without further ones; all other threads keep what they have."""
    import torch

    together = threading.Barrier(count)

    def start() -> None:
        # Asked first: a thread's first use of torch would take over what the process has, after this one too.
        torch.get_num_threads()
        torch.set_num_threads(1)
        together.wait()

    pool = ThreadPoolExecutor(count, "batches", initializer=start)
    try:
        # A thread starts when there is work that no other is free for, and here none is before all have started.
        started = [pool.submit(torch.get_num_threads) for _ in range(count)]
        for future in started:
            future.result()
        # What a thread sets is also what threads begin with that start later: those are not ours.
        torch.set_num_threads(count)
        yield pool
    finally:
        together.abort()
        pool.shutdown(cancel_futures=True)
