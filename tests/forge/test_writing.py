"""`gta forge`: names, namespaces, folders that continue, and mistakes in one line."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError
from gta_bench.forge.catalog import FAMILIES, find_families
from gta_bench.forge.writing import ABOUT, Forge, Order, forge_tasks, make_task

SALES = [FAMILIES["sales"]]
PUBLIC = Order("public", "7", 1)


def gta(*arguments: str | Path) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, [*map(str, arguments)])


def read_all(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_a_folder_continues_where_it_ended(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert forge_tasks(SALES, PUBLIC, 3, whole) == 3
    assert forge_tasks(SALES, PUBLIC, 1, part) == 1
    # What a killed process leaves behind is no task.
    shutil.copytree(part / "sales-public-7-1-00001", part / ".forge-abc")
    assert forge_tasks(SALES, PUBLIC, 3, part) == 2
    shutil.rmtree(part / ".forge-abc")
    assert read_all(whole) == read_all(part)
    assert list(load_workflow(whole).tasks) == [f"sales-public-7-1-{n:05}" for n in (1, 2, 3)]


def test_a_folder_has_one_seed_level_and_key(tmp_path: Path) -> None:
    forge_tasks(SALES, PUBLIC, 1, tmp_path / "a")
    for other in (Order("public", "8", 1), Order("public", "7", 2), Order("train", "7", 1)):
        with pytest.raises(UsageError, match="forged with other options"):
            forge_tasks(SALES, other, 1, tmp_path / "a")
    private = Order("private", "7", 1, b"one" * 6)
    forge_tasks(SALES, private, 1, tmp_path / "b")
    with pytest.raises(UsageError, match="forged with other options"):
        forge_tasks(SALES, replace(private, secret=b"two" * 6), 1, tmp_path / "b")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        forge_tasks(SALES, PUBLIC, 1, tmp_path / "c")


def test_private_tasks_depend_on_their_key_and_do_not_reveal_it(tmp_path: Path) -> None:
    secret = b"a long secret of the operator"
    orders = [Order("private", "7", 1, one) for one in (secret, b"another secret of somebody")]
    first, second = (make_task(SALES[0], one, 1) for one in orders)
    assert first.inputs != second.inputs
    forge_tasks(SALES, orders[0], 1, tmp_path / "a")
    for path, data in read_all(tmp_path / "a").items():
        assert secret not in data, path
    about = Forge.model_validate_json((tmp_path / "a" / ABOUT).read_bytes())
    assert about.key is not None and about.key != orders[1].describe().key
    for wrong in (Order("private", "7", 1), Order("public", "7", 1, b"k")):
        with pytest.raises(UsageError, match="--key-file"):
            wrong.check()


def test_mistakes_are_refused_in_a_line(tmp_path: Path) -> None:
    for seed in ("", "a/b", "x" * 21, "../7"):
        with pytest.raises(UsageError, match="is not 1 to 20 letters, digits and underscores"):
            Order("public", seed, 1).check()
    with pytest.raises(UsageError, match="The key has 3 characters, which can be guessed"):
        Order("private", "7", 1, b"abc").check()
    with pytest.raises(UsageError, match=r"no family 'sale'; did you mean 'sales'\?"):
        find_families(["sale"])
    assert find_families(["all", "sales"]) == [*FAMILIES.values()]
    assert find_families(["sales", "sales"]) == SALES


def test_the_command_lists_writes_and_continues(tmp_path: Path) -> None:
    listed = gta("forge", "--list")
    assert listed.exit_code == 0 and all(name in listed.stdout for name in FAMILIES)
    wanted = ("forge", "sales", "--seed", "7", "--out", tmp_path / "a")
    first = gta(*wanted, "--count", "1")
    assert first.exit_code == 0, first.output
    assert f"1 new of 1 task in {tmp_path / 'a'}. Next: gta task pilot" in first.stderr
    assert "1 new of 2 tasks" in gta(*wanted, "--count", "2").stderr
    assert "--seed and --out" in str(gta("forge", "sales", "--seed", "7").exception)


def test_the_key_of_a_private_set_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret" * 6 + "\n")
    wanted = ("forge", "sales", "--seed", "7", "--namespace", "private", "--out", tmp_path / "a")
    assert "--key-file" in str(gta(*wanted).exception)
    assert gta(*wanted, "--key-file", tmp_path / "key").exit_code == 0
    (tmp_path / "empty").write_text("\n")
    refused = gta(*wanted, "--key-file", tmp_path / "empty")
    assert "--key-file" in str(refused.exception)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"namespace": "secret"}, "no namespace 'secret'. Known: public, train, private."),
        ({"level": 4}, "no level 4. Levels are 1, 2 and 3."),
        ({"level": True}, "no level True."),
        ({"seed": 7}, "The seed 7 is not"),
    ],
)
def test_an_order_is_validated(change: dict[str, Any], says: str) -> None:
    order: dict[str, Any] = {"namespace": "train", "seed": "7", "level": 1}
    with pytest.raises(UsageError, match=says):
        Order(**(order | change)).check()


def test_an_order_does_not_show_its_key() -> None:
    assert "hush" not in repr(Order("private", "7", 1, b"hush" * 9))
