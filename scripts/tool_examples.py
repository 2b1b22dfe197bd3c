"""Call every tool once and keep what it said for the reference; run by hand when a tool changes.

The tools are real and work offline; what needs a key or an endpoint keeps its call alone.
"""

import asyncio
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib
from PIL import Image
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.demo import ATOMIC, WORKFLOW
from gta_bench.errors import ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.settings import Settings
from gta_bench.tools.catalog import CATALOG
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.toolbox import Toolbox

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
EXAMPLES = REFERENCE / "tool-examples.json"
PICTURES = REFERENCE / "pictures"
# A photograph in the public domain that comes with matplotlib.
PHOTO = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
WORDS = "The ferry to the island leaves at nine."
SHOWN = 500  # characters of a reply
WIDEST = 420  # pixels of a kept picture

SOLVER = """from sympy import symbols, solve
def solution():
    x = symbols('x')
    return str(solve(x**2 - 5*x + 6, x))"""
PLOT = """import matplotlib.pyplot as plt
def solution():
    figure = plt.figure(figsize=(4, 3))
    plt.bar(['May', 'June', 'July'], [38, 20, 31])
    plt.ylabel('umbrellas')
    return figure"""
THEOREM = "(declare-const p Bool) (declare-const q Bool) (assert (=> (and p q) p))"
REPORT = (
    "# Sales\n\nUmbrellas fell, **sun hats** rose.\n\n| month | hats |\n|---|---|\n| May | 176 |"
)
SLIDES = '[{"title": "Sales", "content": ["Umbrellas fell", "Sun hats rose"]}]'
ROWS = '[["month", "hats"], ["May", 176], ["June", 231]]'
SUM = '[["month", "hats"], ["May", 176], ["June", 231], ["sum", "=SUM(B2:B3)"]]'

# In the order in which they are called: what one makes, another reads.
CALLS: dict[str, dict[str, JsonValue]] = {
    "Calculator": {"expression": "sqrt(2) * 3.2 / 0.75"},
    "Solver": {"command": SOLVER},
    "Plot": {"command": PLOT},
    "Prover": {"theorem": THEOREM},
    "GoogleSearch": {"query": "ferry timetable Lisbon", "k": 3},
    "DrawBox": {
        "image": "inputs/photo.jpg",
        "bbox": "(165, 15, 375, 330)",
        "annotation": "admiral",
    },
    "AddText": {"image": "inputs/seaside.png", "text": "See you soon", "position": "mt"},
    "ImageQualityTest": {"image": "inputs/photo.jpg"},
    "OCR": {"image": "inputs/receipt.png"},
    "ImageDescription": {"image": "inputs/photo.jpg"},
    "RegionAttributeDescription": {
        "image": "inputs/photo.jpg",
        "bbox": "(100, 20, 400, 600)",
        "attribute": "color",
    },
    "TextToBbox": {"image": "inputs/photo.jpg", "text": "person"},
    "CountGivenObject": {"image": "inputs/photo.jpg", "text": "person"},
    "MathOCR": {"image": "inputs/homework.png"},
    "TextToImage": {"keywords": "lighthouse, watercolour, morning"},
    "ImageStylization": {"image": "inputs/photo.jpg", "instruction": "in the style of a mosaic"},
    "DocxFileGenerator": {"filename": "report", "content": REPORT, "image_paths": ""},
    "PdfFileGenerator": {"filename": "report", "content": REPORT, "image_paths": ""},
    "HtmlFileGenerator": {"filename": "page", "html_code": "<h1>Sales</h1><p>Sun hats rose.</p>"},
    "PptxFileGenerator": {"filename": "deck", "slides_content_str": SLIDES, "image_paths": ""},
    "XlsxFileGenerator": {"filename": "table", "data_str": SUM},
    "CsvFileGenerator": {"filename": "table", "data_str": ROWS},
    "ReadCSV": {"csv_file": "outputs/table.csv"},
    "ReadDOCX": {"file": "outputs/report.docx"},
    "ReadPDF": {"file": "outputs/report.pdf"},
    "ReadPPTX": {"file": "outputs/deck.pptx"},
    "ReadXLSX": {"file": "outputs/table.xlsx"},
    "AudioClipTool": {"audio": "inputs/speech.wav", "start_time": 0.5, "end_time": 1.5},
    "NoiseReduction": {"audio": "inputs/speech.wav"},
    "PitchShifting": {"audio": "inputs/speech.wav", "n_steps": 4},
    "VideoClip": {"video": "inputs/film.mp4", "start_time": 0, "end_time": 1},
    "AddTextVideoTool": {"video": "inputs/film.mp4", "text": "Departures", "position": "30,60"},
    "SoundCharacteristicExtraction": {"audio": "inputs/speech.wav"},
    "SpeechToText": {"audio": "inputs/speech.wav"},
    "VideoDescription": {"video": "inputs/film.mp4"},
    "VideoObjectDetection": {"video": "inputs/film.mp4"},
    "VideoOCR": {"video": "inputs/film.mp4"},
    "TextToVideoTool": {"description": "waves at a beach"},
}


def main() -> None:
    """Call the tools; write the examples and the pictures that tools made."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        workspace = Workspace.create(place / "task", _inputs(place), follow_links=True)
        found = asyncio.run(_called(workspace))
        shutil.rmtree(PICTURES, ignore_errors=True)
        for name, result in found.items():
            _keep_picture(name, result, workspace)
    written = {name: _example(name, found.get(name)) for name in CATALOG}
    text = json.dumps(written, indent=1, ensure_ascii=False)
    EXAMPLES.write_text(f"{text}\n", encoding="utf-8")


async def _called(workspace: Workspace) -> dict[str, ToolResult]:
    found = {}
    async with use_equipment(Settings()) as equipment:
        toolbox = Toolbox(equipment)
        for name, arguments in CALLS.items():
            try:
                found[name] = await toolbox.call(workspace, name, arguments)
            except ToolUnavailable as exc:
                print(f"{name}: {exc}")
    return found


def _example(name: str, result: ToolResult | None) -> dict[str, JsonValue]:
    if result is None:
        return {"arguments": CALLS[name]}
    said = result.text.strip()
    cut = said if len(said) <= SHOWN else f"{said[:SHOWN].rstrip()} …"
    picture = f"pictures/{name}.webp"
    kept: dict[str, JsonValue] = {"picture": picture} if (REFERENCE / picture).is_file() else {}
    return {"arguments": CALLS[name], "said": cut, "backend": result.backend, **kept}


def _keep_picture(name: str, result: ToolResult, workspace: Workspace) -> None:
    for part in result.parts:
        if part.type == "image":
            with workspace.open(part.content) as file, Image.open(file) as picture:
                picture.thumbnail((WIDEST, WIDEST))
                PICTURES.mkdir(exist_ok=True)
                picture.convert("RGB").save(PICTURES / f"{name}.webp", quality=80)


def _inputs(place: Path) -> dict[str, Path]:
    """Pictures of the demo, a photograph, words that flite speaks, and a film of both."""
    speech, film = place / "speech.wav", place / "film.mp4"
    subprocess.run(["flite", "-t", WORDS, "-o", str(speech)], check=True)
    command = ["ffmpeg", "-loglevel", "error"]
    for picture in (PHOTO, ATOMIC / "image" / "departures.png"):
        command += ["-loop", "1", "-i", str(picture)]
    beside = "[0]scale=-2:360[a];[1]scale=-2:360[b];[a][b]hstack"
    command += ["-i", str(speech), "-t", "2", "-filter_complex", beside]
    command += ["-pix_fmt", "yuv420p", str(film)]
    subprocess.run(command, check=True)
    pictures = {f"inputs/{file.name}": file for file in (ATOMIC / "image").iterdir()}
    table = WORKFLOW / "files" / "sales.csv"
    own = {"photo.jpg": PHOTO, "speech.wav": speech, "film.mp4": film, "sales.csv": table}
    return {**pictures, **{f"inputs/{name}": file for name, file in own.items()}}


if __name__ == "__main__":
    main()
