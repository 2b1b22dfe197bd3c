import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageTool,
    ContentReasoning,
    ContentText,
    ModelOutput,
)
from inspect_ai.tool import ToolCall
from pydantic import JsonValue

from gta_bench.agents.calling import TOOL_ERROR, UNAVAILABLE
from gta_bench.agents.contract import DecidedStep, Decision, History, RefusedTurn
from gta_bench.agents.loop import TOO_MANY, Dialogue, dump_messages, load_messages, work_on
from gta_bench.agents.replies import make_stop_decision
from gta_bench.agents.toolcalling import make_toolcalling_messages, read_output
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import ToolResult
from gta_bench.records.dialogue import CallTurn, ReplyTurn, UserTurn
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
from gta_bench.records.tools import Parameter, ToolSpec

TASK = AtomicTask(
    id="7",
    tools=(),
    attachments=(),
    dialogue=(UserTurn(content="How much?"),),
    answer=None,
)
LOOK = CallStep(name="Look", arguments={"where": "menu"})
ANSWER = AnswerStep(content="7")
SPECS = [
    ToolSpec(name=name, inputs=(Parameter(type="text", name="where"),))
    for name in ("Look", "Fail", "Absent", "Bug")
]


class Shop:
    """A source with one tool that works, one that fails and one that is not there."""

    def __init__(self) -> None:
        self.called: list[tuple[str, Mapping[str, JsonValue]]] = []

    def specs(self) -> Mapping[str, ToolSpec]:
        return {"Look": ToolSpec(name="Look")}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        self.called.append((name, arguments))
        if name == "Fail":
            raise ToolError("the lens is dirty")
        if name == "Absent":
            raise ToolUnavailable("no key.", fix="export KEY=…")
        if name == "Bug":
            raise ZeroDivisionError("a bug of ours")
        parts = (ReplyPart(type="text", content="Beer 7"),)
        return ToolResult(parts=parts, tool=name, tool_version="2", backend="eye 1", seconds=0.5)


def work(
    tmp_path: Path,
    script: Sequence[DecidedStep | Decision],
    thought: str = "",
    limits: LoopLimits | None = None,
    shop: Shop | None = None,
) -> tuple[Dialogue, list[History]]:
    seen: list[History] = []

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        seen.append(history)
        step = script[min(history.position, len(script) - 1)]
        if isinstance(step, Decision):
            return step
        output = ModelOutput.from_content("m", f"reply {history.position}")
        return Decision(step=step, output=output, thought=thought)

    workspace = Workspace.create(tmp_path, {})
    done = asyncio.run(
        work_on(
            TASK,
            decide,
            shop or Shop(),
            workspace,
            tools=SPECS,
            limits=limits or LoopLimits(),
        )
    )
    return done, seen


def replying(
    *calls: ToolCall, reason: str = "tool_calls", content: Sequence[ContentText] = ()
) -> Decision:
    """A provider's reply as the default agent reads it."""
    thinking = ContentReasoning(reasoning="Both at once.", signature="signed")
    message = ChatMessageAssistant(content=[thinking, *content], tool_calls=list(calls))
    choice = ChatCompletionChoice.model_validate({"message": message, "stop_reason": reason})
    return read_output(ModelOutput(model="m", choices=[choice]), SPECS)


def calling(id: str, name: str = "Look", **arguments: str) -> ToolCall:
    return ToolCall(id=id, function=name, arguments=arguments or {"where": id})


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


def test_a_reply_goes_back_as_it_came_with_every_call_answered_by_its_id(tmp_path: Path) -> None:
    """Only the first call was executed; reasoning, its signature, and the ids were dropped."""
    shop = Shop()
    first = replying(calling("a"), calling("b", "Fail"), calling("c"))
    done, seen = work(tmp_path, [first, ANSWER], shop=shop)
    assert [arguments["where"] for _, arguments in shop.called] == ["a", "b", "c"]
    sent = make_toolcalling_messages(seen[1])
    reply, *results = sent[2:]
    assert first.output is not None
    assert isinstance(reply, ChatMessageAssistant)
    assert reply.id == first.output.message.id
    assert reply.content == first.output.message.content
    assert reply.tool_calls == first.output.message.tool_calls
    assert [(one.role, getattr(one, "tool_call_id", ""), one.text) for one in results] == [
        ("tool", "a", "Beer 7"),
        ("tool", "b", "the lens is dirty"),
        ("tool", "c", "Beer 7"),
    ]
    assert isinstance(results[1], ChatMessageTool)
    assert results[1].error is not None
    assert [step.step for step in done.trace] == ["call", "reply"] * 3 + ["answer"]
    assert [record.status for record in done.calls] == ["done", "error", "done"]


def test_calls_beyond_the_limit_are_answered_but_not_made(tmp_path: Path) -> None:
    shop = Shop()
    first = replying(*(calling(id) for id in "abc"))
    done, seen = work(tmp_path, [first, ANSWER], limits=LoopLimits(max_calls=2), shop=shop)
    assert len(shop.called) == 2
    *_, last = seen[1].messages
    assert isinstance(last, ChatMessageTool)
    assert (last.tool_call_id, "Only the first 2 calls" in last.text) == ("c", True)
    assert [step.step for step in done.trace] == ["call", "reply"] * 2 + ["call", "answer"]
    third = done.trace[4]
    assert isinstance(third, CallStep) and third.error is not None
    assert third.error.type == TOO_MANY


def test_the_last_call_of_a_reply_that_was_cut_off_is_not_made(tmp_path: Path) -> None:
    shop = Shop()
    cut = replying(calling("a"), calling("b"), reason="max_tokens")
    done, _ = work(tmp_path, [cut, ANSWER], shop=shop)
    assert [arguments["where"] for _, arguments in shop.called] == ["a"]
    assert done.stops == ["cut off"]
    assert [step.step for step in done.trace] == ["call", "reply", "call", "answer"]


def test_a_full_window_ends_the_work_and_leaves_no_step(tmp_path: Path) -> None:
    said = "This model's maximum context length is 4096 tokens."
    full = ModelOutput.from_content("m", said, stop_reason="model_length")
    done, _ = work(tmp_path, [LOOK, make_stop_decision(full, "context")])
    assert [step.step for step in done.trace] == ["call", "reply"]
    assert done.stops == ["context"]
    assert all(said not in message.text for message in done.messages)


def test_a_refusal_ends_the_work_and_is_malformed(tmp_path: Path) -> None:
    refused = replying(calling("a"), reason="content_filter", content=[ContentText(text="No.")])
    done, seen = work(tmp_path, [refused, ANSWER])
    assert len(seen) == 1
    (step,) = done.trace
    assert isinstance(step, MalformedStep)
    assert done.stops == ["refused"]
    last = done.messages[-1]
    assert isinstance(last, ChatMessageAssistant)
    # A call without a result would make the next round's history illegal.
    assert last.tool_calls is None


@pytest.mark.parametrize(
    ("tool", "kind", "status", "message"),
    [
        ("Fail", TOOL_ERROR, "error", "the lens is dirty"),
        ("Absent", UNAVAILABLE, "unavailable", "no key. export KEY=…"),
    ],
)
def test_a_tools_failure_is_reported_to_the_agent_and_is_no_result(
    tmp_path: Path, tool: str, kind: str, status: str, message: str
) -> None:
    call = CallStep(name=tool, arguments={})
    done, seen = work(tmp_path, [call, ANSWER])
    failed = call.model_copy(update={"error": StepError(type=kind, message=message)})
    assert done.trace == (failed, ReplyStep(), ANSWER)
    assert seen[1].turns[-1] == ReplyTurn(tool=tool, type="text", content=message)
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
def test_a_reply_that_cannot_be_executed_gets_the_reason(tmp_path: Path, step: DecidedStep) -> None:
    done, seen = work(tmp_path, [step, ANSWER])
    assert done.trace == (step, ANSWER)
    assert seen[1].turns[-1] == RefusedTurn(reply="reply 0", feedback="the reply is empty")
    assert done.calls == []


def test_the_last_turn_is_marked_and_nothing_follows_it(tmp_path: Path) -> None:
    done, seen = work(tmp_path, [LOOK], limits=LoopLimits(max_turns=3))
    assert [history.last for history in seen] == [False, False, True]
    assert len(done.trace) == 6
    assert not any(isinstance(step, AnswerStep) for step in done.trace)


def test_turns_count_replies_however_many_calls_they_have(tmp_path: Path) -> None:
    _, seen = work(tmp_path, [replying(calling("a"), calling("b")), LOOK, ANSWER])
    assert [history.position for history in seen] == [0, 1, 2]


def test_a_thought_is_a_step_of_its_own(tmp_path: Path) -> None:
    done, _ = work(tmp_path, [ANSWER], thought="I know.")
    assert done.trace == (ThoughtStep(content="I know."), ANSWER)


def test_a_dialogue_that_was_kept_is_the_same_when_it_goes_on(tmp_path: Path) -> None:
    first = replying(calling("a"), calling("b", "Fail"))
    done, _ = work(tmp_path, [first, MalformedStep(content="", reason="?"), ANSWER])
    kept = Dialogue(load_messages(dump_messages(done.messages), model="openai/gpt-5"))
    assert kept.messages == done.messages
    assert (kept.trace, kept.turns) == (done.trace, done.turns)
    kept.ask("Go on.")
    assert kept.turns[-1] == UserTurn(content="Go on.")


def test_the_next_request_joins_the_last_feedback() -> None:
    """Two messages of the user in a row break templates that alternate roles."""
    dialogue = Dialogue([])
    dialogue.ask("How much?")
    dialogue.add_reply(Decision(MalformedStep(content="", reason="?")))
    dialogue.add_feedback("the reply is empty")
    dialogue.ask("Go on.")
    assert [message.role for message in dialogue.messages] == ["user", "assistant", "user"]
    assert dialogue.messages[-1].text == "the reply is empty\n\nGo on."


def test_thinking_of_claude_is_kept_in_another_sample() -> None:
    """All thinking was left out of a second round of feedback: Inspect marks it all as redacted."""
    redacted = ContentReasoning(reasoning="sealed", redacted=True)
    shown = ContentReasoning(reasoning="signed", summary="Seven.", redacted=True)
    message = ChatMessageAssistant(content=[redacted, shown, ContentText(text="7")])
    kept = dump_messages([message])
    (claude,) = load_messages(kept, model="anthropic/claude-opus-4-6")
    portable = redacted.model_copy(update={"signature": "sealed"})
    assert claude.content == [portable, shown, ContentText(text="7")]
    (gpt,) = load_messages(kept, model="openai/gpt-5")
    assert gpt.content == message.content
