"""Hostile deliverables cost bounded time and memory, reach nothing and show nothing of the host."""

import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gta_bench.confine.jail import Jail
from gta_bench.judging.showing.draft import EvidenceLimits
from gta_bench.records.evidence import FileEvidence
from gta_bench.tools.contract import Equipment
from tests.judging.hostile import MAGENTA, SECRET, Trap, corpus, plant
from tests.judging.shown import Desk
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("bwrap", "chromium", "ffmpeg", "soffice")]

LIMITS = EvidenceLimits(seconds=24.0, characters=20_000, pages=5)
MOST_MEMORY = 6 << 30
MOST_SECONDS = 400
READ = {"reaching.html", "entity.svg", "include.docx"}


@dataclass
class Watch:
    """What is seen of this process's descendants, and of requests that arrive."""

    hits: list[str] = field(default_factory=list)
    memory: int = 0
    seconds: float = 0.0


def descendants() -> dict[int, tuple[str, int]]:
    """Command and resident bytes of every process that comes from this one."""
    about: dict[int, tuple[int, str, int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
            resident = int((folder / "statm").read_text().split()[1]) * 4096
        except (OSError, IndexError):
            continue
        about[int(folder.name)] = (int(rest.split()[1]), name.partition("(")[2], resident)
    found = {os.getpid()}
    while more := {pid for pid, (parent, _, _) in about.items() if parent in found} - found:
        found |= more
    return {pid: about[pid][1:] for pid in found - {os.getpid()} if pid in about}


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.25):
            watch.memory = max(watch.memory, sum(size for _, size in descendants().values()))

    thread = threading.Thread(target=look)
    thread.start()
    start = time.monotonic()
    try:
        yield
    finally:
        watch.seconds = time.monotonic() - start
        done.set()
        thread.join()


@contextmanager
def listening(watch: Watch) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            watch.hits.append(self.path)
            self.send_response(404)
            self.end_headers()

        do_POST = do_HEAD = do_OPTIONS = do_PROPFIND = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Outcome:
    watch: Watch
    desk: Desk
    shown: dict[str, FileEvidence]
    left: list[str]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, equipment: Equipment) -> Outcome:
    """The whole corpus, shown once."""
    from pytest_socket import enable_socket, socket_allow_hosts

    folder = tmp_path_factory.mktemp("hostile")
    jobs = folder / "jobs"
    jobs.mkdir()
    plant(folder)
    watch = Watch()
    assert equipment.jail is not None
    before = set(descendants())
    enable_socket()
    socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)
    with listening(watch) as url, Jail(equipment.jail.kind, slots=2, temporary=jobs) as jail:
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{url}/control")  # what arrives is seen
        desk = Desk(folder, replace(equipment, jail=jail))
        with watching(watch):
            shown = desk.show(corpus(Trap(url, folder)), LIMITS)
    left = [name for pid, (name, _) in descendants().items() if pid not in before]
    left += [path.name for path in jobs.iterdir()]
    return Outcome(watch, desk, shown, left)


def pictures(outcome: Outcome) -> Iterator[tuple[str, Image.Image]]:
    for name, file in outcome.shown.items():
        for number in range(len(file.pictures)):
            yield name, outcome.desk.picture(file, number)


def test_time_and_memory_are_bounded(outcome: Outcome) -> None:
    print(f"{outcome.watch.seconds:.0f} s, {outcome.watch.memory >> 20} MiB at most")
    assert outcome.watch.seconds < MOST_SECONDS
    assert outcome.watch.memory < MOST_MEMORY


def test_nothing_reached_the_network(outcome: Outcome) -> None:
    assert outcome.watch.hits == ["/control"]


def test_nothing_is_left_behind(outcome: Outcome) -> None:
    assert outcome.left == []


def test_nothing_of_the_host_is_in_any_text(outcome: Outcome) -> None:
    for name, file in outcome.shown.items():
        words = file.model_dump_json()
        assert SECRET not in words, name
        assert "root:x:" not in words, name


def test_nothing_of_the_host_is_in_any_picture(outcome: Outcome) -> None:
    """The planted page and picture are magenta; planted words would be read by OCR."""
    from rapidocr import RapidOCR

    reader: Any = RapidOCR(params={"Global.log_level": "error"})
    read: set[str] = set()
    for name, picture in pictures(outcome):
        away = abs(np.asarray(picture.reduce(4), np.int16) - MAGENTA).max(axis=2)
        assert away.min() > 40, name
        if name in READ - read:
            top = picture.crop((0, 0, picture.width, 600))
            texts = reader(np.asarray(top)).txts or ()
            assert not any(SECRET[:6] in text.upper() for text in texts), name
            read.add(name)
    assert read == READ


def test_every_file_is_shown_or_says_why_not(outcome: Outcome) -> None:
    for name, file in outcome.shown.items():
        assert file.text or file.pictures, name
        assert all(len(words) < 400 for words in file.unshown), name
        assert all(len(words) < 5000 for words in file.findings), name
        assert "gta-jail-" not in file.model_dump_json(), name


EXPECTED = {
    "endless.html": "its scripts come to no end: the page is shown without them",
    "hungry.html": 'script errors: "RangeError: Array buffer allocation failed"',
    "macros.docm": "it holds macros; they were not run",
}


@pytest.mark.parametrize(("name", "finding"), EXPECTED.items())
def test_what_was_wrong_is_reported(outcome: Outcome, name: str, finding: str) -> None:
    assert finding in outcome.shown[name].findings
    assert outcome.shown[name].pictures


def test_external_links_are_reported(outcome: Outcome) -> None:
    for name in ("linked.docx", "linked.pptx"):
        (words,) = [w for w in outcome.shown[name].findings if w.startswith("linked content")]
        assert "127.0.0.1" in words
        assert outcome.shown[name].pictures
    assert any("content from the web" in w for w in outcome.shown["reaching.html"].findings)


def test_macros_do_not_run(outcome: Outcome) -> None:
    assert "The text itself." in outcome.shown["macros.odt"].text
    assert "MACRO RAN" not in outcome.shown["macros.odt"].text
    assert "it holds macros; they were not run" in outcome.shown["macros.odt"].findings


def test_of_a_long_document_the_first_pages_are_shown(outcome: Outcome) -> None:
    shown = outcome.shown["long.docx"]
    assert len(shown.pictures) == 5
    assert "pages 6 to 200 are not shown as a picture" in shown.cut


@pytest.mark.parametrize("name", ["bomb.docx", "bomb.zip", "bomb.xlsx", "huge.png", "list.mp4"])
def test_bombs_and_playlists_are_refused(outcome: Outcome, name: str) -> None:
    assert outcome.shown[name].unshown or outcome.shown[name].kind == "text"
    assert not outcome.shown[name].pictures
