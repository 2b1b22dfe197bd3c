import asyncio

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.content import pptx
from gta_bench.content.pptx import (
    PptxContent,
    Series,
    SlideChart,
    SlidePicture,
    SlideTable,
    SlideText,
    read_pptx,
)
from gta_bench.errors import ToolError
from tests.content import samples


def read(data: bytes, jail: Jail) -> PptxContent:
    return asyncio.run(read_pptx(data, jail))


def test_titles_levels_and_notes_come_back(jail: Jail) -> None:
    slide = read(samples.deck(), jail).slides[0]
    assert (slide.number, slide.title, slide.hidden) == (1, "Results 2026", False)
    assert slide.parts == (SlideText("text", "First point\n  Second 要点"),)
    assert slide.notes == "Say hello."


def test_tables_groups_charts_and_pictures_come_back_from_top_to_bottom(jail: Jail) -> None:
    assert read(samples.deck(), jail).slides[1].parts == (
        SlideTable("table", (("a", "b|c", "d"), ("1", "2\n3", ""))),
        SlideText("text", "in a group"),
        SlideChart(
            "chart", "bar chart", "Revenue", (Series("North", (("Q1", "1.5"), ("Q2", "2"))),)
        ),
        SlideChart("chart", "scatter chart", "", (Series("Line", (("0.5", "7"),)),)),
        SlidePicture("picture", "a red square"),
    )


def test_a_hidden_slide_is_read_and_said_to_be_hidden(jail: Jail) -> None:
    slide = read(samples.deck(), jail).slides[2]
    assert slide.hidden
    assert slide.as_text() == "## Slide 3 (hidden)"


def test_the_text_shows_all_of_it(jail: Jail) -> None:
    text = read(samples.deck(), jail).as_text()
    assert text.startswith(
        "## Slide 1: Results 2026\n\nFirst point\n  Second 要点\n\nNotes: Say hello."
    )
    assert "| a | b\\|c | d |\n| --- | --- | --- |\n| 1 | 2<br>3 |  |" in text
    assert "[bar chart 'Revenue']\nNorth: Q1=1.5, Q2=2" in text
    assert "[picture: a red square]" in text


def test_a_deck_longer_than_is_read_says_so(jail: Jail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pptx, "MOST_SLIDES", 2)
    content = read(samples.deck(), jail)
    assert (len(content.slides), content.slide_count) == (2, 3)
    assert content.as_text().endswith("[2 of 3 slides were read.]")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (samples.docx(""), "not pptx; it is docx"),
        (samples.deck()[:5000], "zip archive|broken"),
        (samples.image(2, 2), "not pptx; it is png"),
    ],
)
def test_what_is_no_deck_is_refused_with_the_reason(data: bytes, said: str, jail: Jail) -> None:
    with pytest.raises(ToolError, match=said):
        read(data, jail)
