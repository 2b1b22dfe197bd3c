"""The real deliverables of 20 published tasks, and the files that these tasks came with."""

import asyncio
from pathlib import Path

import pytest

from gta_bench.judging.run_evidence import make_evidence
from gta_bench.records.evidence import Evidence
from gta_bench.tools.contract import Equipment
from tests.judging.shown import Desk, facts
from tests.needs import needs
from tests.tools.media_weights import fetch_moonshine

pytestmark = [pytest.mark.slow, needs("bwrap", "chromium", "ffmpeg", "npm", "soffice")]

PREDICTIONS = "predictions/workflow_gemini25pro_lagent_20"
RESOURCES = ("images", "video", "reddit_data")


@pytest.fixture(scope="module")
def evidence(
    data_dir: Path, tmp_path_factory: pytest.TempPathFactory, equipment: Equipment
) -> tuple[Desk, Evidence]:
    """All of them in one call, as a run with one store would show them."""
    fetch_moonshine()
    desk = Desk(tmp_path_factory.mktemp("real"), equipment)
    made = sorted((data_dir / PREDICTIONS).glob("*/attachments/*"))
    given = sorted(
        file
        for folder in RESOURCES
        for file in (data_dir / "gta_workflow" / "resources" / folder).rglob("*.*")
    )
    deliverables = desk.keep({f"{f.parts[-3]}/{f.name}": f.read_bytes() for f in made})
    inputs = desk.keep({file.name: file.read_bytes() for file in given})
    shown = asyncio.run(
        make_evidence(
            "",
            deliverables,
            inputs,
            files=desk.files,
            store=desk.store,
            equipment=desk.equipment,
        )
    )
    return desk, shown


def test_nothing_is_unshown(evidence: tuple[Desk, Evidence]) -> None:
    _, shown = evidence
    files = [*shown.deliverables, *shown.inputs]
    assert (len(shown.deliverables), len(shown.inputs)) == (30, 9)
    assert {file.path: file.unshown for file in files if file.unshown} == {}
    assert all(file.pictures for file in files)
    assert all(file.claims == file.kind for file in files)


def test_pages_have_words_and_pictures_have_something_on_them(
    evidence: tuple[Desk, Evidence],
) -> None:
    desk, shown = evidence
    for file in shown.deliverables:
        image = desk.picture(file)
        assert max(image.size) <= 1568
        if file.kind in ("html", "pdf"):
            assert facts(file)["words"] > 10, file.path
            assert image.getextrema()[0][0] < 128, file.path  # type: ignore[index]


def test_missing_parts_of_a_page_are_reported(evidence: tuple[Desk, Evidence]) -> None:
    """Task 45's page asks for a style sheet, a script and pictures that nobody delivered."""
    _, shown = evidence
    (page,) = (file for file in shown.deliverables if file.path == "task45/01_20260519_ef34.html")
    (broken,) = (words for words in page.findings if words.startswith("broken links"))
    assert "style.css" in broken
    assert "harry.png" in broken
