"""`gta score RUN --judge`: stored runs before a judge that is a real server on loopback."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import list_eval_logs, read_eval_log

from gta_bench.cli import app, score
from gta_bench.content import browser
from gta_bench.errors import RunError, UsageError, WorkFailed
from gta_bench.records.verdicts import Scored, Unscored
from gta_bench.running.backends.backend import Call, Inline, SharedObject
from gta_bench.running.budget import SharedBudget
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import progress_folder, read_progress, read_workflow_scores
from gta_bench.runs.verdicts import read_judges, read_verdicts
from tests.chat_server import ChatServer, chat_server
from tests.judging.builders import asked, honest, question, task
from tests.judging.stored import settings_file, stored_run

TASKS = (task("1"), task("2"))
FILES = {"report.md": b"# Report\n\nAll is well.\n", "notes.txt": b"Nothing to add.\n"}


class Provider:
    """What the judge was asked, and which leaves it stumbles over."""

    def __init__(self, server: ChatServer) -> None:
        self.server = server
        self.requests: list[dict[str, Any]] = []
        self.broken: set[str] = set()
        server.reply = self._reply

    def _reply(self, request: dict[str, Any]) -> str:
        self.requests.append(request)
        return "I would say 8." if self.broken & set(asked(request)) else honest(request)

    def asked(self) -> list[str]:
        """The leaves that were asked for since the last look."""
        leaves = [leaf for request in self.requests for leaf in asked(request)]
        self.requests.clear()
        return sorted(leaves)


@pytest.fixture
def provider(loopback: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    with chat_server() as server:
        yield Provider(server)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return stored_run(tmp_path / "run", TASKS, FILES)


def gta(provider: Provider, run: Path, *options: str) -> Result:
    config = settings_file(run.parent, provider.server.url)
    return CliRunner().invoke(app, ["--config", str(config), "score", str(run), *options])


def judged(provider: Provider, run: Path, *options: str) -> Result:
    return gta(provider, run, "--judge", "local", *options)


def test_a_run_is_judged_and_nothing_is_asked_twice(provider: Provider, run: Path) -> None:
    result = judged(provider, run)
    assert result.exit_code == 0, result.output
    assert "openai-api/local/m: 6 leaves asked, 6 scored." in result.stderr
    assert provider.asked() == sorted(["cp1-1", "cp1-2", "cp1-3"] * 2)
    rows = read_verdicts(run)
    assert {row.verdict for row in rows.values()} == {
        Scored(value=8, reason="Seen.", used=("report.md",))
    }
    logs = list_eval_logs(str(run / "judging"))
    assert len(logs) == 1
    log = read_eval_log(logs[0])
    assert (log.eval.task, log.status) == ("gta_bench/judge", "success")
    assert {str(sample.id) for sample in log.samples or []} == {"1", "2"}
    again = judged(provider, run)
    assert again.exit_code == 0
    assert "openai-api/local/m: 0 leaves asked, 0 scored." in again.stderr
    assert provider.asked() == []
    assert len(list_eval_logs(str(run / "judging"))) == 1


def test_running_it_again_asks_for_the_unscored_leaves_only(provider: Provider, run: Path) -> None:
    provider.broken = {"cp1-2"}
    result = judged(provider, run, "--json")
    assert result.exit_code == 1, result.output
    causes = [
        row.verdict.cause
        for row in read_verdicts(run).values()
        if isinstance(row.verdict, Unscored)
    ]
    assert causes == ["reply_not_json"] * 2
    assert "reply_not_json, 2 leaves without a score. The first: task 1, cp1-2: " in result.stderr
    provider.broken = set()
    provider.asked()
    result = judged(provider, run, "--json")
    assert result.exit_code == 0, result.output
    assert provider.asked() == ["cp1-2", "cp1-2"]
    assert json.loads(result.stdout)["judges"][0]["judge"] == "openai-api/local/m"


@pytest.mark.parametrize(
    ("budget", "scored", "words"),
    [
        ({"cost_usd": 1e-6}, 1, "budget.cost_usd, $"),
        # The second leaf reaches it; the third, which waited for its connection, is not asked.
        ({"cost_usd": 0.0016}, 2, "budget.cost_usd, $0.0030"),
        ({"hours": 1e-9}, 0, "budget.hours, 1e-09 h"),
    ],
)
def test_a_limit_stops_the_judge_and_what_was_not_asked_stays_open(
    provider: Provider, run: Path, budget: dict[str, float], scored: int, words: str
) -> None:
    limits = {"max_connections": 1, **budget}
    config = settings_file(run.parent, provider.server.url, budget=limits, price=100)
    command = ["--config", str(config), "score", str(run), "--judge", "local"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1, result.output
    assert f"openai-api/local/m: stopped at {words}" in result.stderr
    assert f"{scored} of 6 leaves scored." in result.stderr
    assert len(provider.asked()) == len(read_verdicts(run)) == scored
    assert judged(provider, run).exit_code == 0
    assert len(provider.asked()) == 6 - scored


class Elsewhere(Inline):
    """A backend that shares copies, as Ray does with its actors."""

    name = "elsewhere"

    @contextmanager
    def share(self, value: object) -> Iterator[Call]:
        yield SharedObject(deepcopy(value)).call


def test_judges_elsewhere_share_the_money_and_the_requests_a_minute_of_their_command(
    provider: Provider, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, each judge had a budget of its own there."""
    monkeypatch.setattr(score, "open_backend", lambda *_: nullcontext(Elsewhere()))
    reserved: list[int] = []
    reserve = SharedBudget.reserve

    def count(budget: SharedBudget) -> Any:
        turn = reserve(budget)
        reserved.append(len(budget._starts))
        return turn

    monkeypatch.setattr(SharedBudget, "reserve", count)
    limits = {"max_connections": 1, "rpm": 1000, "cost_usd": 0.0102}
    config = settings_file(run.parent, provider.server.url, budget=limits, price=100)
    text = config.read_text(encoding="utf-8")
    other = text.partition("[budget]")[0].replace("models.local", "models.other")
    config.write_text(other.replace("local/m", "local/n") + text, encoding="utf-8")
    command = ["--config", str(config), "score", str(run), "--judge", "local", "--judge", "other"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1, result.output
    # A call costs $0.0015; the preflight's are not counted.
    assert "openai-api/local/m: 6 leaves asked, 6 scored." in result.stderr
    assert "openai-api/local/n: stopped at budget.cost_usd, $0.0105 of $0.0102" in result.stderr
    assert len(read_verdicts(run)) == 7
    assert reserved == [*range(1, 8)]


def test_a_limit_in_dollars_needs_a_price(provider: Provider, run: Path) -> None:
    config = settings_file(run.parent, provider.server.url, budget={"cost_usd": 1}, model="free")
    command = ["--config", str(config), "score", str(run), "--judge", "local"]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, UsageError)
    assert "is unknown. Set input_price" in str(result.exception)
    assert provider.asked() == []


def test_judges_repeats_and_options_never_mix(provider: Provider, run: Path) -> None:
    assert judged(provider, run).exit_code == 0
    for options, count, name in (
        (["--repeats", "2"], 6, "openai-api/local/m"),
        (["--leaves-per-call", "3"], 6, "openai-api/local/m [leaves_per_call=3]"),
        (["--judge-visibility", "upstream"], 6, "openai-api/local/m [visibility=upstream]"),
        (["--no-inputs", "--no-pictures"], 6, "openai-api/local/m [inputs=off, pictures=off]"),
        (["--judge-context", "9000"], 6, "openai-api/local/m [context_tokens=9000]"),
    ):
        provider.asked()
        result = judged(provider, run, *options)
        assert result.exit_code == 0, result.output
        assert f"{name}: {count} leaves asked" in result.stderr
        assert len(provider.asked()) == count
    assert len({key.judge for key in read_verdicts(run)}) == 5


def test_a_batch_gathers_all_calls_whatever_the_connections(provider: Provider, run: Path) -> None:
    provider.server.delay = 1.0
    result = judged(provider, run, "--judge-batch")
    assert result.exit_code == 0, result.output
    assert "openai-api/local/m: 6 leaves asked, 6 scored." in result.stderr
    assert provider.server.most_at_once == 6


def test_the_judge_sees_the_evidence_of_the_stored_files(provider: Provider, run: Path) -> None:
    judged(provider, run)
    sent = json.dumps(provider.requests[0]["messages"])
    assert "All is well." in sent
    assert "outputs/notes.txt" in sent
    assert (run / "evidence").is_dir()


def test_evidence_that_cannot_be_made_leaves_leaves_unscored(provider: Provider, run: Path) -> None:
    digest = ArtefactStore(run / ARTEFACTS).keep(FILES["report.md"])
    ArtefactStore(run / ARTEFACTS).path(digest).unlink()
    result = judged(provider, run)
    assert result.exit_code == 1
    assert provider.asked() == []
    verdicts = [row.verdict for row in read_verdicts(run).values()]
    assert {verdict.cause for verdict in verdicts if isinstance(verdict, Unscored)} == {
        "evidence_failed"
    }
    ArtefactStore(run / ARTEFACTS).keep(FILES["report.md"])
    assert judged(provider, run).exit_code == 0


def test_a_file_that_this_machine_cannot_show_is_told_in_the_terminal(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a browser pages were judged by their source, and nothing was said."""
    page = stored_run(tmp_path / "page", [task("1", 2)], {"page.html": b"<p>All is well.</p>"})
    monkeypatch.setattr(browser, "find_browser", lambda: None)
    result = judged(provider, page)
    assert (result.exit_code, provider.asked()) == (1, [])
    assert "evidence_failed, 2 leaves without a score" in result.stderr
    assert "Chromium is not installed. Install it" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--judge", "local"], "The same --judge was given twice"),
        (["--judge", "nobody"], "Unknown model 'nobody'"),
    ],
)
def test_judges_that_cannot_be_are_named(
    provider: Provider, run: Path, options: list[str], words: str
) -> None:
    result = judged(provider, run, *options)
    assert isinstance(result.exception, UsageError)
    assert words in str(result.exception)


def test_without_a_judge_no_model_is_asked(provider: Provider, run: Path) -> None:
    result = gta(provider, run)
    assert result.exit_code == 0, result.output
    assert provider.server.asked == 0


@pytest.mark.slow
def test_processes_judge_what_one_judges_and_nothing_twice(
    provider: Provider, run: Path, tmp_path: Path
) -> None:
    """Every leaf has a score of its own, so a mix-up would be seen."""

    def reply(request: dict[str, Any]) -> str:
        ((part, name),) = re.findall(r"Part (\d) of (\d) is right", question(request))
        verdict = json.loads(provider._reply(request))
        return json.dumps({**verdict, "score": 2 * int(part) + int(name)})

    provider.server.reply = reply
    alone = stored_run(tmp_path / "alone", TASKS, FILES)
    assert judged(provider, alone, "--repeats", "2").exit_code == 0
    provider.asked()
    result = judged(provider, run, "--workers", "2", "--repeats", "2")
    assert result.exit_code == 0, result.output
    assert "openai-api/local/m: 12 leaves asked, 12 scored." in result.stderr
    assert provider.asked() == sorted(["cp1-1", "cp1-2", "cp1-3"] * 4)
    verdicts = {key: row.verdict for key, row in read_verdicts(run).items()}
    assert verdicts == {key: row.verdict for key, row in read_verdicts(alone).items()}
    assert len(verdicts) == 12
    assert read_workflow_scores(run).judges == read_workflow_scores(alone).judges
    again = judged(provider, run, "--repeats", "2")
    assert again.exit_code == 0
    assert provider.asked() == []


def test_a_place_that_takes_no_verdict_is_named_with_what_is_safe(
    provider: Provider, run: Path
) -> None:
    """Once, each unit failed without a word, and the command only counted leaves without score."""
    assert judged(provider, run).exit_code == 0
    (run / "verdicts.jsonl").rename(run / "kept")
    (run / "verdicts.jsonl").mkdir()
    stopped = judged(provider, run)
    assert isinstance(stopped.exception, WorkFailed)
    assert "Judging stopped early: " in str(stopped.exception)
    assert "verdicts.jsonl" in str(stopped.exception)
    assert "All verdicts so far are safe" in str(stopped.exception)
    assert stopped.exception.exit_code == 3
    (run / "verdicts.jsonl").rmdir()
    (run / "kept").rename(run / "verdicts.jsonl")
    provider.asked()
    assert judged(provider, run).exit_code == 0
    assert provider.asked() == []


@pytest.mark.slow
def test_ctrl_c_keeps_every_verdict_and_the_same_command_asks_for_the_rest(
    provider: Provider, run: Path
) -> None:
    config = settings_file(run.parent, provider.server.url, budget={"max_connections": 1})
    command = ["-m", "gta_bench.cli", "--config", str(config), "score", str(run)]
    provider.server.delay = 1.0
    process = subprocess.Popen(
        [sys.executable, *command, "--judge", "local"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 300
    while not read_verdicts(run):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    (line,) = [one for one in said.splitlines() if one.startswith("gta: ")]
    assert "Traceback" not in said and "Cancelled" not in said
    assert line.startswith("gta: Interrupted. All verdicts so far are safe in")
    kept = dict(read_verdicts(run))
    assert 1 <= len(kept) < 6
    time.sleep(2 * provider.server.delay)  # the server may still be at what was interrupted
    provider.server.delay = 0.0
    provider.asked()
    assert judged(provider, run).exit_code == 0
    assert len(provider.asked()) == 6 - len(kept)
    assert kept.items() <= read_verdicts(run).items()


@pytest.mark.slow
def test_two_commands_may_judge_one_run_and_no_leaf_is_asked_twice(
    provider: Provider, run: Path, tmp_path: Path
) -> None:
    """They had one progress file, and each could drop the other's entry in judges.json."""
    going = threading.Event()

    def reply(request: dict[str, Any]) -> str:
        if request["model"] == "slow":
            going.wait(120)
        return provider._reply(request)

    provider.server.reply = reply
    configs = {name: tmp_path / name for name in ("slow", "quick")}
    for name, folder in configs.items():
        folder.mkdir()
        settings_file(folder, provider.server.url, model=name)

    def command(name: str) -> list[str]:
        config = str(configs[name] / "gta.toml")
        return ["--config", config, "score", str(run), "--judge", "local", "--no-preflight"]

    first = subprocess.Popen(
        [sys.executable, "-m", "gta_bench.cli", *command("slow")], stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 300
    while not provider.server.at_once:
        assert first.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    same = CliRunner().invoke(app, command("slow"))
    assert isinstance(same.exception, RunError)
    assert str(same.exception) == (
        f"Another command is asking openai-api/local/slow about {run}; `gta status` shows its "
        "progress. What it finishes is kept: run this command again after it."
    )
    other = CliRunner().invoke(app, command("quick"))
    assert other.exit_code == 1, other.output  # the first judge has no score yet
    assert "openai-api/local/quick: 6 leaves asked, 6 scored." in other.stderr
    shown = json.loads(CliRunner().invoke(app, ["status", str(run), "--json"]).stdout)
    assert (shown["state"], shown["judge"], shown["done"]) == (
        "running",
        "openai-api/local/slow",
        0,
    )
    going.set()
    _, said = first.communicate(timeout=120)
    assert first.returncode == 0, said
    assert "openai-api/local/slow: 6 leaves asked, 6 scored." in said
    assert provider.asked() == sorted(["cp1-1", "cp1-2", "cp1-3"] * 4)
    names = ["openai-api/local/quick", "openai-api/local/slow"]
    assert sorted(one.name for one in read_judges(run).judges) == names
    assert sorted(one.judge for one in read_workflow_scores(run).judges) == names
    assert len(read_verdicts(run)) == 12
    for name in names:
        progress = read_progress(progress_folder(run, name))
        assert progress is not None
        assert (progress.done, progress.units, progress.running) == (2, 2, 0)
