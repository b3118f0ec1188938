"""A small server of chat completions on this machine, whose faults a test chooses."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 50, "completion_tokens": 2}


def completion(text: str = "Humanness: 4", usage: Any = USAGE, **choice: Any) -> dict[str, Any]:
    """Return the body of an answer."""
    choices = [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop", **choice}]
    return {"choices": choices, "model": "m-1", "usage": usage}


class FaultServer:
    """Answers on a port of its own; a context manager.

    Parameters
    ----------
    answer
        Returns a status and a body (text, or what becomes JSON) for the number of a request and its body; or None, for a
        connection that is cut.
    faults
        The share of requests that have a fault before they are answered.
    """

    def __init__(
        self, answer: Callable[[int, dict[str, Any]], Any] = lambda n, body: (200, completion()), faults: float = 0.0
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answered: list[str] = []
        self._answer, self._faults = answer, faults
        self._guard = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                if content := self.rfile.read(int(self.headers["Content-Length"])):
                    outer._handle(self, json.loads(content))

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> FaultServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        with self._guard:
            number = len(self.requests)
            self.requests.append(body)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
        result = self._answer(number, body)
        if random.random() < self._faults:
            result = random.choice([None, (429, "slow down"), (500, "oops"), (503, "busy"), (200, "<html>"), (200, {})])
        elif result and result[0] == 200:
            with self._guard:
                self.answered.append(json.dumps(body["messages"]))
        if result is None:
            handler.close_connection = True
            handler.connection.close()
            return
        status, text, *delay = result
        time.sleep(delay[0] if delay else 0)
        content = text.encode() if isinstance(text, str) else json.dumps(text).encode()
        try:
            handler.send_response(status)
            handler.send_header("Content-Length", str(len(content)))
            if status == 429:
                handler.send_header("retry-after-ms", "5")
            handler.end_headers()
            handler.wfile.write(content)
        except OSError:
            pass
