"""SpeechToText: a transcript of a recording of any length."""

from pydantic import Field

from gta_bench.confine.jail import Jail
from gta_bench.confine.workspace import Workspace
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.client import Client, find_endpoint
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
from gta_bench.tools.media.sound import WAV, Samples, decode, encode
from gta_bench.tools.media.speech import RATE, Recognizer, local_recognizer

MOST_TEXT = 20_000
NOTHING = "No speech was found."


class SpeechToTextInput(ToolInput):
    """A recording."""

    audio: str = Field(description="Path to the input audio file.")


class SpeechToText(Tool[SpeechToTextInput]):
    """Uses a speech endpoint if one is configured, else Moonshine tiny (English)."""

    name = "SpeechToText"
    category = "perception"
    description = "This tool converts speech in an audio file to text."
    version = "1"
    input_type = SpeechToTextInput
    outputs = (Parameter(type="text", description="Transcribed text from the audio file."),)

    def check(self) -> Availability:
        found = ffmpeg.missing(self.equipment) or self._recognizer()
        return found if isinstance(found, Unavailable) else Available(found.backend)

    async def apply(self, workspace: Workspace, given: SpeechToTextInput) -> Made:
        jail = self.equipment.need_jail()
        recognizer = require(self._recognizer())
        source = await open_media(jail, workspace, given.audio)
        samples = await decode(jail, source, rate=RATE, mono=True)
        words = await recognizer.transcribe(jail, samples) or NOTHING
        if len(words) > MOST_TEXT:
            words = f"{words[:MOST_TEXT]}… (cut; the transcript has {len(words)} characters)"
        return Made((text(words),), recognizer.backend, jail.kind)

    def _recognizer(self) -> Recognizer | Unavailable:
        """Return the endpoint of gta.toml, or the recognizer of this machine."""
        chosen = self.equipment.settings.tools.get(self.name)
        if chosen is None or chosen.endpoint is None:
            return local_recognizer(self.equipment)
        endpoint = find_endpoint(self.equipment, self.name)
        if isinstance(endpoint, Unavailable):
            return endpoint
        client = Client(endpoint)

        async def transcribe(jail: Jail, samples: Samples) -> str:
            return await client.transcribe(await encode(jail, samples, WAV))

        return Recognizer(endpoint.label(), transcribe)
