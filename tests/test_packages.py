"""The install commands that messages name are those of pyproject.toml."""

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions

import pytest

from gta_bench.content.needs import EVIDENCE_PACKAGES
from gta_bench.errors import EnvironmentProblem
from gta_bench.packages import install_command, missing_packages, require_packages
from gta_bench.serving.choice import SERVER_PACKAGES
from tests.conftest import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
SOURCES = sorted((REPOSITORY / "src").rglob("*.py"))


def named_extras() -> Iterator[str]:
    """Every extra that the code names in a call."""
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                words: list[ast.expr] = []
                if node.func.id == "require_packages":
                    words = [one.value for one in node.keywords if one.arg == "extra"]
                elif node.func.id == "find_missing":
                    words = [one.value for one in node.keywords if one.arg == "extra"]
                    words = words or [ast.Constant("tools")]
                elif node.func.id == "install_command":
                    words = node.args
                yield from (str(one.value) for one in words if isinstance(one, ast.Constant))


def brought(extra: str) -> set[str]:
    """The distributions that an extra names, with those of the extras it is made of."""
    found = set()
    for line in EXTRAS[extra]:
        name, inner = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", line).groups()  # type: ignore[union-attr]
        if name == "gta-bench":
            found |= {one for part in inner.split(",") for one in brought(part)}
        else:
            found.add(name.lower().replace("_", "-"))
    return found


def test_every_extra_that_a_message_names_can_be_installed() -> None:
    assert {*named_extras()} == {
        *("cluster", "demo", "documents", "forge", "harness", "local-model", "media", "report"),
        *("otel", "serve", "similarity", "tools", "workflow"),
    }
    assert {*named_extras()} < EXTRAS.keys()


def test_everything_but_torch_and_lagent_is_in_all() -> None:
    apart = {name for name in EXTRAS if not brought(name) <= brought("all")}
    assert apart == {"similarity", "published"}


@pytest.mark.parametrize("module", [*EVIDENCE_PACKAGES, *SERVER_PACKAGES])
def test_the_extra_workflow_brings_what_judging_and_harnesses_need(module: str) -> None:
    distributions = {name.lower().replace("_", "-") for name in packages_distributions()[module]}
    assert distributions & brought("workflow")


def test_no_message_writes_the_command_by_hand() -> None:
    """A renamed extra must not leave a message behind."""
    written = [
        str(file) for file in SOURCES if "pip install 'gta-bench[" in file.read_text("utf-8")
    ]
    assert [one for one in written if not one.endswith("gta_bench/packages.py")] == []


def test_what_is_missing_is_named_and_nothing_is_imported() -> None:
    assert missing_packages("json", "no_such_module") == ["no_such_module"]
    require_packages("gta compare", "json", extra="report")
    with pytest.raises(EnvironmentProblem) as caught:
        require_packages("gta compare", "json", "no_such_a", "no_such_b", extra="report")
    assert str(caught.value) == (
        "gta compare needs no_such_a, no_such_b, which are not installed: "
        f"{install_command('report')}"
    )
