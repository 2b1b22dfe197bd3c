"""AgentCompass as documented, with its real package, two of its harnesses and a scripted model.

GTA_AGENTCOMPASS_PYTHON names an interpreter of an environment that has the plugin; without it one
is installed (several minutes, 900 MB). Codex is that of PATH, or is installed from npm.
"""

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.workflow import load_workflow
from gta_bench.metrics.reference import reference_steps
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from gta_bench.tape.reference import write_reference_tape
from tests.chat_server import chat_server
from tests.conftest import REPOSITORY
from tests.judging.builders import honest
from tests.judging.stored import settings_file
from tests.needs import require_programs
from tests.serving import running
from tests.slow.conftest import CODEX

pytestmark = pytest.mark.measure
PLUGIN = REPOSITORY / "plugins" / "agentcompass"
MINI = "mini-swe-agent==2.4.5"  # the version that AgentCompass asks for
HARNESSES = ("mini_swe_agent", "codex")
DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


class Call(NamedTuple):
    """A call of one of our tools."""

    tool: str
    arguments: Mapping[str, Any]


class Shell(NamedTuple):
    """A command of the harness's own shell."""

    command: str


# What the model does in a task, by the request; the last one is its answer.
Script = Mapping[str, Sequence[Call | Shell | str]]


@contextmanager
def scripted_server(script: Script) -> Iterator[str]:
    """A model that follows the script: chat for mini-SWE-agent, responses for Codex."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: Any) -> None:
            pass

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = request["messages"] if "messages" in request else request["input"]
            replies = sum(
                one.get("role") == "tool" or one.get("type") == "function_call_output"
                for one in said
            )
            text = json.dumps([one.get("content") for one in said], ensure_ascii=False)
            (steps,) = (
                steps
                for asked, steps in script.items()
                if json.dumps(asked, ensure_ascii=False)[1:-1] in text
            )
            step = steps[replies]
            if "messages" in request:
                self.answer("application/json", json.dumps(write_chat(step, replies)))
            else:
                self.answer("text/event-stream", write_events(step, replies))

        def answer(self, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with running(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"


def write_chat(step: Call | Shell | str, number: int) -> dict[str, Any]:
    """The step as a command of mini-SWE-agent, which has a shell alone."""
    match step:
        case Call():
            arguments = shlex.quote(json.dumps(step.arguments))
            command = f"python3 .gta/tools.py {step.tool} {arguments}"
        case Shell():
            command = step.command
        case _:
            command = f"echo {DONE}; printf %s {shlex.quote(step)}"
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    call = {"id": f"call{number}", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def write_events(step: Call | Shell | str, number: int) -> str:
    """The step as events of the Responses API; Codex offers the tools of MCP as a namespace."""
    item: dict[str, Any]
    match step:
        case Call():
            item = {"namespace": "mcp__gta", "name": step.tool}
            item |= {"type": "function_call", "arguments": json.dumps(step.arguments)}
        case Shell():
            item = {"name": "exec_command", "arguments": json.dumps({"cmd": step.command})}
            item |= {"type": "function_call"}
        case _:
            content = [{"type": "output_text", "text": step, "annotations": []}]
            item = {"type": "message", "role": "assistant", "content": content}
    item |= {"id": f"item{number}"} | ({} if isinstance(step, str) else {"call_id": f"c{number}"})
    usage = {
        **{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    whole: dict[str, Any] = {
        "id": "r",
        "object": "response",
        "status": "completed",
        "model": "scripted",
    }
    whole |= {"output": [item], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": whole | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `gta-agentcompass`, installed by the documented commands."""
    named = os.environ.get("GTA_AGENTCOMPASS_PYTHON")
    if named:
        return Path(named).parent
    place = tmp_path_factory.mktemp("agentcompass")
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for options in (["--upgrade", "pip"], [str(PLUGIN), MINI], ["--no-deps", str(REPOSITORY)]):
        subprocess.run([*pip, *options], check=True)
    return place / "bin"


@pytest.fixture(scope="module")
def path(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """PATH with the environment's programs and Codex."""
    if shutil.which("codex"):
        return f"{programs}:{os.environ['PATH']}"
    require_programs("npm")
    folder = tmp_path_factory.mktemp("npm")
    install = ["npm", "install", "--no-audit", "--no-fund", "--silent", f"@openai/codex@{CODEX}"]
    subprocess.run(install, cwd=folder, check=True, capture_output=True)
    return f"{programs}:{folder}/node_modules/.bin:{os.environ['PATH']}"


class Ran(NamedTuple):
    """A run of AgentCompass: its folder, its scores by task, and the one over all tasks."""

    folder: Path
    scores: Mapping[str, float]
    score: float


def run_compass(
    benchmark: str, harness: str, parameters: Mapping[str, Any], url: str, place: Path, path: str
) -> Ran:
    """Run the documented command; the model's server is at `url`."""
    started = time.monotonic()
    options = {"install_strategy": "preinstalled"} if harness == "codex" else {}
    ran = subprocess.run(
        [
            *("gta-agentcompass", "run", benchmark, harness, "scripted"),
            *("--benchmark-params", json.dumps(parameters)),
            *("--harness-params", json.dumps(options)),
            *("--model-base-url", url, "--model-api-key", "none"),
            *("--results-dir", str(place / harness), "--progress", "none"),
            *("--task-concurrency", "5"),
        ],
        env={**os.environ, "PATH": path, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    print(f"{benchmark} {harness}: {time.monotonic() - started:.1f} s")
    (metrics,) = (place / harness).rglob("metrics.json")
    series = json.loads(metrics.read_text(encoding="utf-8"))["series"]
    (score,) = (one["value"] for one in series if one["metric_id"] == "score")
    scores = {}
    for file in metrics.parent.rglob("task.json"):
        task = json.loads(file.read_text(encoding="utf-8"))["task_id"]
        result = json.loads((file.parent / "attempt-1" / "result.json").read_text(encoding="utf-8"))
        scores[task] = result["metrics"]["score"]
    return Ran(metrics.parent, scores, score)


def gta(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def write_atomic_steps(task: AtomicTask, flaw: str) -> list[Call | Shell | str]:
    """The reference, or less of it: a wrong answer, no calls, a call that cannot be made."""
    steps: list[Call | Shell | str] = []
    for step in reference_steps(task):
        if isinstance(step, AnswerStep):
            steps.append("It is not known." if flaw == "answer" else step.content)
        elif isinstance(step, CallStep) and flaw != "no calls":
            assert isinstance(step.arguments, dict)
            steps.append(Call(step.name, {} if flaw == "arguments" else step.arguments))
    return steps


def test_atomic_scores_are_those_of_gta_score(
    loopback: None, atomic_dir: Path, path: str, tmp_path: Path
) -> None:
    dataset = load_atomic(atomic_dir)
    write_reference_tape(dataset, tmp_path / "tape")
    tasks = list(dataset.tasks.values())[:5]
    flaws = ("", "", "answer", "no calls", "arguments")
    script = {
        task.request: write_atomic_steps(task, flaw)
        for task, flaw in zip(tasks, flaws, strict=True)
    }
    ids = [task.id for task in tasks]
    parameters = {"data": str(atomic_dir), "tape": str(tmp_path / "tape"), "sample_ids": ids}
    traces = []
    for harness in HARNESSES:
        with scripted_server(script) as url:
            ran = run_compass("gta_atomic", harness, parameters, url, tmp_path, path)
        out = tmp_path / f"run-{harness}"
        options = ("--dataset", "atomic", "--data", atomic_dir, "--tasks", ",".join(ids))
        gta("import", "agentcompass", ran.folder, *options, "--out", out)
        ours = json.loads(gta("score", out, "--json"))["metrics"]
        assert ran.score * 100 == pytest.approx(ours["ans_acc_i"])
        assert [ran.scores[task] for task in ids] == [1, 1, 0, 1, 1]
        system = read_manifest(out).spec.system
        assert (system.model, system.harness) == ("scripted", harness)
        units = read_units(log_folder(out), tuple(ids), 1, AtomicUnit).units
        traces.append([unit.trace for unit in units])
        for unit in units:
            made: list[Call | str] = []
            for step in unit.trace or ():
                if isinstance(step, CallStep):
                    assert isinstance(step.arguments, dict)
                    made.append(Call(step.name, step.arguments))
                elif isinstance(step, AnswerStep):
                    made.append(step.content)
            assert made == script[unit.task.request]
        refused = [one for one in units[4].trace or () if isinstance(one, CallStep)]
        assert refused
        assert all(one.error is not None for one in refused)
    assert traces[0] == traces[1]


@pytest.fixture
def tool_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """`gta tools serve`; its address."""
    monkeypatch.setenv("GTA_TOOLS_TOKEN", "token-of-a-test-0123456789-0123456789")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--port", str(port), "--token-env", "GTA_TOOLS_TOKEN"]
    command = [sys.executable, "-m", "gta_bench", "tools", "serve", *options]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(300):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def test_workflow_scores_are_those_of_the_same_files_by_another_road(
    loopback: None, tool_server: str, path: str, tmp_path: Path
) -> None:
    forged = tmp_path / "forged"
    families = ("clean", "schedule", "terms")
    gta("forge", *families, "--seed", "compass", "--count", "3", "--out", forged)
    tasks = list(load_workflow(forged).tasks.values())
    # Right work, wrong work and none.
    chosen = [
        next((forged / tasks[0].id / "gold").iterdir()),
        min((forged / tasks[1].id / "wrong").iterdir()),
        None,
    ]
    script: dict[str, list[Call | Shell | str]] = {}
    for task, work in zip(tasks, chosen, strict=True):
        calculator = Call("Calculator", {"expression": "6*7"})
        reader = Call("ReadCSV", {"csv_file": task.attachments[0].path})
        steps: list[Call | Shell | str] = [reader if "ReadCSV" in task.tools else calculator]
        finished = tmp_path / "finished" / task.id
        (finished / "files").mkdir(parents=True)
        (finished / "final.txt").write_text("Done.", encoding="utf-8")
        for file in sorted(work.iterdir()) if work is not None else ():
            if file.name != "wrong.toml":
                steps.append(Shell(f"cp {shlex.quote(str(file))} outputs/"))
                shutil.copy(file, finished / "files")
        script[task.request] = [*steps, "Done."]
    ids = ",".join(task.id for task in tasks)
    options = ("--dataset", "workflow", "--data", forged, "--tasks", ids)
    gta("import", "folder", tmp_path / "finished", *options, "--out", tmp_path / "other")
    other = read_scores(tmp_path / "other")
    parameters = {
        "data": str(forged),
        "server": tool_server,
        "gta": f"env PYTHONPATH={REPOSITORY / 'src'} {sys.executable} -m gta_bench",
    }
    for harness in HARNESSES:
        with scripted_server(script) as url:
            ran = run_compass("gta_workflow", harness, parameters, url, tmp_path, path)
        out = tmp_path / f"run-{harness}"
        gta("import", "agentcompass", ran.folder, *options, "--out", out)
        ours = read_scores(out)
        assert ours.judges[0].strict == other.judges[0].strict
        assert ran.score == pytest.approx(other.judges[0].strict.root_score)
        right, wrong, none = (ran.scores[task.id] for task in tasks)
        assert right == 10
        assert none < wrong < 10, ran.scores
        for unit in read_units(log_folder(out), tuple(ids.split(",")), 1, WorkflowUnit).units:
            assert unit.answer == "Done."
            (called,) = (one for one in script[unit.task.request] if isinstance(one, Call))
            assert [(one.tool, one.status) for one in unit.calls] == [(called.tool, "done")]
        print(harness, ran.scores, ran.score)


def read_scores(run: Path) -> WorkflowScores:
    return WorkflowScores.model_validate_json(gta("score", run, "--json"))


def test_a_judge_scores_what_a_harness_wrote_without_our_tools(
    loopback: None, workflow_dir: Path, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = next(iter(load_workflow(workflow_dir).tasks.values()))
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    write = Shell("echo '# Report' > outputs/report.md; test ! -e .mcp.json")
    with chat_server(honest) as judge, scripted_server({task.request: [write, "Done."]}) as url:
        config = settings_file(tmp_path, judge.url)
        command = f"env PYTHONPATH={REPOSITORY / 'src'} {sys.executable} -m gta_bench"
        parameters = {
            "data": str(workflow_dir),
            "judge": "local",
            "gta": f"{command} --config {config}",
            "sample_ids": [task.id],
        }
        ran = run_compass("gta_workflow", "mini_swe_agent", parameters, url, tmp_path, path)
    assert ran.scores == {task.id: 8.0}
    (stored,) = ran.folder.rglob("attempt.json")
    assert (stored.parent / "files" / "report.md").read_text(encoding="utf-8") == "# Report\n"
