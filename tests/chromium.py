"""A headless Chromium that tests drive through its DevTools protocol, over a pipe."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time

CHROMIUM = next((p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name))), None)
_OPTIONS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
]  # fmt: skip
_KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "ArrowLeft": (37, ""), "ArrowRight": (39, "")}


class Chromium:
    """A browser with one page."""

    def __init__(self, profile, url, *, window="1280,900"):
        self._number, self._session = 0, None
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        # Out of the way of 3 and 4, which Chromium reads and writes.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 50) for fd in (commands, answers)]

        def connect():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        options = [*_OPTIONS, f"--user-data-dir={profile}", f"--window-size={window}", "about:blank"]
        self._process = subprocess.Popen(
            [CHROMIUM, *options], close_fds=False, preexec_fn=connect, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for fd in (commands, answers, *high):
            os.close(fd)
        self._rest = b""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Page.enable")
        self.send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && document.body.dataset.ready")

    def send(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            while b"\0" not in self._rest:
                if not select.select([self._read], [], [], max(0, deadline - time.monotonic()))[0]:
                    raise TimeoutError(method)
                self._rest += os.read(self._read, 1 << 16)
            line, self._rest = self._rest.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def evaluate(self, code):
        found = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, code, seconds=20):
        deadline = time.monotonic() + seconds
        while not self.evaluate(code):
            assert time.monotonic() < deadline, code
            time.sleep(0.02)

    def press(self, key):
        code, text = _KEYS.get(key, (ord(key[0].upper()), key))
        about = (
            {"key": key, "windowsVirtualKeyCode": code, "text": text}
            if text
            else {"key": key, "windowsVirtualKeyCode": code}
        )
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **about)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def give_file(self, selector, path):
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def downloads_to(self, folder):
        self.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def kill(self):
        """End it as a crash would."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            os.close(self._write)
            os.close(self._read)
