"""annotate: objects of a picture are boxed in JSON and framed in a copy of the picture."""

import json
from dataclasses import dataclass, replace
from typing import Final

from PIL import Image, ImageDraw

from gta_bench.datasets.folders import GroupEntry
from gta_bench.forge.draft import (
    TaskDice,
    TaskDraft,
    TaskFamily,
    TaskLevel,
    Work,
    Wrong,
    group,
    leaf,
)
from gta_bench.forge.drawing import (
    SHAPES,
    Color,
    ShapeBox,
    draw_frame,
    draw_shapes,
    encode_png,
)
from gta_bench.forge.inside import write_check

INPUT: Final = "scene.png"
BOXES: Final = "boxes.json"
PICTURE: Final = "marked.png"
CHECK: Final = "checks/boxes.py"
COLORS: Final[dict[str, Color]] = {
    "blue": (38, 92, 188), "green": (46, 140, 72), "purple": (124, 62, 160),
    "orange": (236, 138, 28), "black": (38, 40, 46),
}  # fmt: skip
PAPERS: Final = ((232, 238, 244), (240, 236, 226), (230, 240, 232), (238, 232, 240))
# Columns, rows, objects, and how many of them count.
SIZES: Final = {1: (3, 2, 4, 4), 2: (4, 3, 9, 5), 3: (5, 4, 16, 6)}


@dataclass(frozen=True)
class Thing:
    """An object of the scene."""

    shape: str
    color: str
    box: ShapeBox


@dataclass(frozen=True)
class _Plan:
    """What the file lists, and which objects the picture frames."""

    scene: Image.Image
    listed: tuple[Thing, ...]
    framed: tuple[Thing, ...]
    margin: int = 0
    labels: bool = False
    wider: int = 0
    painted: bool = False
    erased: bool = False

    def build(self) -> Work:
        """Write the boxes and the picture."""
        entries = [{"label": one.shape, "box": [*one.box.grow(self.margin)]} for one in self.listed]
        lines = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
        width, height = self.scene.size
        image = Image.new("RGB", (width + self.wider, height), PAPERS[0])
        image.paste((255, 0, 0) if self.painted else self.scene, (0, 0, width, height))
        for one in self.framed:
            if self.erased:
                left, top, right, bottom = one.box
                image.paste(PAPERS[0], (left, top, right, bottom))
            draw_frame(image, one.box.grow(self.margin), one.shape if self.labels else "")
        return Work({BOXES: f"[\n{lines}\n]\n".encode(), PICTURE: encode_png(image)})


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    size = dice.choice(((640, 480), (680, 480), (720, 500)))
    color, *others = dice.sample([*COLORS], len(COLORS))
    skipped, *shapes = dice.sample([*SHAPES], len(SHAPES))
    columns, rows, count, wanted = SIZES[level]
    boxes = _place(dice, size, columns, rows, count)
    things: list[Thing] = []
    for number, box in enumerate(boxes):
        if number < wanted:
            things.append(Thing(shapes[number % len(shapes)], color, box))
        elif level == 3 and number < wanted + 3:
            things.append(Thing(skipped, color, box))
        else:
            things.append(Thing(dice.choice([*SHAPES]), dice.choice(others), box))
    if level == 1:
        things = [replace(one, color=dice.choice([*COLORS])) for one in things]
    scene = _draw_scene(dice, size, things)
    found = tuple(sorted(things[:wanted], key=lambda one: (one.box.top, one.box.left)))
    plan = _Plan(scene, found, found)
    truth = [(one.shape, tuple(one.box)) for one in found]
    return TaskDraft(
        request=_ask(dice, level, color, skipped, len(found)),
        category="Creative Design & Expressive Generation",
        tools=("ImageDescription", "TextToBbox", "CountGivenObject", "DrawBox"),
        inputs={INPUT: encode_png(scene)},
        deliverables={BOXES: "json", PICTURE: "png"},
        nodes=_score(size, len(found)),
        gold={
            "exact": plan.build(),
            "with-names": replace(plan, listed=found[::-1], margin=2, labels=True).build(),
        },
        wrong=_break(plan, others[0]),
        cheat={"one-big-box": _box_everything(scene)},
        checks={
            "boxes.py": write_check(
                "boxes",
                OBJECTS=truth,
                SCENE=_sample(scene, found),
                INSIDE=[_sample_inside(scene, one.box) for one in found],
            )
        },
    )


def _place(
    dice: TaskDice, size: tuple[int, int], columns: int, rows: int, count: int
) -> list[ShapeBox]:
    """Return boxes that do not touch, each in a cell of its own, in any order."""
    cells = dice.sample([(x, y) for y in range(rows) for x in range(columns)], count)
    wide, high = size[0] // columns, size[1] // rows
    boxes = []
    for x, y in cells:
        side = dice.randint(46, min(wide, high) - 52)
        left = x * wide + dice.randint(14, wide - side - 14)
        top = y * high + dice.randint(30, high - side - 14)
        boxes.append(ShapeBox(left, top, left + side, top + side))
    return boxes


def _draw_scene(dice: TaskDice, size: tuple[int, int], things: list[Thing]) -> Image.Image:
    base = dice.choice(PAPERS)
    paper = Image.new("RGB", size, base)
    canvas = ImageDraw.Draw(paper)
    for _ in range(24):
        x, y, r = dice.randrange(size[0]), dice.randrange(size[1]), dice.randint(20, 120)
        shade = dice.choice((-8, -5, 6, 9))
        color = (base[0] + shade, base[1] + shade, base[2] + shade)
        canvas.ellipse((x - r, y - r, x + r, y + r), color)
    return draw_shapes(size, paper, [(one.shape, COLORS[one.color], one.box) for one in things])


def _sample(scene: Image.Image, found: tuple[Thing, ...]) -> list[tuple[int, int, Color]]:
    """Return pixels of the scene that no frame covers."""
    width, height = scene.size
    framed = [one.box.grow(16) for one in found]
    places = [(x, y) for y in range(20, height, 40) for x in range(20, width, 40)]
    outside = [
        (x, y)
        for x, y in places
        if not any(left <= x <= right and top <= y <= bottom for left, top, right, bottom in framed)
    ]
    return _take(scene, outside)


def _sample_inside(scene: Image.Image, box: ShapeBox) -> list[tuple[int, int, Color]]:
    """Return pixels of the middle of an object, which no frame covers."""
    steps = range(5, 12)
    side = box.right - box.left
    places = [(box.left + x * side // 16, box.top + y * side // 16) for y in steps for x in steps]
    return _take(scene, places)


def _take(scene: Image.Image, places: list[tuple[int, int]]) -> list[tuple[int, int, Color]]:
    return [
        (x, y, (color[0], color[1], color[2]))
        for x, y in places
        if isinstance(color := scene.getpixel((x, y)), tuple)
    ]


def _box_everything(scene: Image.Image) -> Work:
    entry = {"label": "objects", "box": [0, 0, *scene.size]}
    return Work({BOXES: json.dumps([entry]).encode(), PICTURE: encode_png(scene)})


def _ask(dice: TaskDice, level: TaskLevel, color: str, skipped: str, count: int) -> str:
    what = {
        1: "all objects",
        2: f"the {color} objects",
        3: f"the {color} objects that are not a {skipped}",
    }[level]
    opening = dice.choice(
        (
            f"Mark {what} in the picture inputs/{INPUT}.",
            f"inputs/{INPUT} shows shapes on a pale background. We need the places of {what}.",
            f"Find {what} in inputs/{INPUT} for our training data.",
        )
    )
    names = ", ".join(SHAPES)
    return (
        f"{opening} There are {count} of them, and no others count. Deliver {BOXES}, a JSON list "
        'with one entry for each: {"label": shape, "box": [left, top, right, bottom]}, where the '
        "box encloses the object closely (intersection over union of at least 0.7), in pixels "
        f"from the upper left corner, and the shape is one of {names}. Also deliver {PICTURE}, an "
        "ordinary PNG file (8 bits, color, not interlaced, nothing transparent): the picture in "
        "its size, with a thin red frame along the four sides of each of these objects; names "
        "beside the frames are welcome. The objects and the rest of the picture stay as they are."
    )


def _score(size: tuple[int, int], count: int) -> tuple[GroupEntry, ...]:
    width, height = size
    return (
        group(
            "boxes",
            leaf("found", f"{BOXES} has a close box for each of the {count} objects, and at most "
                 f"{2 * count} boxes.",
                 {"is": "python", "run": f"{CHECK}:find_all"}, weight=2),
            leaf("count", f"{BOXES} has {count} boxes, each on another one of the objects.",
                 {"is": "python", "run": f"{CHECK}:invent_none"}),
            leaf("labels", f"Boxes that lie on an object have the name of its shape in {BOXES}, "
                 "and at least half of the objects have such a box.",
                 {"is": "python", "run": f"{CHECK}:name_all"}),
            weight=2,
        ),
        group(
            "picture",
            leaf("frames", f"{PICTURE} has a red frame around each of the {count} objects, which "
                 "are shown as they were, and little else in red.",
                 {"is": "python", "run": f"{CHECK}:frame_all"}),
            leaf("size", f"{PICTURE} is a marked copy with {width} x {height} pixels that shows "
                 "the scene.", {"is": "python", "run": f"{CHECK}:keep_scene"},
                 {"is": "image.facts", "file": PICTURE, "width": {"min": width, "max": width},
                  "height": {"min": height, "max": height}},
                 {"is": "file.not_input", "file": PICTURE}),
        ),
    )  # fmt: skip


def _break(plan: _Plan, color: str) -> dict[str, Wrong]:
    first, *others = plan.listed
    left, top, right, bottom = first.box
    quarter = (right - left) // 4 + 2
    moved = replace(first, box=ShapeBox(left + quarter, top, right + quarter, bottom))
    shape = next(name for name in SHAPES if name != first.shape)
    # In the corner, where no object is.
    invented = Thing(first.shape, color, ShapeBox(0, 0, 12, 12))
    made = {
        "box-moved": (replace(plan, listed=(moved, *others)), ("found",)),
        "object-missed": (replace(plan, listed=tuple(others)), ("found", "count")),
        "box-invented": (replace(plan, listed=(*plan.listed, invented)), ("count",)),
        "name-wrong": (
            replace(plan, listed=(replace(first, shape=shape), *others)),
            ("labels",),
        ),
        "frame-missing": (replace(plan, framed=tuple(others)), ("frames",)),
        "box-doubled": (replace(plan, listed=(first, *plan.listed[:-1])), ("found", "count")),
        "objects-erased": (replace(plan, erased=True), ("frames",)),
        "picture-painted": (replace(plan, painted=True), ("frames", "size")),
        "picture-wider": (replace(plan, wider=40), ("size",)),
    }
    return {name: Wrong(one.build(), breaks, "exact") for name, (one, breaks) in made.items()}


FAMILY: Final = TaskFamily(
    "annotate",
    "objects of a picture are boxed in JSON and framed in a copy of the picture",
    (
        "4 objects, all of which count",
        "9 objects, of which the 5 of one color count",
        "16 objects, of which 6 of one color count, but not those of one shape",
    ),
    make,
)
