import io
import re
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from pptx import Presentation
from pptx.util import Emu

from gta_bench.errors import ToolError
from tests.tools.documents.making import Bench, as_json, bench, parts
from tests.tools.documents.sample import BULLETS, SLIDES

TOOL = "PptxFileGenerator"


@pytest.fixture
def desk(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def make(desk: Bench, slides: object, image_paths: str = "") -> Any:
    text = slides if isinstance(slides, str) else as_json(slides)
    data = desk.make(TOOL, slides_content_str=text, image_paths=image_paths)
    return Presentation(io.BytesIO(data))


def titles(deck: Any) -> list[str]:
    return [slide.shapes.title.text if slide.shapes.title else "" for slide in deck.slides]


def lines(deck: Any) -> list[str]:
    """The paragraphs of every text box, in order."""
    return [
        paragraph.text
        for slide in deck.slides
        for shape in slide.shapes
        if shape.has_text_frame and shape != slide.shapes.title
        for paragraph in shape.text_frame.paragraphs
    ]


def content(deck: Any) -> str:
    return " ".join(lines(deck))


def boxes(slide: Any) -> list[tuple[int, int, int, int]]:
    return [
        (shape.left, shape.top, shape.left + shape.width, shape.top + shape.height)
        for shape in slide.shapes
    ]


def assert_in_order(deck: Any) -> None:
    """Nothing leaves the slide, nothing overlaps."""
    slack = Emu(12_700)
    for slide in deck.slides:
        for left, top, right, bottom in boxes(slide):
            assert left >= 0
            assert top >= 0
            assert right <= deck.slide_width + slack
            assert bottom <= deck.slide_height + slack
        for one, other in combinations(boxes(slide), 2):
            apart = (
                one[2] <= other[0] + slack
                or other[2] <= one[0] + slack
                or one[3] <= other[1] + slack
                or other[3] <= one[1] + slack
            )
            assert apart, (titles(deck), one, other)


def test_the_demanding_sample_has_everything_in_its_place(desk: Bench) -> None:
    deck = make(desk, SLIDES, "inputs/wide.png, inputs/tall.png")
    assert_in_order(deck)
    text = content(deck)
    for slide in SLIDES:
        if isinstance(slide["content"], list):
            for point in slide["content"]:
                assert point.removeprefix("- ") in text or "image_" in point
    assert "**" not in text
    assert "image_" not in text
    assert titles(deck)[0] == "第一页 Overview"
    assert sum(title.endswith("(cont.)") for title in titles(deck)) >= 2


def test_thirty_points_are_split_and_each_is_there_once(desk: Bench) -> None:
    deck = make(desk, [{"title": "Many", "content": BULLETS}])
    assert len(deck.slides) == 2
    assert titles(deck) == ["Many", "Many (cont.)"]
    assert lines(deck) == [point.removeprefix("- ") for point in BULLETS]


def test_the_first_line_is_not_empty(desk: Bench) -> None:
    deck = make(desk, [{"title": "t", "content": "\n\n- one\n\n\n- two\n\n"}])
    assert lines(deck) == ["one", "two"]


def runs(deck: Any) -> list[Any]:
    return [
        run
        for shape in deck.slides[0].shapes
        if shape.has_text_frame and shape != deck.slides[0].shapes.title
        for paragraph in shape.text_frame.paragraphs
        for run in paragraph.runs
    ]


def test_marks_become_looks(desk: Bench) -> None:
    deck = make(
        desk,
        [{"title": "**T**", "content": "**b** *i* `c` ~~s~~ x<sup>2</sup> [l](https://a.b/c)"}],
    )
    by_text = {run.text.strip(): run for run in runs(deck)}
    assert titles(deck) == ["T"]
    assert by_text["b"].font.bold
    assert by_text["i"].font.italic
    assert by_text["c"].font.name == "Courier New"
    assert by_text["s"]._r.rPr.get("strike") == "sngStrike"
    assert by_text["2"]._r.rPr.get("baseline") == "30000"
    assert by_text["l"].hyperlink.address == "https://a.b/c"


def test_each_run_has_the_font_of_its_script(desk: Bench) -> None:
    deck = make(desk, [{"title": "t", "content": "中文\n日本語テスト\n한국어\nEnglish"}])
    fonts = {
        run.text: (run._r.rPr.find("{*}ea").get("typeface"), run._r.rPr.get("lang"))
        for run in runs(deck)
    }
    assert fonts == {
        "中文": ("Microsoft YaHei", "zh-CN"),
        "日本語テスト": ("Yu Gothic", "ja-JP"),
        "한국어": ("Malgun Gothic", "ko-KR"),
        "English": ("Microsoft YaHei", None),
    }


def test_lists_have_real_bullets_and_numbers_at_their_level(desk: Bench) -> None:
    deck = make(desk, [{"title": "t", "content": "- a\n  - b\n3. c\n4. d\n- [x] e\nplain"}])
    (box,) = [s for s in deck.slides[0].shapes if s != deck.slides[0].shapes.title]
    marks = []
    for paragraph in box.text_frame.paragraphs:
        properties = paragraph._p.pPr
        char, number = properties.find("{*}buChar"), properties.find("{*}buAutoNum")
        mark = char.get("char") if char is not None else None
        marks.append(
            (paragraph.text, mark or (number.get("startAt") if number is not None else ""))
        )
    assert marks == [
        ("a", "•"),
        ("b", "\u2013"),
        ("c", "3"),
        ("d", "4"),
        ("e", "☒"),
        ("plain", ""),
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["one", "two"], ["one", "two"]),
        (["one", ["below"], 3], ["one", "below", "3"]),
        ("• a\n· b\n● c", ["a", "b", "c"]),
        ("line one\nline two", ["line one", "line two"]),
        ("a<br>b", ["a", "b"]),
        ("- a\nafter", ["a", "after"]),
        (7, ["7"]),
        ("> q", ["q"]),
        ("```\nx  <b>\n  y\n```", ["x  <b>", "  y"]),
        ("`a` is <i>b</i>", ["a is b"]),
        ("Euler: $e^{i\\pi}+1=0$", ["Euler: eiπ + 1 = 0"]),
        ("\\(\\frac{a+b}{2}\\)", ["(a + b)/2"]),
        ("---\nafter a rule", ["after a rule"]),
    ],
)
def test_content_is_understood_in_every_form(
    desk: Bench, given: object, expected: list[str]
) -> None:
    assert lines(make(desk, [{"title": "t", "content": given}])) == expected


def test_a_fence_that_is_not_closed_ends_with_its_slide(desk: Bench) -> None:
    deck = make(desk, [{"title": "a", "content": "```\nx"}, {"title": "b", "content": "**y**"}])
    assert lines(deck) == ["x", "y"]


def tables(deck: Any) -> list[list[list[str]]]:
    return [
        [[cell.text for cell in row.cells] for row in shape.table.rows]
        for slide in deck.slides
        for shape in slide.shapes
        if shape.has_table
    ]


def test_a_table_comes_back_cell_by_cell(desk: Bench) -> None:
    text = "Before\n\n| 地区 | Q2 |\n|:--|--:|\n| 华东 **East** | 1,200 |\n| a<br>b | |\nAfter"
    deck = make(desk, [{"title": "t", "content": text}])
    assert tables(deck) == [[["地区", "Q2"], ["华东 East", "1,200"], ["a\x0bb", ""]]]
    assert lines(deck) == ["Before", "After"]
    assert_in_order(deck)


def test_a_long_table_goes_on_with_its_header(desk: Bench) -> None:
    rows = "\n".join(f"| {n} | value {n} |" for n in range(80))
    deck = make(desk, [{"title": "t", "content": f"| n | v |\n|--|--|\n{rows}"}])
    found = tables(deck)
    assert len(found) > 1
    assert all(table[0] == ["n", "v"] for table in found)
    assert [row[0] for table in found for row in table[1:]] == [str(n) for n in range(80)]
    assert_in_order(deck)


def pictures(slide: Any) -> list[Any]:
    return [shape for shape in slide.shapes if shape.shape_type == 13]


def test_pictures_keep_their_shape_beside_the_text(desk: Bench) -> None:
    deck = make(
        desk,
        [{"title": "t", "content": "words {{image_1}}\n" + "- point\n" * 8 + "{{image_2}}"}],
        "inputs/wide.png, inputs/tall.png",
    )
    assert_in_order(deck)
    wide, tall = pictures(deck.slides[0])
    assert wide.width / wide.height == pytest.approx(15, rel=0.01)
    assert tall.height / tall.width == pytest.approx(15, rel=0.01)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9])
def test_any_number_of_pictures_finds_room(desk: Bench, count: int) -> None:
    marks = " ".join(f"{{{{image_{n}}}}}" for n in range(1, count + 1))
    images = ", ".join(["inputs/wide.png", "inputs/tall.png"][n % 2] for n in range(count))
    deck = make(desk, [{"title": "t", "content": f"{marks}\nwords"}], images)
    assert_in_order(deck)
    assert sum(len(pictures(slide)) for slide in deck.slides) == count


def test_pictures_that_no_slide_shows_come_at_the_end(desk: Bench) -> None:
    deck = make(desk, [{"title": "t", "content": "![](inputs/tall.png)"}],
                "inputs/wide.png, inputs/tall.png")  # fmt: skip
    assert titles(deck) == ["t", "wide"]
    assert [len(pictures(slide)) for slide in deck.slides] == [1, 1]


def test_a_title_alone_is_a_cover_and_a_slide_may_lack_one(desk: Bench) -> None:
    deck = make(desk, [{"title": "Cover"}, {"content": "no title"}])
    assert titles(deck) == ["Cover", ""]
    assert deck.slides[0].shapes.title.top > deck.slide_height // 4
    assert lines(deck) == ["no title"]


def test_a_title_too_long_is_shortened_and_stands_in_full_below(desk: Bench) -> None:
    long = "word " * 120
    deck = make(desk, [{"title": long, "content": "x"}])
    assert titles(deck)[0].endswith("…")
    assert long.strip() in content(deck)
    assert_in_order(deck)


def test_a_title_that_is_a_list_for_markdown_stays_as_written(desk: Bench) -> None:
    deck = make(desk, [{"title": "1. Start", "content": "x"}, {"title": "# 2", "content": "y"}])
    assert titles(deck) == ["1. Start", "2"]


def test_notes_are_kept(desk: Bench) -> None:
    deck = make(desk, [{"title": "t", "content": "x", "notes": "say this"}])
    assert deck.slides[0].notes_slide.notes_text_frame.text == "say this"


@pytest.mark.parametrize(
    ("slides", "images", "said"),
    [
        ("not json", "", r"not JSON.*Expected a JSON list of slides"),
        ("[]", "", "not a list of slides"),
        ('"text"', "", "not a list of slides"),
        ('["text"]', "", "Slide 1 is not an object"),
        ('[{"title": "a"}, {"titel": "b"}]', "", "Slide 2 has the unknown key 'titel'"),
        ('[{"title": {"a": 1}}]', "", "Slide 1: 'title' is not text"),
        ('[{"content": [{"a": 1}]}]', "", "Slide 1: 'content' is not text"),
        ('[{"content": "{{image_1}}"}]', "", r"`\{\{image_1\}\}` has no picture"),
        ('[{"content": "x"}]', "inputs/none.png", "There is no file 'inputs/none.png'"),
        ('[{"content": "![](/etc/passwd)"}]', "", "/etc/passwd"),
        ('[{"content": "![](http://127.0.0.1/x.png)"}]', "", "There is no file|not a path"),
        (as_json([{"title": "x"}] * 10_000), "", "10000 slides; at most 200"),
        (as_json([{"content": "x" * 200_000}]), "", "at most 200000"),
        (as_json([{"content": "|a" * 40 + "|\n" + "|-" * 40 + "|"}]), "", "40 columns"),
        ("[" * 90_000, "", "is not JSON"),
    ],
)
def test_invalid_input_is_refused_with_the_expected_form(
    desk: Bench, slides: str, images: str, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        make(desk, slides, images)


def test_slides_as_a_list_or_under_a_key_are_understood(desk: Bench) -> None:
    slide = {"title": "t", "content": "x"}
    for given in ([slide], {"slides": [slide]}, slide):
        data = desk.make(TOOL, slides_content_str=given, image_paths="")
        assert titles(Presentation(io.BytesIO(data))) == ["t"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        "字" * 60_000,
        "word " * 38_000,
        "x" * 190_000,
        "- a\n" * 40_000,
        "a | b\n--|--\n" + "x | y\n" * 30_000,
        "*" * 50_000,
        "> " * 5_000,
        "$x^2$ " * 20_000,
        "| a |\n|--|\n| " + "tall " * 9_000 + "|",
    ],
    ids=lambda content: repr(content[:6]),
)
def test_absurd_content_ends_in_time_with_slides_or_a_typed_error(
    desk: Bench, content: str
) -> None:
    start = time.monotonic()
    try:
        assert_in_order(make(desk, [{"title": "t", "content": content}]))
    except ToolError as exc:
        assert str(exc)
    assert time.monotonic() - start < 30


def test_raw_code_and_control_characters_are_harmless(desk: Bench) -> None:
    text = "<a:t>INJECTED</a:t>\n<script>x</script> \x00\x0b\ud800 & < > \" '"
    data = desk.make(
        TOOL,
        slides_content_str=as_json([{"title": "t\x01", "content": text}]),
        image_paths="",
    )
    assert b"<a:t>INJECTED" not in parts(data)["ppt/slides/slide1.xml"]
    assert "<script>x</script>" in content(Presentation(io.BytesIO(data)))


def test_the_result_says_what_ran(desk: Bench) -> None:
    make(desk, [{"title": "t"}])
    assert re.fullmatch(r"python-pptx [\d.]+, pandoc [\d.]+", desk.results[0].backend)
    assert desk.results[0].parts[0].content == "outputs/report.pptx"
