import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from PIL import Image

from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.settings import Settings, ToolSettings
from gta_bench.tools.backends.boxes import Box
from gta_bench.tools.backends.local_models import fit
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox
from tests.tools.conftest import Caller, encoded, written

LINE = re.compile(r"\((\d+), (\d+), (\d+), (\d+)\) (.+)")


def lines(result: str) -> Mapping[str, Box]:
    matches = [LINE.fullmatch(line) for line in result.splitlines()]
    assert all(matches), result
    return {found[5]: Box(*map(int, found.groups()[:4])) for found in matches if found}


def test_each_line_of_text_comes_with_its_box(call: Caller) -> None:
    picture = written("Invoice 4711", "Total 23.50")
    result = call(Equipment(Settings()), "OCR", {"a.png": encoded(picture)}, image="inputs/a.png")
    found = lines(result.text)
    assert list(found) == ["Invoice 4711", "Total 23.50"]
    first, second = found.values()
    assert first.y2 <= second.y1 + 5
    assert first.overlap(Box(30, 20, 200, 55)) > 0.5
    assert result.backend.startswith("rapidocr 3.")


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_an_image_may_lie_about_its_name(call: Caller, kind: str) -> None:
    files = {"a.jpg": encoded(written("Hello world"), kind)}
    result = call(Equipment(Settings()), "OCR", files, image="a.jpg")
    assert list(lines(result.text)) == ["Hello world"]


def test_boxes_stay_inside_the_image(call: Caller) -> None:
    picture = written("EDGE TO EDGE", size=60).crop((28, 15, 420, 90))
    result = call(Equipment(Settings()), "OCR", {"a.png": encoded(picture)}, image="a.png")
    for box in lines(result.text).values():
        assert 0 <= box.x1 < box.x2 <= picture.width
        assert 0 <= box.y1 < box.y2 <= picture.height


def test_an_image_without_text_is_told_as_such(call: Caller) -> None:
    picture = Image.new("RGB", (200, 100), "white")
    result = call(Equipment(Settings()), "OCR", {"a.png": encoded(picture)}, image="a.png")
    assert result.text == "No text found."


@pytest.mark.parametrize("size", [(1, 1), (3, 900), (900, 3)])
def test_images_of_any_shape_are_survived(call: Caller, size: tuple[int, int]) -> None:
    files = {"a.png": encoded(Image.new("RGB", size, "gray"))}
    assert call(Equipment(Settings()), "OCR", files, image="a.png").text == "No text found."


@pytest.mark.parametrize(
    ("size", "factor", "read"),
    [
        ((400, 300), 1.0, (400, 300)),
        ((2000, 1200), 1.0, (2000, 1200)),
        ((4000, 2000), 0.5, (2000, 1000)),
        ((3, 900), 1.0, (64, 900)),
        ((30_000, 1), 2000 / 30_000, (2000, 64)),
    ],
)
def test_a_picture_is_fitted_to_a_bounded_size(
    size: tuple[int, int], factor: float, read: tuple[int, int]
) -> None:
    """RapidOCR enlarges the shorter side whatever the other one is: 3 x 900 took minutes."""
    fitted = fit(Image.new("RGB", size))
    assert fitted.picture.size == read
    assert fitted.factor == pytest.approx(factor)


def test_what_is_no_image_is_a_tool_error_and_the_next_call_works(call: Caller) -> None:
    equipment = Equipment(Settings())
    space = call.workspace({"a.jpg": b"no image", "b.png": encoded(written("Still here"))})
    with pytest.raises(ToolError, match=r"`inputs/a\.jpg` is not an image"):
        call(equipment, "OCR", space, image="a.jpg")
    with pytest.raises(ToolError, match="There is no file"):
        call(equipment, "OCR", space, image="c.jpg")
    assert "Still here" in call(equipment, "OCR", space, image="b.png").text


@pytest.mark.slow
def test_calls_at_the_same_time_do_not_mix(call: Caller) -> None:
    words = [f"Number {number}{number}" for number in range(6)]
    pictures = {f"{n}.png": encoded(written(word)) for n, word in enumerate(words)}
    space, box = call.workspace(pictures), Toolbox(Equipment(Settings()))

    async def run() -> list[str]:
        calls = [box.call(space, "OCR", {"image": name}) for name in pictures]
        return [result.text.partition(") ")[2] for result in await asyncio.gather(*calls)]

    assert asyncio.run(run()) == words


def test_a_setting_that_ocr_does_not_know_is_told(call: Caller) -> None:
    settings = Settings(tools={"OCR": ToolSettings(backend="easyocr")})
    with pytest.raises(ToolUnavailable, match=r"no backend 'easyocr'.*gta\.toml .*: rapidocr"):
        call(Equipment(settings), "OCR", {"a.png": b""}, image="a.png")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("image_26.jpg", ["REGENCY", "CAFE"]),
        ("image_304.jpg", ["ByteDance", "字节跳动"]),
        ("image_8.jpg", ["How much water do you need?", "and the rest from drinks."]),
    ],
)
def test_real_images_are_read(call: Caller, atomic_dir: Path, image: str, words: list[str]) -> None:
    files = {image: (atomic_dir / "image" / image).read_bytes()}
    text = call(Equipment(Settings()), "OCR", files, image=image).text
    assert [word for word in words if word in text] == words
