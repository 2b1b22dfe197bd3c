"""What upstream's judge would have seen (upstream-behaviour, 4.1)."""

import pytest

from gta_bench.judging.options import JudgeOptions
from gta_bench.judging.showing.texts import PAGE_TEXT, SOURCE
from gta_bench.judging.visibility import EXISTS, select_visible
from gta_bench.records.evidence import Evidence, FileEvidence, Picture, Probe


def picture(label: str) -> Picture:
    return Picture(digest="0" * 64, media_type="image/png", label=label, width=4, height=3)


def file(
    path: str, *, pictures: int = 1, seconds: float | None = None, text: str = "t"
) -> FileEvidence:
    probes = () if seconds is None else (Probe(name="seconds", value=seconds),)
    return FileEvidence(
        path=path,
        digest="1" * 64,
        size=9,
        claims="x",
        kind="y",
        text=text,
        pictures=tuple(picture(f"frame {number}") for number in range(pictures)),
        probes=(*probes, Probe(name="pages", value=3)),
        cut=("rows",),
        unshown=("pages",),
        findings=("a lie",),
    )


def seen(one: FileEvidence) -> FileEvidence | None:
    evidence = Evidence(answer="A", deliverables=(one,), inputs=(file("i.png"),))
    made = select_visible(evidence, JudgeOptions(visibility="upstream"))
    assert made.inputs == ()
    assert made.answer == "A"
    return made.deliverables[0] if made.deliverables else None


@pytest.mark.parametrize(
    "name",
    ["a.docx", "a.pptx", "a.xlsx", "a.csv", "a.gif", "a.bmp", "a.zip", "a.py", "a.svg", "README",
     "a.flac", "a.htm", "a.markdown"],
)  # fmt: skip
def test_what_upstream_drops_is_missing_without_a_note(name: str) -> None:
    assert seen(file(name)) is None


@pytest.mark.parametrize(
    ("name", "text", "pictures"),
    [("a.PDF", "t", 1), ("a.png", "", 1), ("a.jpeg", "", 1), ("a.webp", "", 1),
     ("a.mp3", EXISTS, 0), ("a.wav", EXISTS, 0), ("a.m4a", EXISTS, 0), ("a.txt", "t", 1),
     ("a.md", "t", 1), ("a.json", "t", 1)],
)  # fmt: skip
def test_what_upstream_shows_is_shown_without_facts(name: str, text: str, pictures: int) -> None:
    found = seen(file(name))
    assert found is not None
    assert (found.text, len(found.pictures)) == (text, pictures)
    assert (found.probes, found.cut, found.unshown, found.findings) == ((), (), (), ())
    assert found.kind == "x"


def test_of_a_page_upstream_prints_what_a_browser_shows() -> None:
    found = seen(file("a.html", text=f"{PAGE_TEXT}Hello\n\n{SOURCE}<p>Hello"))
    assert found is not None
    assert found.text == f"{PAGE_TEXT}Hello"


@pytest.mark.parametrize(
    ("seconds", "frames"), [(0.5, 0), (1.0, 0), (3.0, 1), (10.0, 4), (120.0, 8), (None, 0)]
)
def test_films_get_4_frames_in_10_seconds_and_short_ones_none(
    seconds: float | None, frames: int
) -> None:
    found = seen(file("a.mp4", pictures=8, seconds=seconds))
    assert found is not None
    assert len(found.pictures) == frames
    assert found.text == ""
