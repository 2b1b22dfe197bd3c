import json

import pytest

from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.settings import EndpointSettings, Settings, ToolSettings
from gta_bench.tools.catalog import load_tool
from gta_bench.tools.contract import Available, Equipment, Unavailable
from tests.tools.conftest import Caller
from tests.tools.openai_server import OpenAiServer, Turn, png

KEYS = {"MATHPIX_APP_ID": "planted-id-77", "MATHPIX_APP_KEY": "planted-key-88"}


def mathpix(server: OpenAiServer, keys: dict[str, str] | None = None) -> Equipment:
    endpoint = EndpointSettings(url=f"{server.origin}/v3")
    chosen = ToolSettings(backend="mathpix", endpoint="mathpix")
    settings = Settings(endpoints={"mathpix": endpoint}, tools={"MathOCR": chosen})
    return Equipment(settings, key=(KEYS if keys is None else keys).get)


def reply(**fields: object) -> Turn:
    return Turn(body=json.dumps({"request_id": "r", "version": "RSK-M127p5", **fields}).encode())


# Mathpix


def test_mathpix_gives_the_formula_alone(server: OpenAiServer, call: Caller) -> None:
    server.turns = [reply(latex_styled="x^{2}=4", text=r"\( x^{2}=4 \)", confidence=0.99)]
    result = call(mathpix(server), "MathOCR", {"a.jpg": png()}, image="inputs/a.jpg")
    assert result.text == "x^{2}=4"
    assert result.backend == "Mathpix v3/text (RSK-M127p5)"
    (seen,) = server.seen
    assert seen.path == "/v3/text"
    assert (seen.headers["app_id"], seen.headers["app_key"]) == tuple(KEYS.values())
    assert seen.image is not None


def test_mathpix_text_stands_in_where_there_is_no_single_formula(
    server: OpenAiServer, call: Caller
) -> None:
    server.turns = [reply(text=r"Solve \( x+1=2 \) for x")]
    result = call(mathpix(server), "MathOCR", {"a.png": png()}, image="a.png")
    assert result.text == r"Solve \( x+1=2 \) for x"


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        (reply(error="Content not found", text=""), "did not read the image: Content not found"),
        (reply(text="  "), "No mathematics was recognized"),
        (Turn(body=b"<html>"), "malformed reply"),
        (Turn(400, b'{"error": "bad image"}'), "bad image"),
    ],
)
def test_a_mathpix_error_is_an_error_and_never_a_result(
    server: OpenAiServer, call: Caller, turn: Turn, said: str
) -> None:
    server.turns = [turn]
    with pytest.raises(ToolError, match=said):
        call(mathpix(server), "MathOCR", {"a.png": png()}, image="a.png")


def test_refused_mathpix_keys_are_unavailable_and_stay_secret(
    server: OpenAiServer, call: Caller
) -> None:
    said = {"error": f"bad key {KEYS['MATHPIX_APP_KEY']} of {KEYS['MATHPIX_APP_ID']}"}
    server.turns = [Turn(401, json.dumps(said).encode())]
    with pytest.raises(ToolUnavailable, match="Check MATHPIX_APP_ID and MATHPIX_APP_KEY") as caught:
        call(mathpix(server), "MathOCR", {"a.png": png()}, image="a.png")
    assert not any(key in str(caught.value) for key in KEYS.values())


def test_a_key_with_a_line_break_is_refused_before_it_is_sent(
    server: OpenAiServer, call: Caller
) -> None:
    keys = {**KEYS, "MATHPIX_APP_KEY": "planted\r\nx: y"}
    with pytest.raises(ToolUnavailable, match="characters that no key has") as caught:
        call(mathpix(server, keys), "MathOCR", {"a.png": png()}, image="a.png")
    assert "planted" not in str(caught.value)
    assert server.seen == []


def test_missing_mathpix_keys_are_named(server: OpenAiServer) -> None:
    state = load_tool("MathOCR")(mathpix(server, {"MATHPIX_APP_ID": "x"})).check()
    assert state == Unavailable("MATHPIX_APP_KEY not set.", "export MATHPIX_APP_KEY=…")


def test_with_its_keys_mathpix_needs_no_settings() -> None:
    tool = load_tool("MathOCR")(Equipment(Settings(), key=KEYS.get))
    assert tool.check() == Available("Mathpix v3/text")


# A vision endpoint


@pytest.mark.parametrize(
    "said", ["x^{2}=4", "$x^{2}=4$", "$$ x^{2}=4 $$", "```latex\nx^{2}=4\n```", " x^{2}=4\n"]
)
def test_a_vision_model_s_latex_is_given_bare(
    server: OpenAiServer, call: Caller, said: str
) -> None:
    server.say = said
    result = call(server.equipment("MathOCR"), "MathOCR", {"a.png": png()}, image="a.png")
    assert result.text == "x^{2}=4"
    assert result.backend.startswith("tiny-vlm-2026-11")


@pytest.mark.parametrize("said", ["none", "None.", "$$", "``` ```"])
def test_an_image_without_mathematics_is_an_error(
    server: OpenAiServer, call: Caller, said: str
) -> None:
    server.say = said
    with pytest.raises(ToolError, match="No mathematics was recognized"):
        call(server.equipment("MathOCR"), "MathOCR", {"a.png": png()}, image="a.png")
