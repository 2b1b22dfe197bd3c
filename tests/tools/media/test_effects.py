import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("librosa")

from gta_bench.tools.media.effects import BLOCK, SHARED, shift_pitch
from tests.tools.media_files import fundamental

RATE = 8_000


def tone(seconds: float, *frequencies: float) -> NDArray[np.float32]:
    time = np.arange(int(seconds * RATE)) / RATE
    rows = [0.5 * np.sin(2 * np.pi * frequency * time) for frequency in frequencies]
    return np.array(rows, dtype=np.float32)


def loudness(wave: NDArray[np.float32]) -> NDArray[np.float32]:
    """Root mean square of every 50 ms."""
    parts = wave[: wave.size // 400 * 400].reshape(-1, 400)
    loud: NDArray[np.float32] = np.sqrt((parts**2).mean(axis=1))
    return loud


@pytest.mark.slow
@pytest.mark.parametrize("semitones", [pytest.param(12, marks=pytest.mark.measure), -5])
def test_blocks_join_without_a_dip_or_a_click(semitones: int) -> None:
    """Two blocks of one tone have different phases; faded plainly they can cancel out."""
    rows = tone(2.5 * BLOCK, 313.0, 417.0)
    made = shift_pitch(rows, RATE, semitones)
    assert made.shape == rows.shape
    for before, after in zip(rows, made, strict=True):
        assert fundamental(after, rate=RATE) == pytest.approx(
            fundamental(before, rate=RATE) * 2 ** (semitones / 12), rel=0.01
        )
        inside = loudness(after)[10:-10]
        assert inside.min() > 0.6 * np.median(inside)
        assert inside.max() < 1.3 * np.median(inside)


@pytest.mark.parametrize("seconds", [BLOCK - 1, BLOCK + SHARED, BLOCK + SHARED + 0.001, BLOCK + 1])
def test_the_length_stays_around_the_border_of_a_block(seconds: float) -> None:
    rows = tone(seconds, 300.0)
    made = shift_pitch(rows, RATE, 4)
    assert made.shape == rows.shape
    assert np.abs(made[:, -RATE // 4 : -RATE // 8]).max() > 0.1


def test_no_semitones_change_nothing() -> None:
    rows = tone(0.1, 300.0)
    assert shift_pitch(rows, RATE, 0) is rows
