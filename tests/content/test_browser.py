"""Chromium in the jail: it shows pages, loads nothing from elsewhere, and ends."""

import asyncio
import io
import time

import pytest
from PIL import Image

from gta_bench.confine.jail import Jail
from gta_bench.content.browser import WebPage, show_page
from gta_bench.errors import ToolError
from tests.content import samples
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("bwrap", "chromium")]


def show(markup: str, jail: Jail, **options: object) -> WebPage:
    return asyncio.run(show_page(markup.encode(), jail, **options))  # type: ignore[arg-type]


def test_a_page_is_shown_after_its_scripts_and_their_delays(jail: Jail) -> None:
    page = show(
        "<title>A 标题</title><p>now</p><script>alert(1); confirm('x');"
        "setTimeout(() => document.body.append('later'), 3000); location = 'http://127.0.0.1/';"
        "</script><script>broken()</script>",
        jail,
    )
    assert page.title == "A 标题"
    assert page.text.split() == ["now", "later"]
    assert page.scripts
    assert page.faults == ("ReferenceError: broken is not defined",)


def test_files_beside_a_page_are_loaded_and_others_are_named(jail: Jail) -> None:
    page = show(
        '<body style="margin:0"><img style="display:block" src="../pic/é a.png">'
        '<script src="add.js"></script>'
        '<img src="lost.png"><img src="http://127.0.0.1:9/x.png">'
        '<iframe src="file:///etc/os-release"></iframe>',
        jail,
        path="site/page.html",
        beside={"pic/é a.png": samples.image(50, 40), "site/add.js": b"document.write('added')"},
    )
    assert "added" in page.text
    assert set(page.refused) == {"site/lost.png", "http://127.0.0.1:9/x.png"}
    top = Image.open(io.BytesIO(page.strips[0].data)).convert("RGB")
    assert top.getpixel((20, 20)) == (255, 0, 0)


def test_a_long_page_comes_in_strips_up_to_a_number(jail: Jail) -> None:
    page = show('<div style="height:5000px">x</div>', jail, most_pictures=2, longest_side=1000)
    assert [(strip.top, strip.height) for strip in page.strips] == [(0, 1000), (1000, 1000)]
    assert page.height >= 5000
    assert all(strip.width == 1000 for strip in page.strips)


def test_scripts_without_an_end_are_switched_off(jail: Jail) -> None:
    start = time.monotonic()
    page = show("<h1>Shown</h1><script>while (true) {}</script>", jail, seconds=9.0)
    assert (page.text, page.scripts) == ("Shown", False)
    assert time.monotonic() - start < 60


def test_a_photograph_is_a_jpeg(jail: Jail) -> None:
    page = show('<img src="noise.png">', jail, beside={"noise.png": samples.noise(900)})
    assert page.strips[0].data.startswith(b"\xff\xd8")


def test_an_empty_page_is_refused(jail: Jail) -> None:
    with pytest.raises(ToolError, match="empty"):
        show("", jail)
