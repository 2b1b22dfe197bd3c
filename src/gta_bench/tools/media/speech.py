"""The speech recognizer that runs on this machine, for SpeechToText and for a judge's evidence."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from gta_bench.confine.jail import Jail
from gta_bench.tools.contract import Equipment, Unavailable
from gta_bench.tools.media import packages
from gta_bench.tools.media.sound import Samples

RATE: Final = 16_000
FETCH: Final = "gta tools fetch moonshine-tiny moonshine-tokenizer"
OR_ENDPOINT: Final = ", or set `endpoint` in [tools.SpeechToText] of gta.toml"

Transcribe = Callable[[Jail, Samples], Awaitable[str]]


class Recognizer(NamedTuple):
    """What turns mono sound at 16 kHz into words."""

    backend: str
    transcribe: Transcribe


def local_recognizer(equipment: Equipment) -> Recognizer | Unavailable:
    """Moonshine tiny (English), where its weights were fetched."""
    lacking = packages.missing("onnxruntime", "tokenizers", "numpy")
    if lacking is not None:
        return Unavailable(lacking.reason, f"{lacking.mend} && {FETCH}{OR_ENDPOINT}")
    from gta_bench.tools.media import moonshine

    files = moonshine.find(equipment.weights)
    if files is None:
        return Unavailable("The weights of Moonshine tiny are not here.", FETCH + OR_ENDPOINT)
    backend = f"Moonshine tiny int8 (English), {packages.named('onnxruntime')}"

    def listen(samples: Samples) -> str:
        return moonshine.load(files).transcribe(samples.array()[0])

    async def transcribe(_: Jail, samples: Samples) -> str:
        return await equipment.in_thread(listen, samples)

    return Recognizer(backend, transcribe)
