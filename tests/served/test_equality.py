"""In process, over HTTP and over MCP: the same call gives the same words and the same bytes."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import FetchError, ToolError, ToolUnavailable
from gta_bench.settings import Settings
from gta_bench.tools.catalog import tool_names
from gta_bench.tools.contract import Equipment
from gta_bench.tools.equipment import close_equipment, open_equipment
from gta_bench.tools.source import ToolSource
from gta_bench.tools.toolbox import Toolbox
from gta_bench.weights import KNOWN, fetch
from tests.needs import needs
from tests.served.examples import (
    DATED,
    JAILED,
    LIGHT,
    MODELS,
    REMOTE,
    light_files,
    media_files,
    model_files,
)
from tests.served.support import Served, connected, contents, tool_server, workspace_of

pytestmark = pytest.mark.usefixtures("loopback")


@dataclass(frozen=True)
class Came:
    """What a call came to, without its duration."""

    said: str
    made_by: tuple[str, ...]
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Bench:
    equipment: Equipment
    served: Served
    files: Mapping[str, bytes]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A server of the real toolbox, and the equipment to make one here."""
    equipment = asyncio.run(open_equipment(Settings()))
    try:
        with tool_server(Toolbox(equipment), tmp_path_factory.mktemp("served")) as served:
            yield Bench(equipment, served, light_files())
    finally:
        close_equipment(equipment)


async def came(
    source: ToolSource, workspace: Workspace, name: str, given: dict[str, JsonValue]
) -> Came:
    try:
        result = await source.call(workspace, name, given)
    except (ToolError, ToolUnavailable) as exc:
        said = str(exc)
        made_by = [type(exc).__name__]
    else:
        said = result.text
        made_by = [result.tool, result.tool_version, result.backend, str(result.jail)]
    files = contents(workspace)
    return Came(said, tuple(made_by), dict.fromkeys(files, b"") if name in DATED else files)


async def three_ways(
    bench: Bench, folder: Path, files: Mapping[str, bytes], name: str, given: dict[str, JsonValue]
) -> list[Came]:
    sources: list[ToolSource] = [Toolbox(bench.equipment)]
    remote = [await connected(bench.served, protocol) for protocol in ("http", "mcp")]
    found = []
    for source in [*sources, *remote]:
        with workspace_of(folder, files) as workspace:
            found.append(await came(source, workspace, name, given))
    for source in remote:
        await source.aclose()
    return found


def test_every_tool_has_an_example_or_needs_a_key() -> None:
    known = {name for name, _ in [*LIGHT, *JAILED, *MODELS]}
    assert known | REMOTE == set(tool_names())
    assert not known & REMOTE


@pytest.mark.parametrize(("name", "given"), LIGHT)
def test_light_tools(bench: Bench, tmp_path: Path, name: str, given: dict[str, JsonValue]) -> None:
    here, http, mcp = asyncio.run(three_ways(bench, tmp_path, light_files(), name, given))
    assert http == here
    assert mcp == here


@pytest.mark.measure
@needs("ffmpeg", "npm")
def test_all_other_tools_that_run_on_this_machine(bench: Bench, tmp_path: Path) -> None:
    """Documents, sound, film, code in the jail, and models whose weights are pinned."""
    try:
        for weights in KNOWN.values():
            fetch(weights, bench.equipment.weights, lambda _: None)
        files = {**light_files(), **media_files(tmp_path), **model_files(tmp_path)}
    except FetchError as exc:
        pytest.skip(str(exc))
    made = {
        "PdfFileGenerator": "p.pdf",
        "PptxFileGenerator": "s.pptx",
        "XlsxFileGenerator": "x.xlsx",
    }
    with workspace_of(tmp_path, files) as workspace:
        for name, given in JAILED:
            if name in made:
                asyncio.run(Toolbox(bench.equipment).call(workspace, name, given))
                files[f"inputs/{made[name]}"] = workspace.read(f"outputs/{made[name]}")
    for name, given in [*JAILED, *MODELS]:
        here, http, mcp = asyncio.run(three_ways(bench, tmp_path, files, name, given))
        assert here.made_by[0] == name, here.said
        assert http == here, name
        assert mcp == here, name
