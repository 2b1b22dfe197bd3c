"""Whole runs with remote tools: the same as with local ones, whatever happens to the server."""

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai import Task, task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ModelOutput,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import mcp_server_http

from gta_bench.cli import app
from gta_bench.datasets.atomic import load_atomic
from gta_bench.records.atomic import PLACEHOLDER_IMAGE, AtomicTask
from gta_bench.records.dialogue import CallTurn
from gta_bench.records.steps import CallStep, ReplyStep
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.logs import read_units
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.equipment import close_equipment, open_equipment
from gta_bench.tools.toolbox import Toolbox
from tests.builders import atomic_task, call, parameter, reply, tool, write_atomic
from tests.conftest import REPOSITORY
from tests.served.agentlego_server import agentlego_server
from tests.served.support import TOKEN, Served, tool_server
from tests.tasks.test_atomic_step import native_call, said

pytestmark = pytest.mark.usefixtures("loopback")
CALCULATOR = tool("Calculator", parameter("expression"))
DIALOGS = [
    {"role": "user", "content": "What is 6 times 7?"},
    call("Calculator", {"expression": "6*7"}),
    reply("Calculator", "42"),
    {"role": "assistant", "content": "It is 42."},
]
TASKS = 8


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GTA_TOOLS_TOKEN", TOKEN)
    answer = {"whitelist": [["42"]], "blacklist": None}
    entry = atomic_task(tools=[CALCULATOR], dialogs=DIALOGS, gt_answer=answer)
    tasks = {str(number): entry for number in range(TASKS)}
    return write_atomic(tmp_path / "data", tasks, toolmeta=[CALCULATOR])


def run(data: Path, out: Path, *more: str) -> Result:
    fixed = ["run", "atomic", "--mode", "end-to-end", "--agent", "gold", "--data", str(data)]
    fixed += ["--similarity", "exact-or-half", "--out", str(out)]
    return CliRunner().invoke(app, [*fixed, *more])


def units(out: Path, tasks: list[str]) -> dict[str, AtomicUnit]:
    return {unit.task.id: unit for unit in read_units(out / "logs", tasks, 1, AtomicUnit).units}


def traces(out: Path, tasks: list[str]) -> dict[str, Any]:
    return {name: unit.trace for name, unit in units(out, tasks).items()}


@pytest.mark.parametrize("protocol", ["http", "mcp"])
def test_a_run_names_its_server_but_not_the_token(
    data: Path, tmp_path: Path, protocol: str
) -> None:
    prefix = "" if protocol == "http" else "mcp+"
    box = Toolbox(Equipment(Settings()), ["Calculator"])
    with tool_server(box, tmp_path / "served") as served:
        result = run(data, tmp_path / "remote", "--tools", f"{prefix}{served.url}")
        assert result.exit_code == 0, result.output
        with served.client() as client:
            assert not list((tmp_path / "served").glob("*/spaces/*"))  # closed, each of them
            assert client.get("/readyz").json() == {"tools": 1}
    assert run(data, tmp_path / "local").exit_code == 0
    names = [str(number) for number in range(TASKS)]
    assert traces(tmp_path / "remote", names) == traces(tmp_path / "local", names)
    manifest = (tmp_path / "remote" / "run.json").read_text(encoding="utf-8")
    assert json.loads(manifest)["tools"] == f"{prefix}{served.url}"
    assert json.loads((tmp_path / "local" / "run.json").read_text())["tools"] == "local"
    assert TOKEN not in manifest
    again = run(data, tmp_path / "remote")
    assert f"another setting (tools: {prefix}{served.url} there, local here)" in str(
        again.exception
    )


def test_a_run_can_use_a_server_in_agentlegos_format(data: Path, tmp_path: Path) -> None:
    with agentlego_server() as lego:
        result = run(data, tmp_path / "lego", "--tools", f"agentlego+{lego.url}")
        assert result.exit_code == 0, result.output
        assert len(lego.received) == TASKS
    (first, *_) = units(tmp_path / "lego", ["0"]).values()
    assert first.calls[0].backend.startswith("AgentLego at 127.0.0.1")


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("ftp://x", "is neither `local` nor an address"),
        ("http://user:secret@127.0.0.1:9", "set the token in GTA_TOOLS_TOKEN"),
        ("http://127.0.0.1:9/?token=x", "set the token in GTA_TOOLS_TOKEN"),
    ],
)
def test_an_address_that_cannot_be_used_is_met_by_one_line(
    data: Path, tmp_path: Path, tools: str, said: str
) -> None:
    assert said in str(run(data, tmp_path / "x", "--tools", tools).exception)


def test_step_mode_calls_no_tool(data: Path, tmp_path: Path) -> None:
    more = ["--mode", "step", "--tools", "http://127.0.0.1:9"]
    assert "need --mode end-to-end" in str(run(data, tmp_path / "x", *more).exception)


@contextmanager
def server_process(port: int, *, lives: int | None = None) -> Iterator[int]:
    """`gta tools serve` as a program; one with `lives` dies after so many calls."""
    program = ["gta_bench.cli"] if lives is None else ["tests.served.mortal_server", str(lives)]
    command = [sys.executable, "-m", *program, "tools", "serve", "--port", str(port)]
    command += ["--token-env", "GTA_TOOLS_TOKEN", "--tool", "Calculator"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
    assert process.stderr is not None
    first = process.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:(\d+)", first)
    assert found is not None, first
    drain = threading.Thread(target=process.stderr.read)
    drain.start()
    try:
        yield int(found[1])
    finally:
        process.terminate()
        process.wait(30)
        drain.join()
        process.stderr.close()


@pytest.mark.slow
def test_a_server_that_is_killed_leaves_units_unscored_and_the_run_completes_when_it_is_back(
    data: Path, tmp_path: Path
) -> None:
    out, names = tmp_path / "run", [str(number) for number in range(TASKS)]
    with server_process(0, lives=3) as port:
        more = ["--tools", f"http://127.0.0.1:{port}", "--max-connections", str(TASKS)]
        broken = run(data, out, *more)
    assert broken.exit_code == 1, broken.output
    scores = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    assert scores["n"] == 3
    failed = [unit for unit in units(out, names).values() if unit.failure is not None]
    assert failed
    assert all("tool server" in (unit.failure or "") for unit in failed)
    assert all(unit.trace is None for unit in failed)
    refused = run(data, out, *more)
    assert "does not answer" in str(refused.exception)
    with server_process(port):
        assert run(data, out, *more).exit_code == 0
    scores = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    assert scores["n"] == TASKS
    assert scores["strict"]["ans_acc"] == 100


# Formulas, equations, plots, sums; then pictures that are read, marked and written on.
TWENTY = ["12", "13", "64", "65", "66", "67", "68", "69", "70", "71", "167", "168", "173", "174"]
TWENTY += ["0", "1", "3", "16", "150", "151"]


@pytest.fixture(scope="module")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of the real tools, with a jail."""
    equipment = asyncio.run(open_equipment(Settings()))
    try:
        with tool_server(Toolbox(equipment), tmp_path_factory.mktemp("bench")) as served:
            yield served
    finally:
        close_equipment(equipment)


@pytest.fixture(scope="module")
def local_units(
    atomic_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, AtomicUnit]:
    out = tmp_path_factory.mktemp("local") / "run"
    result = run(atomic_dir, out, "--tasks", ",".join(TWENTY))
    assert result.exit_code == 0, result.output
    return units(out, TWENTY)


@pytest.mark.measure
def test_twenty_tasks_with_remote_tools_are_those_with_local_ones(
    workbench: Served,
    atomic_dir: Path,
    local_units: Mapping[str, AtomicUnit],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GTA_TOOLS_TOKEN", TOKEN)
    more = ["--tasks", ",".join(TWENTY), "--tools", workbench.url]
    assert run(atomic_dir, tmp_path / "run", *more).exit_code == 0
    found = units(tmp_path / "run", TWENTY)
    assert {name: unit.trace for name, unit in found.items()} == {
        name: unit.trace for name, unit in local_units.items()
    }


@pytest.mark.measure
def test_inspects_own_mcp_client_gives_the_same_twenty_tasks(
    workbench: Served, atomic_dir: Path, local_units: Mapping[str, AtomicUnit], tmp_path: Path
) -> None:
    """A plain Inspect task: its model repeats the reference, its tools are `mcp_server_http`'s."""
    dataset = load_atomic(atomic_dir)
    entries = {name: dataset.tasks[name] for name in TWENTY}
    model = get_model("mockllm/model", custom_outputs=scripted(entries), memoize=False)
    log = inspect_eval(
        over_mcp(workbench, entries, atomic_dir),
        model=model,
        log_dir=str(tmp_path),
        display="none",
        log_realtime=False,
        max_samples=2,
    )[0]
    assert log.status == "success", log.error
    assert log.samples is not None
    seen = {str(sample.id): replies(sample.messages) for sample in log.samples}
    assert seen == {name: expected(unit) for name, unit in local_units.items()}
    assert sum(len(said) for said in seen.values()) > 40


def scripted(entries: Mapping[str, AtomicTask]) -> Callable[..., ModelOutput]:
    """A model that repeats the reference; it knows the task by the first message."""

    def reply(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        entry = entries[messages[0].text.partition("\n")[0]]
        turn = sum(isinstance(message, ChatMessageAssistant) for message in messages)
        if turn >= len(entry.steps) or not isinstance(entry.steps[turn], CallTurn):
            return said("done")
        step = entry.steps[turn]
        assert isinstance(step, CallTurn)
        made = re.findall(r"\[image\]\((outputs/[^)]+)\)", "\n".join(m.text for m in messages))
        arguments = {
            key: made[-1] if value == PLACEHOLDER_IMAGE and made else value
            for key, value in step.call.arguments.items()
        }
        return native_call(step.call.name, arguments)

    return reply


@task
def over_mcp(served: Served, entries: Mapping[str, AtomicTask], root: Path) -> Task:
    samples = [
        Sample(id=entry.id, input=f"{entry.id}\n{entry.request}") for entry in entries.values()
    ]
    return Task(dataset=MemoryDataset(samples), solver=with_mcp(served, entries, root))


@solver
def with_mcp(served: Served, entries: Mapping[str, AtomicTask], root: Path) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = entries[str(state.sample_id)]
        files = {item.path: (root / item.source).read_bytes() for item in entry.attachments}
        space = served.open(files)
        server = mcp_server_http(url=f"{served.url}{space.mcp}", authorization=space.token)
        async with server:
            state.tools = [*await server.tools()]
            return await generate(state, tool_calls="loop")

    return solve


def replies(messages: list[ChatMessage]) -> list[str]:
    """What tools said, without the links that stand after it."""
    return [
        message.error.message
        if message.error is not None
        else re.sub(r"`outputs/[^`]*` \(artefact://\w+\)", "", message.text).strip()
        for message in messages
        if isinstance(message, ChatMessageTool)
    ]


def expected(unit: AtomicUnit) -> list[str]:
    texts = []
    for step, after in zip(unit.trace or (), (unit.trace or ())[1:], strict=False):
        if isinstance(step, CallStep) and isinstance(after, ReplyStep):
            parts = [
                part.content if part.type == "text" else f"[{part.type}]({part.content})"
                for part in after.parts
            ]
            texts.append(step.error.message if step.error is not None else "\n".join(parts).strip())
    return texts
