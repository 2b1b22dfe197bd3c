"""Checks of boxes.json and marked.png: objects found, none invented, named, and framed."""

import json
import struct
import zlib
from typing import Any

# Of each object: its name, and left, top, right and bottom in pixels.
OBJECTS: list[tuple[str, tuple[int, int, int, int]]] = []
# Some pixels of the picture away from these: x, y and color.
SCENE: list[tuple[int, int, tuple[int, int, int]]] = []
# Of each object, some pixels of the picture in the middle of it.
INSIDE: list[list[tuple[int, int, tuple[int, int, int]]]] = []
ENOUGH = 0.7
MOST_RED = 0.12  # of the picture; frames that are 8 pixels wide have half of it
MOST_PIXELS = 1_000_000  # about three times those of the largest scene
BROKEN = (ValueError, IndexError, struct.error, zlib.error)
Pixel = tuple[int, int, int]


def find_all(work: Any) -> dict[str, Any]:
    """Check that each object has a box that overlaps it enough, without boxes everywhere."""
    boxes = [box for _, box in _read_boxes(work)]
    if len(boxes) > 2 * len(OBJECTS):
        return {"score": False, "found": f"{len(boxes)} boxes", "wanted": len(OBJECTS)}
    best = [max((_overlap(box, one) for box in boxes), default=0.0) for _, one in OBJECTS]
    good = sum(value >= ENOUGH for value in best)
    found = f"{good} of {len(OBJECTS)} objects, the worst with an overlap of {min(best):.2f}"
    return {"score": good == len(OBJECTS), "found": found, "wanted": f"each at least {ENOUGH}"}


def invent_none(work: Any) -> dict[str, Any]:
    """Check that there are as many boxes as objects, and each lies on another object."""
    boxes = [box for _, box in _read_boxes(work)]
    on = {max((_overlap(box, one), at) for at, (_, one) in enumerate(OBJECTS)) for box in boxes}
    hit = {at for value, at in on if value > 0.3}
    holds = len(boxes) == len(hit) == len(OBJECTS)
    found = f"{len(boxes)} boxes on {len(hit)} objects"
    return {"score": holds, "found": found, "wanted": f"{len(OBJECTS)} boxes, one on each"}


def name_all(work: Any) -> dict[str, Any]:
    """Check that each box on an object has its name, and at least half of the objects have one."""
    right, wrong = set(), []
    for label, box in _read_boxes(work):
        value, name, at = max(
            (_overlap(box, one), name, n) for n, (name, one) in enumerate(OBJECTS)
        )
        if value > 0.3 and label != name:
            wrong.append(f"{label} instead of {name}")
        elif value > 0.3:
            right.add(at)
    found = ", ".join(wrong[:9]) or f"{len(right)} right names"
    holds = 2 * len(right) >= len(OBJECTS) and not wrong
    return {"score": holds, "found": found, "wanted": "the name of each shape"}


def frame_all(work: Any) -> dict[str, Any]:
    """Check that red lines run along the four sides of each object, which they do not cover."""
    try:
        rows = _read_png(work.read("marked.png"))
    except BROKEN as problem:
        return {"score": 0, "found": f"no such PNG: {problem}", "wanted": "a PNG of 8 bits"}
    red = [bytes(r > 180 and g < 80 and b < 80 for r, g, b in row) for row in rows]
    share = sum(map(sum, red)) / (len(red) * len(red[0]))
    good = sum(
        _is_framed(box, red) and not _is_covered(box, red) and _count_same(rows, inside) >= 0.9
        for (_, box), inside in zip(OBJECTS, INSIDE, strict=True)
    )
    found = f"{good} of {len(OBJECTS)} objects in a red frame, {share:.0%} of the picture red"
    holds = good == len(OBJECTS) and share <= MOST_RED
    return {"score": holds, "found": found, "wanted": "all of them, and little else in red"}


def keep_scene(work: Any) -> dict[str, Any]:
    """Check that most of the picture is as it was; names may cover a part."""
    try:
        rows = _read_png(work.read("marked.png"))
    except BROKEN as problem:
        return {"score": 0, "found": f"no such PNG: {problem}", "wanted": "a PNG of 8 bits"}
    same = _count_same(rows, SCENE)
    found = f"{same:.0%} of {len(SCENE)} pixels as in the input"
    return {"score": same >= 0.7, "found": found, "wanted": "most of them"}


def _read_boxes(work: Any) -> list[tuple[str, list[float]]]:
    """Return the labels and boxes of the file that have the wanted form."""
    try:
        entries = json.loads(work.read("boxes.json"))
    except (ValueError, RecursionError):
        return []
    found = []
    for entry in entries if isinstance(entries, list) else []:
        box = entry.get("box") if isinstance(entry, dict) else None
        numbers = [
            float(one)
            for one in (box if isinstance(box, list) else [])
            if isinstance(one, (int, float)) and abs(one) < 1e6
        ]
        if len(numbers) == 4:
            found.append((str(entry.get("label")).strip().lower(), numbers))
    return found


def _overlap(one: Any, other: Any) -> float:
    """Return the intersection of two boxes, divided by their union."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    both = max(0.0, width) * max(0.0, height)
    areas = sum(max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1]) for box in (one, other))
    return both / (areas - both) if areas > both else 0.0


def _is_framed(box: tuple[int, int, int, int], red: list[bytes]) -> bool:
    """Whether most of each side has a red pixel near it."""
    left, top, right, bottom = box
    near = 4 + min(right - left, bottom - top) // 8
    down, across = range(top, bottom), range(left, right)
    sides = [
        [any(_at(red, side + step, y) for step in range(-near, near + 1)) for y in down]
        for side in (left, right)
    ] + [
        [any(_at(red, x, side + step) for step in range(-near, near + 1)) for x in across]
        for side in (top, bottom)
    ]
    return all(sum(side) >= 0.8 * len(side) for side in sides)


def _is_covered(box: tuple[int, int, int, int], red: list[bytes]) -> bool:
    """Whether the inner half of a box has more red than a stroke."""
    left, top, right, bottom = box
    wide, high = (right - left) // 4, (bottom - top) // 4
    inner = [
        _at(red, x, y)
        for y in range(top + high, bottom - high)
        for x in range(left + wide, right - wide)
    ]
    return sum(inner) > 0.04 * len(inner)


def _count_same(
    rows: list[list[Pixel]], wanted: list[tuple[int, int, tuple[int, int, int]]]
) -> float:
    """Return the share of these pixels that have about their color."""
    same = sum(
        y < len(rows) and x < len(rows[y]) and _is_near(rows[y][x], color) for x, y, color in wanted
    )
    return same / len(wanted)


def _is_near(pixel: Pixel, color: Pixel) -> bool:
    return all(abs(one - other) <= 40 for one, other in zip(pixel, color, strict=True))


def _at(red: list[bytes], x: int, y: int) -> bool:
    return 0 <= y < len(red) and 0 <= x < len(red[y]) and bool(red[y][x])


def _read_png(png: bytes) -> list[list[Pixel]]:
    """Return the colors of each row of a PNG picture."""
    if png[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("another format")
    at, parts, colors, head = 8, list[bytes](), b"", b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        part = png[at + 8 : at + 8 + size]
        head = part if kind == b"IHDR" else head
        colors = part if kind == b"PLTE" else colors
        parts += [part] if kind == b"IDAT" else []
        if kind == b"tRNS":
            raise ValueError("transparent")
        at += size + 12
    width, height, depth, form, _, _, woven = struct.unpack(">IIBBBBB", head)
    step = {2: 3, 3: 1, 6: 4}.get(form, 0)
    if depth != 8 or woven or not step or not 0 < width * height <= MOST_PIXELS:
        raise ValueError("not 8 bits in color, interlaced, or too large")
    # Bounded, because a few bytes can unpack to gigabytes.
    data = zlib.decompressobj().decompress(b"".join(parts), (width * step + 1) * height)
    rows, row = [], bytearray(width * step)
    for y in range(height):
        start = y * (width * step + 1)
        row = _unfilter(data[start], data[start + 1 : start + 1 + width * step], row, step)
        if step == 4 and min(row[3::4]) < 255:
            raise ValueError("transparent")
        red, green, blue = (
            (bytes(colors[3 * one + part] for one in row) if step == 1 else row[part::step])
            for part in range(3)
        )
        rows.append(list(zip(red, green, blue, strict=True)))
    return rows


def _unfilter(kind: int, line: bytes, above: bytearray, step: int) -> bytearray:
    """Return a row of a PNG picture before its filter."""
    if len(line) != len(above) or kind > 4:
        raise ValueError("rows are missing")
    if kind == 0:
        return bytearray(line)
    if kind == 2:
        return bytearray((one + up) & 255 for one, up in zip(line, above, strict=True))
    row = bytearray(step) + line
    before = bytearray(step) + above
    for at in range(step, len(row)):
        left = row[at - step]
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + before[at]) >> 1
        else:
            guess = _predict(left, before[at], before[at - step])
        row[at] = (row[at] + guess) & 255
    return row[step:]


def _predict(left: int, up: int, corner: int) -> int:
    """Return Paeth's guess, as PNG defines it."""
    if left == corner:
        return up
    if up == corner:
        return left
    near, far, both = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if near <= far and near <= both:
        return left
    return up if far <= both else corner
