"""The demo's model: a script that calls tools and uses what they really answer.

It is no language model. It knows the three tasks, reads the tools' replies, and says so.
"""

import re
from collections.abc import Sequence

from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model

NAME = "mockllm/scripted"
PRICE = re.compile(r"\d+\.\d\d\b")
EQUATION = re.compile(r"x\*\*2[^=]*=\s*0")

SOLVE = """from sympy import symbols, solve

def solution():
    x = symbols('x')
    return solve({left}, x)
"""
PLOT = """import matplotlib.pyplot as plt

def solution():
    figure, axes = plt.subplots()
    axes.bar(['Mon', 'Tue', 'Wed', 'Thu'], [12, 19, 7, 15])
    axes.set_ylabel('cups of coffee')
    return figure
"""


def scripted_model() -> Model:
    """The script as a model that Inspect can ask."""
    return get_model(NAME, custom_outputs=_reply, memoize=False)


def _reply(messages: list[ChatMessage], *_: object) -> ModelOutput:
    request = " ".join(message.text for message in messages if message.role == "user")
    results = [message.text for message in messages if message.role == "tool"]
    if "receipt" in request:
        output = _receipt(results)
    elif "equation" in request:
        output = _equation(results)
    else:
        output = _chart(results)
    # No tokens were used, and without a count the engine would load a tokenizer.
    output.usage = ModelUsage()
    return output


def _receipt(results: Sequence[str]) -> ModelOutput:
    if not results:
        return _call("OCR", image="inputs/receipt.png")
    if len(results) == 1:
        return _call("Calculator", expression=" + ".join(PRICE.findall(results[0])) or "0")
    return _say(f"You pay {results[1]} in all.")


def _equation(results: Sequence[str]) -> ModelOutput:
    if not results:
        return _call("OCR", image="inputs/homework.png")
    if len(results) == 1:
        found = EQUATION.search(results[0])
        left = found.group().partition("=")[0].strip() if found else "0"
        return _call("Solver", command=SOLVE.format(left=left))
    return _say(f"The solutions are {results[1]}.")


def _chart(results: Sequence[str]) -> ModelOutput:
    return _say("Here is the chart.") if results else _call("Plot", command=PLOT)


def _call(tool: str, **arguments: str) -> ModelOutput:
    return ModelOutput.for_tool_call(NAME, tool, arguments)


def _say(text: str) -> ModelOutput:
    return ModelOutput.from_content(NAME, text)
