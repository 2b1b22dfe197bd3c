"""The plugin in an environment of its own, with the real OpenCompass, against a local server.

GTA_OPENCOMPASS_PYTHON names an interpreter that has `opencompass`; without it one is installed,
which takes minutes and 2 GB.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.serving.choice import TOKEN_VARIABLE
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox
from tests.builders import write_atomic
from tests.chat_server import chat_server
from tests.conftest import REPOSITORY
from tests.judging.builders import names, verdict
from tests.served.support import TOKEN, tool_server
from tests.tape.builders import recording
from tests.tape.datasets import CALCULATOR, multiplication
from tests.tasks.workflow_runs import WORDS, write_dataset

PLUGIN = REPOSITORY / "plugins" / "opencompass"
TOKENIZER = """
import sys
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(sys.argv[1])
"""
STEP = {
    "inst_acc": "inst_align",
    "tool_acc": "tool_acc",
    "arg_acc": "arg_acc",
    "summ_acc": "answer_acc",
    "tool_call": "tool_call",
    "tool_call_error": "tool_call_error",
}
END = {
    "ans_acc": "answer_acc",
    "ans_acc_i": "answer_acc_w_imggen",
    **{name: name for name in ("p_f1", "o_f1", "l_f1", "c_f1", "tool_call", "tool_call_error")},
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    named = os.environ.get("GTA_OPENCOMPASS_PYTHON")
    if named:
        return named
    place = tmp_path_factory.mktemp("opencompass")
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    subprocess.run([place / "bin" / "pip", "install", "--quiet", str(PLUGIN)], check=True)
    return str(place / "bin" / "python")


@pytest.fixture(scope="module")
def tokenizer(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OpenCompass counts tokens before it asks, and would fetch a tokenizer."""
    folder = tmp_path_factory.mktemp("tokenizer")
    subprocess.run([python, "-c", TOKENIZER, str(folder)], check=True, capture_output=True)
    return folder


def says(request: dict[str, Any]) -> str:
    """Multiplies well, but for a wrong answer, an early one, and words without a call."""
    text = json.dumps(request["messages"])
    found = re.search(r"What is (\d+)\*7", text)
    assert found is not None
    left = int(found[1])
    begun = any(message["role"] == "assistant" for message in request["messages"])
    if left == 5:
        return "hm"
    if not begun and left != 6:
        call = json.dumps({"expression": f"{left}*7"})
        return f"Thought: I multiply.\nAction: Calculator\nAction Input: {call}"
    return f"Thought: I know.\nFinal Answer: It is {3 if left == 4 else left * 7}."


def run_config(python: str, mode: str, place: Path, **changes: str) -> tuple[Path, dict[str, Any]]:
    """Run the shipped config with other places in it; the predictions and the results."""
    text = (PLUGIN / "configs" / f"gta_{mode}.py").read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    config = place / "config.py"
    config.write_text(text, encoding="utf-8")
    sources = f"{REPOSITORY / 'src'}:{PLUGIN / 'src'}"
    environment = {**os.environ, "PYTHONPATH": sources, "HF_HUB_OFFLINE": "1"}
    command = [python, "-c", "from opencompass.cli.main import main; main()"]
    ran = subprocess.run(
        [*command, str(config), "-w", str(place / "out"), "--debug"],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    (predictions,) = (place / "out").glob(f"*/predictions/*/gta_{mode}.json")
    (results,) = (place / "out").glob(f"*/results/*/gta_{mode}.json")
    found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    return predictions, found


@pytest.mark.measure
@pytest.mark.parametrize(
    ("mode", "ours", "columns"), [("step", "step", STEP), ("end_to_end", "end-to-end", END)]
)
def test_opencompass_gives_the_numbers_of_gta_score(
    mode: str,
    ours: str,
    columns: dict[str, str],
    loopback: None,
    python: str,
    tokenizer: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """End to end the calculator is that of a real tool server."""
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    tasks = {str(left - 2): multiplication(left) for left in range(2, 8)}
    data = write_atomic(tmp_path / "data", tasks, [CALCULATOR])
    box = Toolbox(Equipment(Settings()), ["Calculator"])
    changes = {"data/gta_atomic": str(data), "all-mpnet-base-v2": "exact-or-half"}
    with chat_server(says) as server, tool_server(box, tmp_path / "served") as tools:
        changes |= {"http://127.0.0.1:8000/v1": server.url, '"gpt-4"': f'"{tokenizer}"'}
        if mode == "end_to_end":
            changes["http://127.0.0.1:16182"] = tools.url
        predictions, results = run_config(python, mode, tmp_path, **changes)
    command = ["score", "--predictions", str(predictions), "--dataset", "atomic", "--mode", ours]
    options = ["--data", str(data), "--similarity", "exact-or-half", "--json"]
    for scoring, prefix in (("compat", None), ("strict", "strict_")):
        scored = CliRunner().invoke(app, [*command, *options, "--scoring", scoring])
        wanted = json.loads(scored.stdout)["metrics"]
        found = {
            name: results.get(theirs if prefix is None else prefix + name)
            for name, theirs in columns.items()
        }
        print(mode, scoring, found)
        assert found == pytest.approx({name: wanted[name] for name in columns})
        assert wanted["tool_call"] > 0, "there is something to compare"


@pytest.mark.measure
def test_opencompass_hands_workflow_to_the_judge(
    loopback: None, python: str, tokenizer: Path, tmp_path: Path
) -> None:
    def judges(request: dict[str, Any]) -> str:
        (leaf,) = names(request)
        found = WORDS[leaf.partition("~")[0]] in json.dumps(request["messages"])
        return json.dumps(verdict(leaf, 8 if found else 0))

    data = write_dataset(tmp_path / "data")
    recording(tmp_path / "tape").close()
    gta = tmp_path / "gta"
    with (
        chat_server(lambda _: "Thought: So.\nFinal Answer: A quokka and a numbat.") as server,
        chat_server(judges) as judge,
    ):
        told = f"JUDGE_API_KEY=none JUDGE_BASE_URL={judge.url} PYTHONPATH={REPOSITORY / 'src'}"
        line = f'exec env -u HF_HUB_OFFLINE {told} "{sys.executable}" -m gta_bench.cli "$@"'
        gta.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        gta.chmod(0o755)
        changes = {
            "data/gta_workflow": str(data),
            "http://127.0.0.1:8000/v1": server.url,
            '"gpt-4"': f'"{tokenizer}"',
            "tools=tools": f'tape="{tmp_path / "tape"}"',
            '"gta", "openai/gpt-5.2"': f'"{gta}", "openai-api/judge/m"',
            '"gta_files"': f'"{tmp_path / "files"}"',
        }
        _, results = run_config(python, "workflow", tmp_path, **changes)
    print(results)
    assert results["root_score"] == pytest.approx((8 / 2 + 8) / 2)
    assert (results["n"], results["n_units"]) == (2, 2)
