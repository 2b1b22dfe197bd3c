"""SpeechToText: the words of a recording of any length."""

from pydantic import Field

from gta_bench.confine.jail import Jail
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolUnavailable
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import (
    Availability,
    Available,
    Made,
    Tool,
    ToolInput,
    Unavailable,
    text,
)
from gta_bench.tools.media import endpoints, ffmpeg
from gta_bench.tools.media.endpoints import Endpoint
from gta_bench.tools.media.probing import open_media
from gta_bench.tools.media.sound import WAV, Samples, decode, encode
from gta_bench.tools.media.speech import RATE, Recognizer, Transcribe, local_recognizer

MOST_TEXT = 20_000
NOTHING = "No speech was found."


class SpeechToTextInput(ToolInput):
    """A file."""

    audio: str = Field(description="Path to the input audio file.")


class SpeechToText(Tool[SpeechToTextInput]):
    """A speech endpoint where one is configured, else Moonshine tiny (English) on this machine."""

    name = "SpeechToText"
    category = "perception"
    description = "This tool converts speech in an audio file to text."
    version = "1"
    input_type = SpeechToTextInput
    outputs = (Parameter(type="text", description="Transcribed text from the audio file."),)

    def check(self) -> Availability:
        found = ffmpeg.missing(self.equipment) or self._recognizer()
        return Available(found.backend) if isinstance(found, Recognizer) else found

    async def apply(self, workspace: Workspace, given: SpeechToTextInput) -> Made:
        jail = self.equipment.need_jail()
        recognizer = self._recognizer()
        if isinstance(recognizer, Unavailable):
            raise ToolUnavailable(recognizer.reason, mend=recognizer.mend)
        source = await open_media(jail, workspace, given.audio)
        samples = await decode(jail, source, rate=RATE, mono=True)
        words = await recognizer.transcribe(jail, samples)
        return Made((text(_bounded(words) or NOTHING),), recognizer.backend, jail.kind)

    def _recognizer(self) -> Recognizer | Unavailable:
        """Where backends plug in."""
        endpoint = endpoints.configured(self.equipment, self.name)
        if isinstance(endpoint, Unavailable):
            return endpoint
        if endpoint is not None:
            return Recognizer(endpoint.backend, _asking(endpoint))
        return local_recognizer(self.equipment)


def _asking(endpoint: Endpoint) -> Transcribe:
    async def transcribe(jail: Jail, samples: Samples) -> str:
        return await endpoints.transcribe(endpoint, await encode(jail, samples, WAV))

    return transcribe


def _bounded(words: str) -> str:
    if len(words) <= MOST_TEXT:
        return words
    return f"{words[:MOST_TEXT]}… (cut; the transcript has {len(words)} characters)"
