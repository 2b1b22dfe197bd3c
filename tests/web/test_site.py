import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gta_bench.leaderboard.entries import read_published_entries
from gta_bench.records.leaderboard import Costs, Entry, Score
from gta_bench.web.site import build_site, p_text, points_text, span_text

DASH = "\N{EN DASH}"
HOSTILE = '<script>alert("1")</script>&'


def own(**changes: object) -> Entry:
    return read_published_entries()[-1].model_copy(update={"id": "own", **changes})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "deep" / "site"
    build_site(read_published_entries(), folder)
    return folder


def text_of(html: str) -> str:
    """What a reader without JavaScript sees, roughly."""
    kept: list[str] = []
    skipped = {"script", "style", "title"}

    class Reader(HTMLParser):
        inside = 0

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.inside += tag in skipped

        def handle_endtag(self, tag: str) -> None:
            self.inside -= tag in skipped

        def handle_data(self, data: str) -> None:
            if not self.inside:
                kept.append(data)

    Reader().feed(html)
    return " ".join(" ".join(kept).split())


def read(site: Path, page: str) -> str:
    return text_of((site / page).read_text(encoding="utf-8"))


def test_pages_are_complete_without_javascript(site: Path) -> None:
    assert {file.name for file in site.iterdir()} == {
        "index.html",
        "workflow.html",
        "harnesses.html",
        "atomic.html",
        "compare.html",
        "history.html",
        "style.css",
        "site.js",
    }
    said = read(site, "workflow.html")
    assert "The first 8 of 13 systems cannot be told apart by Root SR." in said
    assert "Group 1: 8 systems that cannot be told apart from Gemini-2.5-Pro" in said
    assert "14.39 9.4 to 21.4" in said
    pairs = read(site, "compare.html")
    assert re.search(
        r"Gemini-2.5-Pro Kimi-K2 \+6.1 .1.7 to \+13.9 0.121 1.000 cannot be told apart", pairs
    )
    assert "GPT-4o 2024-07: 41.52, 2025-03: 41.52, 2026-04: 41.52" in read(site, "history.html")


def test_what_the_check_found_stands_at_the_row_and_on_the_first_page(site: Path) -> None:
    fact = "InstAcc 23.23 is no k/729"
    assert fact in read(site, "index.html")
    assert "5 of 65 rows" in read(site, "index.html")
    html = (site / "atomic.html").read_text(encoding="utf-8")
    row = re.search(r'data-value="yi-34b-chat".*?</tr>', html, re.DOTALL)
    assert row is not None
    assert fact in row.group()
    assert html.count("inconsistent:") == 5


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for file in site.iterdir():
        content = file.read_text(encoding="utf-8")
        assert not re.search(r"https?://|@import|url\(|fetch\(|//[a-z]+\.", content), file.name
        for target in re.findall(r'(?:href|src)="([^"#]+)', content):
            assert target == "data:," or (site / target).is_file(), target


def test_every_page_runs_the_scripts_and_styles_of_the_site_alone(site: Path) -> None:
    for file in site.glob("*.html"):
        text = file.read_text(encoding="utf-8")
        (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
        assert "default-src 'none'" in policy and "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert text.index("Content-Security-Policy") < text.index("<link")
        assert " style=" not in text and not re.search(r"\son[a-z]+=", text)


def test_links_into_pages_find_their_place(site: Path) -> None:
    for page in site.glob("*.html"):
        links = re.findall(r'href="([a-z]+\.html)#([^"+]+)"', page.read_text(encoding="utf-8"))
        for target, place in links:
            assert f'id="{place}"' in (site / target).read_text(encoding="utf-8")


def test_building_again_changes_nothing(site: Path, tmp_path: Path) -> None:
    build_site(read_published_entries(), tmp_path)
    for file in site.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def test_names_of_systems_cannot_bring_html(tmp_path: Path) -> None:
    build_site([own(system=HOSTILE, group=HOSTILE, source=HOSTILE, notes=(HOSTILE,))], tmp_path)
    for page in tmp_path.glob("*.html"):
        html = page.read_text(encoding="utf-8")
        assert "<script>alert" not in html
    assert HOSTILE in read(tmp_path, "harnesses.html")


def test_a_board_of_one_system_stands_alone(tmp_path: Path) -> None:
    build_site([own()], tmp_path)
    assert not (tmp_path / "workflow.html").exists()
    said = read(tmp_path, "harnesses.html")
    assert "differs significantly from all others" not in said
    assert "compare" not in said.partition("2026-04")[2]
    assert "GTA-Workflow, models" not in read(tmp_path, "index.html")


def test_costs_that_nobody_said_are_gaps(tmp_path: Path) -> None:
    scores = {"root_sr": Score(value=50, k=15, n=30)}
    build_site([own(), own(id="other", system="Other", costs=Costs(), scores=scores)], tmp_path)
    row = re.search(r"<th[^>]*>Other.*?</tr>", (tmp_path / "harnesses.html").read_text(), re.DOTALL)
    assert row is not None
    assert row.group().count(DASH) == 5


def test_numbers_are_written_for_people() -> None:
    assert points_text(-0.052) == "\N{MINUS SIGN}5.2"
    assert points_text(0.1) == "+10.0"
    assert (p_text(0.0004), p_text(0.0312)) == ("< 0.001", "0.031")
    assert span_text(None) == ""
