"""Inside the jail: opens a page in Chromium and saves its screenshots and text.

It runs as a program of its own and controls the browser through a pipe, in the DevTools protocol.
It answers every request of the page: files of the page are served, all others are refused and
recorded.
"""

import base64
import json
import mimetypes
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

ORIGIN = "https://page.invalid/"
VIRTUAL_MILLISECONDS = 5000  # of the page's clock, for animations and delayed scripts
NOTED = 50
NOTED_CHARACTERS = 300
TEXT = "document.body ? document.body.innerText : document.documentElement.textContent"
LARGE_PNG = 500_000  # bytes; above it a JPEG is tried
CALL_SECONDS = 10.0
# A page whose navigation was refused never fires the load event.
LOADED = ("Page.loadEventFired", "Page.frameStoppedLoading")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-breakpad", "--disable-crash-reporter", "--mute-audio",
    "--hide-scrollbars", "--block-new-web-contents", "--renderer-process-limit=1",
    "--disable-features=Translate,MediaRouter,OptimizationHints,DialMediaRouteProvider",
    "--run-all-compositor-stages-before-draw", "--remote-debugging-pipe",
)  # fmt: skip


class Late(Exception):
    """The browser did not answer in time."""


class Browser:
    """A Chromium process and the two pipes to it."""

    def __init__(self, program: str, memory: int, profile: str) -> None:
        here, there = os.pipe(), os.pipe()
        self._in, self._out = here[1], there[0]

        def prepare_process() -> None:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
            read, write = os.dup(here[0]), os.dup(there[1])
            os.dup2(read, 3)
            os.dup2(write, 4)

        argv = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            argv, preexec_fn=prepare_process, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        os.close(here[0])
        os.close(there[1])
        os.set_blocking(self._out, False)
        self._number = 0
        self._rest = b""

    def close(self) -> None:
        os.killpg(self._process.pid, 9)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def send(self, method: str, session: str | None = None, **params: Any) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._in, data) :]
        return self._number

    def messages(self, deadline: float) -> Iterator[dict[str, Any]]:
        """Yield the messages of the browser; raises Late at the deadline."""
        while True:
            while b"\0" in self._rest:
                line, _, self._rest = self._rest.partition(b"\0")
                yield json.loads(line)
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                raise Late
            data = os.read(self._out, 1 << 20)
            if not data:
                raise Late
            self._rest += data


class _Page:
    """One page in a browser; its requests are answered while waiting for events."""

    def __init__(self, browser: Browser, files: dict[str, dict[str, str]]) -> None:
        self._browser = browser
        self._files = files
        self._session: str | None = None
        self._world: int | None = None
        self.view: tuple[int, int] = (0, 0)
        self.refused: list[str] = []
        self.faults: list[str] = []

    def call(self, method: str, *, seconds: float = CALL_SECONDS, **params: Any) -> dict[str, Any]:
        number = self._browser.send(method, self._session, **params)
        for message in self._browser.messages(time.monotonic() + seconds):
            if message.get("id") == number:
                result: dict[str, Any] = message.get("result", {})
                return result
            self._event(message)
        raise Late

    def wait(self, events: tuple[str, ...], seconds: float) -> None:
        for message in self._browser.messages(time.monotonic() + seconds):
            if message.get("method") in events:
                return
            self._event(message)

    def open(self, view: tuple[int, int], stay: str, *, scripts: bool) -> None:
        self.view = view
        target = self.call("Target.createTarget", url="about:blank", seconds=20.0)
        attached = self.call("Target.attachToTarget", targetId=target.get("targetId"), flatten=True)
        self._session = attached.get("sessionId")
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Fetch.enable", patterns=[{"urlPattern": "*"}])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=view[0], height=view[1], deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.call("Page.addScriptToEvaluateOnNewDocument", source=stay)
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def load(self, path: str, seconds: float) -> None:
        """Open the page and let its clock run."""
        self._browser.send("Page.navigate", self._session, url=ORIGIN + quote(path))
        self.wait(LOADED, seconds)
        self.call(
            "Emulation.setVirtualTimePolicy",
            policy="pauseIfNetworkFetchesPending", budget=VIRTUAL_MILLISECONDS,
        )  # fmt: skip
        self.wait(("Emulation.virtualTimeBudgetExpired",), seconds)
        frame = self.call("Page.getFrameTree").get("frameTree", {}).get("frame", {}).get("id")
        world = self.call("Page.createIsolatedWorld", frameId=frame)
        self._world = world.get("executionContextId")

    def evaluate(self, expression: str) -> str:
        """Return a text, computed where scripts of the page cannot change what functions do."""
        found = self.call("Runtime.evaluate", expression=expression, contextId=self._world)
        return str(found.get("result", {}).get("value") or "")

    def _event(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Fetch.requestPaused":
            self._answer(params)
        elif method == "Page.javascriptDialogOpening":
            self._browser.send("Page.handleJavaScriptDialog", self._session, accept=False)
        elif method == "Runtime.exceptionThrown":
            details = params.get("exceptionDetails", {})
            error = details.get("exception", {}).get("description") or details.get("text", "")
            _note(self.faults, error.partition("\n")[0])

    def _answer(self, params: dict[str, Any]) -> None:
        request, url = params["requestId"], params["request"]["url"]
        path = unquote(url.removeprefix(ORIGIN).partition("#")[0].partition("?")[0])
        file = self._files.get(path) if url.startswith(ORIGIN) else None
        if file is None:
            if not url.endswith("/favicon.ico"):
                _note(self.refused, url.removeprefix(ORIGIN))
            self._browser.send(
                "Fetch.failRequest", self._session, requestId=request, errorReason="Aborted"
            )
            return
        body = base64.b64encode(Path(file["input"]).read_bytes()).decode("ascii")
        kind = file.get("type") or mimetypes.guess_type(path)[0] or "application/octet-stream"
        self._browser.send(
            "Fetch.fulfillRequest", self._session, requestId=request, responseCode=200, body=body,
            responseHeaders=[{"name": "Content-Type", "value": kind}],
        )  # fmt: skip


def _note(notes: list[str], text: str) -> None:
    text = text[:NOTED_CHARACTERS]
    if text and text not in notes and len(notes) < NOTED:
        notes.append(text)


def main(text: str) -> None:
    """Open the page, and once more without scripts if they do not finish."""
    order = json.loads(text)
    mimetypes.init(files=())
    found: dict[str, Any] = {}
    for attempt, scripts in enumerate((True, False)):
        browser = Browser(order["browser"], order["memory"], f"{order['profile']}{attempt}")
        try:
            page = _Page(browser, order["files"])
            page.open(tuple(order["view"]), order["stay"], scripts=scripts)
            page.load(order["page"], order["seconds"])
            found = _inspect(page, order, scripts=scripts)
            break
        except Late:
            continue
        finally:
            browser.close()
    Path("page.json").write_text(json.dumps(found), encoding="utf-8")


def _inspect(page: _Page, order: dict[str, Any], *, scripts: bool) -> dict[str, Any]:
    text = page.evaluate(TEXT)
    title = page.evaluate("document.title")
    sight = json.loads(page.evaluate(order["seen"]) or "{}")
    size = page.call("Page.getLayoutMetrics").get("cssContentSize", {})
    whole = int(size.get("width") or page.view[0]), int(size.get("height") or page.view[1])
    side = order["longest_side"]
    width = max(1, min(whole[0], side))
    heights = [min(side, whole[1] - top) for top in range(0, max(whole[1], 1), side)]
    pictures = []
    for number, height in enumerate(heights[: order["most_pictures"]]):
        name = _capture(page, number, width, max(1, height), side)
        pictures.append([name, number * side, width, max(1, height)])
    shown = {
        "title": title,
        "text": text[: order["characters"]],
        "width": whole[0],
        "height": whole[1],
        "scripts": scripts,
        "refused": page.refused,
        "faults": page.faults,
        "seen": sight.get("seen", ""),
        "unseen": sight.get("unseen", ""),
    }
    return {"page": shown, "pictures": pictures}


def _capture(page: _Page, number: int, width: int, height: int, side: int) -> str:
    clip = {"x": 0, "y": number * side, "width": width, "height": height, "scale": 1}
    made = page.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True, seconds=20.0)
    data, suffix = base64.b64decode(made["data"]), "png"
    if len(data) > LARGE_PNG:
        again = page.call(
            "Page.captureScreenshot", clip=clip, captureBeyondViewport=True, seconds=20.0,
            format="jpeg", quality=85,
        )  # fmt: skip
        smaller = base64.b64decode(again["data"])
        if len(smaller) < len(data):
            data, suffix = smaller, "jpg"
    name = f"{number}.{suffix}"
    Path(name).write_bytes(data)
    return name


if __name__ == "__main__":
    main(sys.argv[1])
