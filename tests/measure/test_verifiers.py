"""`vf-eval` as documented, with the real verifiers and a scripted model that knows the reference.

GTA_VERIFIERS_PYTHON names an interpreter of an environment that has it; without it one is installed
(a minute, 600 MB). The chat harness of verifiers installs its own packages with uv.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.metrics.reference import reference_steps
from gta_bench.records.atomic import AtomicTask
from gta_bench.tape.reference import write_reference_tape
from tests.conftest import REPOSITORY
from tests.serving import running

PLUGIN = REPOSITORY / "plugins" / "verifiers"
TASKS = 3


@contextmanager
def gold_server(tasks: list[AtomicTask]) -> Iterator[str]:
    """A streaming chat server that answers with the reference's next step."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            delta = choose_delta(tasks, request["messages"])
            end = "tool_calls" if "tool_calls" in delta else "stop"
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for part, reason in (({"role": "assistant", **delta}, None), ({}, end)):
                choice = {"index": 0, "delta": part, "finish_reason": reason}
                chunk = {
                    "id": "1",
                    "object": "chat.completion.chunk",
                    "created": 1,
                    "model": "scripted",
                    "choices": [choice],
                }
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with running(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"


def choose_delta(tasks: list[AtomicTask], messages: list[dict[str, Any]]) -> dict[str, Any]:
    asked = next(str(one["content"]) for one in messages if one["role"] == "user")
    task = next(one for one in tasks if one.request in asked)
    done = sum(one["role"] == "assistant" for one in messages)
    step = reference_steps(task)[done]
    if step.step == "answer":
        return {"content": step.content}
    function = {"name": step.name, "arguments": json.dumps(step.arguments)}
    call = {"index": 0, "id": f"call{done}", "type": "function", "function": function}
    return {"tool_calls": [call]}


def install(folder: Path) -> Path:
    """The documented commands."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--upgrade", "pip"], check=True)
    subprocess.run([*pip, str(PLUGIN)], check=True)
    subprocess.run([*pip, "--no-deps", str(REPOSITORY)], check=True)
    return folder / "bin"


@pytest.mark.measure
def test_vf_eval_gives_the_reference_one(loopback: None, atomic_dir: Path, tmp_path: Path) -> None:
    python = os.environ.get("GTA_VERIFIERS_PYTHON")
    programs = Path(python).parent if python else install(tmp_path / "vf")
    dataset = load_atomic(atomic_dir)
    write_reference_tape(dataset, tmp_path / "tape")
    command = [
        *(str(programs / "vf-eval"), "gta-bench-verifiers", "-n", str(TASKS)),
        *("--env.taskset.data", str(atomic_dir)),
        *("--env.taskset.task.tape", str(tmp_path / "tape")),
        *("--env.taskset.task.reward", "outcome"),
        *("--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess"),
        *("--env.agent.max-turns", "10"),
        *("-m", "scripted", "--client.api-key-var", "MODEL_KEY"),
        *("--no-push", "--no-rich", "-o", str(tmp_path / "outputs")),
    ]
    path = f"{programs}:{os.environ['PATH']}"
    with gold_server(list(dataset.tasks.values())[:TASKS]) as url:
        ran = subprocess.run(
            [*command, "--client.base-url", url],
            env={**os.environ, "PATH": path, "MODEL_KEY": "none"},
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
    print(ran.stderr[-3000:])
    assert ran.returncode == 0, ran.stderr[-3000:]
    (file,) = (tmp_path / "outputs").rglob("traces.jsonl")
    episodes = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    traces = [trace for episode in episodes for trace in episode["traces"]]
    assert [trace["rewards"]["reward"]["score"] for trace in traces] == [1.0] * TASKS
    for trace in traces:
        kinds = ("gta_step", "gta_outcome", "gta_tool-use")
        assert [trace["metrics"][kind] for kind in kinds] == pytest.approx([1.0] * 3)
        assert all(call["error"] is None for call in trace["info"]["gta_calls"])
