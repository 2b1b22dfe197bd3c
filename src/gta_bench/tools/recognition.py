"""Recognition for checks: text on pictures by RapidOCR, and speech as SpeechToText hears it."""

from gta_bench.checks.delivery import Recognition
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.tools.backends.local import check_text, read_text
from gta_bench.tools.contract import Equipment, require
from gta_bench.tools.media.probing import ProbedFile, probe
from gta_bench.tools.media.sound import decode
from gta_bench.tools.media.speech import RATE, find_recognizer

AGAIN = "Run the same command again."


def make_recognition(equipment: Equipment) -> Recognition:
    """Return what checks use to read pictures and to hear recordings."""

    async def read_picture(data: bytes) -> str:
        require(check_text())
        try:
            lines = await read_text(data, "the picture")
        except ToolError as exc:
            raise ToolUnavailable(f"Text recognition failed: {exc}", fix=AGAIN) from exc
        return "\n".join(line.text for line in lines)

    async def hear(data: bytes, path: str) -> str:
        jail, recognizer = equipment.need_jail(), require(find_recognizer(equipment))
        source = ProbedFile(path, data, await probe(jail, data, path=path))
        samples = await decode(jail, source, rate=RATE, mono=True)
        try:
            return await recognizer.transcribe(jail, samples)
        except ToolError as exc:
            raise ToolUnavailable(f"Speech recognition failed: {exc}", fix=AGAIN) from exc

    return Recognition(read_picture, hear)
