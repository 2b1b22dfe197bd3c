"""Checks of packages, by entry points; tests/test_extension.py installs a package that has one."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from gta_bench.checks.decide import checks_digest
from gta_bench.datasets import package_checks
from gta_bench.datasets.package_checks import find_package, make_package_check
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import DatasetError, UsageError
from gta_bench.records.base import Record
from gta_bench.records.checks import PackageCheck
from gta_bench.records.workflow import Checkpoint
from tests.authored import TASK, write_task

HERE = "tests.datasets.test_package_checks"


class Total(Record):
    """Holds if the total is right."""

    most: int

    def decide(self, work: object) -> None: ...


class _Package:
    name, version = "acme", "2.0"


POINTS = {
    "acme.total": f"{HERE}:Total",
    "acme.function": f"{HERE}:write_task",
    "acme.lost": "no.such.module:Total",
}


@pytest.fixture(autouse=True)
def points(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [EntryPoint(name, value, package_checks.ENTRY_POINTS) for name, value in POINTS.items()]
    for point in found[:1]:
        vars(point).update(dist=_Package())
    monkeypatch.setattr(package_checks, "entry_points", lambda group: found)


def check(kind: str, **parameters: object) -> PackageCheck:
    return PackageCheck.model_validate({"is": kind, **parameters})


def test_a_check_becomes_the_model_of_its_package() -> None:
    assert make_package_check(check("acme.total", most=3)) == Total(most=3)
    assert find_package(check("acme.total")) == "acme==2.0"


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            check("acme.total"),
            "the check 'acme.total', most: Field required. Its parameters: most.",
        ),
        (check("acme.totl", most=3), "unknown check 'acme.totl'; did you mean 'acme.total'?"),
        (check("acme.function"), "which is not a pydantic model with the method `decide`"),
        (check("acme.lost"), "the check 'acme.lost' cannot be loaded: No module named 'no'."),
    ],
)
def test_a_check_that_is_not_valid_is_one_sentence(made: PackageCheck, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        make_package_check(made)
    assert says in str(raised.value)


def test_a_package_without_a_distribution_has_no_version() -> None:
    assert find_package(check("acme.lost")) is None
    assert find_package(check("acme.unknown")) is None


def test_a_new_version_of_a_package_decides_again(monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = Checkpoint(id="a", by="check", checks=(check("acme.total", most=3),))
    before = checks_digest(leaf)
    monkeypatch.setattr(_Package, "version", "2.1")
    assert checks_digest(leaf) != before


def test_a_task_folder_is_validated_by_the_package(tmp_path: Path) -> None:
    old = '{ is = "table.order", file = "summary.csv", by = "Revenue", desc = true }'
    assert old in TASK
    write_task(tmp_path / "good", TASK.replace(old, '{ is = "acme.total", most = 3 }'))
    (task,) = load_workflow(tmp_path / "good").tasks.values()
    assert any(one.label == "acme.total" for leaf in task.leaves() for one in leaf.checks)
    write_task(tmp_path / "bad", TASK.replace(old, '{ is = "acme.total", most = "x" }'))
    with pytest.raises(
        DatasetError, match=r"the check 'acme.total', most: Input should be a valid"
    ):
        load_workflow(tmp_path / "bad")
