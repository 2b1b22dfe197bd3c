import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gta_bench.leaderboard.entries import read_published_entries
from gta_bench.records.leaderboard import Costs, Entry, Score
from gta_bench.web.site import build_site
from gta_bench.web.site_compare import p_text, points_text
from gta_bench.web.site_views import span_text

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
    names = {file.name for file in site.iterdir()}
    assert len([name for name in names if name.startswith("system-")]) == 42
    assert {name for name in names if not name.startswith("system-")} == {
        "index.html",
        "workflow.html",
        "harnesses.html",
        "atomic.html",
        "compare.html",
        "history.html",
        "style.css",
        "site.js",
        "data.js",
    }
    said = read(site, "workflow.html")
    assert "The first 8 of 13 systems cannot be told apart." in said
    assert "Group 1: 8 systems that cannot be told apart from Gemini-2.5-Pro" in said
    assert "14.39 9.4 to 21.4" in said
    pairs = read(site, "compare.html")
    assert re.search(
        r"Gemini-2.5-Pro Kimi-K2 \+6.1 .1.7 to \+13.9 0.121 1.000 unpaired cannot be told", pairs
    )
    assert "GPT-4o 2024-07: 41.52, 2025-03: 41.52, 2026-04: 41.52" in read(site, "history.html")


def test_what_the_check_found_stands_at_the_row_and_on_the_first_page(site: Path) -> None:
    fact = "InstAcc 23.23 is no k/729"
    assert fact in read(site, "index.html")
    assert "5 of 65 rows" in read(site, "index.html")
    html = (site / "atomic.html").read_text(encoding="utf-8")
    row = re.search(r'<th[^>]*data-value="yi-34b-chat".*?</tr>', html, re.DOTALL)
    assert row is not None
    assert fact in row.group()
    assert html.count("inconsistent:") == 5
    assert f"A number cannot be right. {fact}" in read(site, "system-yi-34b-chat.html")


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for file in site.iterdir():
        content = file.read_text(encoding="utf-8")
        # Readers may follow links; a browser loads nothing by itself.
        content = re.sub(r'<a( class="button")? href="https://[^"]*">', "<a>", content)
        content = content.replace('"http://www.w3.org/2000/svg"', "")
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
        links += [(page.name, place) for place in re.findall(r'href="#([^"]+)"', page.read_text())]
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


def test_hidden_characters_are_shown(tmp_path: Path) -> None:
    """Entries with them are refused when they are read; pages show them in any case."""
    build_site([own(system="left\u202eright", source="\x00")], tmp_path)
    for file in tmp_path.glob("*.html"):
        assert "\u202e" not in file.read_text(encoding="utf-8")
    assert "left[U+202E]right" in read(tmp_path, "index.html")


def test_a_board_of_one_system_stands_alone(tmp_path: Path) -> None:
    build_site([own()], tmp_path)
    assert not (tmp_path / "workflow.html").exists()
    said = read(tmp_path, "harnesses.html")
    assert "differs significantly from all others" not in said
    assert "compare" not in said.partition("2026-04")[2]
    assert "Only one system." in said
    assert "GTA-Workflow, models" not in read(tmp_path, "index.html")


def test_costs_that_nobody_said_are_gaps(tmp_path: Path) -> None:
    scores = {"root_sr": Score(value=50, k=15, n=30)}
    build_site([own(), own(id="other", system="Other", costs=Costs(), scores=scores)], tmp_path)
    html = (tmp_path / "harnesses.html").read_text(encoding="utf-8")
    row = re.search(r"<th[^>]*><a[^>]*>Other</a>.*?</tr>", html, re.DOTALL)
    assert row is not None
    assert row.group().count(DASH) == 5


def test_numbers_are_written_for_people() -> None:
    assert points_text(-0.052) == "\N{MINUS SIGN}5.2"
    assert points_text(0.1) == "+10.0"
    assert (p_text(0.0004), p_text(0.0312)) == ("< 0.001", "0.031")
    assert span_text(None) == ""


def submitted(**changes: object) -> Entry:
    model = next(one for one in read_published_entries() if one.board == "workflow")
    return model.model_copy(
        update={
            "id": "2026-11/workflow/mine",
            "release": "2026-11",
            "system": "My agent",
            "scoring": "strict",
            "status": "self-reported",
            "marks": ("open network",),
            "source": "submitted bundle",
            "notes": (),
            "scores": {"root_sr": Score(value=13.64, k=18, n=132), "root_score": Score(value=4)},
            **changes,
        }
    )


def test_a_submission_stands_beside_the_published_rows_of_the_front_page(tmp_path: Path) -> None:
    """One submission opened a release of its own and emptied the front page (D10)."""
    build_site([*read_published_entries(), submitted()], tmp_path, submit_to="https://board.test/x")
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert html.count('<li class="interval ') == 66
    assert len(re.findall('<details class="panel release"', html)) == 6
    front = read(tmp_path, "index.html")
    assert "My agent self-reported · 2026-11 · strict scoring · open network" in front
    assert "2026-11 GTA-Workflow, models: My agent joins the plot of 2026-04" in front
    assert "65 published results · 1 submitted result" in front
    assert "Submitted rows are scored by the strict rules" in front
    assert 'folder <code>submissions</code> of <a href="https://board.test/x">' in html
    mine = re.search(r'<li class="interval self-reported".*?</li>', html, re.DOTALL)
    assert mine is not None and 'd="M0-6 6 0 0 6-6 0Z"' in mine.group(), "a diamond"
    own = read(tmp_path, "system-my-agent.html")
    assert "The interval of Root score is unknown" in own
    assert "Root SR 13.64 8.8 to 20.5" in own


def test_a_row_of_another_similarity_is_marked_and_not_ranked(tmp_path: Path) -> None:
    published = [one for one in read_published_entries() if one.board == "atomic"]
    changes = {"id": "mine", "release": "2026-11", "system": "My agent", "status": "self-reported"}
    scores = {"ans_acc": Score(value=97.56)}
    mine = published[0].model_copy(
        update={**changes, "scoring": "strict", "marks": ("other similarity",), "scores": scores}
    )
    build_site([*published, mine], tmp_path / "both")
    front = read(tmp_path / "both", "index.html")
    row = "My agent self-reported · 2026-11 · strict scoring · other similarity"
    assert f"Not ranked: 1 system other similarity {row}" in front
    assert (
        "My agent joins the plot of 2026-04, self-reported, with AnsAcc 97.56, not ranked." in front
    )
    assert "(My agent" not in front, "the highest AnsAcc is that of a ranked row"
    assert "the published all-mpnet-base-v2, and AnsAcc depends on it" in front
    table = read(tmp_path / "both", "atomic.html")
    assert f"Not ranked, other similarity: 1 system {DASH} {row}" in table
    assert "Rank not ranked other similarity" in read(tmp_path / "both", "system-my-agent.html")
    assert "My agent" not in read(tmp_path / "both", "compare.html")
    build_site([mine], tmp_path / "alone")
    assert "No system is ranked." in read(tmp_path / "alone", "index.html")


def test_two_submissions_are_compared_on_the_same_tasks(tmp_path: Path) -> None:
    tasks = [str(number) for number in range(132)]
    one = submitted(by_task={task: float(int(task) < 18) for task in tasks})
    two = submitted(
        id="2026-11/workflow/two",
        system="Other agent",
        scores={"root_sr": Score(value=6.06, k=8, n=132)},
        by_task={task: float(int(task) < 8) for task in tasks},
    )
    build_site([one, two], tmp_path)
    pairs = read(tmp_path, "compare.html")
    # Ten tasks differ, all in one direction: McNemar's exact test gives 2 / 2**10.
    assert "My agent Other agent +7.6 +4.1 to +13.5 0.002 0.002 paired told apart" in pairs


def test_the_site_is_small(site: Path) -> None:
    assert sum(file.stat().st_size for file in site.iterdir()) < 1_000_000


def test_names_without_latin_letters_have_pages_of_their_own(tmp_path: Path) -> None:
    names = ("\u901a\u7528", "\u5de5\u5177", "A.b", "a\N{LATIN SMALL LETTER SHARP S}b")
    build_site([own(id=f"n{at}", system=name) for at, name in enumerate(names)], tmp_path)
    pages = [read(tmp_path, file.name) for file in sorted(tmp_path.glob("system-*.html"))]
    assert len(pages) == 4
    assert all(any(f"System {name} 1 result" in page for page in pages) for name in names)
