"""Draw the pictures of the demo's tasks; run by hand when one is to change."""

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

FOLDER = Path(__file__).parent.parent / "src" / "gta_bench" / "demo" / "data" / "image"
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"
RECEIPT = [
    ("Coffee", "3.20"),
    ("Cheese sandwich", "6.75"),
    ("Apple juice", "2.90"),
    ("Muffin", "2.15"),
]
NOTE = ["Homework", "", "Solve for x:", "x**2 - 5*x + 6 = 0"]


def main() -> None:
    """Draw both pictures."""
    font = ImageFont.truetype(FONT, 30)
    _text(["CORNER CAFE", "", *(f"{name:<18}{price:>6}" for name, price in RECEIPT)], font).save(
        FOLDER / "receipt.png", optimize=True
    )
    _text(NOTE, font).save(FOLDER / "homework.png", optimize=True)


def _text(lines: list[str], font: ImageFont.FreeTypeFont) -> Image.Image:
    picture = Image.new("L", (560, 60 + 48 * len(lines)), 255)
    draw = ImageDraw.Draw(picture)
    for number, line in enumerate(lines):
        draw.text((40, 30 + 48 * number), line, font=font, fill=20)
    return picture


if __name__ == "__main__":
    main()
