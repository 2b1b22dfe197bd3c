"""The demo's scripted system: it calls tools and uses what they really answer.

It is no language model. It knows the seven tasks and reads the tools' replies. One thing it forgets
on purpose, so that the report has a failure to show: what each pays for the picnic.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence

from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model

NAME = "mockllm/scripted"
PRICE = re.compile(r"\d+\.\d\d\b")
EQUATION = re.compile(r"x\*\*2[^=]*=\s*0")
LISBON = re.compile(r"(\d\d:\d\d)\s*\n(\([^)]*\)) Lisbon")
WORD = re.compile(r"\) ([^\n]+)")
PICTURE = re.compile(r"outputs/[\w.-]+")

SOLVE = """from sympy import symbols, solve

def solution():
    x = symbols('x')
    return solve({left}, x)
"""
BARS = """import matplotlib.pyplot as plt

def solution():
    figure, axes = plt.subplots(figsize=(7, 4))
    axes.bar(['Mon', 'Tue', 'Wed', 'Thu'], [12, 19, 7, 15], color='#6f4e37')
    axes.set_ylabel('cups of coffee')
    axes.spines[['top', 'right']].set_visible(False)
    return figure
"""
LINES = """import matplotlib.pyplot as plt

def solution():
    figure, axes = plt.subplots(figsize=(7, 3.6))
    axes.plot({months}, {first}, marker='o', color='#2a6f97', label='umbrellas')
    axes.plot({months}, {second}, marker='o', color='#e07a1f', label='sun hats')
    axes.set_ylabel('pieces sold')
    axes.legend(frameon=False)
    axes.spines[['top', 'right']].set_visible(False)
    return figure
"""
REPORT = """# Umbrellas and sun hats, January to June

We sold **{first} umbrellas** and **{second} sun hats**.

{{{{image_1}}}}

Sun hats overtook umbrellas in **{month}**.

## For July

Order sun hats as in June, {last}, and a tenth more, as sales have risen every month. Umbrellas
of the spring will do.
"""
INVITATION = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Picnic</title><style>
body {{ font-family: Georgia, serif; background: #f7efe2; text-align: center; padding: 3rem; }}
h1 {{ color: #c8463c; }} li {{ list-style: none; font-size: 1.3rem; line-height: 1.8; }}
</style></head><body><h1>Come to our picnic!</h1><p>There will be</p><ul>{items}</ul>
<p>Bring a blanket and good weather.</p></body></html>
"""

Results = Sequence[str]


def scripted_model() -> Model:
    """The script as a model that Inspect can ask."""
    return get_model(NAME, custom_outputs=_reply, memoize=False)


def _reply(messages: list[ChatMessage], *_: object) -> ModelOutput:
    request = " ".join(message.text for message in messages if message.role == "user")
    results = [message.text for message in messages if message.role == "tool"]
    play = next(play for word, play in PLAYS.items() if word in request)
    output = play(results)
    # No tokens were used, and without a count the engine would load a tokenizer.
    output.usage = ModelUsage()
    return output


def _receipt(results: Results) -> ModelOutput:
    if not results:
        return _call("OCR", image="inputs/receipt.png")
    if len(results) == 1:
        return _call("Calculator", expression=" + ".join(PRICE.findall(results[0])) or "0")
    return _say(f"You pay {results[1]} in all.")


def _equation(results: Results) -> ModelOutput:
    if not results:
        return _call("OCR", image="inputs/homework.png")
    if len(results) == 1:
        found = EQUATION.search(results[0])
        left = found.group().partition("=")[0].strip() if found else "0"
        return _call("Solver", command=SOLVE.format(left=left))
    return _say(f"The solutions are {results[1]}.")


def _chart(results: Results) -> ModelOutput:
    return _say("Here is the chart.") if results else _call("Plot", command=BARS)


def _departures(results: Results) -> ModelOutput:
    if not results:
        return _call("OCR", image="inputs/departures.png")
    found = LISBON.search(results[0])
    if found is None:
        return _say("I do not find Lisbon on the board.")
    if len(results) == 1:
        return _call("DrawBox", image="inputs/departures.png", bbox=found.group(2))
    return _say(f"Your train to Lisbon leaves at {found.group(1)}.")


def _postcard(results: Results) -> ModelOutput:
    if results:
        return _say("Here is your postcard.")
    text = "Greetings from the seaside"
    return _call("AddText", image="inputs/seaside.png", text=text, position="mt", color="white")


def _sales(results: Results) -> ModelOutput:
    if not results:
        return _call("ReadCSV", csv_file="inputs/sales.csv")
    rows = [line.split(",") for line in results[0].splitlines()[1:] if line.count(",") == 2]
    months, first, second = (list(column) for column in zip(*rows, strict=True))
    if len(results) < 3:
        return _call("Calculator", expression=" + ".join((first, second)[len(results) - 1]))
    if len(results) == 3:
        ahead = [list(map(int, column)) for column in (first, second)]
        code = LINES.format(months=[name[:3] for name in months], first=ahead[0], second=ahead[1])
        return _call("Plot", command=code)
    if len(results) == 4:
        month = next(row[0] for row in rows if int(row[2]) > int(row[1]))
        text = REPORT.format(first=results[1], second=results[2], month=month, last=second[-1])
        return _call(
            "PdfFileGenerator",
            filename="report",
            content=text,
            image_paths=PICTURE.findall(results[3])[0],
        )
    return _say("The report is in report.pdf.")


def _picnic(results: Results) -> ModelOutput:
    if not results:
        return _call("OCR", image="inputs/picnic.png")
    words = WORD.findall(results[0])[4:]
    rows = [words[start : start + 3] for start in range(0, len(words) - 2, 3)]
    if len(results) == 1:
        costs = " + ".join(f"{pieces} * {price}" for _, pieces, price in rows)
        return _call("Calculator", expression=f"round({costs or 0}, 2)")
    if len(results) == 2:
        table: list[list[str]] = [["what", "pieces", "price", "cost"]]
        table += [[*row, f"{int(row[1]) * float(row[2]):.2f}"] for row in rows]
        table += [["total", "", "", f"{float(results[1]):.2f}"]]
        return _call("CsvFileGenerator", filename="shopping", data_str=json.dumps(table))
    if len(results) == 3:
        items = "".join(f"<li>{name}</li>" for name, _, _ in rows)
        page = INVITATION.format(items=items)
        return _call("HtmlFileGenerator", filename="invitation", html_code=page)
    return _say("The table is in shopping.csv, the invitation in invitation.html.")


# A word of each task's request, and what is played for it.
PLAYS: Mapping[str, Callable[[Results], ModelOutput]] = {
    "receipt": _receipt,
    "equation": _equation,
    "bar chart": _chart,
    "Lisbon": _departures,
    "postcard": _postcard,
    "umbrellas": _sales,
    "picnic": _picnic,
}


def _call(tool: str, **arguments: str) -> ModelOutput:
    return ModelOutput.for_tool_call(NAME, tool, arguments)


def _say(text: str) -> ModelOutput:
    return ModelOutput.from_content(NAME, text)
