"""A real HTTP server on loopback that knows ranges and can be told to misbehave."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.serving import running


class FileServer(ThreadingHTTPServer):
    """Serves `files` by path; `cuts` bytes are sent of the next replies before the line drops."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.cuts: list[int] = []
        self.statuses: list[int] = []
        self.pages: dict[str, str] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def serving() -> Iterator[FileServer]:
    server = FileServer()
    with running(server):
        yield server


class _Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        path, span = self.path, self.headers.get("Range")
        self.server.requests.append((path, span))
        if self.server.statuses:
            self.send_error(self.server.statuses.pop(0))
            return
        content = self.server.files.get(path)
        if content is None:
            self.send_error(404)
            return
        tag = f'"{hash(content)}"'
        start = 0
        if span is not None and self.headers.get("If-Range") == tag:
            start = int(span.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_error(416)
                return
        self.send_response(206 if start else 200)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(content) - start))
        if path in self.server.pages:
            self.send_header("Link", f'<{self.server.url}{self.server.pages[path]}>; rel="next"')
        self.end_headers()
        body = content[start:]
        if self.server.cuts:
            body = body[: self.server.cuts.pop(0)]
        self.wfile.write(body)
        self.server.sent += len(body)

    def log_message(self, format: str, *args: object) -> None:
        pass
