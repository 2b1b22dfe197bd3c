"""Write the demo's two datasets and draw their pictures; run by hand when one is to change."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from gta_bench.demo.script import BARS
from gta_bench.tools.catalog import load_tool

FOLDER = Path(__file__).parent.parent / "src" / "gta_bench" / "demo" / "data"
FONTS = Path("/usr/share/fonts/truetype/dejavu")
Entry = dict[str, Any]

RECEIPT = [
    ("Coffee", "3.20"),
    ("Cheese sandwich", "6.75"),
    ("Apple juice", "2.90"),
    ("Muffin", "2.15"),
]
DEPARTURES = [
    ("09:05", "Porto", "4"),
    ("09:40", "Madrid", "1"),
    ("10:15", "Lisbon", "7"),
    ("10:50", "Seville", "2"),
]
PICNIC = [("Bread", "3", "2.40"), ("Cheese", "2", "5.50"), ("Grapes", "4", "1.80")]
PICNIC += [("Lemonade", "6", "1.25")]
SALES = [("month", "umbrellas", "sun hats"), ("January", 140, 12), ("February", 122, 25)]
SALES += [("March", 95, 61), ("April", 71, 118), ("May", 38, 176), ("June", 20, 231)]

SOLVE = """from sympy import symbols, solve

def solution():
    x = symbols('x')
    return solve(x**2 - 5*x + 6, x)
"""


def main() -> None:
    """Draw the pictures and write both datasets."""
    for name, picture in _pictures().items():
        file = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        picture.save(file, optimize=True)
    lines = [",".join(map(str, row)) for row in SALES]
    table = FOLDER / "workflow" / "files" / "sales.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    atomic, workflow = _atomic(), _workflow()
    _write("atomic/dataset.json", atomic)
    _write("atomic/toolmeta.json", {tool["name"]: tool for tool in _tools(atomic)})
    _write("workflow/end.json", workflow)
    _write("workflow/toolmeta.json", _tools(workflow))


def _write(name: str, value: object) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    (FOLDER / name).write_text(f"{text}\n", encoding="utf-8")


def _tools(tasks: Mapping[str, Entry]) -> list[Entry]:
    listed = {tool["name"]: tool for task in tasks.values() for tool in task["tools"]}
    return list(listed.values())


def _atomic() -> dict[str, Entry]:
    read = "Reads the text first."
    return {
        "receipt": _task(
            "How much do I have to pay for everything on this receipt?",
            [
                _call("OCR", read, image="image/receipt.png"),
                _reply("OCR", "CORNER CAFE Coffee 3.20 Cheese sandwich 6.75 Apple juice 2.90 ..."),
                _call("Calculator", "Adds it up.", expression="3.20 + 6.75 + 2.90 + 2.15"),
                _reply("Calculator", "15.0"),
            ],
            "You pay 15.00 in all.",
            [["15", "15.0", "15.00"]],
        ),
        "homework": _task(
            "What are the solutions of the equation on this note?",
            [
                _call("OCR", read, image="image/homework.png"),
                _reply("OCR", "Homework Solve for x: x**2 - 5*x + 6 = 0"),
                _call("Solver", "Solves the equation.", command=SOLVE),
                _reply("Solver", "[2, 3]"),
            ],
            "The solutions are 2 and 3.",
            [["2"], ["3"]],
        ),
        "chart": _task(
            "Draw a bar chart of the cups of coffee I drank: Monday 12, Tuesday 19, Wednesday 7, "
            "Thursday 15.",
            [
                _call("Plot", "Draws the chart.", command=BARS),
                _reply("Plot", "image/dummy_generated_image.jpg", "image"),
            ],
            "Here is the chart.",
            None,
        ),
        "departures": _task(
            "I travel to Lisbon. Put a box around my train's destination on the board, and tell me "
            "when it leaves.",
            [
                _call("OCR", read, image="image/departures.png"),
                _reply("OCR", "DEPARTURES 09:05 Porto 4 09:40 Madrid 1 10:15 Lisbon 7 ..."),
                _call(
                    "DrawBox",
                    "Marks the destination.",
                    image="image/departures.png",
                    bbox="(254, 264, 389, 305)",
                ),
                _reply("DrawBox", "image/dummy_generated_image.jpg", "image"),
            ],
            "Your train to Lisbon leaves at 10:15.",
            [["10:15"]],
        ),
        "postcard": _task(
            "Write 'Greetings from the seaside' on this picture, for a postcard.",
            [
                _call(
                    "AddText",
                    "Writes on the picture.",
                    image="image/seaside.png",
                    text="Greetings from the seaside",
                    position="mt",
                    color="white",
                ),
                _reply("AddText", "image/dummy_generated_image.jpg", "image"),
            ],
            "Here is your postcard.",
            None,
        ),
    }


def _workflow() -> dict[str, Entry]:
    return {
        "sales": {
            "tools": [_tool(name) for name in ("ReadCSV", "Calculator", "Plot")]
            + [_tool("PdfFileGenerator")],
            "files": [{"type": "file", "path": "files/sales.csv", "url": None}],
            "dialogs": [
                {
                    "role": "user",
                    "content": "Our shop sells umbrellas and sun hats. From the sales of the first "
                    "half of the year, make a report for the owner as a PDF file: the totals of "
                    "both, a line chart of both over the months, in which month sun hats overtook "
                    "umbrellas, and what to order for July.",
                }
            ],
            "sub_tasks": [
                _node(
                    "figures",
                    "The figures are right",
                    3,
                    _node("umbrellas", "The total of umbrellas, 486, is given", 1),
                    _node("hats", "The total of sun hats, 623, is given", 1),
                    _node("overtaking", "April is named: sun hats overtook umbrellas in it", 2),
                ),
                _node(
                    "report",
                    "The report is fit for the owner",
                    2,
                    _node("document", "It is a PDF file with a heading", 1),
                    _node("chart", "A line chart of both products is in it", 2),
                    _node("order", "It says what to order for July, with a reason", 1),
                ),
            ],
            "workflow_category_6class": "Data Analysis & Quantitative Reasoning",
        },
        "picnic": {
            "tools": [_tool(name) for name in ("OCR", "Calculator", "CsvFileGenerator")]
            + [_tool("HtmlFileGenerator")],
            "files": [{"type": "image", "path": "image/picnic.png", "url": None}],
            "dialogs": [
                {
                    "role": "user",
                    "content": "Six of us plan a picnic; the shopping list is in the picture "
                    "(pieces, and the price of one). Make a CSV file with what each line costs and "
                    "the total, and an invitation as an HTML page that says what there is to eat "
                    "and what each of us pays.",
                }
            ],
            "sub_tasks": [
                _node(
                    "table",
                    "The table adds up",
                    2,
                    _node("lines", "Every line of the list is in the CSV file with its cost", 2),
                    _node("total", "The total, 32.90, is in the CSV file", 1),
                ),
                _node(
                    "invitation",
                    "The invitation",
                    1,
                    _node("menu", "It names bread, cheese, grapes and lemonade", 1),
                    _node("share", "It says what each of the six pays, 5.48", 1),
                ),
            ],
            "workflow_category_6class": "Planning & Decision Support",
        },
    }


def _node(name: str, requirements: str, weight: float, *children: Entry) -> Entry:
    node: Entry = {"id": name, "requirements": requirements, "weight": weight}
    return {**node, "sub_tasks": list(children)} if children else node


def _task(request: str, steps: Sequence[Entry], answer: str, accepted: Any) -> Entry:
    calls = [step["tool_calls"][0]["function"] for step in steps if "tool_calls" in step]
    images = dict.fromkeys(call["arguments"]["image"] for call in calls if "image" in str(call))
    return {
        "tools": [_tool(call["name"]) for call in calls],
        "files": [{"type": "image", "path": path, "url": None} for path in images],
        "dialogs": [
            {"role": "user", "content": request},
            *steps,
            {"role": "assistant", "content": answer},
        ],
        "gt_answer": accepted and {"whitelist": accepted, "blacklist": None},
    }


def _call(tool: str, thought: str, /, **arguments: str) -> Entry:
    function = {"name": tool, "arguments": arguments}
    entry = {"type": "function", "function": function}
    return {"role": "assistant", "tool_calls": [entry], "thought": thought}


def _reply(tool: str, content: str, kind: str = "text") -> Entry:
    return {"role": "tool", "name": tool, "content": {"type": kind, "content": content}}


def _tool(name: str) -> Entry:
    return load_tool(name).spec().model_dump(mode="json")


def _pictures() -> dict[str, Image.Image]:
    return {
        "atomic/image/receipt.png": _receipt(),
        "atomic/image/homework.png": _homework(),
        "atomic/image/departures.png": _departures(),
        "atomic/image/seaside.png": _seaside(),
        "workflow/image/picnic.png": _picnic(),
    }


def _font(size: int, name: str = "DejaVuSans.ttf") -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(FONTS / name), size)


def _receipt() -> Image.Image:
    picture = Image.new("RGB", (560, 400), "#d9d3c7")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((30, 20, 530, 380), fill="#fffdf7")
    mono = _font(28, "DejaVuSansMono.ttf")
    draw.text(
        (280, 62), "CORNER CAFE", font=_font(32, "DejaVuSans-Bold.ttf"), fill="#222", anchor="mm"
    )
    draw.line((60, 100, 500, 100), fill="#999", width=2)
    for number, (name, price) in enumerate(RECEIPT):
        top = 125 + 52 * number
        draw.text((60, top), name, font=mono, fill="#222")
        draw.text((500, top), price, font=mono, fill="#222", anchor="ra")
    draw.line((60, 345, 500, 345), fill="#999", width=2)
    return picture


def _homework() -> Image.Image:
    picture = Image.new("RGB", (560, 300), "#fff3b0")
    draw = ImageDraw.Draw(picture)
    draw.polygon([(500, 300), (560, 240), (560, 300)], fill="#e8d37a")
    lines = ["Homework", "Solve for x:", "x**2 - 5*x + 6 = 0"]
    for number, line in enumerate(lines):
        font = _font(30, "DejaVuSansMono.ttf")
        draw.text((60, 48 + 62 * number), line, font=font, fill="#1f3b73")
    return picture


def _departures() -> Image.Image:
    picture = Image.new("RGB", (720, 440), "#12181f")
    draw = ImageDraw.Draw(picture)
    draw.text((40, 28), "DEPARTURES", font=_font(36, "DejaVuSans-Bold.ttf"), fill="#ffffff")
    for number, row in enumerate(DEPARTURES):
        top = 110 + 78 * number
        draw.rectangle((30, top - 10, 690, top + 54), fill="#1e2833")
        for left, text in zip((50, 260, 620), row, strict=True):
            draw.text((left, top), text, font=_font(34, "DejaVuSansMono.ttf"), fill="#ffc83d")
    return picture


def _seaside() -> Image.Image:
    picture = Image.new("RGB", (720, 440))
    draw = ImageDraw.Draw(picture)
    for row in range(260):
        share = row / 260
        color = (int(70 + 180 * share), int(120 + 70 * share), int(190 - 60 * share))
        draw.line((0, row, 720, row), fill=color)
    draw.ellipse((300, 170, 420, 290), fill="#ffe9a8")
    for row in range(260, 380):
        share = (row - 260) / 110
        draw.line((0, row, 720, row), fill=(int(30 + 20 * share), 90, int(140 - 20 * share)))
    for row in range(272, 366, 16):
        half = 62 - (row - 272) // 3
        draw.line((360 - half, row, 360 + half, row), fill="#ffe9a8", width=3)
    draw.polygon([(0, 350), (300, 372), (720, 356), (720, 440), (0, 440)], fill="#e3c68c")
    draw.polygon([(520, 262), (580, 262), (566, 282), (534, 282)], fill="#5a3b28")
    draw.polygon([(550, 200), (550, 258), (594, 258)], fill="#ffffff")
    return picture


def _picnic() -> Image.Image:
    picture = Image.new("RGB", (640, 420), "#f7efe2")
    draw = ImageDraw.Draw(picture)
    for left in range(0, 640, 40):
        for top in (0, 400):
            draw.rectangle((left, top, left + 19, top + 20), fill="#c8463c")
    draw.text((320, 62), "PICNIC", font=_font(36, "DejaVuSans-Bold.ttf"), fill="#333", anchor="mm")
    for number, row in enumerate((("what", "pieces", "price"), *PICNIC)):
        top = 110 + 54 * number
        for left, text in zip((60, 320, 490), row, strict=True):
            draw.text((left, top), text, font=_font(28), fill="#777" if number == 0 else "#222")
    return picture


if __name__ == "__main__":
    main()
