from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import task_digests
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.logs import read_units
from gta_bench.tasks.atomic import atomic_step
from tests.builders import atomic_task, call, parameter, tool, write_atomic

USED = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)


def native_call(name: str, arguments: dict[str, Any]) -> ModelOutput:
    output = ModelOutput.for_tool_call("mockllm", name, arguments)
    output.usage = USED
    return output


def said(text: str) -> ModelOutput:
    output = ModelOutput.from_content("mockllm", text)
    output.usage = USED
    return output


def evaluate(root: Path, logs: Path, reply: Any, **options: Any) -> EvalLog:
    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    options = {"similarity": "exact-or-half", **options}
    task = atomic_step(data=str(root), **options)
    return inspect_eval(task, model=model, log_dir=str(logs), display="none", log_realtime=False)[0]


def reader(
    input: list[ChatMessage], tools: list[ToolInfo], choice: ToolChoice, config: GenerateConfig
) -> ModelOutput:
    """A model that reads the menu first and then answers."""
    if any(message.role == "tool" for message in input):
        return said("It costs 7.")
    return native_call("OCR", {"image": "inputs/menu.jpg"})


def test_every_turn_is_predicted_from_the_reference_and_scored(tmp_path: Path) -> None:
    root = write_atomic(tmp_path / "data")
    log = evaluate(root, tmp_path / "logs", reader)
    assert log.status == "success"
    assert log.results is not None
    metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert metrics["strict_inst_acc"] == metrics["strict_tool_acc"] == 100
    assert metrics["strict_arg_acc"] == metrics["strict_summ_acc"] == 100
    assert metrics["compat_inst_acc"] == 100


def test_the_log_shows_what_was_expected_what_came_and_why_it_counts(tmp_path: Path) -> None:
    log = evaluate(write_atomic(tmp_path / "data"), tmp_path / "logs", lambda *_: said("Hm."))
    assert log.samples is not None
    sample = log.samples[0]
    texts = [message.text for message in sample.messages]
    assert texts[1] == 'Turn 1 of 2. Expected: OCR(image="inputs/menu.jpg")'
    assert texts[2] == "answer: Hm."
    assert isinstance(sample.messages[0], ChatMessageUser)
    assert sample.scores is not None
    explained = sample.scores["atomic_steps"].explanation or ""
    assert "no hit: answer instead of call" in explained
    assert sample.target == "", "it would be in reach of agents"


def test_units_are_read_back_from_the_log(tmp_path: Path) -> None:
    evaluate(write_atomic(tmp_path / "data"), tmp_path / "logs", reader)
    found = read_units(tmp_path / "logs", ["0", "1"], 1, AtomicUnit)
    unit = found.units[0]
    assert unit.trace == (
        CallStep(name="OCR", arguments={"image": "inputs/menu.jpg"}),
        AnswerStep(content="It costs 7."),
    )
    assert (unit.usage.model_calls, unit.usage.input_tokens) == (2, 20)
    assert unit.digests == task_digests(load_atomic(tmp_path / "data"), "0")
    assert found.not_run == (("1", 1),)


def test_tokens_read_from_a_cache_were_sent_too(tmp_path: Path) -> None:
    """A server with a cache read 11,000 tokens of 11 prompts, and the report said 2,119."""

    def reply(*_: object) -> ModelOutput:
        output = said("Hm.")
        output.usage = ModelUsage(
            input_tokens=3, input_tokens_cache_read=40, input_tokens_cache_write=100
        )
        return output

    evaluate(write_atomic(tmp_path / "data"), tmp_path / "logs", reply)
    unit = read_units(tmp_path / "logs", ["0"], 1, AtomicUnit).units[0]
    assert unit.usage.input_tokens == 2 * 143


def test_an_empty_reply_is_malformed_and_scores_nothing(tmp_path: Path) -> None:
    evaluate(write_atomic(tmp_path / "data"), tmp_path / "logs", lambda *_: said(" "))
    unit = read_units(tmp_path / "logs", ["0"], 1, AtomicUnit).units[0]
    assert all(isinstance(step, MalformedStep) for step in unit.trace or ())


def test_the_first_of_several_calls_is_the_step_and_the_others_are_counted(tmp_path: Path) -> None:
    def eager(*_: Any) -> ModelOutput:
        output = native_call("OCR", {"image": "inputs/menu.jpg"})
        calls = output.message.tool_calls or []
        output.message.tool_calls = [*calls, ToolCall(id="b", function="OCR", arguments={})]
        return output

    evaluate(write_atomic(tmp_path / "data"), tmp_path / "logs", eager)
    unit = read_units(tmp_path / "logs", ["0"], 1, AtomicUnit).units[0]
    assert (
        unit.trace == (CallStep(name="OCR", arguments={"image": "inputs/menu.jpg"}, others=1),) * 2
    )


def test_a_model_that_fails_leaves_the_sample_unscored(tmp_path: Path) -> None:
    def broken(*_: Any) -> ModelOutput:
        raise RuntimeError("the provider is down")

    log = evaluate(write_atomic(tmp_path / "data"), tmp_path / "logs", broken)
    assert log.status == "error"
    unit = read_units(tmp_path / "logs", ["0"], 1, AtomicUnit).units[0]
    assert unit.trace is None
    assert unit.failure is not None
    assert "the provider is down" in unit.failure
    assert unit.digests == task_digests(load_atomic(tmp_path / "data"), "0")


def test_upstreams_agent_is_offered_toolmetas_definitions(tmp_path: Path) -> None:
    own = tool("OCR", parameter("image", "image"), parameter("bbox", optional=True))
    root = write_atomic(tmp_path / "data", {"0": atomic_task(tools=[own])})
    seen: dict[str, str] = {}

    def keep(input: list[ChatMessage], *_: Any) -> ModelOutput:
        seen["prompt"] = input[0].text
        return said("Thought: done\nFinal Answer: 7")

    evaluate(root, tmp_path / "up", keep, agent="react-upstream")
    assert "bbox" not in seen["prompt"]
    evaluate(root, tmp_path / "own", keep, agent="react")
    assert "bbox" in seen["prompt"]


def test_images_are_shown_to_the_model_only_when_asked_for(tmp_path: Path) -> None:
    root = write_atomic(tmp_path / "data")
    seen: list[str] = []

    def keep(input: list[ChatMessage], *_: Any) -> ModelOutput:
        seen.append(str([message.content for message in input]))
        return said("7")

    evaluate(root, tmp_path / "a", keep)
    assert not any("data:image" in text for text in seen)
    seen.clear()
    evaluate(root, tmp_path / "b", keep, images="attached")
    assert any("data:image" in text for text in seen)


@pytest.mark.parametrize(("agent", "expected"), [("gold", 100.0), ("silent", 0.0)])
def test_gold_is_the_maximum_and_silent_the_minimum_of_the_release(
    atomic_dir: Path, tmp_path: Path, agent: str, expected: float
) -> None:
    log = inspect_eval(
        atomic_step(data=str(atomic_dir), agent=agent, similarity="exact-or-half"),
        model="none/none",
        log_dir=str(tmp_path),
        display="none",
        log_realtime=False,
    )[0]
    assert log.results is not None
    metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    for name in ("strict_inst_acc", "strict_tool_acc", "strict_arg_acc", "strict_arg_typed"):
        assert metrics[name] == expected
    if agent == "gold":
        assert metrics["compat_inst_acc"] == 105.6241426611797
        assert metrics["compat_summ_acc"] == 88.66279069767442


def test_a_task_may_hold_a_reference_call_as_its_last_turn(tmp_path: Path) -> None:
    dialogs = [{"role": "user", "content": "Circle it."}, call("OCR", {"image": "image/menu.jpg"})]
    root = write_atomic(tmp_path / "data", {"0": atomic_task(dialogs=dialogs, gt_answer=None)})
    log = evaluate(root, tmp_path / "logs", reader)
    assert log.results is not None
    assert log.results.scores[0].metrics["strict_tool_acc"].value == 100
