"""The speech recognizers, for SpeechToText, for checks and for a judge's evidence."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from gta_bench.confine.jail import Jail
from gta_bench.tools.backends.client import Client, find_endpoint
from gta_bench.tools.contract import Equipment, Unavailable
from gta_bench.tools.media.sound import WAV, Samples, encode
from gta_bench.tools.packages import find_missing, name_and_version

RATE: Final = 16_000
TOOL: Final = "SpeechToText"
FETCH: Final = "gta tools fetch moonshine-tiny moonshine-tokenizer"
OR_ENDPOINT: Final = ", or set `endpoint` in [tools.SpeechToText] of gta.toml"

Transcribe = Callable[[Jail, Samples], Awaitable[str]]


class Recognizer(NamedTuple):
    """Transcribes mono sound at 16 kHz."""

    backend: str
    transcribe: Transcribe


def find_recognizer(equipment: Equipment) -> Recognizer | Unavailable:
    """Return the endpoint of SpeechToText in gta.toml, or the recognizer of this machine."""
    chosen = equipment.settings.tools.get(TOOL)
    if chosen is None or chosen.endpoint is None:
        return local_recognizer(equipment)
    endpoint = find_endpoint(equipment, TOOL)
    if isinstance(endpoint, Unavailable):
        return endpoint
    client = Client(endpoint)

    async def transcribe(jail: Jail, samples: Samples) -> str:
        return await client.transcribe(await encode(jail, samples, WAV))

    return Recognizer(endpoint.label(), transcribe)


def local_recognizer(equipment: Equipment) -> Recognizer | Unavailable:
    """Return Moonshine tiny (English), if its weights were downloaded."""
    missing = find_missing("onnxruntime", "tokenizers", "numpy", extra="media")
    if missing is not None:
        return Unavailable(missing.reason, f"{missing.fix} && {FETCH}{OR_ENDPOINT}")
    from gta_bench.tools.media import moonshine

    files = moonshine.find(equipment.weights)
    if files is None:
        return Unavailable("The weights of Moonshine tiny are not here.", FETCH + OR_ENDPOINT)
    backend = f"Moonshine tiny int8 (English), {name_and_version('onnxruntime')}"

    async def transcribe(_: Jail, samples: Samples) -> str:
        return await equipment.in_thread(
            lambda: moonshine.load(files).transcribe(samples.array()[0])
        )

    return Recognizer(backend, transcribe)
