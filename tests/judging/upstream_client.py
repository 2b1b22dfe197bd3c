"""Upstream's judging replayed by a bare client: every file again for every leaf, one after another.

Conversion of HTML, text and JSON to PDF is left out (its program is not to be had), which is in
upstream's favor: the file is sent as it is.
"""

import http.client
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from gta_bench.records.workflow import Checkpoint

DIRECT = {".pdf", ".png", ".jpg", ".jpeg", ".webp", ".html", ".txt", ".md", ".json"}
SOUND = {".mp3", ".wav", ".m4a"}
FILMS = {".mp4", ".mov", ".webm"}


class UpstreamClient:
    """One connection, one request at a time."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.base = parts.path
        self.connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)

    def judge(self, request: str, answer: str, leaf: Checkpoint, files: Sequence[Path]) -> None:
        """One leaf: upload every file, then ask."""
        with tempfile.TemporaryDirectory() as folder:
            parts = [part for file in files for part in self._attached(file, Path(folder))]
        text = f"{request}\n{answer}\n{leaf.requirements}\nReply with JSON: score, analysis."
        content = [{"type": "input_text", "text": text}, *parts]
        body = {"model": "m", "input": [{"role": "user", "content": content}]}
        self._post("/responses", json.dumps(body).encode(), "application/json")

    def _attached(self, file: Path, folder: Path) -> Iterator[dict[str, str]]:
        suffix = file.suffix.lower()
        if suffix in DIRECT:
            self._upload(file)
            yield {"type": "input_file", "file_id": "file-1"}
        elif suffix in SOUND:
            self._upload(file)
            yield {"type": "input_text", "text": f"Audio file: {file.name}"}
        elif suffix in FILMS:
            self._upload(file)
            for frame in _frames(file, folder):
                self._upload(frame)
                yield {"type": "input_image", "file_id": "file-1"}

    def _upload(self, file: Path) -> None:
        self._post("/files", file.read_bytes(), "application/octet-stream")

    def _post(self, path: str, body: bytes, kind: str) -> None:
        self.connection.request("POST", self.base + path, body, {"Content-Type": kind})
        reply = self.connection.getresponse()
        assert reply.status == 200
        reply.read()


def _frames(film: Path, folder: Path) -> list[Path]:
    """0.4 frames a second, as upstream takes them."""
    pattern = folder / f"{film.stem}-%d.jpg"
    command = ["ffmpeg", "-v", "error", "-i", str(film), "-vf", "fps=0.4", str(pattern)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return sorted(folder.glob(f"{film.stem}-*.jpg"))
