"""LibreOffice in the jail: it converts, fetches nothing, reads nothing of the host, and ends."""

import asyncio
import io
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from pypdf import PdfReader

from gta_bench.content.libreoffice import convert
from gta_bench.errors import ToolError
from tests.needs import needs
from tests.tools.documents.making import jail

pytestmark = [pytest.mark.slow, needs("bwrap", "soffice")]


class Counter(BaseHTTPRequestHandler):
    hits = 0

    def do_GET(self) -> None:
        type(self).hits += 1
        self.send_response(404)
        self.end_headers()

    do_OPTIONS = do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def listener(loopback: None) -> Iterator[str]:
    Counter.hits = 0
    server = HTTPServer(("127.0.0.1", 0), Counter)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def words(pdf: bytes) -> str:
    return " ".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)


def test_a_sheet_becomes_a_page() -> None:
    made = asyncio.run(convert(jail(), "a.csv", "name,n\n中文,2\n".encode(), to="pdf"))
    assert "name" in words(made)


def test_remote_pictures_and_files_of_the_host_are_not_read(listener: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret words", encoding="utf-8")
    html = (
        f'<html><body><p>visible</p><img src="{listener}/a.png">'
        f'<link rel="stylesheet" href="{listener}/b.css"><iframe src="file://{secret}"></iframe>'
        f'<img src="file:///etc/passwd"><object data="file://{secret}"></object></body></html>'
    )
    made = asyncio.run(convert(jail(), "page.html", html.encode(), to="pdf:writer_web_pdf_Export"))
    assert made.startswith(b"%PDF")
    assert "secret words" not in words(made)
    assert "root:" not in words(made)
    assert Counter.hits == 0


def test_a_file_that_it_cannot_convert_is_an_error_although_its_status_is_0() -> None:
    with pytest.raises(ToolError, match="LibreOffice could not read the file"):
        asyncio.run(convert(jail(), "broken.xlsx", b"PK\x03\x04 no archive", to="pptx"))


def test_two_at_once_do_not_share_a_profile() -> None:
    async def both() -> list[bytes]:
        calls = [convert(jail(), f"{n}.csv", f"cell{n}\n".encode(), to="pdf") for n in range(2)]
        return list(await asyncio.gather(*calls))

    start = time.monotonic()
    first, second = asyncio.run(both())
    assert "cell0" in words(first)
    assert "cell1" in words(second)
    assert time.monotonic() - start < 60
