from pathlib import Path

import pytest

from gta_bench.authoring.proofs import find_tasks, read_authored
from gta_bench.errors import DatasetError, UsageError
from tests.authoring.folders import TASK, write_authored


def test_works_have_answers_files_and_what_they_break(tmp_path: Path) -> None:
    found = read_authored(write_authored(tmp_path))
    assert [proof.name for proof in found.proofs] == [
        *("gold/plain", "gold/wide", "wrong/one-sum-off", "wrong/swapped", "cheat/head-only"),
    ]
    wrong = found.of("wrong")[0]
    assert (wrong.breaks, wrong.origin) == (("sums",), "plain")
    assert [file.name for file in wrong.delivery.files] == ["summary.csv"]


def test_deliverables_may_have_a_folder_of_their_own(tmp_path: Path) -> None:
    files = {
        "wrong/more/files/answer.md": "# Report",
        "wrong/more/final.txt": "x",
        "wrong/more/wrong.toml": 'breaks = ["sums"]',
    }
    toml = TASK.replace('"summary.csv" = "csv"', '"answer.md" = "markdown"')
    found = read_authored(write_authored(tmp_path, toml, without="wrong", **files))
    more = next(one for one in found.proofs if one.folder == "more")
    assert [file.name for file in more.delivery.files] == ["answer.md"]


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("wrong/new/summary.csv", "a", "wrong/new/wrong.toml: is missing"),
        ("wrong/swapped/wrong.toml", "breaks = [", "is not valid TOML"),
        ("wrong/swapped/wrong.toml", "breaks = []", "field 'breaks': name at least one leaf."),
        ("wrong/swapped/wrong.toml", 'break = ["sums"]', "Known keys: breaks, from."),
        (
            "wrong/swapped/wrong.toml",
            'breaks = ["sum"]',
            "there is no leaf 'sum'; did you mean 'sums'?",
        ),
        (
            "wrong/swapped/wrong.toml",
            'breaks = ["sums"]\nfrom = "plan"',
            "there is no folder gold/plan; did you mean 'plain'?",
        ),
        ("gold/new/.hidden", "a", "gold/new: has neither answer nor file."),
    ],
)
def test_a_mistake_is_one_line_with_its_file(
    tmp_path: Path, path: str, text: str, said: str
) -> None:
    folder = write_authored(tmp_path, **{path: text})
    with pytest.raises(DatasetError) as raised:
        read_authored(folder)
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_a_deliverable_that_would_be_read_as_the_answer_is_refused(tmp_path: Path) -> None:
    toml = TASK.replace('"summary.csv" = "csv"', '"output.md" = "markdown"')
    folder = write_authored(tmp_path, toml, **{"gold/plain/output.md": "# x"})
    with pytest.raises(DatasetError, match=r"gold/plain/output\.md: has the name of an answer"):
        read_authored(folder)


def test_links_are_refused(tmp_path: Path) -> None:
    folder = write_authored(tmp_path)
    (folder / "gold/plain/other.csv").symlink_to(folder / "request.md")
    with pytest.raises(DatasetError, match=r"gold/plain/other.csv: is a link"):
        read_authored(folder)
    whole = write_authored(tmp_path / "two", without="gold")
    (whole / "gold").symlink_to(folder / "gold")
    with pytest.raises(DatasetError, match="q3-sales/gold: is a link"):
        read_authored(whole)


def test_a_folder_of_tasks_stands_for_all_of_them(tmp_path: Path) -> None:
    folder = write_authored(tmp_path)
    assert find_tasks((tmp_path,)) == find_tasks((folder,)) == [folder]
    with pytest.raises(UsageError, match=r"no task.toml"):
        find_tasks((folder / "gold",))
