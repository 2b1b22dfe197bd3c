"""The taskset in an environment of its own, with the real `verifiers`.

GTA_VERIFIERS_PYTHON names an interpreter that has it; without it one is installed (560 MB).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PLUGIN = REPOSITORY / "plugins" / "verifiers"
SCRIPT = """
import asyncio, json, sys
import verifiers.v1 as vf
from verifiers.v1.trace import AgentInfo, TraceTask
from gta_bench.metrics.reference import reference_steps
from gta_bench_verifiers import GTAConfig, GTATaskset

def gold(task):
    for number, step in enumerate(reference_steps(task)):
        if step.step == "call":
            arguments = json.dumps(step.arguments)
            call = vf.ToolCall(id=str(number), name=step.name, arguments=arguments)
            yield vf.AssistantMessage(tool_calls=[call])
        else:
            yield vf.AssistantMessage(content=step.content)

def trace(task, messages):
    said = [vf.UserMessage(content=task.data.prompt), *messages]
    nodes = [
        vf.MessageNode(parent=place - 1 if place else None, message=message, sampled=place > 0)
        for place, message in enumerate(said)
    ]
    agent = AgentInfo(config=vf.AgentConfig())
    return vf.Trace(task=TraceTask(type="GTATask", data=task.data), agent=agent, nodes=nodes)

async def rewards():
    tasks = list(GTATaskset(GTAConfig(data=sys.argv[1], similarity="exact-or-half")))
    best = [await task.steps(trace(task, gold(task.data.record))) for task in tasks]
    none = [await task.steps(trace(task, [vf.AssistantMessage(content="")])) for task in tasks]
    broken = vf.ToolCall(id="1", name="OCR", arguments="{")
    bad = await tasks[0].steps(trace(tasks[0], [vf.AssistantMessage(tool_calls=[broken])]))
    print(json.dumps({"best": best, "none": none, "bad": bad}))

asyncio.run(rewards())
"""


@pytest.mark.measure
def test_gold_is_worth_one_and_silence_nothing(atomic_dir: Path, tmp_path: Path) -> None:
    python = os.environ.get("GTA_VERIFIERS_PYTHON")
    if not python:
        subprocess.run([sys.executable, "-m", "venv", str(tmp_path)], check=True)
        subprocess.run([tmp_path / "bin" / "pip", "install", "--quiet", str(PLUGIN)], check=True)
        python = str(tmp_path / "bin" / "python")
    sources = f"{REPOSITORY / 'src'}:{PLUGIN / 'src'}"
    ran = subprocess.run(
        [python, "-c", SCRIPT, str(atomic_dir)],
        env={**os.environ, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    found = json.loads(ran.stdout)
    assert found["best"] == pytest.approx([1.0] * 229)
    assert set(found["none"]) == {0.0}
    assert found["bad"] == 0.0
