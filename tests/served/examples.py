"""One call of each tool that works without a key, and the files it needs."""

import json
from pathlib import Path

from pydantic import JsonValue

from gta_bench.cli.demo import DATA
from tests.content.samples import docx, paragraph
from tests.tools.media_files import ffmpeg, make_stereo, make_video
from tests.tools.media_weights import fetch_speech

PLOT = """import matplotlib.pyplot as plt
def solution():
    figure = plt.figure()
    plt.plot([1, 2, 3], [1, 4, 9])
    return figure
"""
SOLVE = """from sympy import symbols, solve
def solution():
    x = symbols("x")
    return solve(x**2 - 4, x)
"""
THEOREM = "(declare-const x Int) (assert (> x 3)) (assert (< x 5)) (check-sat)"
IMAGE = "inputs/receipt.png"
SOUND = "inputs/tone.wav"
FILM = "inputs/film.mp4"
SPEECH = "inputs/speech.wav"
READABLE = "inputs/readable.mp4"

Call = tuple[str, dict[str, JsonValue]]
LIGHT: list[Call] = [
    ("Calculator", {"expression": "math.sqrt(2) * 7"}),
    ("DrawBox", {"image": IMAGE, "bbox": "(10, 10, 90, 60)", "annotation": "total 总计"}),
    ("AddText", {"image": IMAGE, "text": "seen", "position": "lt"}),
    ("ImageQualityTest", {"image": IMAGE}),
    ("ReadCSV", {"csv_file": "inputs/table.csv"}),
    ("HtmlFileGenerator", {"filename": "page", "html_code": "<h1>Report</h1>"}),
    ("CsvFileGenerator", {"filename": "t", "data_str": json.dumps([["a", "b"], ["1", "茶"]])}),
    ("Calculator", {"expression": "1/"}),
    ("DrawBox", {"image": "inputs/none.png", "bbox": "(1, 1, 2, 2)"}),
    ("MathOCR", {"image": IMAGE}),
]
JAILED: list[Call] = [
    ("Solver", {"command": SOLVE}),
    ("Plot", {"command": PLOT}),
    ("Prover", {"theorem": THEOREM}),
    ("ReadDOCX", {"file": "inputs/letter.docx"}),
    ("DocxFileGenerator", {"filename": "d", "content": "# Title\n\nText", "image_paths": ""}),
    ("PdfFileGenerator", {"filename": "p", "content": "# Title\n\nText", "image_paths": ""}),
    (
        "PptxFileGenerator",
        {
            "filename": "s",
            "slides_content_str": json.dumps([{"title": "One", "content": "- a\n- b"}]),
            "image_paths": "",
        },
    ),
    ("XlsxFileGenerator", {"filename": "x", "data_str": json.dumps({"S": [["a", 1], ["b", 2]]})}),
    ("ReadPDF", {"file": "inputs/p.pdf"}),
    ("ReadPPTX", {"file": "inputs/s.pptx"}),
    ("ReadXLSX", {"file": "inputs/x.xlsx"}),
    ("AudioClipTool", {"audio": SOUND, "start_time": 0.2, "end_time": 0.6}),
    ("NoiseReduction", {"audio": SOUND}),
    ("PitchShifting", {"audio": SOUND, "n_steps": 2}),
    ("SoundCharacteristicExtraction", {"audio": SOUND}),
    ("VideoClip", {"video": FILM, "start_time": 0.2, "end_time": 0.8}),
    ("AddTextVideoTool", {"video": FILM, "text": "seen"}),
]
MODELS: list[Call] = [
    ("OCR", {"image": IMAGE}),
    ("ImageDescription", {"image": IMAGE}),
    ("CountGivenObject", {"image": IMAGE, "text": "person"}),
    ("TextToBbox", {"image": IMAGE, "text": "person"}),
    (
        "RegionAttributeDescription",
        {"image": IMAGE, "bbox": "(10, 10, 200, 100)", "attribute": "color"},
    ),
    ("ImageStylization", {"image": IMAGE, "instruction": "convert to sketch style"}),
    ("SpeechToText", {"audio": SPEECH}),
    ("VideoOCR", {"video": READABLE}),
    ("VideoObjectDetection", {"video": READABLE}),
]
# Their answers come from a key or an endpoint, so there is none to compare without one.
REMOTE = frozenset({"GoogleSearch", "TextToImage", "TextToVideoTool", "VideoDescription"})
# They write the time into their files; the files' names are compared.
DATED = frozenset({"PdfFileGenerator", "PptxFileGenerator", "XlsxFileGenerator"})


def light_files() -> dict[str, bytes]:
    return {
        IMAGE: (DATA / "image" / "receipt.png").read_bytes(),
        "inputs/table.csv": "name,n\nTee 茶,3\n".encode(),
    }


def media_files(folder: Path) -> dict[str, bytes]:
    return {
        SOUND: make_stereo(folder / "tone.wav", seconds=1).read_bytes(),
        FILM: make_video(folder / "film.mp4", seconds=1, size="160x120").read_bytes(),
        "inputs/letter.docx": docx(paragraph("A letter.")),
    }


def model_files(folder: Path) -> dict[str, bytes]:
    """Human speech, and a film of a page; raises FetchError where the speech is not to be had."""
    film = folder / "readable.mp4"
    still = ["-loop", "1", "-i", str(DATA / "image" / "receipt.png"), "-t", "1", "-r", "4"]
    ffmpeg(*still, "-vf", "scale=trunc(iw/2)*2:trunc(ih/2)*2", "-pix_fmt", "yuv420p", str(film))
    return {SPEECH: fetch_speech().read_bytes(), READABLE: film.read_bytes()}
