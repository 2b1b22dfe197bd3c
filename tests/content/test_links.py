"""What pages and Markdown refer to."""

import time

import pytest

from gta_bench.content.links import (
    find_css_references,
    find_html_references,
    find_markdown_references,
    resolve_reference,
)

PAGE = """<link href="style.css"><img SRC='a b.png'><img src=https://web.invalid/x.png>
<script src="//cdn.invalid/x.js"></script><a href="#there">1</a><a href="#lost">2</a>
<a href="other.html?x=1#y">3</a><a href="mailto:me@web.invalid">4</a><a href="#top">5</a>
<h2 id="there">x</h2><div data-src="no.png" style="background: url( 'bg.png' )"></div>
<img src="data:image/png;base64,AAAA"><a href="#">6</a><img src="C:\\a.png">"""


def test_a_page() -> None:
    found = find_html_references(PAGE)
    assert found.files == ("style.css", "a b.png", "C:\\a.png", "bg.png", "other.html?x=1#y")
    assert found.remote == ("https://web.invalid/x.png", "//cdn.invalid/x.js")
    assert found.lost_anchors == ("#lost",)
    assert len(found.leads) == 6


def test_markdown() -> None:
    found = find_markdown_references(
        "# Über uns!\n[a](#über-uns) [b](#gone) ![c](pic.png) [d](<x.md> 't') ![e](http://web.invalid/)"
    )
    assert found.files == ("pic.png", "x.md")
    assert found.lost_anchors == ("#gone",)
    assert found.remote == ("http://web.invalid/",)


def test_a_style_sheet() -> None:
    assert find_css_references("a { src: url(x.woff) } b { c: url('http://web.invalid/y') }") == (
        "x.woff",
    )


@pytest.mark.parametrize(
    ("reference", "base", "path"),
    [
        ("a.png", "page.html", "a.png"),
        ("a.png", "outputs/page.html", "outputs/a.png"),
        ("../inputs/a%20b.png?v=2#x", "outputs/page.html", "inputs/a b.png"),
        ("/outputs/a.png", "outputs/page.html", "outputs/a.png"),
        ("./x/../a.png", "page.html", "a.png"),
    ],
)
def test_a_reference_means_a_path(reference: str, base: str, path: str) -> None:
    assert resolve_reference(reference, base=base) == path


@pytest.mark.parametrize("piece", ["<a ", '<a href="', "![", "url(", "[](", '<a href=" ', "# x"])
def test_hostile_text_takes_no_longer_than_its_length(piece: str) -> None:
    text = piece * 100_000
    start = time.monotonic()
    find_html_references(text)
    find_markdown_references(text)
    assert time.monotonic() - start < 10
