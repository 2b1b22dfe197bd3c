"""The plugin's classes against OpenCompass' published interface."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.datasets.atomic import load_atomic
from gta_bench.tape.reference import write_reference_tape
from tests.builders import write_atomic
from tests.measure.test_opencompass import END, STEP, says
from tests.plugins.published import MODULES
from tests.plugins.stand_ins import imported
from tests.tape.datasets import CALCULATOR, multiplication

ROLES = {"SYSTEM": "system", "HUMAN": "user", "BOT": "assistant"}


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with imported("opencompass", MODULES, monkeypatch) as module:
        yield module


@pytest.fixture
def data(tmp_path: Path) -> Path:
    tasks = {str(left - 2): multiplication(left) for left in range(2, 8)}
    return write_atomic(tmp_path / "data", tasks, [CALCULATOR])


class Model:
    """A model of OpenCompass': a list of prompts in, a list of texts out."""

    def generate(self, inputs: list[Any], max_out_len: int) -> list[str]:
        assert max_out_len == 512
        return [
            says(
                {
                    "messages": [
                        {"role": ROLES[item["role"]], "content": item["prompt"]} for item in prompt
                    ]
                }
            )
            for prompt in inputs
        ]


@pytest.mark.parametrize(
    ("infer_mode", "mode", "columns"),
    [("every_with_gt", "step", STEP), ("every", "end-to-end", END)],
)
def test_predictions_are_upstreams_and_the_evaluators_agree_with_gta_score(
    plugin: Any,
    data: Path,
    tmp_path: Path,
    infer_mode: str,
    mode: str,
    columns: dict[str, str],
) -> None:
    write_reference_tape(load_atomic(data), tmp_path / "tape")
    rows = plugin.GTAAtomicDataset.load(path=str(data))
    tape = str(tmp_path / "tape") if infer_mode == "every" else None
    inferencer = plugin.GTAInferencer(model=Model(), infer_mode=infer_mode, tape=tape)
    retriever = SimpleNamespace(test_ds=rows)
    # Two tasks were done before it was killed.
    done = inferencer.inference(SimpleNamespace(test_ds=rows[:2]), None, None, str(tmp_path), "p")
    (tmp_path / "tmp_p.json").write_text(json.dumps(done), encoding="utf-8")
    found = inferencer.inference(retriever, None, None, str(tmp_path), "p.json")
    assert list(found) == [str(index) for index in range(6)]
    assert not (tmp_path / "tmp_p.json").exists()
    evaluator = (
        plugin.GTAStepEvaluator if infer_mode == "every_with_gt" else plugin.GTAEndToEndEvaluator
    )("exact-or-half")
    stored = json.loads((tmp_path / "p.json").read_text(encoding="utf-8")).values()
    results = evaluator.score(
        [one["prediction"] for one in stored], [one["gold"] for one in stored], rows
    )
    command = ["score", "--predictions", str(tmp_path / "p.json"), "--dataset", "atomic"]
    options = ["--mode", mode, "--data", str(data), "--similarity", "exact-or-half", "--json"]
    for scoring in ("compat", "strict"):
        scored = CliRunner().invoke(app, [*command, *options, "--scoring", scoring])
        answer = json.loads(scored.stdout)
        assert answer["findings"] == []
        names = {name: name if scoring == "compat" else f"strict_{name}" for name in columns}
        if scoring == "compat":
            names = columns
        wanted = {names[name]: answer["metrics"][name] for name in columns}
        assert {name: results.get(name) for name in wanted} == pytest.approx(wanted)


def test_end_to_end_needs_tools(plugin: Any) -> None:
    with pytest.raises(ValueError, match="either `tools` or `tape`"):
        plugin.GTAInferencer(model=Model(), infer_mode="every")
