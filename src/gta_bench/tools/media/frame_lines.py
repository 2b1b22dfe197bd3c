"""One line a frame, `Frame 12: …`, as upstream writes it, within a bound."""

from collections.abc import Iterable

from gta_bench.tools.media.frames import Sample

MOST_TEXT = 20_000
MOST_LINE = 4_000


def report(sample: Sample, lines: Iterable[tuple[int, str]], *, remark: str = "") -> str:
    """Lines of (frame number, what is there), then which frames were looked at."""
    kept: list[str] = []
    room, left_out = MOST_TEXT, 0
    for number, content in lines:
        line = f"Frame {number}: {_cut(content)}"
        room -= len(line) + 1
        if room < 0:
            left_out += 1
        else:
            kept.append(line)
    if left_out:
        kept.append(f"({left_out} more frames are left out: the text would be too long.)")
    return "\n".join([*kept, f"{sample.note} {remark}".strip()])


def _cut(content: str) -> str:
    flat = " ".join(content.split())
    return flat if len(flat) <= MOST_LINE else f"{flat[:MOST_LINE]}… (cut)"
