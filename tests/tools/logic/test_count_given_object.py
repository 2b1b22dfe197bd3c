import base64
from pathlib import Path

import pytest

from gta_bench.errors import ToolError
from gta_bench.tools.contract import Equipment
from gta_bench.tools.logic.count_given_object import parse_count
from gta_bench.tools.pictures import decode
from tests.tools.conftest import Caller
from tests.tools.openai_server import OpenAiServer, png

COUNT = "CountGivenObject"


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ("4", 4),
        ("0", 0),
        ("There are 12 dogs.", 12),
        ("**3**", 3),
        ("3 dogs: 3 in all", 3),
        ("Answer: 7\n", 7),
        ("I see 3, all of them brown.", 3),
    ],
)
def test_the_one_number_of_a_reply_is_the_count(reply: str, number: int) -> None:
    assert parse_count(reply, "dog") == number


@pytest.mark.parametrize(
    "reply",
    ["unknown", "none", "", "2 or 3", "about 2.5", "-1", "four", "1,000 or so", "3.14", "12345678"],
)
def test_a_reply_without_one_whole_number_is_an_error_and_never_zero(reply: str) -> None:
    with pytest.raises(ToolError, match="could not count 'dog'"):
        parse_count(reply, "dog")


def test_an_endpoint_counts(server: OpenAiServer, call: Caller) -> None:
    server.say = "4"
    result = call(server.equipment(COUNT), COUNT, {"a.png": png()}, image="a.png", text="dog")
    assert result.text == "4"
    assert result.backend.startswith("tiny-vlm-2026-11 at 127.0.0.1")
    prompt = server.seen[0].fields["messages"][0]["content"][1]["text"]
    assert prompt.startswith("Count in the image: dog\n")


def test_with_a_box_only_its_region_is_looked_at(server: OpenAiServer, call: Caller) -> None:
    server.say = "1"
    arguments = {"image": "a.png", "text": "dog", "bbox": "(0, 0, 10, 12)"}
    call(server.equipment(COUNT), COUNT, {"a.png": png()}, **arguments)
    picture = server.seen[0].fields["messages"][0]["content"][0]["image_url"]["url"]
    assert decode(base64.b64decode(picture.partition(",")[2]), "sent").size == (10, 12)


def test_an_endpoint_that_cannot_count_is_an_error(server: OpenAiServer, call: Caller) -> None:
    server.say = "unknown"
    with pytest.raises(ToolError, match="it replied 'unknown'"):
        call(server.equipment(COUNT), COUNT, {"a.png": png()}, image="a.png", text="stars")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("image", "text", "number"),
    [
        ("image_12.jpg", "dog", "4"),
        ("image_65.jpg", "people", "4"),
        ("image_352.jpg", "apples", "4"),
        ("image_82.jpg", "banana", "0"),
    ],
)
def test_offline_the_detector_counts(
    call: Caller, offline: Equipment, atomic_dir: Path, image: str, text: str, number: str
) -> None:
    files = {"a.jpg": (atomic_dir / "image" / image).read_bytes()}
    result = call(offline, COUNT, files, image="a.jpg", text=text)
    assert result.text == number
    assert result.backend.startswith("SSD MobileNet v3 large, COCO")


@pytest.mark.slow
def test_offline_a_box_limits_the_count(call: Caller, offline: Equipment, atomic_dir: Path) -> None:
    files = {"a.jpg": (atomic_dir / "image" / "image_12.jpg").read_bytes()}
    result = call(offline, COUNT, files, image="a.jpg", text="dog", bbox="(60, 100, 520, 900)")
    assert result.text == "1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [("pear", "does not know 'pear'"), ("woman", "Ask for 'person'"), ("", "does not know ''")],
)
def test_offline_an_object_it_cannot_tell_is_an_error_and_never_zero(
    call: Caller, offline: Equipment, text: str, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        call(offline, COUNT, {"a.png": png()}, image="a.png", text=text)
