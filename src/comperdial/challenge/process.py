"""One agent's process, seen from the runner: requests with a deadline, and a kill that takes its children along."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from comperdial.challenge.limits import AgentError

# More than any batch of responses can need; an agent that sends more is stopped before it fills the memory.
_MOST_BYTES = 64 * 1024 * 1024


class Group:
    """Processes that can be killed together, also by a thread that does not wait for their answers.

    Attributes
    ----------
    killed
        Whether they were.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self.killed = False

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401
        """Start a process of the group; an :class:`AgentError` once the group was killed."""
        with self._lock:
            if self.killed:
                raise AgentError("not started: the run has ended")
            process = subprocess.Popen(command, **options)  # noqa: S603 - what the agent is was chosen by the user
            self._running.add(process)
        return process

    def kill_one(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a process and all that it started."""
        with self._lock:
            if process in self._running:
                self._running.remove(process)
                _kill(process)

    def kill(self) -> None:
        """Kill all, and let none start any more."""
        with self._lock:
            self.killed = True
            for process in self._running:
                _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class AgentProcess:
    """A process that runs :mod:`comperdial.challenge.worker`; use as a context manager.

    Parameters
    ----------
    spec
        As :func:`comperdial.challenge.worker.load` takes it.
    load_seconds
        How long the agent may take to be constructed.
    show
        Pass on what the agent prints, to standard error.
    group
        Those that it is killed with.
    """

    def __init__(
        self, spec: Mapping[str, Any], *, load_seconds: float, show: bool = False, group: Group | None = None
    ) -> None:
        self._group = group or Group()
        # A session of its own, so that what the agent starts can be stopped with it.
        self._process = self._group.start(
            [sys.executable, "-m", "comperdial.challenge.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if show else subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101 - they are pipes
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._input.fileno(), False)
        os.set_blocking(self._output.fileno(), False)
        try:
            about = self.ask({"load": dict(spec)}, load_seconds, "loading")
            self.takes_api_responses = isinstance(about, dict) and about.get("api") is True
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def ask(self, request: Mapping[str, Any], seconds: float, doing: str) -> Any:  # noqa: ANN401
        """Send a request and return the answer's value.

        Raises
        ------
        AgentError
            When the agent raised, ended, sent no JSON, or took longer than ``seconds``.
        """
        if seconds <= 0:
            raise AgentError(f"out of time before {doing}")
        deadline = time.monotonic() + seconds
        try:
            self._send(json.dumps(request).encode() + b"\n", deadline, seconds, doing)
        except OSError as error:
            raise AgentError(f"its process ended before {doing}") from error
        try:
            answer = json.loads(self._receive(deadline, seconds, doing))
        except (ValueError, RecursionError) as error:
            raise AgentError(f"{doing}: what it sent is not JSON") from error
        # Not the worker's: the agent wrote to the worker's channel.
        if not isinstance(answer, dict) or not {"error", "value"} & set(answer):
            raise AgentError(f"{doing}: what it sent is no answer")
        if "error" in answer:
            raise AgentError(f"{doing}: raised {answer['error']}")
        return answer["value"]

    def _send(self, line: bytes, deadline: float, seconds: float, doing: str) -> None:
        # Not a plain write: it would wait for ever on a process that no longer reads.
        rest = memoryview(line)
        with selectors.DefaultSelector() as selector:
            selector.register(self._input, selectors.EVENT_WRITE)
            while rest:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise AgentError(f"{doing}: no answer within {seconds:.0f} s")
                rest = rest[os.write(self._input.fileno(), rest) :]

    def _receive(self, deadline: float, seconds: float, doing: str) -> bytes:
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise AgentError(f"{doing}: no answer within {seconds:.0f} s")
                chunk = os.read(self._output.fileno(), 1 << 16)
                if not chunk:
                    raise AgentError(f"{doing}: its process ended (status {self._process.wait()})")
                received += chunk
                if len(received) > _MOST_BYTES:
                    raise AgentError(f"{doing}: it sent more than {_MOST_BYTES >> 20} MiB")
        return bytes(received)

    def stop(self) -> None:
        """Kill the process and all that it started."""
        self._group.kill_one(self._process)
        for pipe in (self._input, self._output):
            with suppress(OSError):
                pipe.close()
        self._process.wait()
