"""Dialogues that earlier versions kept as turns and steps, made into messages to go on with."""

from collections.abc import Sequence

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, ChatMessageUser

from gta_bench.agents.dialogue import note_steps, note_told
from gta_bench.agents.history import History
from gta_bench.agents.toolcalling import turn_messages
from gta_bench.records.steps import CallStep, PredictedStep, ThoughtStep


def earlier_messages(history: History, steps: Sequence[PredictedStep]) -> list[ChatMessage]:
    """The turns as messages, each with the steps that stand for it in the trace."""
    left, made = list(steps), list[PredictedStep]()
    messages: list[ChatMessage] = []
    answered = True
    for message in turn_messages(history):
        if isinstance(message, ChatMessageAssistant):
            noted: list[PredictedStep] = []
            while left and isinstance(left[0], ThoughtStep):
                noted.append(left.pop(0))
            made = left[:1]
            del left[:1]
            if not message.tool_calls:
                noted += made
            answered = bool(message.tool_calls) or not _is_refused(made)
            messages.append(note_steps(message, noted))
        elif isinstance(message, ChatMessageTool):
            messages.append(note_steps(message, [*made, *left[:1]]))
            del left[:1]
        elif isinstance(message, ChatMessageUser) and not answered:
            messages.append(note_told(message))
            answered = True
        else:
            messages.append(message)
    return messages


def _is_refused(steps: Sequence[PredictedStep]) -> bool:
    return any(isinstance(step, CallStep) or step.step == "malformed" for step in steps)
