"""A new task: its golds are right, its wrong deliveries break one leaf, its cheat earns nothing."""

import asyncio
import tomllib
from functools import partial
from pathlib import Path

import pytest

from gta_bench.authoring.lint import lint
from gta_bench.authoring.scaffold import WRITERS, build_files, scaffold
from gta_bench.checks.decide import decide_leaf
from gta_bench.checks.delivery import CheckedWork
from gta_bench.confine.jail import Jail
from gta_bench.content.identify import identify
from gta_bench.datasets.folders import load_task
from gta_bench.errors import UsageError
from gta_bench.records.verdicts import Scored
from tests.content.conftest import jail

__all__ = ["jail"]


async def score(folder: Path, delivery: Path, jail: Jail) -> dict[str, float]:
    files = {file.name: partial(file.read_bytes) for file in delivery.iterdir()}
    work = CheckedWork("", files, jail)
    values = {}
    for leaf in load_task(folder).leaves():
        verdict = await decide_leaf(leaf, work)
        assert isinstance(verdict, Scored), verdict
        values[leaf.id] = verdict.value
    return values


@pytest.mark.parametrize("kind", WRITERS)
def test_a_new_task_lints_and_scores_at_once(tmp_path: Path, jail: Jail, kind: str) -> None:
    folder = tmp_path / "tasks" / "mine"
    scaffold(folder, kind)
    report = lint([folder])
    assert (report.findings, report.waived, report.not_applied) == ((), (), ())
    values = asyncio.run(score(folder, folder / "gold/plain", jail))
    assert set(values.values()) == {10}


def test_golds_are_right_wrongs_break_one_leaf_and_the_cheat_earns_nothing(
    tmp_path: Path, jail: Jail
) -> None:
    folder = tmp_path / "mine"
    scaffold(folder, "csv")
    leaves = {leaf.id for leaf in load_task(folder).leaves()}
    for gold in (folder / "gold").iterdir():
        assert asyncio.run(score(folder, gold, jail)) == dict.fromkeys(leaves, 10)
    broken = set()
    for wrong in (folder / "wrong").iterdir():
        breaks = set(tomllib.loads((wrong / "wrong.toml").read_text())["breaks"])
        values = asyncio.run(score(folder, wrong, jail))
        assert {leaf for leaf, value in values.items() if value < 10} == breaks
        broken |= breaks
    assert broken == leaves
    (cheat,) = (folder / "cheat").iterdir()
    assert asyncio.run(score(folder, cheat, jail)) == dict.fromkeys(leaves, 0)


@pytest.mark.parametrize("kind", WRITERS)
def test_files_are_of_their_kind_and_the_same_every_time(kind: str) -> None:
    files = build_files("mine", kind)
    assert files == build_files("mine", kind)
    path = f"gold/plain/summary.{kind}"
    assert identify(path, files[path]).honest


def test_a_bad_name_or_an_existing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'a b' is not the id of a task"):
        scaffold(tmp_path / "a b", "csv")
    with pytest.raises(UsageError, match="exists already"):
        scaffold(tmp_path, "csv")
    scaffold(tmp_path / "outer", "csv")
    with pytest.raises(UsageError, match=r"outer is a task itself\. Name a folder beside it"):
        scaffold(tmp_path / "outer/inner", "csv")
