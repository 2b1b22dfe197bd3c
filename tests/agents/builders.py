"""A small task, its tools, and models that say what a test wants."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import strategies as st
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from gta_bench.agents.contract import AgentFactory, Decision, History, Setup, make_step_histories
from gta_bench.records.atomic import AtomicTask, WhitelistAnswer
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, ToolCall, UserTurn
from gta_bench.records.files import Attachment
from gta_bench.records.tools import Parameter, ToolSpec

# Inspect's retry set-up uses a spelling that its own dependency now warns about.
inspect_warnings = pytest.mark.filterwarnings(
    "ignore:The 'initial' parameter is deprecated:DeprecationWarning"
)

OCR = ToolSpec(
    name="OCR",
    description="Reads all text on an image.",
    inputs=(Parameter(type="image", name="image"),),
    outputs=(Parameter(type="text"),),
)
SEARCH = ToolSpec(
    name="GoogleSearch",
    description="Searches the web.",
    inputs=(
        Parameter(type="text", name="query"),
        Parameter(type="int", name="k", description="How many results.", optional=True, default=10),
    ),
    outputs=(Parameter(type="text"),),
)
DRAW = ToolSpec(
    name="DrawBox",
    description="Draws a box.",
    inputs=(
        Parameter(type="image", name="image"),
        Parameter(type="text", name="bbox", description="As `(x1, y1, x2, y2)`"),
        Parameter(type="float", name="width", optional=True, default=1.5),
        Parameter(type="bool", name="filled", optional=True, default=False),
        Parameter(type="text", name="annotation", optional=True),
    ),
    outputs=(Parameter(type="image"),),
)
TOOLS = (OCR, SEARCH, DRAW)

MENU = Attachment(path="inputs/menu.jpg", source="image/menu.jpg", type="image")

TASK = AtomicTask(
    id="7",
    tools=TOOLS,
    attachments=(MENU,),
    dialogue=(
        UserTurn(content="What does the bière cost?"),
        CallTurn(
            call=ToolCall(name="OCR", arguments={"image": "inputs/menu.jpg"}),
            thought="Read image/menu.jpg first.",
        ),
        ReplyTurn(tool="OCR", type="text", content="(0, 0, 9, 9) Bière 7"),
        CallTurn(
            call=ToolCall(
                name="DrawBox",
                arguments={"image": "inputs/menu.jpg", "bbox": "(0, 0, 9, 9)", "annotation": "7 €"},
            ),
            content="It is the first line.",
        ),
        ReplyTurn(tool="DrawBox", type="image", content="outputs/dummy_generated_image.jpg"),
        AnswerTurn(content="It costs 7.", thought="Done."),
    ),
    answer=WhitelistAnswer(whitelist=(("7", "seven"),)),
)
HISTORIES = make_step_histories(TASK)

# Replies made of the protocol's own pieces, so that arbitrary text reaches every branch.
PIECES = (
    *("\nThought: ", "\nAction: ", "\nAction Input: ", "\nResponse: ", "\nFinal Answer: "),
    *("OCR", "OCR.run", "GoogleSearch", "Foo", "```json\n", "\n```", "**", "<think>", "</think>"),
    *('{"image": "inputs/menu.jpg"}', '{"query": "q", "k": ', "{'query': 'q'}", "{}", "[]", "null"),
    *("{", "}", '"', "'", "\\", "NaN", "1e999", "\ud800", '{"query": "\\ud800"}'),
)
REPLIES = st.lists(st.text(max_size=20) | st.sampled_from(PIECES), max_size=14).map("".join)


def model_saying(*outputs: ModelOutput | str) -> Model:
    """A model that gives these replies in turn, and fails when asked more often."""
    scripted = [counted(output) for output in outputs]
    return get_model("mockllm/model", memoize=False, custom_outputs=scripted)


def counted(output: ModelOutput | str) -> ModelOutput:
    """The output with its token usage: for one without, Inspect fetches a tokenizer."""
    made = ModelOutput.from_content("mockllm", output) if isinstance(output, str) else output
    return made.model_copy(update={"usage": ModelUsage()})


class Listening:
    """A model that remembers what it was asked."""

    def __init__(self, reply: str = "Final Answer: 7") -> None:
        self.reply = reply
        self.messages: list[list[ChatMessage]] = []
        self.tools: list[list[ToolInfo]] = []
        self.configs: list[GenerateConfig] = []
        self.model = get_model("mockllm/model", memoize=False, custom_outputs=self._answer)

    def _answer(
        self,
        messages: list[ChatMessage],
        tools: list[ToolInfo],
        choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        self.messages.append(messages)
        self.tools.append(tools)
        self.configs.append(config)
        return counted(self.reply)


def decide(
    agent: AgentFactory,
    history: History,
    tools: Sequence[ToolSpec] = TOOLS,
    *,
    setup: Setup | None = None,
) -> Decision:
    """One decision of an agent, awaited."""
    return asyncio.run(agent(setup or Setup())(history, tools))


def shown(messages: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    """Role and text of every message."""
    return [(message.role, message.text) for message in messages]
