import io
import re
import time
from pathlib import Path

import pytest
from pypdf import PdfReader

from gta_bench.errors import ToolError
from tests.tools.documents.making import Bench, bench
from tests.tools.documents.sample import MARKDOWN

TOOL = "PdfFileGenerator"


@pytest.fixture
def desk(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def make(desk: Bench, content: str, image_paths: str = "", **more: object) -> PdfReader:
    return PdfReader(io.BytesIO(desk.make(TOOL, content=content, image_paths=image_paths, **more)))


def words(pdf: PdfReader) -> str:
    return " ".join(" ".join(page.extract_text() for page in pdf.pages).split())


def fonts(pdf: PdfReader) -> str:
    names = [
        str(font.get_object()["/BaseFont"])
        for page in pdf.pages
        for font in page["/Resources"]["/Font"].values()  # type: ignore[index]
        if "/BaseFont" in font.get_object()
    ]
    return " ".join(names)


def test_every_word_of_the_demanding_sample_is_on_a_page(desk: Bench) -> None:
    pdf = make(desk, MARKDOWN, "inputs/wide.png")
    text = words(pdf)
    for part in (
        "年第三季度市场报告",
        "Q3 Market Report",
        "Revenue grew by 12.4 %",
        "1,350",
        "+12.5 %",
        "detail B with inline code",
        "日本語テスト",
        "한국어 시험",
        'return f"{x:>10} <b>&amp;"',
        "Last line 最后一行",
    ):
        assert part in text, part
    assert "**" not in text
    assert "image_1" not in text
    assert "\ufffd" not in text


def test_east_asian_text_is_drawn_with_a_font_that_has_it(desk: Bench) -> None:
    pdf = make(desk, "中文 English")
    assert re.search("CJK|SourceHan", fonts(pdf))
    assert "中文 English" in words(pdf)


@pytest.mark.parametrize(
    ("text", "font"), [("日本語のテスト", "CJKjp"), ("한국어 시험", "CJKkr"), ("中文测试", "CJKsc")]
)
def test_glyphs_have_the_forms_of_the_text_s_language(desk: Bench, text: str, font: str) -> None:
    assert font in fonts(make(desk, text))


def test_pictures_are_on_the_page_and_a_tall_one_is_no_error(desk: Bench) -> None:
    pdf = make(desk, "{{image_1}}\n\n![](inputs/tall.png)", "inputs/wide.png")
    assert sum(len(page.images) for page in pdf.pages) == 2


def test_a_long_table_goes_on_over_the_pages_with_its_header(desk: Bench) -> None:
    rows = "\n".join(f"| row {n} | {n * n} |" for n in range(1, 121))
    pdf = make(desk, f"| name | square |\n|:--|--:|\n{rows}")
    assert len(pdf.pages) >= 3
    assert all("square" in page.extract_text() for page in pdf.pages)
    assert "row 120 14400" in words(pdf)


def test_without_markdown_the_text_is_drawn_as_it_is(desk: Bench) -> None:
    pdf = make(desk, "# no heading\n**stars** #set $x$", render_markdown=False)
    assert "# no heading" in words(pdf)
    assert "**stars** #set $x$" in words(pdf)


@pytest.mark.parametrize(
    "content",
    [
        '#import "@preview/cetz:0.3.0"',
        '#read("/etc/passwd")',
        '```{=typst}\n#read("/etc/passwd")\n```',
        '`#read("/etc/passwd")`{=typst}',
        "<script>#panic()</script>",
        "#let x = 1; $ #panic() $ @label <label>",
        "\\#panic() ] [ } { */ /* // --- ~ @",
    ],
)
def test_typst_code_in_the_text_is_words(desk: Bench, content: str) -> None:
    text = words(make(desk, f"before\n\n{content}\n\nafter"))
    assert "before" in text
    assert "after" in text
    assert "root:" not in text


@pytest.mark.parametrize(
    "content",
    [
        '# Title {#a typst:text:size="#panic()"}',
        '![](inputs/wide.png){typst:width="#panic()" width=50%}',
        "`code`{.x typst:text:fill=#panic()}",
        "# Same {#a}\n\n# Same {#a}\n\n[link](#a) and [nowhere](#b)",
        "Text[^1] and [^2]\n\n[^1]: A note.",
        "[a]() []() ![]",
    ],
)
def test_attributes_and_links_cannot_break_the_page(desk: Bench, content: str) -> None:
    assert make(desk, content).pages


@pytest.mark.parametrize("formula", [r"\badmacro{x", r"\frac{1}", r"#panic()", r"x_{y^{z_{a}}}"])
def test_a_formula_that_is_none_does_not_stop_the_document(desk: Bench, formula: str) -> None:
    try:
        assert "after" in words(make(desk, f"before ${formula}$ after"))
    except ToolError as exc:
        assert "typst" in str(exc)


@pytest.mark.parametrize(
    ("content", "images", "said"),
    [
        ("{{image_1}}", "", r"`\{\{image_1\}\}` has no picture: `image_paths` lists 0"),
        ("![](inputs/none.png)", "", "There is no file 'inputs/none.png'"),
        ("![](/etc/passwd)", "", "/etc/passwd"),
        ("![](https://example.com/a.png)", "", "not a file of this task"),
        ("   \n", "", "`content` is empty"),
        ("x " * 500_000, "", "at most 200000"),
    ],
)
def test_what_is_missing_or_too_large_is_named(
    desk: Bench, content: str, images: str, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        make(desk, content, images)


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        "word " * 39_999,
        "字" * 66_000,
        "| " + "a | " * 2_000 + "\n|" + "--|" * 2_000 + "\n| " + "b | " * 2_000,
        "# h\n" * 20_000,
        "$x$ " * 20_000,
        "- a\n" * 40_000,
    ],
    ids=lambda content: repr(content[:6]),
)
def test_large_and_absurd_content_ends_in_time(desk: Bench, content: str) -> None:
    start = time.monotonic()
    try:
        assert make(desk, content).pages
    except ToolError as exc:
        assert str(exc)
    assert time.monotonic() - start < 30


def test_the_result_says_what_ran_and_where(desk: Bench) -> None:
    make(desk, "text", filename="../up.docx", output_dir="x")
    (result,) = desk.results
    assert result.parts[0].content == "outputs/up.docx.pdf"
    assert re.fullmatch(r"pandoc [\d.]+, typst [\d.]+", result.backend)
    assert result.jail in ("bubblewrap", "landlock")
