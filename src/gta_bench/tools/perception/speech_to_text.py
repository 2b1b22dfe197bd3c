"""SpeechToText: a transcript of a recording of any length."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import (
    Availability,
    Available,
    Made,
    Tool,
    ToolInput,
    Unavailable,
    require,
    text,
)
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.probing import open_media
from gta_bench.tools.media.sound import decode
from gta_bench.tools.media.speech import RATE, TOOL, find_recognizer

MOST_TEXT = 20_000
NOTHING = "No speech was found."


class SpeechToTextInput(ToolInput):
    """A recording."""

    audio: str = Field(description="Path to the input audio file.")


class SpeechToText(Tool[SpeechToTextInput]):
    """Uses a speech endpoint if one is configured, else Moonshine tiny (English)."""

    name = TOOL
    category = "perception"
    description = "This tool converts speech in an audio file to text."
    version = "1"
    input_type = SpeechToTextInput
    outputs = (Parameter(type="text", description="Transcribed text from the audio file."),)

    def check(self) -> Availability:
        found = ffmpeg.missing(self.equipment) or find_recognizer(self.equipment)
        return found if isinstance(found, Unavailable) else Available(found.backend)

    async def apply(self, workspace: Workspace, given: SpeechToTextInput) -> Made:
        jail = self.equipment.need_jail()
        recognizer = require(find_recognizer(self.equipment))
        source = await open_media(jail, workspace, given.audio)
        samples = await decode(jail, source, rate=RATE, mono=True)
        words = await recognizer.transcribe(jail, samples) or NOTHING
        if len(words) > MOST_TEXT:
            words = f"{words[:MOST_TEXT]}… (cut; the transcript has {len(words)} characters)"
        return Made((text(words),), recognizer.backend, jail.kind)
