"""Ctrl-C and SIGTERM, in the middle of work that wants to end in order."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def signals(act: Callable[[], None]) -> Iterator[None]:
    """Act on the first Ctrl-C or SIGTERM; the second one finds things as they were, and ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
        before.clear()

    def first() -> None:
        restore()
        act()

    for number in before:
        loop.add_signal_handler(number, first)
    try:
        yield
    finally:
        restore()
