import asyncio
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont
from pydantic import JsonValue

from gta_bench.confine.jail import Jail
from gta_bench.confine.probe import find_jail
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import FetchError, ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox
from gta_bench.weights import KNOWN, fetch
from tests.needs import require_programs
from tests.tools.openai_server import OpenAiServer, openai_server

Call = Callable[..., ToolResult]
WEIGHTS = Path.home() / ".cache" / "gta-bench" / "weights"


@pytest.fixture
def server(loopback: None) -> Iterator[OpenAiServer]:
    with openai_server() as running:
        yield running


@pytest.fixture(scope="session")
def offline() -> Equipment:
    """Equipment with real weights; a carrier that is gone skips the test with the reason."""
    try:
        for weights in KNOWN.values():
            fetch(weights, WEIGHTS, lambda _: None)
    except FetchError as exc:
        pytest.skip(str(exc))
    return Equipment(Settings(), weights=WEIGHTS)


def encoded(picture: Image.Image, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind)
    return stream.getvalue()


def written(*lines: str, size: int = 28) -> Image.Image:
    """Words in black on white."""
    picture = Image.new("RGB", (520, 40 + 60 * len(lines)), "white")
    font = ImageFont.load_default(size)
    for number, line in enumerate(lines):
        ImageDraw.Draw(picture).text((30, 20 + 60 * number), line, fill="black", font=font)
    return picture


class Caller:
    """Calls tools of one equipment on files made for the test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def workspace(self, files: Mapping[str, bytes]) -> Workspace:
        sources = self._folder / "sources"
        sources.mkdir(exist_ok=True)
        for name, data in files.items():
            (sources / name).write_bytes(data)
        attachments = {f"inputs/{name}": sources / name for name in files}
        return Workspace.create(self._folder / "space", attachments)

    def __call__(
        self,
        equipment: Equipment,
        tool: str,
        files: Mapping[str, bytes] | Workspace,
        **arguments: JsonValue,
    ) -> ToolResult:
        space = files if isinstance(files, Workspace) else self.workspace(files)
        return asyncio.run(Toolbox(equipment).call(space, tool, arguments))


@pytest.fixture
def call(tmp_path: Path) -> Caller:
    return Caller(tmp_path)


@pytest.fixture(scope="session")
def jail() -> Iterator[Jail]:
    """The jail of this machine."""
    try:
        found = asyncio.run(find_jail(slots=2))
    except ToolUnavailable as exc:
        pytest.skip(str(exc))
    with found:
        yield found


@pytest.fixture(scope="session")
def media_box(jail: Jail) -> Toolbox:
    """The toolbox of a machine with ffmpeg and a jail, without endpoints."""
    require_programs("ffmpeg")
    return Toolbox(Equipment(Settings(), jail=jail))
