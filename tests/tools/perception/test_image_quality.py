from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("PIL")

import numpy as np
from PIL import Image

from gta_bench.confine.workspace import Workspace
from gta_bench.tools.contract import Available
from gta_bench.tools.perception.image_quality import ImageQualityTest, measure_sharpness
from tests.tools.calling import PLAIN, call, error
from tests.tools.pictures import plain, space_with


def noise(width: int, height: int, seed: int = 1) -> Image.Image:
    values = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def by_hand(image: Image.Image) -> float:
    """The definition, pixel by pixel: gray in fixed point, border reflected without its edge."""
    width, height = image.size

    def gray(x: int, y: int) -> int:
        red, green, blue = image.getpixel((_inside(x, width), _inside(y, height)))  # type: ignore[misc]
        return (red * 9798 + green * 19235 + blue * 3735 + 16384) >> 15

    values = [
        gray(x - 1, y) + gray(x + 1, y) + gray(x, y - 1) + gray(x, y + 1) - 4 * gray(x, y)
        for y in range(height)
        for x in range(width)
    ]
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / len(values)


def _inside(place: int, count: int) -> int:
    if count == 1:
        return 0
    return -place if place < 0 else 2 * (count - 1) - place if place >= count else place


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (2, 2), (17, 13), (40, 3)])
def test_the_variance_is_the_one_of_the_definition(size: tuple[int, int]) -> None:
    image = noise(*size)
    assert measure_sharpness(image) == pytest.approx(by_hand(image), rel=1e-12, abs=1e-12)


def test_an_image_of_several_bands_gives_the_same_as_in_one_piece() -> None:
    image = noise(20, 1500)
    gray = (np.asarray(image).astype(int) * [9798, 19235, 3735]).sum(2) + 16384 >> 15
    padded = np.pad(gray.astype(float), 1, mode="reflect")
    inner = padded[1:-1, 1:-1]
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    assert measure_sharpness(image) == pytest.approx(float((around - 4 * inner).var()), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "value"),
    [("image_293.jpg", 557.73), ("image_299.jpg", 265.30), ("dummy_generated_image.jpg", 5.43)],
)
def test_real_pictures_give_the_value_of_opencv(
    tmp_path: Path, atomic_dir: Path, name: str, value: float
) -> None:
    """Values of opencv-python-headless 5.0.0.93, as `{variance:.2f}`."""
    space = Workspace.create(tmp_path / "space", {"inputs/a.jpg": atomic_dir / "image" / name})
    said = call("ImageQualityTest", space, image="a.jpg").text
    assert said == f"Laplacian variance: {value:.2f}, Blurry: {value < 100}"


def test_the_answer_has_upstreams_form(tmp_path: Path) -> None:
    space = space_with(tmp_path, flat=plain(), noisy=noise(50, 50))
    flat = call("ImageQualityTest", space, image="inputs/flat.png")
    assert flat.text == "Laplacian variance: 0.00, Blurry: True"
    noisy = call("ImageQualityTest", space, image="inputs/noisy.png")
    assert noisy.text.startswith("Laplacian variance: ")
    assert noisy.text.endswith(", Blurry: False")
    assert noisy.backend.startswith("numpy 2.")


def test_it_is_available_with_numpy() -> None:
    state = ImageQualityTest(PLAIN).check()
    assert isinstance(state, Available)
    assert state.backend.startswith("numpy ")


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    file.write_bytes(b"words")
    space = Workspace.create(tmp_path / "space", {"inputs/a.png": file})
    said = error("ImageQualityTest", space, image="a.png")
    assert said.startswith("ImageQualityTest: `inputs/a.png` is not an image")
    assert "no file 'b.png'" in error("ImageQualityTest", space, image="b.png")
