"""What is asked before a run, what keeps it from starting, and that nothing is written by then."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gta_bench import api
from gta_bench.cli import app
from gta_bench.errors import EnvironmentProblem
from gta_bench.harnesses.contract import REQUEST
from gta_bench.records.units import WorkflowUnit
from gta_bench.running import preflight
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from tests.builders import atomic_task, workflow_task, write_atomic, write_workflow
from tests.chat_server import PREFLIGHT, Behavior, ChatServer, chat_server
from tests.judging.builders import honest
from tests.needs import needs

TABLE = """[models.{name}]
model = "openai-api/local/{model}"
base_url = "{url}"
key_env = "GTA_TEST_KEY_A"
"""


@pytest.fixture
def server(loopback: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GTA_TEST_KEY_A", "right")
    write_atomic(tmp_path / "atomic", {str(number): atomic_task() for number in range(3)})
    write_workflow(tmp_path / "workflow", {str(number): workflow_task() for number in range(2)})
    with chat_server() as server:
        write_settings(server.url)
        yield server


def write_settings(url: str, **models: str) -> None:
    named = {"good": url, "strict": url, **models}
    tables = [TABLE.format(name=name, model=name, url=at) for name, at in named.items()]
    text = '[scoring]\nsimilarity = "exact-or-half"\n[budget]\nmax_retries = 0\n'
    Path("gta.toml").write_text(text + "".join(tables), encoding="utf-8")


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def step(*options: str) -> Result:
    return gta("run", "atomic", "--mode", "step", "--data", "atomic", "--out", "run", *options)


def deliver(*options: str) -> Result:
    return gta("run", "workflow", "--data", "workflow", "--out", "run", *options)


def refused(result: Result) -> str:
    assert isinstance(result.exception, EnvironmentProblem), result.output
    assert not Path("run").exists()
    return str(result.exception)


def test_a_model_is_asked_once_and_a_finished_run_asks_nobody(server: ChatServer) -> None:
    assert step("--model", "good").exit_code == 0
    assert (server.preflights, server.asked) == (1, 6)
    assert step("--model", "good").exit_code == 0
    assert (server.preflights, server.asked) == (1, 6)


def test_model_and_judges_are_asked_once_each_and_none_that_has_judged_all(
    server: ChatServer,
) -> None:
    server.reply = lambda request: honest(request) if "leaf:" in str(request) else "Done."
    judged = ("--judge", "good", "--judge", "strict")
    result = deliver("--model", "good", *judged)
    assert result.exit_code == 0, result.output
    assert server.preflights == 3
    assert deliver("--model", "good", *judged).exit_code == 0
    assert gta("score", "run", "--judge", "good").exit_code == 0
    assert server.preflights == 3
    assert gta("score", "run", "--judge", "good", "--repeats", "2").exit_code == 0
    assert server.preflights == 4


def test_nobody_is_asked_where_it_is_skipped(server: ChatServer) -> None:
    server.preflight = "hang"
    assert step("--model", "good", "--no-preflight").exit_code == 0
    assert (server.preflights, server.asked) == (0, 6)


def test_python_asks_too_and_may_skip_it(server: ChatServer) -> None:
    server.key = "another"
    with pytest.raises(EnvironmentProblem, match="rejects the key"):
        api.run("atomic", "run", model="good", mode="step", data="atomic")
    assert not Path("run").exists()
    api.run("atomic", "run", model="good", mode="step", data="atomic", preflight=False)
    assert server.preflights == 1


@pytest.mark.parametrize(
    ("behavior", "said"),
    [
        ("hang", "did not answer within 0.5 s. Wait until the server is ready"),
        ("500", "rejects a short request: InternalServerError: Error code: 500"),
        ("cut", "cannot be reached"),
        ("garbage", "sent a reply that cannot be read"),
    ],
)
def test_a_server_that_gives_no_reply_is_named(
    server: ChatServer, behavior: Behavior, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "PAUSE", 0.0)
    if behavior == "hang":
        monkeypatch.setattr(preflight, "LONGEST", 0.5)
    server.preflight = behavior
    words = refused(step("--model", "good"))
    assert words.startswith(f"Model 'openai-api/local/good' at {server.url} {said}"), words


def test_a_slow_server_is_named_and_waited_for(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "SECONDS", 0.0)
    result = step("--model", "good")
    assert result.exit_code == 0
    slow = f"Model 'openai-api/local/good' at {server.url} has not answered after 0 s; waiting"
    assert slow in result.stderr


def test_a_server_that_is_busy_is_asked_by_the_run(server: ChatServer) -> None:
    server.preflight = "429"
    assert step("--model", "good").exit_code == 0


def count_words(*parts: str) -> Callable[[dict[str, Any], dict[str, Any]], tuple[int, int]]:
    """A usage that counts the words of these parts of a request, as a prompt has them."""
    return lambda request, _: (
        sum(len(json.dumps(request.get(part)).split()) for part in parts),
        1,
    )


def test_a_server_that_does_not_show_the_tools_is_refused_for_native_calls(
    server: ChatServer,
) -> None:
    """llama.cpp leaves tools out where the chat template has no place for them (SmolLM2).

    The model answered without any tool, and got a score for it.
    """
    server.usage = count_words("messages")
    words = refused(step("--model", "good"))
    name = f"Model 'openai-api/local/good' at {server.url}"
    assert words.startswith(f"{name} is not shown its tools: the server leaves them out of the")
    assert "use `--agent react`" in words
    assert step("--model", "good", "--agent", "react").exit_code == 0


@pytest.mark.parametrize("usage", [count_words("messages", "tools"), count_words()])
def test_a_server_that_shows_the_tools_or_does_not_count_may_be_measured(
    server: ChatServer, usage: Callable[[dict[str, Any], dict[str, Any]], tuple[int, int]]
) -> None:
    server.usage = usage
    assert step("--model", "good").exit_code == 0


def test_a_model_that_calls_a_tool_may_be_measured_whatever_is_counted(server: ChatServer) -> None:
    """A gateway that counts the messages alone was refused, although the model called the tool."""
    server.usage = count_words("messages")
    server.calls_first_tool = True
    assert step("--model", "good").exit_code == 0


@pytest.mark.parametrize(
    "refusal",
    [
        (400, '"auto" tool choice requires --enable-auto-tool-choice'),  # vLLM
        (500, "tools param requires --jinja flag"),  # older servers of llama.cpp
    ],
)
def test_a_server_that_takes_no_tools_is_refused_for_native_calls_only(
    server: ChatServer, refusal: tuple[int, str]
) -> None:
    """Servers take none without an option, which was a failed unit of every task."""
    server.tools_refusal = refusal
    words = refused(step("--model", "good"))
    assert "rejects a request with tools: " in words
    assert f"Error code: {refusal[0]}" in words and refusal[1] in words
    assert step("--model", "good", "--agent", "react").exit_code == 0


def test_all_are_asked_at_once_and_the_first_that_fails_is_named(server: ChatServer) -> None:
    write_settings(server.url, dead="http://127.0.0.1:9/v1")
    assert "Judge 'openai-api/local/dead' at" in refused(
        deliver("--model", "good", "--judge", "dead")
    )
    assert (
        "Model 'openai-api/local/dead' at http://127.0.0.1:9/v1 cannot be reached (connection"
        in (refused(deliver("--model", "dead", "--judge", "dead")))
    )
    assert server.asked == 0


def test_a_judge_that_cannot_see_is_named_unless_it_is_shown_no_picture(server: ChatServer) -> None:
    server.sees = False
    server.reply = honest
    words = refused(deliver("--agent", "silent", "--judge", "good"))
    assert "does not accept images" in words and "`gta score --no-pictures`" in words
    assert deliver("--agent", "silent").exit_code == 0
    assert gta("score", "run", "--judge", "good", "--no-pictures").exit_code == 0


def test_the_picture_is_one_that_other_programs_can_read() -> None:
    image = pytest.importorskip("PIL.Image")
    from base64 import b64decode
    from io import BytesIO

    data = b64decode(preflight._picture().partition(",")[2])
    with image.open(BytesIO(data)) as opened:
        assert (opened.size, opened.getpixel((5, 5))) == ((64, 64), 128)


def test_scripts_of_this_process_are_not_asked(server: ChatServer) -> None:
    assert deliver("--model", "mockllm/model", "--judge", "scripted/honest").exit_code in (0, 1)
    assert server.preflights == 0


def test_what_is_asked_is_what_test_servers_know() -> None:
    assert REQUEST == PREFLIGHT


HARNESS = """import json, pathlib, sys
task, workspace, count = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2]), sys.argv[3]
(workspace / "outputs" / "report.md").write_text(task["id"])
print("Done " + task["id"])
"""


@needs("bwrap")
def test_the_first_task_of_a_harness_is_the_runs_own(server: ChatServer) -> None:
    Path("agent.py").write_text(HARNESS, encoding="utf-8")
    harness = "python3 agent.py {task_file} {workspace} x"
    result = deliver("--harness", harness, "--epochs", "2")
    assert result.exit_code == 0, result.output
    spec = read_manifest(Path("run")).spec
    found = read_units(log_folder(Path("run")), spec.tasks, spec.epochs, WorkflowUnit)
    assert [unit.failure for unit in found.units] == [None] * 4
    assert [unit.answer for unit in found.units] == ["Done 0", "Done 0", "Done 1", "Done 1"]
    assert Path("run/files/0/outputs/report.md").read_text(encoding="utf-8") == "0"
    logs = list(Path("run/logs").glob("*.eval"))
    assert len(logs) == 1


@needs("bwrap")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("python3 gone.py {task_file}", "can't open file"),
        ("false", "The harness ended with status 1. It printed: nothing."),
        ("true", "It exited with status 0, and printed nothing or left an empty final.txt."),
    ],
)
def test_a_harness_that_never_starts_is_named_with_its_last_words(
    server: ChatServer, command: str, said: str
) -> None:
    words = refused(deliver("--harness", command, "--judge", "good"))
    assert f"Harness {command!r} did nothing on its first task '0'" in words
    assert said in words
    assert "\n" not in words
    assert server.asked == 0
    assert deliver("--harness", command, "--no-preflight").exit_code == 0


def test_what_keeps_a_folder_from_being_written_is_said_before_anybody_is_asked(
    server: ChatServer,
) -> None:
    Path("file").write_text("No folder.", encoding="utf-8")
    result = step("--model", "good", "--out", "file/run")
    assert isinstance(result.exception, OSError)
    assert server.preflights == 0
    result = step("--model", "good", "--out", "/proc/no/run")
    assert isinstance(result.exception, OSError)
    assert server.preflights == 0


def test_https_to_a_server_that_speaks_http_is_named(server: ChatServer) -> None:
    write_settings(server.url.replace("http://", "https://"))
    assert "does not use https" in refused(step("--model", "good"))


def test_the_request_says_nothing_of_the_task(server: ChatServer) -> None:
    asked: list[dict[str, Any]] = []
    server.reply = lambda request: asked.append(request) or "It is 7."  # type: ignore[func-returns-value]
    step("--model", "good")
    assert all(PREFLIGHT not in json.dumps(request) for request in asked)
