"""`gta run … --help`: every option in a group, with what it is unless given."""

import re
from typing import get_args

import pytest

from gta_bench.cli.grouping import OTHERS, OptionGroup
from tests.cli.test_run import gta


def groups(text: str) -> dict[str, list[str]]:
    """The first names of the options under each heading."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in text.splitlines():
        if re.fullmatch(r"\S.*:", line):
            heading = line[:-1]
            found[heading] = []
        elif option := re.match(r"  (?:-\w, )?(--?[\w-]+)", line):
            found[heading].append(option[1])
    return found


@pytest.mark.parametrize("dataset", ["atomic", "workflow"])
def test_every_option_of_a_run_is_in_a_group(dataset: str) -> None:
    """41 options stood in one list, in the order in which they were written."""
    found = groups(gta("run", dataset, "--help").stdout)
    assert found.pop(OTHERS) == ["--help"]
    assert [*found] == [group for group in get_args(OptionGroup) if group != OTHERS]
    assert {"--model", "--max-calls"} < {*found["System"]}
    assert "--harness-disk" in found["Harness, instead of an agent of ours"]


def test_defaults_are_told_also_where_gta_toml_may_say_otherwise() -> None:
    text = " ".join(gta("run", "workflow", "--help").stdout.split())
    assert "Times that every task is run. [default: 1; x>=1]" in text
    assert "[default: (budget.max_connections of gta.toml, else 10)" in text
    assert "[default: (budget.cost_usd of gta.toml, else none)" in text
