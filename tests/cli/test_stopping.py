"""Runs that end early: what was not begun is no failure, and the command that goes on is said."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.cli.lazy import same_command
from gta_bench.cli.output import plain_lines, say_if_slow
from gta_bench.errors import UsageError
from gta_bench.records.progress import RunProgress
from tests.builders import atomic_task, write_atomic
from tests.chat_server import ChatServer, chat_server
from tests.scripted import write_settings

UNITS = 40
CALLS = 2  # for a task of this dataset


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def server(loopback: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCRIPTED_KEY", "none")
    tasks = {
        str(number): atomic_task(
            dialogs=[
                {"role": "user", "content": f"What does beer {number} cost?"},
                *atomic_task()["dialogs"][1:],
            ]
        )
        for number in range(UNITS)
    }
    write_atomic(tmp_path / "data", tasks)
    with chat_server() as server:
        write_settings(tmp_path / "gta.toml", server.url)
        yield server


def step(*options: str) -> Result:
    fixed = ("--data", "data", "--similarity", "exact-or-half", "--out", "run a")
    return gta("run", "atomic", "--mode", "step", "--model", "scripted", *fixed, *options)


def status() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gta("status", "run a", "--json").stdout)
    return found


def scores() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("run a/scores.json").read_bytes())
    return found


def test_a_run_that_money_stops_at_3_of_40_goes_on_by_the_command_that_it_says(
    server: ChatServer,
) -> None:
    asked: list[str] = []

    def reply(request: dict[str, Any]) -> str:
        asked.append(re.findall(r"beer \d+", json.dumps(request["messages"]))[0])
        return "It is 7."

    server.reply = reply
    result = step("--max-connections", "1", "--max-cost", "5")
    assert result.exit_code == 1, result.output
    assert len(asked) == 3 * CALLS
    said = next(line for line in result.stderr.splitlines() if "Continue with" in line)
    assert said.startswith("run a: The run has spent its budget of $5 (budget.cost_usd); 37 units")
    found = status()
    assert (found["done"], found["failed"], found["causes"]) == (3, 0, {})
    stopped = scores()
    assert (stopped["n"], stopped["n_units"]) == (3, UNITS)
    assert {one["cause"] for one in stopped["unscored"]} == {"not run yet"}
    assert all(one["cause"] != "infrastructure" for one in stopped["failures"])
    assert "infrastructure" not in result.stdout + result.stderr

    command = said.partition("Continue with: ")[2]
    assert command.endswith("--max-cost 80")
    assert gta(*shlex.split(command)[1:]).exit_code == 0
    assert len(asked) == UNITS * CALLS
    assert {asked.count(one) for one in asked} == {CALLS}
    assert (scores()["n"], scores()["unscored"]) == (UNITS, [])


def test_a_budget_in_dollars_needs_a_price(server: ChatServer) -> None:
    """Without one, a run spent any number of dollars and was never stopped."""
    text = Path("gta.toml").read_text(encoding="utf-8")
    without = "\n".join(line for line in text.splitlines() if "_price" not in line)
    # Inspect keeps the price that it was told in this process for a name.
    other = without.replace("local/scripted", "local/unpriced")
    Path("gta.toml").write_text(other + "\n", encoding="utf-8")
    error = step("--max-cost", "5").exception
    assert isinstance(error, UsageError)
    assert "budget.cost_usd cannot be enforced: the price of " in str(error)
    assert server.asked == 0 and not Path("run a").exists()


def test_a_run_that_time_stops_goes_on_by_the_same_command(server: ChatServer) -> None:
    server.delay = 0.2
    options = ("--max-connections", "1", "--max-hours", f"{0.5 / 3600:.6f}")
    result = step(*options)
    said = next(line for line in result.stderr.splitlines() if "Continue with" in line)
    typed = shlex.split(said.partition("Continue with: ")[2])
    assert typed[-4:] == list(options)
    assert status()["failed"] == 0


def test_causes_are_counted_in_the_status_and_said_when_they_are_new(server: ChatServer) -> None:
    server.behaviors = ["ok"] * 4
    server.forever = "500"
    result = step("--tasks", "0:5", "--max-connections", "1")
    assert result.exit_code == 1
    line = next(one for one in result.stderr.splitlines() if one.startswith("run a: "))
    assert "1 failed" in line and "1 x The model did not reply: InternalServerError" in line
    found = status()
    assert (found["done"], found["failed"]) == (2, 3)
    ((cause, count),) = found["causes"].items()
    assert count == 3
    assert server.url in cause
    shown = gta("status", "run a").stdout
    assert "finished  2 of 5 units\n" in shown
    assert f"cause     3 x {cause}" in shown
    server.forever = None
    assert step("--tasks", "0:5").exit_code == 0
    assert status()["causes"] == {}


def test_a_line_comes_now_and_then_where_no_bar_can_be_drawn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from datetime import UTC, datetime, timedelta
    from time import sleep

    now = datetime.now(UTC)
    far = RunProgress(units=9, done=2, running=1, started=now, updated=now, done_now=0)
    with plain_lines("run", seconds=0.05) as lines:
        lines(far)
        sleep(0.5)
        lines(far.model_copy(update={"done": 9, "running": 0}))
    *said, last = capsys.readouterr().err.splitlines()
    assert len(said) >= 2
    assert {*said} == {"run: 2 of 9 units · 0 failed · 1 running"}
    assert last == "run: 9 of 9 units · 0 failed · 0 running"
    before = now - timedelta(minutes=1)
    slow = far.model_copy(
        update={"started": before - timedelta(minutes=1), "updated": before, "done_now": 2}
    )
    with plain_lines("slow", seconds=0.05) as lines:
        lines(slow)
        sleep(0.2)
    for line in capsys.readouterr().err.splitlines():
        assert re.search(r" · (1|0\.99\d*) per minute · 0:07:0\d left$", line), line
    with plain_lines("short") as lines:
        lines(far)
    assert capsys.readouterr().err == ""


def test_a_line_says_what_takes_long_and_nothing_what_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from time import sleep

    with say_if_slow("short", seconds=60):
        pass
    with say_if_slow("long", seconds=0.01):
        sleep(0.2)
    assert capsys.readouterr().err == "long\n"


def test_the_same_command_has_other_values_in_either_spelling() -> None:
    found: list[str] = []
    context = app.make_context("gta", ["run", "--max-cost=5", "x y", "--max-cost", "7"])
    with context.scope(cleanup=False):
        found.append(same_command({"--max-cost": "80"}))
        found.append(same_command())
    assert found == ["gta run 'x y' --max-cost 80", "gta run --max-cost=5 'x y' --max-cost 7"]
