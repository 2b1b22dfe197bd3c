import base64
from pathlib import Path

import pytest
from PIL import Image

from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.tools.backends.composed import LEAD, mean_color
from gta_bench.tools.contract import Equipment
from gta_bench.tools.pictures import decode
from tests.tools.conftest import Caller, encoded, written
from tests.tools.openai_server import OpenAiServer, Turn, png

REGION = "RegionAttributeDescription"


def sent(server: OpenAiServer) -> Image.Image:
    picture, _ = server.seen[-1].fields["messages"][0]["content"]
    data = base64.b64decode(picture["image_url"]["url"].partition(",")[2])
    return decode(data, "sent")


def asked(server: OpenAiServer) -> str:
    return str(server.seen[-1].fields["messages"][0]["content"][1]["text"])


def test_an_endpoint_describes_an_image(server: OpenAiServer, call: Caller) -> None:
    equipment = server.equipment("ImageDescription")
    result = call(equipment, "ImageDescription", {"a.jpg": png()}, image="inputs/a.jpg")
    assert result.text == "A blue rectangle."
    host = server.origin.removeprefix("http://")
    assert result.backend == f"tiny-vlm-2026-11 at {host} (endpoint mine)"
    assert sent(server).size == (48, 32)
    assert asked(server).startswith("Describe the image in detail")


def test_only_the_region_is_sent_with_the_question(server: OpenAiServer, call: Caller) -> None:
    picture = Image.new("RGB", (100, 80), "white")
    picture.paste("red", (20, 10, 60, 40))
    call(
        server.equipment(REGION),
        REGION,
        {"a.png": encoded(picture)},
        image="a.png",
        bbox="(60, 40, 20, 10)",
        attribute="color of the coat",
    )
    region = sent(server)
    assert (region.size, region.getcolors()) == ((40, 30), [(1200, (255, 0, 0))])
    assert "color of the coat" in asked(server)


@pytest.mark.parametrize("bbox", ["(200, 0, 300, 80)", "(5, 5, 5, 9)", "left", "(1, 2, 3)"])
def test_a_region_that_is_empty_or_none_is_refused_before_anybody_is_asked(
    server: OpenAiServer, call: Caller, bbox: str
) -> None:
    equipment = server.equipment(REGION)
    with pytest.raises(ToolError, match="box"):
        call(equipment, REGION, {"a.png": png()}, image="a.png", bbox=bbox, attribute="color")
    assert server.seen == []


def test_an_endpoint_that_fails_is_an_error_and_never_a_description(
    server: OpenAiServer, call: Caller
) -> None:
    server.turns = [Turn(400, b'{"error": {"message": "no images here"}}')]
    equipment = server.equipment("ImageDescription")
    with pytest.raises(ToolError, match="no images here"):
        call(equipment, "ImageDescription", {"a.png": png()}, image="a.png")


def test_a_missing_key_is_unavailable_with_the_line_to_mend(
    server: OpenAiServer, call: Caller
) -> None:
    equipment = Equipment(server.settings("ImageDescription"), key=lambda _: None)
    with pytest.raises(ToolUnavailable, match=r"TEST_KEY is not set\. export TEST_KEY="):
        call(equipment, "ImageDescription", {"a.png": png()}, image="a.png")


@pytest.mark.parametrize(
    ("color", "said"),
    [("red", "red (#ff0000)"), ("white", "white (#ffffff)"), ("navy", "blue (#000080)")],
)
def test_a_mean_color_has_a_name_and_a_value(color: str, said: str) -> None:
    assert mean_color(Image.new("RGB", (9, 9), color)) == said


@pytest.mark.slow
def test_offline_a_description_is_composed_and_says_so(call: Caller, offline: Equipment) -> None:
    files = {"a.png": encoded(written("Total 23.50"))}
    result = call(offline, "ImageDescription", files, image="a.png")
    first, objects, text, color, size = result.text.splitlines()
    assert first == LEAD
    assert objects.startswith("Objects: ")
    assert text == "Text: Total 23.50"
    assert color.startswith("Mean color: white (#")
    assert size == "Size: 520 x 100 pixels."
    assert result.backend.startswith("detector-composed description: SSD MobileNet v3")
    assert "rapidocr" in result.backend


@pytest.mark.slow
def test_offline_a_photograph_is_told_by_its_objects(
    call: Caller, offline: Equipment, atomic_dir: Path
) -> None:
    files = {"a.jpg": (atomic_dir / "image" / "image_65.jpg").read_bytes()}
    result = call(offline, "ImageDescription", files, image="a.jpg")
    assert "4 x person" in result.text


@pytest.mark.slow
def test_offline_a_region_is_told_by_its_own_findings(call: Caller, offline: Equipment) -> None:
    picture = written("Total 23.50", "Paid in cash")
    picture.paste("red", (400, 0, 520, 160))
    arguments = {"image": "a.png", "attribute": "color"}
    files = call.workspace({"a.png": encoded(picture)})
    red = call(offline, REGION, files, bbox="(400, 0, 520, 160)", **arguments).text
    assert "Mean color: red (#ff0000)" in red
    assert "Text: none" in red
    words = call(offline, REGION, files, bbox="(0, 70, 400, 160)", **arguments).text
    assert "Text: Paid in cash" in words
