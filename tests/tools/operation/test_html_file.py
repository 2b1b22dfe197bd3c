import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gta_bench.errors import ToolError
from gta_bench.tools.operation.html_file import complete_page, strip_fences
from tests.tools.documents.making import Bench, bench
from tests.tools.documents.sample import PAGE

TOOL = "HtmlFileGenerator"


@pytest.fixture
def desk(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def make(desk: Bench, html: str, **more: object) -> str:
    return desk.make(TOOL, html_code=html, **more).decode("utf-8")


def tags(page: str) -> list[str]:
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append(tag)

    Reader().feed(page)
    return found


def test_a_part_of_a_page_gets_a_skeleton_with_its_character_set(desk: Bench) -> None:
    page = make(desk, "<h1>标题</h1>", filename="my <page>")
    assert page.startswith("<!DOCTYPE html>")
    assert '<meta charset="utf-8">' in page
    assert "<title>my &lt;page&gt;</title>" in page
    assert "<h1>标题</h1>" in page
    assert tags(page).count("html") == tags(page).count("body") == 1


def test_a_whole_page_stays_as_it_is(desk: Bench) -> None:
    page = '<!doctype html>\n<html><head><meta charset="gbk"></head><body>x</body></html>'
    assert make(desk, page) == page


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            "<html><head><title>t</title></head></html>",
            '<!DOCTYPE html>\n<html><head>\n<meta charset="utf-8"><title>t</title></head></html>',
        ),
        (
            "<html lang=zh><body>x</body></html>",
            '<!DOCTYPE html>\n<html lang=zh>\n<head><meta charset="utf-8"></head>'
            "<body>x</body></html>",
        ),
        (
            '<!-- note --><!DOCTYPE html><HTML><HEAD><META http-equiv=x content="charset=utf-8">',
            '<!-- note --><!DOCTYPE html><HTML><HEAD><META http-equiv=x content="charset=utf-8">',
        ),
    ],
)
def test_what_a_page_lacks_is_added_and_nothing_else(given: str, expected: str) -> None:
    assert complete_page(given, title="t") == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("```html\n<p>a</p>\n```", "<p>a</p>\n"),
        ("Here it is:\n```html\n<p>a</p>\n```\nEnjoy!", "<p>a</p>\n"),
        ("```\n<p>a</p>\n```", "<p>a</p>\n"),
        ("```html\n<p>cut off", "<p>cut off"),
        ("```css\np {}\n```\n```html\n<p>a</p>\n```", "<p>a</p>\n"),
        ("<pre>\n```html\n<b>\n```\n</pre>", "<pre>\n```html\n<b>\n```\n</pre>"),
        ("<p>plain</p>", "<p>plain</p>"),
    ],
)
def test_the_markup_is_found_in_its_fence(given: str, expected: str) -> None:
    assert strip_fences(given) == expected


def test_scripts_and_frames_are_kept_because_the_page_is_not_run_here(desk: Bench) -> None:
    html = '<script src="https://example.com/x.js"></script><iframe src="file:///etc/passwd">'
    page = make(desk, html + "</iframe><script>while (true) {}</script>")
    assert html in page
    assert "while (true) {}" in page
    assert "root:" not in page


def test_pictures_of_the_task_are_put_into_the_file(desk: Bench) -> None:
    page = make(desk, PAGE)
    assert page.count('src="data:image/png;base64,') == 2
    assert "inputs/" not in page


def test_other_pictures_stay_as_they_are(desk: Bench) -> None:
    html = (
        '<img src="https://example.com/a.png"><img src="/etc/passwd"><img src="other/a.png">'
        '<img src="data:image/png;base64,AA"><img src="//host/x.png"><img src="nothere.png">'
    )
    assert html in make(desk, html)


def test_a_missing_picture_of_the_task_is_named(desk: Bench) -> None:
    with pytest.raises(ToolError, match=r"There is no file 'inputs/none.png'. Files: "):
        make(desk, '<img src="inputs/none.png">')


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ("", "`html_code` is empty"),
        ("```html\n```", "`html_code` is empty"),
        ("x" * 2_000_001, "2000001 bytes; at most 2000000"),
    ],
)
def test_nothing_and_too_much_are_refused(desk: Bench, html: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        make(desk, html)


@pytest.mark.parametrize(
    "html",
    [
        "<img " * 390_000,
        "```x\n" * 390_000,
        "<!-- -->" * 240_000,
        "<html " * 320_000,
        "<meta " * 320_000,
        "<html>" + "<meta charset" * 150_000,
        "<img src=" + '"' * 1_900_000,
        "<p \ud800\x00>",
    ],
    ids=lambda html: repr(html[:8]),
)
def test_hostile_markup_takes_no_longer_than_its_length(desk: Bench, html: str) -> None:
    start = time.monotonic()
    assert make(desk, html)
    assert time.monotonic() - start < 20


def test_the_name_gets_one_ending(desk: Bench) -> None:
    for name in ("page", "page.html", "../page.HTML"):
        make(desk, "<p>x", filename=name, output_dir="/x")
    paths = [result.parts[0].content for result in desk.results]
    assert paths == ["outputs/page.html", "outputs/page-2.html", "outputs/page-3.html"]
