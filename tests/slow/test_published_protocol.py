"""`react-upstream` with lagent 0.2.4 installed, beside what lagent's own protocol class renders."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import GenerateConfig, Model, get_model

import gta_bench
from gta_bench.agents import published
from gta_bench.datasets.atomic import load_atomic
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, UserTurn
from gta_bench.records.tools import ToolSpec
from gta_bench.settings import DataSettings, ScoringSettings, Settings
from gta_bench.tools.catalog import load_tool
from tests.agents.stand_ins import FILES, LAST, keep_prompts
from tests.builders import atomic_task, parameter, tool, write_atomic
from tests.chat_server import chat_server

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[1] / "agents" / "lagent_rendering.py"
TYPES = {"int": "NUMBER", "float": "FLOAT", "bool": "BOOLEAN"}
CALL = 'Thought: Reckon.\nAction: Calculator\nAction Input: {"expression": "6*7"}'
Message = dict[str, str]


@pytest.fixture(scope="module")
def lagent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, and the two small ones that its protocol class imports."""
    folder = tmp_path_factory.mktemp("lagent")
    packages = [f"lagent=={published.LAGENT}", "phx-class-registry==4.1.0", "griffe==0.49.0"]
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*command, *packages], check=True)
    return folder


class Recorder:
    """A model server's replies, and every request that it got."""

    def __init__(self, replies: Sequence[str] = ("Thought: Done.\nFinal Answer: 7",)) -> None:
        self.replies = replies
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: dict[str, Any]) -> str:
        self.requests.append(request)
        said = sum(message["role"] == "assistant" for message in request["messages"])
        return str(self.replies[min(said, len(self.replies) - 1)])


@pytest.fixture
def settings(
    lagent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: None
) -> Iterator[Settings]:
    """Settings under which all published texts are there; those of the repository are stand-ins."""
    monkeypatch.syspath_prepend(str(lagent))
    folder = keep_prompts(tmp_path / "prompts", monkeypatch)
    yield Settings(
        data=DataSettings(prompts=str(folder)), scoring=ScoringSettings(similarity="exact-or-half")
    )


def model(url: str, **config: Any) -> Model:
    options = GenerateConfig(max_retries=0, **config)
    return get_model(
        "openai-api/local/m", config=options, base_url=url, api_key="none", memoize=False
    )


def described(spec: ToolSpec) -> dict[str, Any]:
    """A tool as AgentLego hands it to lagent."""
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": [
            {
                "name": one.name,
                "description": one.description,
                "type": TYPES.get(one.type, "STRING"),
            }
            for one in spec.inputs
        ],
        "required": [one.name for one in spec.inputs if not one.optional],
    }


def rendered(lagent: Path, asked: Sequence[Mapping[str, Any]]) -> list[list[Message]]:
    ran = subprocess.run(
        [sys.executable, str(SCRIPT)],
        input=json.dumps(asked),
        env={"PYTHONPATH": str(lagent)},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[Message]] = json.loads(ran.stdout)
    return found


def files(task: AtomicTask, role: str) -> list[Message]:
    paths = ", ".join(f"`{item.path}`" for item in task.attachments)
    return [{"role": role, "content": f"{FILES}{paths}"}] if paths else []


def step_prefixes(task: AtomicTask) -> Iterator[list[Message]]:
    """The published history before each assistant turn, as upstream-behaviour describes it."""
    steps = files(task, "system")
    places = [n for n, turn in enumerate(task.dialogue) if isinstance(turn, CallTurn | AnswerTurn)]
    for place, turn in enumerate(task.dialogue):
        if place in places:
            last = [{"role": "user", "content": LAST}] if place == places[-1] else []
            yield [*steps, *last]
        steps.append(shown(turn))


def shown(turn: object) -> Message:
    if isinstance(turn, UserTurn):
        return {"role": "user", "content": turn.content}
    if isinstance(turn, CallTurn):
        arguments = json.dumps(dict(turn.call.arguments))
        text = f"Action:{turn.call.name}\nAction Input:{arguments}"
        return {"role": "assistant", "content": text}
    if isinstance(turn, ReplyTurn):
        text = turn.content if turn.type == "text" else f"[{turn.type}]({turn.content})"
        return {"role": "system", "content": text}
    assert isinstance(turn, AnswerTurn)
    return {"role": "assistant", "content": turn.content}


def sent(recorder: Recorder) -> list[list[Message]]:
    return [
        [{"role": one["role"], "content": one["content"]} for one in request["messages"]]
        for request in recorder.requests
    ]


def test_step_mode_sends_what_lagent_renders_for_the_same_history(
    lagent: Path, settings: Settings, atomic_dir: Path, tmp_path: Path
) -> None:
    dataset = load_atomic(atomic_dir)
    chosen = [task for task in dataset.tasks.values() if len(task.steps) >= 3][:5]
    recorder = Recorder()
    with chat_server(recorder) as server:
        gta_bench.run(
            "atomic",
            tmp_path / "run",
            model=model(server.url),
            agent="react-upstream",
            mode="step",
            data=atomic_dir,
            tasks=",".join(task.id for task in chosen),
            settings=settings,
            preflight=False,
        )
    asked = [
        {
            "tools": [described(dataset.tools[name]) for name in task.offered],
            "steps": prefix,
            "force_stop": False,
        }
        for task in chosen
        for prefix in step_prefixes(task)
    ]
    assert len(asked) >= 15
    assert sorted(map(repr, sent(recorder))) == sorted(map(repr, rendered(lagent, asked)))
    assert {request["temperature"] for request in recorder.requests} == {0.7}
    assert {request["max_tokens"] for request in recorder.requests} == {512}
    assert {request["n"] for request in recorder.requests} == {1}
    assert {request.get("stop") for request in recorder.requests} == {None}
    manifest = gta_bench.manifest(tmp_path / "run")
    assert manifest.spec.wording == "published"
    assert (manifest.spec.system.temperature, manifest.spec.system.max_tokens) == (0.7, 512)


def test_end_to_end_sends_what_lagent_renders_for_the_same_history(
    lagent: Path, settings: Settings, tmp_path: Path
) -> None:
    calculator = tool("Calculator", parameter("expression"))
    questions = {str(n): f"How much is {n} times seven?" for n in range(5)}
    tasks = {
        name: atomic_task(
            tools=[calculator],
            dialogs=[
                {"role": "user", "content": question},
                {"role": "assistant", "content": "42"},
            ],
        )
        for name, question in questions.items()
    }
    data = write_atomic(tmp_path / "data", tasks, {"Calculator": calculator})
    dataset = load_atomic(data)
    recorder = Recorder((CALL, CALL, "Thought: Done.\nFinal Answer: 42"))
    with chat_server(recorder) as server:
        gta_bench.run(
            "atomic",
            tmp_path / "run",
            model=model(server.url),
            agent="react-upstream",
            data=data,
            max_turns=3,
            settings=settings,
            preflight=False,
        )
    asked = []
    for name, question in questions.items():
        steps: list[Any] = files(dataset.tasks[name], "user")
        steps.append({"role": "user", "content": question})
        for turn in range(3):
            tools = [described(load_tool("Calculator").spec())]
            asked.append({"tools": tools, "steps": list(steps), "force_stop": turn == 2})
            steps.append({"role": "assistant", "content": CALL})
            steps.append({"result": [{"type": "text", "content": "42"}]})
    assert len(asked) == 15
    assert sorted(map(repr, sent(recorder))) == sorted(map(repr, rendered(lagent, asked)))
