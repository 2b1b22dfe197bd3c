"""Which frames of a film are taken, and how ffmpeg is asked for them."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from gta_bench.confine.limits import ProgramResult

# Until here decoding a whole film once is cheaper than seeking, or dear but bounded.
FRAMES_A_SEEK = 100  # of which a seek decodes some, from the last whole picture on
PIXELS_IN_ALL = 1_500_000_000
FORM = "jpg"
QUALITY = ["-q:v", "3", "-pix_fmt", "yuvj420p"]
QUIET = ["ffmpeg", "-v", "error", "-nostdin"]


class Choice(NamedTuple):
    """Frames to take: the times of all, the places of the chosen, and when the clock begins."""

    times: Sequence[float]
    places: Sequence[int]
    start: float

    def seconds(self, place: int) -> float:
        """A frame's time after the first one."""
        return self.times[place] - self.times[0]

    def before(self, place: int) -> float:
        """A time between a frame and the one before it, on ffmpeg's clock."""
        times = self.times
        return (times[place - 1] + times[place]) / 2 - self.start if place else -1.0

    def after(self, place: int) -> float:
        """A time between a frame and the one after it, on ffmpeg's clock."""
        last = place + 1 == len(self.times)
        return self.times[place] - self.start + 1.0 if last else self.before(place + 1)

    def is_dense(self, *, pixels: int) -> bool:
        """Whether to decode the whole film for these frames rather than to seek each of them."""
        count = len(self.times)
        return 0 < count <= FRAMES_A_SEEK * len(self.places) and count * pixels <= PIXELS_IN_ALL


def even_choice(times: Sequence[float], wanted: int) -> list[int]:
    """Places in an ordered list of times, at even times, the first and the last included."""
    if wanted < 1 or not times:
        return []
    if wanted == 1 or len(times) == 1:
        return [0]
    start, step = times[0], (times[-1] - times[0]) / (wanted - 1)
    nearest = (_nearest(times, start + step * number) for number in range(wanted))
    return list(dict.fromkeys(nearest))


def _nearest(times: Sequence[float], wanted: float) -> int:
    after = min(bisect_left(times, wanted), len(times) - 1)
    before = max(after - 1, 0)
    return before if wanted - times[before] <= times[after] - wanted else after


def one_pass(choice: Choice, source: Sequence[str], longest_side: int) -> list[str]:
    """The chosen frames from one decoding of the film, each within a window of its own."""
    windows = [f"between(t,{choice.before(at):.6f},{choice.after(at):.6f})" for at in choice.places]
    chain = f"select='{'+'.join(windows)}',{_fit(longest_side)}"
    argv = [*QUIET, *source, "-map", "0:V:0", "-vf", chain, "-fps_mode", "passthrough", *QUALITY]
    return [*argv, "-start_number", "0", f"%d.{FORM}"]


def one_seek_each(choice: Choice, source: Sequence[str], longest_side: int) -> list[str]:
    """The chosen frames in one run, the file opened for each and read from shortly before it."""
    argv = list(QUIET)
    for at in choice.places:
        seek = ["-ss", f"{choice.before(at):.6f}"] if choice.before(at) > 0 else []
        argv += ["-threads", "1", *seek, *source]
    for number in range(len(choice.places)):
        argv += ["-map", f"{number}:V:0", "-frames:v", "1", "-vf", _fit(longest_side), *QUALITY]
        argv += ["-update", "1", "-threads", "1", f"{number}.{FORM}"]
    return argv


def pictures_of(result: ProgramResult, choice: Choice, *, gaps: bool = False) -> list[bytes]:
    """The frames that came back, in order; nothing at all if some are missing, unless allowed.

    Where each frame was asked for by itself a missing one is an empty picture. From one pass
    nobody could tell which one it is.
    """
    found = [result.files.get(f"{number}.{FORM}", b"") for number in range(len(choice.places))]
    return found if gaps or (all(found) and len(result.files) == len(found)) else []


def _fit(longest_side: int) -> str:
    inside = f"scale='min(iw,{longest_side})':'min(ih,{longest_side})'"
    return f"{inside}:force_original_aspect_ratio=decrease"
