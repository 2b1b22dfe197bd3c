"""The demo's scripted system, which calls real tools, and its scripted judge.

Neither is a language model. The system knows the seven tasks and reads the tools' replies. It
leaves one thing out on purpose, what each person pays for the picnic, so that the report has a
failure to show. The judge looks for fixed words in the evidence, and cannot be used on other tasks.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence

from inspect_ai.model import ChatMessage, ContentText, Model, ModelOutput, ModelUsage, get_model

from gta_bench.running.stopping import use_engine

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
JUDGE_NAME = "mockllm/scripted-judge"
LEAF = re.compile(r"^leaf: (\S+)$", re.MULTILINE)
SHOWN = re.compile(r"^BEGIN (\w+) deliverable (\"[^\n]*\")\n(.*?)^END \1", re.DOTALL | re.MULTILINE)
# What the deliverables must contain for each leaf; the evidence shows a picture by its label.
WANTED: Mapping[str, tuple[str, ...]] = {
    "umbrellas": ("486",),
    "hats": ("623",),
    "overtaking": ("April",),
    "document": ("report.pdf", "January to June"),
    "chart": ("page 1",),
    "order": ("July", "risen every month"),
    "lines": ("Bread,3,2.40,7.20", "Cheese,2,5.50,11.00", "Grapes,4,1.80,7.20", "Lemonade,6"),
    "total": ("32.90",),
    "menu": ("Bread", "Cheese", "Grapes", "Lemonade"),
    "share": ("5.48",),
}

Results = Sequence[str]


def make_scripted_model() -> Model:
    """Return the scripted system as an Inspect model."""
    with use_engine():
        return get_model(NAME, custom_outputs=_reply, memoize=False)


def _reply(messages: list[ChatMessage], *_: object) -> ModelOutput:
    request = " ".join(message.text for message in messages if message.role == "user")
    results = [message.text for message in messages if message.role == "tool"]
    answer = next(answer for word, answer in ANSWERS.items() if word in request)
    output = answer(results)
    # Without a count of tokens, the engine would load a tokenizer.
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
        pictures = PICTURE.findall(results[3])
        if not pictures:
            return _say("The chart cannot be drawn here, so there is no report.")
        month = next(row[0] for row in rows if int(row[2]) > int(row[1]))
        text = REPORT.format(first=results[1], second=results[2], month=month, last=second[-1])
        return _call(
            "PdfFileGenerator",
            filename="report",
            content=text,
            image_paths=pictures[0],
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


# A word from the request of each task, and the function that answers it.
ANSWERS: Mapping[str, Callable[[Results], ModelOutput]] = {
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


def make_scripted_judge() -> Model:
    """Return the scripted judge as an Inspect model."""
    with use_engine():
        return get_model(JUDGE_NAME, custom_outputs=_judge, memoize=False)


def _judge(messages: list[ChatMessage], *_: object) -> ModelOutput:
    content = messages[-1].content
    parts = [part.text for part in content if isinstance(part, ContentText)]
    assert not isinstance(content, str)
    leaf = LEAF.findall(parts[-1])[-1]
    shown = {json.loads(name): text for _, name, text in SHOWN.findall("\n".join(parts[:-1]))}
    output = ModelOutput.from_content(JUDGE_NAME, json.dumps(_verdict(leaf, shown)))
    output.usage = ModelUsage()
    return output


def _verdict(leaf: str, shown: Mapping[str, str]) -> dict[str, object]:
    everything = "\n".join(f"{name}\n{text}" for name, text in shown.items())
    wanted = WANTED[leaf.rpartition("~")[0]]  # names of leaves end in a mark of the unit
    missing = [words for words in wanted if words not in everything]
    used = [name for name, text in shown.items() if any(words in text for words in wanted)]
    reason = (
        f"Missing in the evidence: {', '.join(missing)}." if missing else "Everything is there."
    )
    score = round(10 * (len(wanted) - len(missing)) / len(wanted))
    return {"leaf": leaf, "used": used, "reason": f"Scripted check. {reason}", "score": score}
