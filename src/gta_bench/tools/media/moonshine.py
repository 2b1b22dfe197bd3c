"""Moonshine tiny, an English speech recognizer that runs on any processor (MIT, 28 MB).

The weights are data files of two published packages, checked by their digests; the packages
themselves are never imported.
"""

import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gta_bench.weights import KNOWN, find_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Wave = NDArray[np.float32]

RATE = 16_000
LAYERS, HEADS, HEAD_SIZE = 6, 8, 36
START, END = 1, 2
TOKENS_PER_SECOND = 6.5  # faster speech than this is the model repeating itself
LONGEST, EARLIEST_CUT = 16.0, 8.0  # seconds; the model knows at most 64
SHORTEST = 0.1  # seconds
HUSH = 10 ** (-55 / 20)  # peak below which there is nothing to hear
QUIET = 10 ** (-60 / 20)  # level that counts as a pause in any recording
CERTAIN = 0.95  # chance from which the model's "nothing was said" is believed
STEP = 320  # samples, 20 ms
BREATH = 10  # steps, 200 ms: a pause between words


MODEL = KNOWN["moonshine-tiny"]
VOCABULARY = KNOWN["moonshine-tokenizer"]


class Moonshine:
    """The loaded model; threads may share it."""

    def __init__(self, encoder: Path, decoder: Path, tokenizer: Path) -> None:
        from tokenizers import Tokenizer

        self._encoder = _session(encoder)
        self._decoder = _session(decoder)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))

    def transcribe(self, wave: "Wave") -> str:
        """Return the transcript of mono sound at 16 kHz, of any length."""
        parts = split(shorten_pauses(wave))
        return " ".join(words for part in parts if (words := self._transcribe_part(part)))

    def _transcribe_part(self, wave: "Wave") -> str:
        if wave.size < SHORTEST * RATE or np.abs(wave).max() < HUSH:
            return ""
        return str(self._tokenizer.decode(self._tokens(wave), skip_special_tokens=True)).strip()

    def _tokens(self, wave: "Wave") -> list[int]:
        """Return the most likely token at each step; keys and values are cached between steps."""
        (heard,) = self._encoder.run(None, {"input_values": wave[np.newaxis]})
        names = [
            f"past_key_values.{layer}.{side}.{part}"
            for layer in range(LAYERS)
            for side in ("decoder", "encoder")
            for part in ("key", "value")
        ]
        past = dict.fromkeys(names, np.zeros((0, HEADS, 1, HEAD_SIZE), np.float32))
        tokens = [START]
        for step in range(max(8, int(wave.size / RATE * TOKENS_PER_SECOND))):
            asked = {
                "input_ids": np.array([tokens[-1:]], np.int64),
                "encoder_hidden_states": heard,
                "use_cache_branch": np.array([step > 0]),
            }
            logits, *present = self._decoder.run(None, {**asked, **past})
            tokens.append(
                _choose_first(logits[0, -1]) if step == 0 else int(logits[0, -1].argmax())
            )
            if tokens[-1] == END:
                break
            for name, value in zip(names, present, strict=True):
                if step == 0 or ".decoder." in name:
                    past[name] = value
        return tokens[1:]


def _choose_first(logits: "NDArray[np.float32]") -> int:
    """Return the first token.

    The int8 weights often end at once although there is speech, with a chance of 0.3 to 0.8
    (beckett.wav after half a second of silence), and with 1.0 on noise and tones.
    """
    chances = np.exp(logits - logits.max())
    if chances[END] < CERTAIN * chances.sum():
        chances[END] = 0
    return int(chances.argmax())


def shorten_pauses(wave: "Wave") -> "Wave":
    """Shorten pauses to 400 ms: after a second of silence the model often stops.

    Three readings of beckett.wav with 3 s between them, and noise at -60 dB: a third of the words
    were lost, now none.
    """
    steps = wave[: wave.size // STEP * STEP].reshape(-1, STEP)
    if not steps.size:
        return wave
    level = np.sqrt((steps**2).mean(axis=1))
    floor = max(QUIET, 2 * float(np.percentile(level, 10)))
    near = np.convolve(level >= floor, np.ones(2 * BREATH + 1), mode="same") > 0
    return steps[near].ravel() if near.any() else wave


def split(wave: "Wave") -> Iterator["Wave"]:
    """Yield parts short enough for the model, cut where it is quietest."""
    longest, earliest = int(LONGEST * RATE), int(EARLIEST_CUT * RATE)
    while wave.size > longest:
        cut = earliest + _quietest(wave[earliest:longest])
        yield wave[:cut]
        wave = wave[cut:]
    yield wave


def _quietest(wave: "Wave") -> int:
    """Return the middle of the 200 ms with the least energy."""
    steps = wave[: wave.size // STEP * STEP].reshape(-1, STEP)
    energy = np.convolve((steps**2).mean(axis=1), np.ones(BREATH), mode="valid")
    return (int(energy.argmin()) + BREATH // 2) * STEP


_LOADING = threading.Lock()


def find(weights: Path) -> tuple[Path, Path, Path] | None:
    """Return encoder, decoder and vocabulary in that folder, if all were downloaded."""
    model, vocabulary = find_weights(MODEL, weights), find_weights(VOCABULARY, weights)
    if model is None or vocabulary is None:
        return None
    encoder, decoder = (model / file.name for file in MODEL.files)
    return encoder, decoder, vocabulary / VOCABULARY.files[0].name


def load(files: tuple[Path, Path, Path]) -> Moonshine:
    """Return the model of those files, loaded once per process."""
    with _LOADING:
        return _loaded(*files)


@cache
def _loaded(encoder: Path, decoder: Path, tokenizer: Path) -> Moonshine:
    return Moonshine(encoder, decoder, tokenizer)


def _session(file: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Several calls run side by side in threads; each keeps to one core and does not spin.
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        str(file), sess_options=options, providers=["CPUExecutionProvider"]
    )
