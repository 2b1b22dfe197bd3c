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


def test_a_hidden_slide_is_read_and_marked_as_hidden(jail: Jail) -> None:
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


DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def with_diagram(texts: list[str]) -> bytes:
    """The deck with a SmartArt diagram on its first slide, as PowerPoint stores one."""
    parts = samples.unzipped(samples.deck())
    slide, relations = "ppt/slides/slide1.xml", "ppt/slides/_rels/slide1.xml.rels"
    frame = f"""<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="77" name="d"/>
        <p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr><p:xfrm><a:off x="0" y="9000000"/>
        <a:ext cx="9" cy="9"/></p:xfrm><a:graphic><a:graphicData uri="{DIAGRAM}">
        <dgm:relIds xmlns:dgm="{DIAGRAM}" r:dm="rId77"/></a:graphicData></a:graphic>
        </p:graphicFrame></p:spTree>"""
    link = f'<Relationship Id="rId77" Type="{OFFICE}/diagramData" Target="../diagrams/data1.xml"/>'
    points = "".join(f"<p><t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></t></p>" for text in texts)
    parts[slide] = parts[slide].replace(b"</p:spTree>", frame.encode())
    parts[relations] = parts[relations].replace(
        b"</Relationships>", f"{link}</Relationships>".encode()
    )
    data = f'<dataModel xmlns="{DIAGRAM}" xmlns:a="{DRAWING}">{points}</dataModel>'
    parts["ppt/diagrams/data1.xml"] = data.encode()
    return samples.zipped(parts)


def test_the_texts_of_a_diagram_come_back(jail: Jail) -> None:
    slide = read(with_diagram(["plan", "do 做"]), jail).slides[0]
    assert slide.parts[-1] == SlideText("text", "plan\ndo 做")


def chart_xml(series: str, kind: str = "lineChart") -> bytes:
    schema = "http://schemas.openxmlformats.org/drawingml/2006/chart"
    plot = f"<plotArea><{kind}>{series}</{kind}></plotArea>" if kind else ""
    return f'<chartSpace xmlns="{schema}"><chart>{plot}</chart></chartSpace>'.encode()


@pytest.mark.parametrize(
    ("xml", "shown"),
    [
        (chart_xml("", ""), "[empty chart]"),
        (chart_xml("<ser/>"), "[line chart]\n(no name): "),
        (
            chart_xml('<ser><val><numLit><pt idx="1"><v>5</v></pt></numLit></val></ser>'),
            "[line chart]\n(no name): 2=5",
        ),
        (
            chart_xml(
                '<ser><cat><multiLvlStrRef><multiLvlStrCache><lvl><pt idx="0"><v>May</v></pt></lvl>'
                '<lvl><pt idx="0"><v>2026</v></pt></lvl></multiLvlStrCache></multiLvlStrRef></cat>'
                '<val><numRef><numCache><pt idx="0"><v>7</v></pt></numCache></numRef></val></ser>',
                "radarChart",
            ),
            "[radar chart]\n(no name): May=7",
        ),
    ],
    ids=["nothing", "no data", "no categories", "two levels"],
)
def test_charts_of_other_forms_are_read(xml: bytes, shown: str, jail: Jail) -> None:
    parts = samples.unzipped(samples.deck())
    charts = sorted(name for name in parts if name.startswith("ppt/charts/chart"))
    parts[charts[0]] = xml
    assert shown in read(samples.zipped(parts), jail).as_text()


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
