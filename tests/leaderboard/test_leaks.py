from pathlib import Path
from typing import Any

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.leaderboard.checks import unit_findings
from gta_bench.records.leaderboard import CANARY
from gta_bench.records.steps import AnswerStep, ReplyPart, ReplyStep
from gta_bench.records.units import AtomicUnit
from gta_bench.running.system_run import execute
from gta_bench.runs.logs import UnitConversation, read_conversation, read_whole_samples
from tests.builders import atomic_task, write_atomic
from tests.metrics.workflow_units import unit as workflow_unit
from tests.tasks.workflow_runs import one_page, scripted, wanted, write_dataset

SECRET = "It costs seven dollars and fifty cents."


def unit(tmp_path: Path, answer: Any, **changes: Any) -> AtomicUnit:
    dialogs = [
        {"role": "user", "content": "What does the beer cost?"},
        {"role": "assistant", "content": SECRET},
    ]
    data = write_atomic(tmp_path, {"0": atomic_task(gt_answer=answer, dialogs=dialogs)})
    return AtomicUnit(task=load_atomic(data).tasks["0"], **changes)


def checks(one: Any, **changes: str) -> list[str]:
    texts = {"told": "", "by_tools": "", "said": "", **changes}
    return [
        found.check
        for found in unit_findings(
            one, UnitConversation("0", 1, texts["told"], texts["by_tools"], texts["said"], "")
        )
    ]


ANSWERS = [
    {"whitelist": [["seven dollars and fifty cents"]], "blacklist": None},
    ["Seven dollars and fifty cents, it is."],
    None,
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_answer_in_a_prompt_is_a_leak_unless_a_tool_gave_it(
    tmp_path: Path, answer: Any
) -> None:
    one = unit(tmp_path, answer)
    prompt = f"Hint: {SECRET.upper()}  Seven dollars\nand fifty cents, it is. What now?"
    assert checks(one, told=prompt) == ["leaked-answer"]
    assert checks(one, told=prompt, by_tools=prompt) == []
    assert checks(one, said=prompt) == []
    replied = one.model_copy(
        update={"trace": (ReplyStep(parts=(ReplyPart(type="text", content=prompt),)),)}
    )
    assert checks(replied, told=prompt) == []


def test_a_short_answer_may_stand_in_any_prompt(tmp_path: Path) -> None:
    one = unit(tmp_path, {"whitelist": [["seven", "7"]], "blacklist": None})
    assert checks(one, told="seven of 7 tools") == []


def test_the_rubric_in_a_prompt_is_a_leak() -> None:
    one = workflow_unit()
    node = one.task.checkpoints[1].model_copy(
        update={"requirements": "Names all three rivers of the country"}
    )
    task = one.task.model_copy(update={"checkpoints": (node,)})
    told = "Mind that it names all three rivers of the country."
    assert checks(one.model_copy(update={"task": task}), told=told) == ["leaked-answer"]
    asked = task.model_copy(update={"request": told})
    assert checks(one.model_copy(update={"task": asked}), told=told) == []


def test_a_system_that_says_the_canary_was_trained_on_the_benchmark(tmp_path: Path) -> None:
    one = unit(tmp_path, None, trace=(AnswerStep(content=f"I know {CANARY}."),))
    assert checks(one) == ["canary"]
    assert [found.check for found in unit_findings(one, None)] == ["canary"]
    assert checks(unit(tmp_path, None), said=CANARY) == ["canary"]


def test_what_a_system_was_told_and_said_is_read_from_its_logs(tmp_path: Path) -> None:
    run = wanted(write_dataset(tmp_path / "data"))
    execute(*run, tmp_path / "run", lambda well: None, model=scripted(one_page("quokka")))
    found = {
        one.id: read_conversation(one) for one in read_whole_samples(tmp_path / "run" / "logs")
    }
    assert sorted(found) == ["1", "2"]
    first = found["1"]
    assert "Write a page about animals." in first.prompts
    assert "page.html" in first.by_tools
    assert "quokka" not in first.prompts
    assert first.replied and first.replied in first.said
