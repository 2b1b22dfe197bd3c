"""The published protocol's chat as roles and texts, whoever sends them to a model."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from gta_bench.agents.files import files_text
from gta_bench.agents.history import History, Said, merge_replies, reply_text
from gta_bench.agents.prompts import render
from gta_bench.agents.published import PublishedTexts
from gta_bench.agents.react_parser import RESPONSE
from gta_bench.agents.react_text import upstream_call_text, upstream_system_prompt
from gta_bench.records.dialogue import AnswerTurn, CallTurn, UserTurn
from gta_bench.records.tools import ToolSpec


class Message(NamedTuple):
    """One message; `request` marks what the user asks for."""

    role: Literal["system", "user", "assistant"]
    text: str
    request: bool = False


def upstream_chat(
    history: History, tools: Sequence[ToolSpec], published: PublishedTexts | None = None
) -> list[Message]:
    """Upstream's chat, which differs between the modes in roles, markers and last message."""
    step_mode = history.mode == "step"
    messages = [Message("system", upstream_system_prompt(tools, published))]
    files = files_text(history.attachments, published)
    if files is not None:
        messages.append(Message("system" if step_mode else "user", files))
    for said in merge_replies(history):
        messages += _turn(said, step_mode=step_mode)
    if history.last:
        # Kept for parity: in step mode also where the reference's last turn is a call (16 tasks).
        messages.append(_last_message(published, step_mode=step_mode))
    return messages


def _last_message(published: PublishedTexts | None, *, step_mode: bool) -> Message:
    if step_mode:
        own = render("answer_without_tools.md")
        return Message("user", own if published is None else published.answer_without_tools)
    own = render("answer_now.md")
    return Message("system", own if published is None else published.answer_now)


def _turn(said: Said, *, step_mode: bool) -> list[Message]:
    if isinstance(said, tuple):
        text = reply_text(said)
        return [Message("system", text if step_mode else f"{RESPONSE}{text}\n")]
    if isinstance(said, UserTurn):
        return [Message("user", said.content, request=True)]
    if isinstance(said, CallTurn):
        own_words = None if step_mode else said.content
        return [Message("assistant", own_words or upstream_call_text(said))]
    if isinstance(said, AnswerTurn):
        return [Message("assistant", said.content)]
    return [Message("assistant", said.reply), Message("system", f"{RESPONSE}{said.told}\n")]
