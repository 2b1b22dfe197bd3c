import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from inspect_ai.model import ModelOutput
from pydantic import JsonValue

from gta_bench.agents.contract import DecidedStep, Decision
from gta_bench.agents.history import History, RefusedTurn
from gta_bench.agents.loop import TOOL_ERROR, UNAVAILABLE, Work, work_on
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import CallTurn, ReplyTurn, UserTurn
from gta_bench.records.results import ToolResult
from gta_bench.records.run import LoopLimits
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    ReplyPart,
    ReplyStep,
    StepError,
    ThoughtStep,
)
from gta_bench.records.tools import ToolSpec

TASK = AtomicTask(
    id="7",
    tools=(),
    attachments=(),
    dialogue=(UserTurn(content="How much?"),),
    answer=None,
)
LOOK = CallStep(name="Look", arguments={"where": "menu"})
ANSWER = AnswerStep(content="7")


class Shop:
    """A source with one tool that works, one that fails and one that is not there."""

    def specs(self) -> Mapping[str, ToolSpec]:
        return {"Look": ToolSpec(name="Look")}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        if name == "Fail":
            raise ToolError("the lens is dirty")
        if name == "Absent":
            raise ToolUnavailable("no key.", mend="export KEY=…")
        if name == "Bug":
            raise ZeroDivisionError("a bug of ours")
        parts = (ReplyPart(type="text", content="Beer 7"),)
        return ToolResult(parts=parts, tool=name, tool_version="2", backend="eye 1", seconds=0.5)


def work(
    tmp_path: Path, script: Sequence[DecidedStep], thought: str = "", max_turns: int = 10
) -> tuple[Work, list[History]]:
    seen: list[History] = []

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        seen.append(history)
        step = script[min(history.position, len(script) - 1)]
        output = ModelOutput.from_content("m", f"reply {history.position}")
        return Decision(step=step, output=output, thought=thought)

    workspace = Workspace.create(tmp_path, {})
    limits = LoopLimits(max_turns=max_turns)
    done = asyncio.run(work_on(TASK, decide, Shop(), workspace, tools=[], limits=limits))
    return done, seen


def test_an_agent_calls_sees_the_reply_and_answers(tmp_path: Path) -> None:
    done, seen = work(tmp_path, [LOOK, ANSWER])
    reply = ReplyPart(type="text", content="Beer 7")
    assert done.trace == (LOOK, ReplyStep(parts=(reply,)), ANSWER)
    call, result = seen[1].turns[1:]
    assert isinstance(call, CallTurn)
    assert call.content == "reply 0"
    assert result == ReplyTurn(tool="Look", type="text", content="Beer 7")


def test_what_ran_is_recorded_with_every_call(tmp_path: Path) -> None:
    done, _ = work(tmp_path, [LOOK, ANSWER])
    record = done.calls[0]
    assert (record.tool, record.status, record.backend) == ("Look", "done", "eye 1")
    assert (record.tool_version, record.seconds) == ("2", 0.5)


@pytest.mark.parametrize(
    ("tool", "kind", "status", "told"),
    [
        ("Fail", TOOL_ERROR, "error", "the lens is dirty"),
        ("Absent", UNAVAILABLE, "unavailable", "no key. export KEY=…"),
    ],
)
def test_a_tools_failure_is_told_to_the_agent_and_is_no_result(
    tmp_path: Path, tool: str, kind: str, status: str, told: str
) -> None:
    call = CallStep(name=tool, arguments={})
    done, seen = work(tmp_path, [call, ANSWER])
    failed = call.model_copy(update={"error": StepError(type=kind, message=told)})
    assert done.trace == (failed, ReplyStep(), ANSWER)
    assert seen[1].turns[-1] == ReplyTurn(tool=tool, type="text", content=told)
    assert done.calls[0].status == status


def test_a_bug_of_a_tool_is_not_answered_but_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        work(tmp_path, [CallStep(name="Bug", arguments={})])


@pytest.mark.parametrize(
    "step",
    [
        MalformedStep(content="", reason="the reply is empty"),
        CallStep(
            name="Look",
            arguments="{broken",
            error=StepError(type="ARGS_ERROR", message="the reply is empty"),
        ),
    ],
)
def test_a_reply_that_cannot_be_executed_is_told_why(tmp_path: Path, step: DecidedStep) -> None:
    done, seen = work(tmp_path, [step, ANSWER])
    assert done.trace == (step, ANSWER)
    assert seen[1].turns[-1] == RefusedTurn(reply="reply 0", told="the reply is empty")
    assert done.calls == []


def test_the_last_turn_is_marked_and_nothing_follows_it(tmp_path: Path) -> None:
    done, seen = work(tmp_path, [LOOK], max_turns=3)
    assert [history.last for history in seen] == [False, False, True]
    assert len(done.trace) == 6
    assert not any(isinstance(step, AnswerStep) for step in done.trace)


def test_a_thought_is_a_step_of_its_own(tmp_path: Path) -> None:
    done, _ = work(tmp_path, [ANSWER], thought="I know.")
    assert done.trace == (ThoughtStep(content="I know."), ANSWER)
