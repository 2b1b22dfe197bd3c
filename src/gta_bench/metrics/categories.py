"""The category of each tool."""

from collections.abc import Mapping
from typing import Final

from gta_bench.records.scores import Category

CATEGORIES: Final[tuple[Category, ...]] = ("perception", "operation", "logic", "creativity")

_ATOMIC_TOOLS: Final[Mapping[Category, tuple[str, ...]]] = {
    "perception": ("OCR", "ImageDescription", "RegionAttributeDescription", "TextToBbox"),
    "operation": ("DrawBox", "AddText", "GoogleSearch"),
    "logic": ("Calculator", "Solver", "Plot", "MathOCR", "CountGivenObject"),
    "creativity": ("TextToImage", "ImageStylization"),
}
TOOL_CATEGORY: Final[Mapping[str, Category]] = {
    tool: category for category, tools in _ATOMIC_TOOLS.items() for tool in tools
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
