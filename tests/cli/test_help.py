"""`gta run … --help`: every option in a group, with its default."""

import re
from typing import get_args

import pytest

from gta_bench.cli.options import OTHERS, OptionGroup
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
    assert "--harness-disk" in found["Harness, instead of a built-in agent"]


def test_defaults_are_shown_even_if_gta_toml_can_override_them() -> None:
    text = " ".join(gta("run", "workflow", "--help").stdout.split())
    assert "Number of times to run each task. [default: 1; x>=1]" in text
    assert "[default: (budget.max_connections in gta.toml, or 10)" in text
    assert "[default: (budget.cost_usd in gta.toml, or none)" in text
