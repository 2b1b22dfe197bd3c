"""The category of each tool."""

from collections.abc import Mapping
from typing import Final

from gta_bench.records.scores import Category

CATEGORIES: Final[tuple[Category, ...]] = ("perception", "operation", "logic", "creativity")

TOOL_CATEGORY: Final[Mapping[str, Category]] = {
    "OCR": "perception",
    "ImageDescription": "perception",
    "RegionAttributeDescription": "perception",
    "TextToBbox": "perception",
    "DrawBox": "operation",
    "AddText": "operation",
    "GoogleSearch": "operation",
    "Calculator": "logic",
    "Solver": "logic",
    "Plot": "logic",
    "MathOCR": "logic",
    "CountGivenObject": "logic",
    "TextToImage": "creativity",
    "ImageStylization": "creativity",
}

# GTA-Workflow has more tools; the F1 of GTA-Atomic does not count them.
WORKFLOW_CATEGORY: Final[Mapping[str, Category]] = {
    **TOOL_CATEGORY,
    "ImageQualityTest": "perception",
    "SoundCharacteristicExtraction": "perception",
    "SpeechToText": "perception",
    "VideoDescription": "perception",
    "VideoObjectDetection": "perception",
    "VideoOCR": "perception",
    "ReadCSV": "operation",
    "ReadDOCX": "operation",
    "ReadPDF": "operation",
    "ReadPPTX": "operation",
    "ReadXLSX": "operation",
    "DocxFileGenerator": "operation",
    "PdfFileGenerator": "operation",
    "HtmlFileGenerator": "operation",
    "PptxFileGenerator": "operation",
    "XlsxFileGenerator": "operation",
    "CsvFileGenerator": "operation",
    "AudioClipTool": "operation",
    "NoiseReduction": "operation",
    "PitchShifting": "operation",
    "VideoClip": "operation",
    "AddTextVideoTool": "operation",
    "Prover": "logic",
    "TextToVideoTool": "creativity",
}

# A task without a reference answer asks for an image and is scored by its calls of these tools.
IMAGE_TOOLS: Final = frozenset({"DrawBox", "AddText", "Plot", "TextToImage", "ImageStylization"})
