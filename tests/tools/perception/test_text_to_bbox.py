from pathlib import Path

import pytest
from PIL import Image

from gta_bench.errors import ToolError
from gta_bench.tools.backends.boxes import Box
from gta_bench.tools.contract import Equipment
from gta_bench.tools.perception.text_to_bbox import Located, format_boxes, parse_reply
from tests.tools.conftest import Caller, encoded
from tests.tools.openai_server import OpenAiServer, png

TWO = '[{"bbox": [1, 2, 30, 20], "score": 0.6}, {"bbox": [5, 5, 40, 30], "score": 0.87}]'


@pytest.mark.parametrize(
    ("top1", "said"),
    [
        (True, "(5, 5, 40, 30), score 87"),
        (False, "(5, 5, 40, 30), score 87\n(1, 2, 30, 20), score 60"),
    ],
)
def test_an_endpoint_s_boxes_are_written_as_upstream_does(
    server: OpenAiServer, call: Caller, top1: bool, said: str
) -> None:
    server.say = TWO
    equipment = server.equipment("TextToBbox")
    result = call(equipment, "TextToBbox", {"a.png": png()}, image="a.png", text="dog", top1=top1)
    assert result.text == said
    prompt = server.seen[0].fields["messages"][0]["content"][1]["text"]
    assert "48 pixels wide and 32 pixels high" in prompt
    assert ("List only the best one." in prompt) is top1


def test_top1_is_the_default(server: OpenAiServer, call: Caller) -> None:
    server.say = f"```json\n{TWO}\n```"
    equipment = server.equipment("TextToBbox")
    result = call(equipment, "TextToBbox", {"a.png": png()}, image="a.png", text="dog")
    assert result.text == "(5, 5, 40, 30), score 87"


def test_no_box_is_no_object(server: OpenAiServer, call: Caller) -> None:
    server.say = "[]"
    equipment = server.equipment("TextToBbox")
    result = call(equipment, "TextToBbox", {"a.png": png()}, image="a.png", text="dog")
    assert result.text == "No object found."


def test_boxes_of_a_scaled_picture_are_scaled_back(server: OpenAiServer, call: Caller) -> None:
    server.say = '[{"bbox": [0, 0, 1024, 512], "score": 1}]'
    files = {"a.png": encoded(Image.new("RGB", (4096, 2048)))}
    result = call(server.equipment("TextToBbox"), "TextToBbox", files, image="a.png", text="dog")
    assert result.text == "(0, 0, 2048, 1024), score 100"


NO_BOXES = (
    "There is a dog.",
    "{}",
    "null",
    '[{"box": [1, 2, 3, 4]}]',
    '[{"bbox": [1, 2, 3]}]',
    '[{"bbox": [1, 2, 3, "NaN"]}]',
    '[{"bbox": [1, 2, 3, 4], "score": 900}]',
)


@pytest.mark.parametrize("reply", NO_BOXES)
def test_a_reply_that_is_no_list_of_boxes_is_a_tool_error(reply: str) -> None:
    with pytest.raises(ToolError, match="not a list of boxes"):
        parse_reply(reply, (10, 10), (10, 10))


def test_boxes_outside_the_image_are_dropped_and_percentages_are_understood() -> None:
    reply = '[{"bbox": [50, 50, 60, 60]}, {"bbox": [8, 9, 2, 3], "score": 87}]'
    assert parse_reply(reply, (10, 10), (10, 10)) == [Located(Box(2, 3, 8, 9), 0.87)]
    assert format_boxes([], top1=True) == "No object found."


@pytest.mark.slow
def test_offline_the_detector_finds_every_dog(
    call: Caller, offline: Equipment, atomic_dir: Path
) -> None:
    files = call.workspace({"a.jpg": (atomic_dir / "image" / "image_12.jpg").read_bytes()})
    every = call(offline, "TextToBbox", files, image="a.jpg", text="dogs", top1=False)
    best = call(offline, "TextToBbox", files, image="a.jpg", text="dog")
    assert len(every.text.splitlines()) == 4
    assert every.text.splitlines()[0] == best.text
    assert every.backend.startswith("SSD MobileNet v3 large, COCO (opencv-python-headless ")
    none = call(offline, "TextToBbox", files, image="a.jpg", text="pizza")
    assert none.text == "No object found."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"), [("lion", "does not know 'lion'"), ("white dog", "Ask for 'dog'")]
)
def test_offline_what_the_detector_cannot_tell_is_refused(
    call: Caller, offline: Equipment, text: str, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        call(offline, "TextToBbox", {"a.png": png()}, image="a.png", text=text)
