import asyncio
import subprocess
import sys

import pytest

from gta_bench.agents.catalog import (
    CATALOG,
    DEFAULT_AGENT,
    NEED_REFERENCES,
    WITHOUT_MODEL,
    load_agent,
)
from gta_bench.agents.contract import Setup
from gta_bench.agents.react import react, react_upstream
from gta_bench.agents.toolcalling import toolcalling
from gta_bench.errors import UsageError
from gta_bench.records.steps import MalformedStep
from tests.agents.builders import HISTORIES, TOOLS


def test_the_agents_have_the_names_of_the_command_line() -> None:
    assert list(CATALOG) == ["toolcalling", "react", "react-upstream", "gold", "silent"]
    assert DEFAULT_AGENT in CATALOG
    assert set(CATALOG) >= WITHOUT_MODEL >= NEED_REFERENCES


@pytest.mark.parametrize("name", CATALOG)
def test_every_agent_of_the_table_loads_and_takes_a_setup(name: str) -> None:
    assert callable(load_agent(name)(Setup()))


def test_a_name_gives_its_own_agent() -> None:
    assert load_agent("toolcalling") is toolcalling
    assert load_agent("react") is react
    assert load_agent("react-upstream") is react_upstream


def test_an_agent_of_the_user_is_named_by_module_and_function() -> None:
    factory = load_agent("gta_bench.agents.catalog:silent")
    decision = asyncio.run(factory(Setup())(HISTORIES[0], TOOLS))
    assert isinstance(decision.step, MalformedStep)


@pytest.mark.parametrize("name", ["reakt", "", ":", "pkg.mod:", ":fn", ".relative:fn", "React"])
def test_an_unknown_name_is_answered_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_agent(name)
    assert str(raised.value) == (
        f"Unknown agent {name!r}. Known agents: toolcalling, react, react-upstream, gold, silent, "
        "or `pkg.mod:function`."
    )
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no_such_package.mod:fn", "No module named 'no_such_package'"),
        ("gta_bench.agents.catalog:loud", "has no attribute 'loud'"),
    ],
)
def test_an_agent_that_cannot_be_imported_says_why(name: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        load_agent(name)


def test_an_object_that_cannot_be_called_is_no_agent() -> None:
    with pytest.raises(UsageError, match="is not a function that takes a Setup"):
        load_agent("gta_bench.agents.catalog:CATALOG")


@pytest.mark.parametrize(
    "module",
    [
        "gta_bench.agents",
        "gta_bench.agents.catalog",
        "gta_bench.agents.contract",
        "gta_bench.agents.calling",
        "gta_bench.agents.react_parser",
        "gta_bench.agents.prompts",
    ],
)
def test_names_parsers_and_prompts_are_had_without_inspect(module: str) -> None:
    code = f"import sys, {module}; sys.exit('inspect_ai' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
