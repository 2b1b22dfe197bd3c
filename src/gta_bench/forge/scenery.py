"""Drawn places with a title, for films: sky, hills, a building, trees, and clouds that drift."""

from typing import Final, NamedTuple

from PIL import Image, ImageDraw

from gta_bench.forge.draft import TaskDice
from gta_bench.forge.drawing import FINE, WHITE, Color, encode_png, find_font

GROUND: Final = 0.72  # where the ground begins, as a share of the height
BAND: Final = (0.79, 0.95)
WIDER: Final = 1.4  # how much wider than the picture the clouds are
WALLS: Final = ((214, 190, 160), (196, 120, 96), (226, 220, 206), (150, 164, 180), (222, 196, 120))
ROOFS: Final = ((120, 60, 50), (70, 80, 96), (90, 72, 60))
GLASS: Final = ((250, 236, 180), (190, 220, 236), (92, 112, 140))


class Sky(NamedTuple):
    """Colors of a time of day: the sky above and at the horizon, the hills, and the ground."""

    above: Color
    below: Color
    hills: Color
    ground: Color


SKIES: Final = (
    Sky((96, 160, 220), (206, 230, 244), (110, 158, 120), (134, 178, 104)),
    Sky((240, 150, 90), (252, 218, 160), (150, 110, 96), (172, 144, 90)),
    Sky((44, 62, 116), (142, 140, 190), (62, 76, 110), (70, 96, 92)),
    Sky((128, 190, 200), (228, 240, 226), (126, 170, 150), (150, 186, 120)),
    Sky((150, 164, 180), (214, 220, 226), (120, 136, 140), (128, 150, 116)),
    Sky((186, 120, 150), (246, 206, 190), (120, 96, 120), (130, 126, 96)),
)


def draw_place(dice: TaskDice, size: tuple[int, int], title: str, sky: Sky) -> bytes:
    """Return a picture of a place as PNG; an empty title leaves out the band below it."""
    width, height = (FINE * one for one in size)
    image = _shade(sky, width, height)
    canvas = ImageDraw.Draw(image)
    sun, x = height * 0.09, width * dice.uniform(0.12, 0.88)
    canvas.ellipse((x - sun, height * 0.2 - sun, x + sun, height * 0.2 + sun), (255, 246, 210))
    ground = height * GROUND
    for number in range(4):
        middle, reach = width * (number + dice.random()) / 4, width * dice.uniform(0.2, 0.32)
        top = ground - height * dice.uniform(0.1, 0.26)
        canvas.ellipse((middle - reach, top, middle + reach, 2 * ground - top), sky.hills)
    canvas.rectangle((0, ground, width, height), sky.ground)
    middle = width * dice.uniform(0.4, 0.6)
    half = width * dice.uniform(0.13, 0.19)
    for offset in (-2.4, -1.5, 1.4, 2.2):
        _draw_tree(canvas, middle + offset * half, ground, height * dice.uniform(0.1, 0.16))
    _draw_building(dice, canvas, (middle, ground), half, height * dice.uniform(0.26, 0.34))
    small = image.resize(size, Image.Resampling.BOX)
    if title:
        _write_title(small, title, sky)
    return encode_png(small)


def draw_clouds(dice: TaskDice, size: tuple[int, int]) -> bytes:
    """Return clouds as PNG on a clear ground, wider than a picture of this size."""
    width, height = round(size[0] * WIDER) * FINE, size[1] // 4 * FINE
    image = Image.new("RGBA", (width, height), (*WHITE, 0))
    canvas = ImageDraw.Draw(image)
    for number in range(5):
        x, y = width * (number + dice.random()) / 5, height * dice.uniform(0.3, 0.75)
        r = height * dice.uniform(0.1, 0.18)
        for along, up, scale in ((-1.5, 0, 0.8), (-0.5, 0.5, 1.1), (0.6, 0.3, 1.0), (1.6, 0, 0.7)):
            at, base, reach = x + along * r, y - up * r, r * scale
            canvas.ellipse((at - reach, base - reach, at + reach, base + reach), (*WHITE, 225))
    return encode_png(image.resize((width // FINE, height // FINE), Image.Resampling.BOX))


def _shade(sky: Sky, width: int, height: int) -> Image.Image:
    """Return a sky that is lighter towards the horizon."""
    image = Image.new("RGB", (width, height), sky.below)
    horizon = round(height * GROUND)
    for y in range(horizon):
        red, green, blue = (
            round(one + (other - one) * y / horizon)
            for one, other in zip(sky.above, sky.below, strict=True)
        )
        image.paste((red, green, blue), (0, y, width, y + 1))
    return image


def _draw_tree(canvas: ImageDraw.ImageDraw, x: float, ground: float, high: float) -> None:
    canvas.rectangle((x - high * 0.06, ground - high, x + high * 0.06, ground), (104, 78, 58))
    for along, up, r in ((-0.25, 0.8, 0.3), (0.25, 0.8, 0.3), (0, 1.1, 0.36)):
        middle, base, reach = x + along * high, ground - up * high, r * high
        box = (middle - reach, base - reach, middle + reach, base + reach)
        canvas.ellipse(box, (64, 112, 74))


def _draw_building(
    dice: TaskDice, canvas: ImageDraw.ImageDraw, foot: tuple[float, float], half: float, high: float
) -> None:
    """Draw a front with rows of windows, a door in the middle, and one of three roofs."""
    middle, ground = foot
    top = ground - high
    left, right = middle - half, middle + half
    wall, roof, glass = dice.choice(WALLS), dice.choice(ROOFS), dice.choice(GLASS)
    eaves = half * 0.1
    match dice.randrange(3):
        case 0:
            tip = top - high * 0.3
            corners = ((left - eaves, top), (middle, tip), (right + eaves, top))
            canvas.polygon(corners, roof)
        case 1:
            canvas.rectangle((left - eaves, top - high * 0.08, right + eaves, top), roof)
        case _:
            canvas.pieslice((left, top - half * 0.45, right, top + half * 0.45), 180, 360, roof)
    canvas.rectangle((left, top, right, ground), wall)
    columns, rows = dice.choice((4, 5, 6)), dice.choice((2, 3))
    step, rise = 2 * half / columns, high / (rows + 0.6)
    door = max(half * 0.16, step * 0.35)
    for row in range(rows):
        for column in range(columns):
            if row == rows - 1 and abs(column + 0.5 - columns / 2) < 1:
                continue  # the door
            x, y = left + step * (column + 0.25), top + rise * (row + 0.35)
            canvas.rectangle((x, y, x + step * 0.5, y + rise * 0.55), glass)
    canvas.rectangle((middle - door, ground - rise * 0.95, middle + door, ground), roof)


def _write_title(image: Image.Image, title: str, sky: Sky) -> None:
    """Write a title into a dark band, with a mark in the color of the sky before it."""
    width, height = image.size
    top, bottom = (round(height * one) for one in BAND)
    canvas = ImageDraw.Draw(image)
    canvas.rectangle((0, top, width, bottom), (24, 30, 42))
    mark = width // 24
    canvas.rectangle((mark, top + 6, mark + 4, bottom - 6), sky.above)
    spot = (mark + 16, (top + bottom) / 2)
    canvas.text(spot, title, WHITE, find_font(height // 10), anchor="lm")
