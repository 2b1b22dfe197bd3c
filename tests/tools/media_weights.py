"""Moonshine's files, and its sample of human speech, in the cache of weights."""

from pathlib import Path

from gta_bench.weights import KNOWN, Weights, WeightsFile, fetch
from tests.llm_server import CACHE

SPEECH = Weights(
    name="moonshine-speech",
    label="a sample of human speech",
    tools=(),
    kind="wheel",
    carrier="useful-moonshine-onnx==20251121",
    license="MIT",
    files=(
        WeightsFile(
            "moonshine_onnx/assets/beckett.wav",
            318_978,
            "e5a26b3d29e5b0bc8dbd72c11d16a3808a4ec0ac45b21f12a27d2a2fe5c5ae61",
        ),
    ),
)


def fetch_moonshine() -> Path:
    """The folder of weights, with Moonshine in it."""
    for name in ("moonshine-tiny", "moonshine-tokenizer"):
        fetch(KNOWN[name], CACHE, lambda _: None)
    return CACHE


def fetch_speech() -> Path:
    """The recording."""
    return fetch(SPEECH, CACHE, lambda _: None) / SPEECH.files[0].name
