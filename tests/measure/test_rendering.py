"""Sixty mixed documents as evidence, against LibreOffice and Chromium alone in the same jail."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.confine.walls import Places
from gta_bench.content.browser import LIMITS, SETTINGS, find_browser
from gta_bench.content.libreoffice import convert
from gta_bench.settings import Settings
from gta_bench.tools.equipment import use_equipment
from tests.content import samples
from tests.judging.shown import Desk
from tests.tools.documents.making import as_json, bench
from tests.tools.documents.sample import MARKDOWN, SHEETS, SLIDES

pytestmark = pytest.mark.measure

PAGE = "<!DOCTYPE html><meta charset=utf-8><title>{n}</title><h1>Page {n} 页</h1>{body}"
MOST = 1.3
EACH = 15


def documents(folder: Path) -> dict[str, bytes]:
    """Fifteen of each: Word, PowerPoint, Excel, web page; no two alike."""
    desk = bench(folder)
    slides = as_json(SLIDES[:4])
    pictures = "inputs/wide.png,inputs/tall.png"
    bases = {
        "docx": desk.make("DocxFileGenerator", content=MARKDOWN, image_paths="inputs/wide.png"),
        "pptx": desk.make("PptxFileGenerator", slides_content_str=slides, image_paths=pictures),
        "xlsx": desk.make("XlsxFileGenerator", data_str=as_json(SHEETS)),
    }
    found = {
        f"{number}.{suffix}": samples.zipped({**samples.unzipped(data), "x.txt": str(number)})
        for suffix, data in bases.items()
        for number in range(EACH)
    }
    body = "<p>Words and words.</p>" * 60
    pages = {f"{n}.html": PAGE.format(n=n, body=body).encode() for n in range(EACH)}
    return found | pages


async def by_chromium(jail: Jail, data: bytes) -> None:
    def argv(places: Places) -> Sequence[str]:
        return [
            find_browser() or "chromium",
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *(f"--user-data-dir={places.scratch}/p", "--virtual-time-budget=5000"),
            *("--print-to-pdf=page.pdf", f"file://{places.inputs}/page.html"),
        ]

    readable = [Path(name) for name in SETTINGS if Path(name).is_dir()]
    done = await jail.run_program(
        argv, inputs={"page.html": data}, limits=LIMITS, readable=readable
    )
    assert "page.pdf" in done.files


async def bare(jail: Jail, files: Mapping[str, bytes]) -> None:
    async def one(name: str, data: bytes) -> None:
        if name.endswith("html"):
            await by_chromium(jail, data)
        else:
            await convert(jail, name, data, to="pdf")

    await asyncio.gather(*(one(name, data) for name, data in files.items()))


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def compare(folder: Path, files: Mapping[str, bytes]) -> tuple[float, float, int]:
    ours, theirs = [], []
    async with use_equipment(Settings()) as equipment:
        jail = equipment.need_jail()
        for turn in range(2):
            desk = Desk(folder / str(turn), equipment)
            theirs.append(await timed(lambda: bare(jail, files)))
            ours.append(await timed(lambda: desk.make(files)))  # noqa: B023
        shown = (await desk.make(files)).deliverables
    assert not any(file.unshown for file in shown)
    return min(ours), min(theirs), sum(len(file.pictures) for file in shown)


def test_sixty_documents_cost_at_most_a_third_more_than_the_programs_alone(tmp_path: Path) -> None:
    files = documents(tmp_path)
    assert len(files) == 60
    ours, theirs, pictures = asyncio.run(compare(tmp_path, files))
    print(f"evidence {ours:.1f} s with {pictures} pictures, programs alone {theirs:.1f} s: "
          f"{ours / theirs:.2f}")  # fmt: skip
    assert ours <= MOST * theirs
