"""The comment on a pull request: what it says, and that names in it stay text."""

import re

import pytest

from gta_bench.leaderboard.comments import SubmissionReport, format_submissions
from gta_bench.leaderboard.entries import read_published_entries
from gta_bench.records.leaderboard import Entry


def submitted(**changes: object) -> Entry:
    row = next(one for one in read_published_entries() if one.board == "atomic")
    return row.model_copy(update={"id": "mine", "status": "self-reported", **changes})


def test_a_row_of_another_similarity_is_said_to_be_unranked() -> None:
    entry = submitted(system="Mine", marks=("other similarity",))
    text = format_submissions([SubmissionReport("a.zip", entry, "s", ())])
    assert "- Mine is marked: other similarity\n" in text
    assert "- Mine is not ranked among published rows: its SummAcc, AnsAcc, AnsAcc+I depend" in text
    plain = format_submissions([SubmissionReport("a.zip", submitted(system="Mine"), "s", ())])
    assert "not ranked" not in plain


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("www.evil.com", "www<!-- -->.evil.com"),
        ("WWW.evil.com", "WWW<!-- -->.evil.com"),
        ("https://evil.com", "https:<!-- -->//evil.com"),
        ("#1", "#<!-- -->1"),
        ("gh-1", "gh-<!-- -->1"),
        ("octo/repo#1", "octo/repo#<!-- -->1"),
        (":tada:", ":<!-- -->tada:"),
        (":white_check_mark:", r":<!-- -->white\_check\_mark:"),
        (":+1:", ":<!-- -->+1:"),
        ("$x^2$", "<span>$</span>x^2<span>$</span>"),
        ("_a_ me@home", r"\_a\_ me@<!-- -->home"),
        ("GPT-4o (08:30)", "GPT-4o (08:30)"),
    ],
)
def test_a_name_links_and_formats_nothing(name: str, shown: str) -> None:
    text = format_submissions([SubmissionReport(f"{name}.zip", submitted(system=name), "s", ())])
    assert f"| {shown} |" in text and f"**{shown}.zip**" in text
    invisible = re.sub(r"<!-- -->|</?span>|\\", "", text)
    assert f"| {name} |" in invisible, "it reads as it was"


def test_a_name_of_a_file_cannot_end_the_code_around_it() -> None:
    broken = SubmissionReport("a` @all `.zip", None, "", (("archive", "it is broken"),))
    text = format_submissions([broken])
    assert "`gta leaderboard check BUNDLE --data DIR`" in text and " @all" not in text
