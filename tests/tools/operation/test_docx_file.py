import re
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gta_bench.errors import ToolError
from tests.tools.documents.making import Bench, back_to_markdown, bench, parts
from tests.tools.documents.sample import MARKDOWN

EMU_PER_INCH = 914_400
TOOL = "DocxFileGenerator"


@pytest.fixture
def desk(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def document(docx: bytes) -> str:
    return parts(docx)["word/document.xml"].decode()


def pictures(docx: bytes) -> list[str]:
    return [name for name in parts(docx) if name.startswith("word/media/")]


def make(desk: Bench, content: str, image_paths: str = "", **more: object) -> bytes:
    return desk.make(TOOL, content=content, image_paths=image_paths, **more)


@pytest.mark.parametrize(
    "markdown",
    [
        "# Heading 标题",
        "## Second level",
        "Text with **bold**, *italic*, ~~struck~~ and `code`.",
        "> A quotation 引用",
        "1.  First 第一步\n    - detail A，细节\n    - detail B\n      - deeper\n2.  Second",  # noqa: RUF001
        "- [x] done\n- [ ] open",
        "$`e^{i\\pi} + 1 = 0`$",
        "``` math\n\\int_{0}^{1}x^{2}\\, dx = \\frac{1}{3}\n```",
        "[full data](https://example.com/data?a=1&b=2)",
        "日本語テスト・한국어 시험 — Ünïcödé 🚀",
    ],
)
def test_markdown_comes_back_as_it_was(desk: Bench, markdown: str) -> None:
    back = back_to_markdown(make(desk, markdown)).strip()
    assert re.sub(r"\s+", " ", back) == re.sub(r"\s+", " ", markdown)


def test_a_table_comes_back_with_its_cells_and_alignment(desk: Bench) -> None:
    table = "| 地区 | Q2 | Mid |\n|:--|--:|:-:|\n| 华东 | 1,200 | **x** |\n| a < b | 7 | `y` |"
    back = back_to_markdown(make(desk, table))
    rows = [[cell.strip() for cell in row.strip("| \n").split("|")] for row in back.splitlines()]
    assert rows[0] == ["地区", "Q2", "Mid"]
    assert [rule.startswith(":") for rule in rows[1]] == [True, False, True]
    assert [rule.endswith(":") for rule in rows[1]] == [False, True, True]
    assert rows[2:4] == [["华东", "1,200", "**x**"], ["a \\< b", "7", "`y`"]]


def test_code_comes_back_letter_by_letter(desk: Bench) -> None:
    code = 'def f(x: int) -> str:   # 注释\n    return f"{x:>10} <b>&amp; {{image_1}} **"'
    back = back_to_markdown(make(desk, f"```python\n{code}\n```"))
    assert "\n".join(line.removeprefix("    ") for line in back.strip().splitlines()) in (
        code,
        f"``` python\n{code}\n```",
        code.replace("\n    ", "\n"),
    )


def test_every_word_of_the_demanding_sample_is_in_the_file(desk: Bench) -> None:
    back = back_to_markdown(make(desk, MARKDOWN, "inputs/wide.png"))
    for words in ("Q3 Market Report", "华东地区（上海、杭州）贡献最大", "deeper still", "🚀"):  # noqa: RUF001
        assert words in back
    assert "It costs \\$12 or \\$15." in back
    assert "{{image_1}}" not in back


def test_line_breaks_stay_because_models_do_not_wrap_text(desk: Bench) -> None:
    made = document(make(desk, "Name: Ann\nDate: today\n电话：1"))  # noqa: RUF001
    assert made.count("<w:br") == 2


def test_without_markdown_the_text_is_written_as_it_is(desk: Bench) -> None:
    content = "# not a heading\n  indented **stars**\n\nsecond | paragraph\n{{image_1}}"
    docx = make(desk, content, "inputs/wide.png", render_markdown=False)
    text = re.sub(r"<w:br ?/>", "\n", document(docx))
    text = re.sub(r"<[^>]+>", "", text)
    assert "# not a heading\n\u00a0\u00a0indented **stars**\n" in text
    assert "second | paragraph\n" in text
    assert len(pictures(docx)) == 1


# Looks


def test_fonts_for_east_asian_text_and_borders_of_tables_are_set(desk: Bench) -> None:
    styles = parts(make(desk, "| a |\n|--|\n| 中 |"))["word/styles.xml"].decode()
    assert 'w:eastAsia="Microsoft YaHei"' in styles
    assert re.search(r'<w:insideH [^>]*w:val="single"', styles)
    assert 'w:styleId="Heading1"' in styles


def test_the_same_content_twice_looks_the_same(desk: Bench) -> None:
    first, second = (document(make(desk, MARKDOWN, "inputs/wide.png")) for _ in range(2))
    assert first == second


# Pictures


def extents(docx: bytes) -> list[tuple[float, float]]:
    found = re.findall(r'<wp:extent cx="(\d+)" cy="(\d+)"', document(docx))
    return [(int(width) / EMU_PER_INCH, int(height) / EMU_PER_INCH) for width, height in found]


def test_wide_and_tall_pictures_keep_their_shape_and_fit_the_page(desk: Bench) -> None:
    docx = make(desk, "{{image_1}}\n\n{{ image_2 }}", "inputs/wide.png, inputs/tall.png")
    (wide, tall) = extents(docx)
    assert wide == pytest.approx((6.0, 0.4), abs=0.02)
    assert tall == pytest.approx((0.5, 7.5), abs=0.02)


@pytest.mark.parametrize(
    ("attributes", "width"),
    [("{width=50%}", 3.0), ("{width=2in}", 2.0), ("{width=96px}", 1.0), ("{width=900cm}", 6.0)],
)
def test_a_width_in_the_text_is_kept_within_the_page(
    desk: Bench, attributes: str, width: float
) -> None:
    docx = make(desk, f"![](inputs/wide.png){attributes}")
    assert extents(docx)[0][0] == pytest.approx(width, abs=0.02)


def test_a_picture_in_a_table_fits_its_column(desk: Bench) -> None:
    docx = make(desk, "| a | b | c |\n|--|--|--|\n| {{image_1}} | x | y |", "inputs/wide.png")
    assert extents(docx)[0][0] < 2.0


@pytest.mark.parametrize(
    "content",
    [
        "![alt](inputs/wide.png)",
        "![an [odd] name](inputs/wide.png)",
        "![alt](<inputs/wide.png> 'title')",
        "![alt][ref]\n\n[ref]: inputs/wide.png",
        "![alt](wide.png)",
        "![alt](./inputs/wide%2Epng)",
        '<img src="inputs/wide.png" width="100">',
        'Words <img src="inputs/wide.png"> among words',
        '<p align="center"><img src="inputs/wide.png"></p>',
        '<div align="center">\n\n{{image_1}}\n\n</div>',
        "- in a list {{image_1}}",
        "> quoted {{image_1}}",
        "# {{image_1}} in a heading",
        "**{{image_1}}**",
        "glued{{image_1}}glued",
    ],
)
def test_a_picture_is_found_however_the_text_names_it(desk: Bench, content: str) -> None:
    images = "inputs/wide.png" if "image_1" in content else ""
    docx = make(desk, content, images)
    assert len(pictures(docx)) == len(extents(docx)) == 1
    assert "<w:t" not in document(docx) or "image_1" not in document(docx)


def test_pictures_that_the_text_does_not_place_come_at_the_end(desk: Bench) -> None:
    docx = make(desk, "{{image_2}}\n\nlast words", "inputs/wide.png, inputs/tall.png")
    text = document(docx)
    assert len(extents(docx)) == 2
    assert text.rindex("<wp:extent") > text.index("last words")


def test_a_placeholder_in_code_stays_words(desk: Bench) -> None:
    docx = make(desk, "Write `{{image_1}}`:\n\n```\n{{image_1}}\n```", "inputs/wide.png")
    assert document(docx).count("{{image_1}}") == 2


@pytest.mark.parametrize(
    ("content", "images", "said"),
    [
        ("{{image_2}}", "inputs/wide.png", r"`\{\{image_2\}\}` has no picture.*lists 1"),
        ("{{image_0}}", "inputs/wide.png", r"image_0"),
        ("text", "inputs/none.png", r"There is no file 'inputs/none.png'. Files: `inputs/tall"),
        ("![](inputs/none.png)", "", r"There is no file 'inputs/none.png'"),
        ("![](/etc/passwd)", "", r"'/etc/passwd'"),
        ("![](../../etc/passwd)", "", r"etc/passwd"),
        ("![](file:///etc/passwd)", "", r"not a file of this task"),
        ("![](data:image/png;base64,AAAA)", "", r"not a file of this task"),
        ('<img src="/etc/passwd">', "", r"/etc/passwd"),
        ("", "", r"`content` is empty"),
        ("x" * 200_001, "", r"`content` has 200001 bytes; at most 200000"),
    ],
)
def test_what_is_missing_or_too_large_is_named(
    desk: Bench, content: str, images: str, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        make(desk, content, images)
    assert desk.workspace.outputs().files == ()


def test_a_file_that_is_no_picture_is_refused(desk: Bench, tmp_path: Path) -> None:
    desk.workspace.write("notes.txt", b"words")
    desk.workspace.write("broken.png", b"\x89PNG\r\n\x1a\n" + b"x" * 100)
    with pytest.raises(ToolError, match=r"`outputs/notes.txt` is not an image"):
        make(desk, "{{image_1}}", "outputs/notes.txt")
    with pytest.raises(ToolError, match=r"`outputs/broken.png` cannot be read"):
        make(desk, "{{image_1}}", "outputs/broken.png")


# Hostile text


class Counter(BaseHTTPRequestHandler):
    hits = 0

    def do_GET(self) -> None:
        type(self).hits += 1
        self.send_response(404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_nothing_is_fetched_and_no_file_of_the_host_is_read(desk: Bench, loopback: None) -> None:
    """A local listener is named by picture, link, iframe, style and reference: it hears nothing."""
    Counter.hits = 0
    server = HTTPServer(("127.0.0.1", 0), Counter)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    host = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        for picture in (
            f"![]({host}/a.png)",
            f'<img src="{host}/b.png">',
            f"![x][r]\n\n[r]: {host}/c",
        ):
            with pytest.raises(ToolError, match="not a file of this task"):
                make(desk, picture)
        docx = make(
            desk,
            f'<iframe src="{host}/d"></iframe>\n\n<link rel="stylesheet" href="{host}/e.css">\n\n'
            f"<{host}/f>\n\n<table><tr><td><iframe src='{host}/g'></iframe></td></tr></table>\n\n"
            '<iframe src="file:///etc/passwd"></iframe>',
        )
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert Counter.hits == 0
    assert "root:" not in document(docx)


@pytest.mark.parametrize(
    "raw",
    [
        "```{=openxml}\n<w:p><w:r><w:t>INJECTED</w:t></w:r></w:p>\n```",
        "`<w:br w:type='page'/>`{=openxml}",
        "<w:p><w:r><w:t>INJECTED</w:t></w:r></w:p>",
        "<script>alert('INJECTED')</script>",
    ],
)
def test_raw_code_is_shown_and_not_obeyed(desk: Bench, raw: str) -> None:
    text = document(make(desk, f"before\n\n{raw}\n\nafter"))
    assert "<w:t>INJECTED</w:t>" not in text
    assert "w:type='page'/>" not in text
    assert "&lt;" in text


def test_simple_html_is_understood(desk: Bench) -> None:
    content = (
        "one<br>two <b>bold</b> H<sub>2</sub>O x<sup>2</sup> <u>line</u><!-- hidden -->\n\n"
        "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>\n\n"
        '<div style="page-break-after: always"></div>'
    )
    text = document(make(desk, content))
    assert "&lt;" not in text
    assert "hidden" not in text
    assert text.count("<w:tr>") + text.count("<w:tr ") == 2
    assert 'w:val="subscript"' in text
    assert 'w:val="superscript"' in text


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "file:///etc/passwd", "\\\\host\\share", "#nowhere"]
)
def test_a_link_that_leads_nowhere_good_is_only_its_words(desk: Bench, target: str) -> None:
    docx = make(desk, f"[the words]({target})")
    everything = b"".join(parts(docx).values())
    assert b"the words" in everything
    assert b"<w:hyperlink" not in everything


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        "*" * 50_000,
        "[" * 50_000,
        "> " * 20_000 + "x",
        "- " * 5_000 + "x",
        "`" * 60_001,
        "<b>" * 30_000,
        "\\(" * 50_000,
        "![" * 50_000,
        "{{" * 50_000,
        "|" * 50_000 + "\n" + "|-" * 25_000,
        "$" * 99_999,
        "\x00\x01\ud800 control \ue0001\ue001 characters",
    ],
    ids=lambda content: repr(content[:6]),
)
def test_hostile_markdown_ends_in_time_with_a_file_or_a_typed_error(
    desk: Bench, content: str
) -> None:
    start = time.monotonic()
    try:
        assert parts(make(desk, content))
    except ToolError as exc:
        assert str(exc)
    assert time.monotonic() - start < 30


def test_a_megabyte_in_one_paragraph_is_refused_at_once(desk: Bench) -> None:
    start = time.monotonic()
    with pytest.raises(ToolError, match="at most 200000"):
        make(desk, "word " * 200_000)
    assert time.monotonic() - start < 10


# The call


@pytest.mark.parametrize(
    ("filename", "path"),
    [
        ("report", "outputs/report.docx"),
        ("report.docx", "outputs/report.docx"),
        ("../../etc/evil", "outputs/evil.docx"),
        ("/tmp/x.docx", "outputs/x.docx"),
        ("季度 报告", "outputs/季度 报告.docx"),
        ("v1.2", "outputs/v1.2.docx"),
    ],
)
def test_the_file_gets_a_clean_name_and_the_right_ending(
    desk: Bench, filename: str, path: str
) -> None:
    make(desk, "text", filename=filename, output_dir="/somewhere/else")
    assert desk.results[0].parts[0].content == path


def test_a_second_file_of_the_same_name_does_not_replace_the_first(desk: Bench) -> None:
    make(desk, "one")
    make(desk, "two")
    assert [result.parts[0].content for result in desk.results] == [
        "outputs/report.docx",
        "outputs/report-2.docx",
    ]


def test_the_result_says_what_ran(desk: Bench) -> None:
    make(desk, "text")
    assert re.fullmatch(r"pandoc \d+(\.\d+)+", desk.results[0].backend)
    assert desk.results[0].jail in ("bubblewrap", "landlock")


def test_picture_paths_may_be_a_list_and_null_is_missing(desk: Bench) -> None:
    docx = desk.make(TOOL, content="{{image_1}}", image_paths=["inputs/wide.png"])
    assert len(pictures(docx)) == 1
    with pytest.raises(ToolError, match="missing argument 'image_paths'"):
        desk.make(TOOL, content="words", image_paths=None)
