"""Every tool by name; importing this table imports no tool."""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from gta_bench.errors import UsageError
from gta_bench.tools.contract import Tool

CATALOG: Mapping[str, str] = {
    "DocxFileGenerator": "gta_bench.tools.operation.docx_file:DocxFileGenerator",
    "PdfFileGenerator": "gta_bench.tools.operation.pdf_file:PdfFileGenerator",
    "HtmlFileGenerator": "gta_bench.tools.operation.html_file:HtmlFileGenerator",
    "PptxFileGenerator": "gta_bench.tools.operation.pptx_file:PptxFileGenerator",
    "XlsxFileGenerator": "gta_bench.tools.operation.xlsx_file:XlsxFileGenerator",
    "CsvFileGenerator": "gta_bench.tools.operation.csv_file:CsvFileGenerator",
}
ENTRY_POINTS = "gta_bench.tools"


def tool_names() -> tuple[str, ...]:
    """Our tools in the table's order, then those that other packages bring."""
    return (*CATALOG, *(name for name in _others() if name not in CATALOG))


def load_tool(name: str) -> type[Tool[Any]]:
    """The class of a tool."""
    target = CATALOG.get(name) or _others().get(name)
    if target is None:
        raise UsageError(f"Unknown tool {name!r}. Known tools: {', '.join(sorted(tool_names()))}.")
    module, _, attribute = target.partition(":")
    return cast(type[Tool[Any]], getattr(import_module(module), attribute))


def _others() -> dict[str, str]:
    """Tools of other packages, which join by the entry point group `gta_bench.tools`."""
    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
