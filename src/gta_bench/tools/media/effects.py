"""Noise reduction and pitch shift on decoded sound, in blocks, so that memory stays bounded.

Arrays have one row per channel. Upstream passes the transposed array to both libraries, which then
take each moment for a channel: 5 s of stereo need 98 GiB.
"""

from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

SHORTEST = 8192  # samples that the libraries' windows need
BLOCK = 30  # seconds
SHARED = 0.2  # seconds that two blocks have in common
ALIGN = 0.02  # seconds that a block may be moved to fit the wave before it: one period of 50 Hz
WINDOW, HOP = 1024, 256


def reduce_noise(rows: "Rows", rate: int) -> "Rows":
    """Reduce noise by spectral gating with a changing noise floor, like upstream."""
    import noisereduce

    length = rows.shape[1]
    # The library refuses smoothing that is finer than its own grid at very low and high rates.
    hertz = max(500.0, 2.02 * rate / WINDOW)
    milliseconds = max(50.0, 1010 * HOP / rate)
    gated = noisereduce.reduce_noise(
        y=_pad(rows),
        sr=rate,
        freq_mask_smooth_hz=hertz,
        time_mask_smooth_ms=milliseconds,
        n_fft=WINDOW,
        hop_length=HOP,
    )
    return cast("Rows", np.nan_to_num(gated[:, :length]).astype(np.float32))


def shift_pitch(rows: "Rows", rate: int, semitones: float) -> "Rows":
    """Shift the pitch; length and rate stay the same."""
    if semitones == 0:
        return rows
    length, step = rows.shape[1], BLOCK * rate
    shared, reach = int(SHARED * rate), int(ALIGN * rate)
    if length <= step + shared:
        return _shift(rows, rate, semitones)
    made = np.zeros_like(rows)
    for start in range(0, length - shared, step):
        before = min(start, reach)  # room to move the block
        block = rows[:, start - before : start + step + shared + reach]
        _join(made, _shift(block, rate, semitones), start=start, before=before, shared=shared)
    return made


def _shift(rows: "Rows", rate: int, semitones: float) -> "Rows":
    from librosa.effects import pitch_shift

    shifted = pitch_shift(_pad(rows), sr=rate, n_steps=semitones)
    return cast("Rows", shifted[:, : rows.shape[1]].astype(np.float32))


def _join(made: "Rows", block: "Rows", *, start: int, before: int, shared: int) -> None:
    """Fade from the sound so far into the block, moved to where the two waves agree best.

    Two blocks of one tone have different phases, so that a plain fade would cancel them out.
    """
    fade = shared if start else 0
    offset = before
    if fade:
        old = made[:, start : start + fade].mean(axis=0)
        new = block[:, : fade + 2 * before].mean(axis=0)
        offset = int(np.argmax(np.correlate(new, old, mode="valid")))
    body = block[:, offset : offset + made.shape[1] - start]
    ramp = np.linspace(0, 1, fade, dtype=np.float32)
    made[:, start : start + fade] *= 1 - ramp
    made[:, start : start + fade] += body[:, :fade] * ramp
    made[:, start + fade : start + body.shape[1]] = body[:, fade:]


def _pad(rows: "Rows") -> "Rows":
    missing = SHORTEST - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing))) if missing > 0 else rows
