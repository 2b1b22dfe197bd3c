"""All tools by name; importing this table imports no tool."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from gta_bench.errors import UsageError, suggest_name
from gta_bench.tools.contract import Tool

CATALOG: Mapping[str, str] = {
    "Calculator": "gta_bench.tools.logic.calculator:Calculator",
    "Solver": "gta_bench.tools.logic.solver:Solver",
    "Plot": "gta_bench.tools.logic.plot:Plot",
    "Prover": "gta_bench.tools.logic.prover:Prover",
    "GoogleSearch": "gta_bench.tools.operation.google_search:GoogleSearch",
    "DrawBox": "gta_bench.tools.operation.mark_image:DrawBox",
    "AddText": "gta_bench.tools.operation.mark_image:AddText",
    "ImageQualityTest": "gta_bench.tools.perception.image_quality:ImageQualityTest",
    "OCR": "gta_bench.tools.perception.ocr:OCR",
    "ImageDescription": "gta_bench.tools.perception.image_description:ImageDescription",
    "RegionAttributeDescription": "gta_bench.tools.perception.region:RegionAttributeDescription",
    "TextToBbox": "gta_bench.tools.perception.text_to_bbox:TextToBbox",
    "CountGivenObject": "gta_bench.tools.logic.count_given_object:CountGivenObject",
    "MathOCR": "gta_bench.tools.logic.math_ocr:MathOCR",
    "TextToImage": "gta_bench.tools.creativity.text_to_image:TextToImage",
    "ImageStylization": "gta_bench.tools.creativity.image_stylization:ImageStylization",
    "ReadCSV": "gta_bench.tools.operation.read_files:ReadCSV",
    "ReadDOCX": "gta_bench.tools.operation.read_files:ReadDOCX",
    "ReadPDF": "gta_bench.tools.operation.read_files:ReadPDF",
    "ReadPPTX": "gta_bench.tools.operation.read_files:ReadPPTX",
    "ReadXLSX": "gta_bench.tools.operation.read_files:ReadXLSX",
    "DocxFileGenerator": "gta_bench.tools.operation.document_files:DocxFileGenerator",
    "PdfFileGenerator": "gta_bench.tools.operation.document_files:PdfFileGenerator",
    "HtmlFileGenerator": "gta_bench.tools.operation.html_file:HtmlFileGenerator",
    "PptxFileGenerator": "gta_bench.tools.operation.document_files:PptxFileGenerator",
    "XlsxFileGenerator": "gta_bench.tools.operation.table_files:XlsxFileGenerator",
    "CsvFileGenerator": "gta_bench.tools.operation.table_files:CsvFileGenerator",
    "AudioClipTool": "gta_bench.tools.operation.clips:AudioClipTool",
    "NoiseReduction": "gta_bench.tools.operation.sound_effects:NoiseReduction",
    "PitchShifting": "gta_bench.tools.operation.sound_effects:PitchShifting",
    "VideoClip": "gta_bench.tools.operation.clips:VideoClip",
    "AddTextVideoTool": "gta_bench.tools.operation.add_text_video:AddTextVideoTool",
    "SoundCharacteristicExtraction": (
        "gta_bench.tools.perception.sound_characteristics:SoundCharacteristicExtraction"
    ),
    "SpeechToText": "gta_bench.tools.perception.speech_to_text:SpeechToText",
    "VideoDescription": "gta_bench.tools.perception.video_description:VideoDescription",
    "VideoObjectDetection": (
        "gta_bench.tools.perception.video_object_detection:VideoObjectDetection"
    ),
    "VideoOCR": "gta_bench.tools.perception.video_ocr:VideoOCR",
    "TextToVideoTool": "gta_bench.tools.creativity.text_to_video:TextToVideoTool",
}
ENTRY_POINTS = "gta_bench.tools"


def tool_names() -> tuple[str, ...]:
    """Return our tools in the order of the table, then those of other packages."""
    return (*CATALOG, *(name for name in _others() if name not in CATALOG))


def load_tool(name: str) -> type[Tool[Any]]:
    """Return the class of a tool; raises UsageError for an unknown name."""
    target = CATALOG.get(name) or _others().get(name)
    if target is None:
        known = sorted(tool_names())
        raise UsageError(
            f"Unknown tool {name!r}{suggest_name(name, known)} Known: {', '.join(known)}."
        )
    module, _, attribute = target.partition(":")
    return cast(type[Tool[Any]], getattr(import_module(module), attribute))


@cache
def own_category(name: str) -> str | None:
    """Return the category of a tool of another package; None for ours and for unknown ones."""
    if name in CATALOG or name not in _others():
        return None
    return load_tool(name).category


def own_packages(names: Iterable[str]) -> dict[str, str]:
    """Return the packages of the tools that are not ours, with their versions."""
    wanted = {*names} - {*CATALOG}
    found = [point.dist for point in entry_points(group=ENTRY_POINTS) if point.name in wanted]
    return {dist.name: dist.version for dist in found if dist is not None}


def _others() -> dict[str, str]:
    """Return the tools that other packages register as entry points of `gta_bench.tools`."""
    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
