import io
from pathlib import Path

import pytest
from PIL import Image, ImageStat

from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.pictures import decode
from tests.tools.conftest import Caller, encoded
from tests.tools.openai_server import OpenAiServer, Turn, png

STYLE = "ImageStylization"


def test_an_endpoint_makes_an_image_and_it_is_kept(server: OpenAiServer, call: Caller) -> None:
    server.image = png("green", (64, 64))
    space = call.workspace({})
    equipment = server.equipment("TextToImage", model="painter")
    result = call(equipment, "TextToImage", space, keywords="cake, apples")
    assert result.text == "[image](outputs/generated_image.png)"
    assert space.read("outputs/generated_image.png") == server.image
    assert result.backend.startswith("painter at 127.0.0.1:")
    assert server.seen[0].fields["prompt"] == "cake, apples"


def test_images_of_one_task_do_not_overwrite_each_other(server: OpenAiServer, call: Caller) -> None:
    space = call.workspace({})
    equipment = server.equipment("TextToImage")
    made = [call(equipment, "TextToImage", space, keywords="cake").text for _ in range(2)]
    assert made == [
        "[image](outputs/generated_image.png)",
        "[image](outputs/generated_image-2.png)",
    ]


@pytest.mark.parametrize(
    "image", [b"not an image", b"", png()[:40]], ids=["text", "empty", "damaged"]
)
def test_what_an_endpoint_gives_instead_of_an_image_is_an_error_and_not_kept(
    server: OpenAiServer, call: Caller, image: bytes
) -> None:
    server.image = image
    space = call.workspace({})
    with pytest.raises(ToolError, match="image"):
        call(server.equipment("TextToImage"), "TextToImage", space, keywords="cake")
    assert space.outputs().files == ()


def test_blank_wishes_are_refused_before_anybody_is_asked(
    server: OpenAiServer, call: Caller
) -> None:
    with pytest.raises(ToolError, match="needs keywords"):
        call(server.equipment("TextToImage"), "TextToImage", {}, keywords="  ")
    with pytest.raises(ToolError, match="needs an instruction"):
        call(server.equipment(STYLE), STYLE, {"a.png": png()}, image="a.png", instruction=" ")
    assert server.seen == []


def test_without_an_endpoint_no_image_is_made_up(call: Caller) -> None:
    with pytest.raises(ToolUnavailable, match=r"no endpoint is set for TextToImage.*gta\.toml"):
        call(Equipment(Settings()), "TextToImage", {}, keywords="cake")


def test_an_endpoint_edits_an_image(server: OpenAiServer, call: Caller) -> None:
    server.image = encoded(Image.new("RGB", (50, 40), "red"), "JPEG")
    space = call.workspace({"a.jpg": png("green")})
    result = call(server.equipment(STYLE), STYLE, space, image="a.jpg", instruction="add fireworks")
    assert result.text == "[image](outputs/stylized_image.jpg)"
    (seen,) = server.seen
    assert (seen.path, seen.fields["prompt"]) == ("/v1/images/edits", "add fireworks")
    assert seen.image is not None
    assert decode(seen.image, "sent").size == (48, 32)


def test_an_endpoint_that_refuses_an_edit_is_an_error(server: OpenAiServer, call: Caller) -> None:
    server.turns = [Turn(400, b'{"error": {"message": "unsafe wish"}}')]
    with pytest.raises(ToolError, match="unsafe wish"):
        call(server.equipment(STYLE), STYLE, {"a.png": png()}, image="a.png", instruction="burn it")


def stylized(call: Caller, offline: Equipment, data: bytes, wish: str) -> tuple[Image.Image, str]:
    space = call.workspace({"a.jpg": data})
    result = call(offline, STYLE, space, image="a.jpg", instruction=wish)
    painted = Image.open(io.BytesIO(space.read("outputs/stylized_image.png")))
    return painted, result.backend


@pytest.mark.slow
def test_offline_a_photograph_is_painted_over_in_the_style_named(
    call: Caller, offline: Equipment, atomic_dir: Path
) -> None:
    data = (atomic_dir / "image" / "image_357.jpg").read_bytes()
    painted, backend = stylized(call, offline, data, "Convert to Van Gogh style")
    before = decode(data, "a").resize(painted.size)
    assert painted.width / painted.height == pytest.approx(before.width / before.height, abs=0.02)
    assert backend.endswith("style 19: swirls in blue and yellow")
    assert backend.startswith("Magenta style transfer, 26 styles (onnxruntime ")
    # The photograph is gray; Starry Night is blue.
    red, _, blue = ImageStat.Stat(painted).mean
    assert blue > red + 10


@pytest.mark.slow
@pytest.mark.parametrize("size", [(33, 35), (500, 40), (3000, 2000), (101, 257)])
def test_offline_any_size_is_painted_with_the_longer_side_at_most_1024(
    call: Caller, offline: Equipment, size: tuple[int, int]
) -> None:
    data = encoded(Image.effect_noise(size, 60).convert("RGB"))
    painted, _ = stylized(call, offline, data, "cartoon style")
    scale = min(1, 1024 / max(size))
    assert painted.size == pytest.approx([side * scale for side in size], abs=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "wish", "said"),
    [
        ((64, 64), "turn him into cyborg", "No offline style fits"),
        ((64, 64), "convert to realism style", "Styles: cartoon"),
        ((20, 64), "cartoon style", "too small or too narrow"),
        ((3000, 40), "cartoon style", "too small or too narrow"),
    ],
)
def test_offline_what_cannot_be_done_is_told(
    call: Caller, offline: Equipment, size: tuple[int, int], wish: str, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        stylized(call, offline, encoded(Image.new("RGB", size)), wish)
