import asyncio
import base64
import gzip
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from gta_bench.errors import GtaError, ToolError, ToolUnavailable
from gta_bench.settings import EndpointSettings, Settings, ToolSettings
from gta_bench.tools.backends.client import (
    Client,
    EncodedImage,
    Endpoint,
    EndpointLimits,
    ModelAnswer,
    find_endpoint,
)
from gta_bench.tools.contract import Equipment, Unavailable
from tests.tools.openai_server import HASTY, KEY, OpenAiServer, Turn, openai_server, png

pytestmark = pytest.mark.usefixtures("loopback")


@pytest.fixture
def server(loopback: None) -> Iterator[OpenAiServer]:
    with openai_server() as running:
        yield running


def client(
    server: OpenAiServer, *, limits: EndpointLimits = HASTY, model: str = "tiny-vlm"
) -> Client:
    return Client(Endpoint("mine", f"{server.origin}/v1", model, KEY, "TEST_KEY"), limits)


def ask(asked: Client) -> ModelAnswer:
    return asyncio.run(asked.chat("What is this?", [EncodedImage(png(), "image/png")]))


def image_reply(**fields: str) -> bytes:
    return json.dumps({"data": [fields]}).encode()


# What is sent, and what comes back


def test_a_chat_sends_the_pictures_as_data_and_the_question_after_them(
    server: OpenAiServer,
) -> None:
    answer = ask(client(server))
    assert answer == ModelAnswer("A blue rectangle.", "tiny-vlm-2026-11")
    (seen,) = server.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.fields["model"] == "tiny-vlm"
    picture, question = seen.fields["messages"][0]["content"]
    kind, _, data = picture["image_url"]["url"].partition(";base64,")
    assert kind == "data:image/png"
    assert base64.b64decode(data) == png()
    assert question == {"type": "text", "text": "What is this?"}


def test_an_image_is_generated_from_words(server: OpenAiServer) -> None:
    server.image = png("red")
    assert asyncio.run(client(server).generate_image("a red box")) == png("red")
    (seen,) = server.seen
    assert seen.path == "/v1/images/generations"
    expected = {"model": "tiny-vlm", "prompt": "a red box", "n": 1, "response_format": "b64_json"}
    assert seen.fields == expected


def test_an_edit_sends_the_image_as_a_file(server: OpenAiServer) -> None:
    given = EncodedImage(png("green"), "image/png")
    assert asyncio.run(client(server).edit_image("paint it blue", given)) == png("blue")
    (seen,) = server.seen
    assert (seen.path, seen.image) == ("/v1/images/edits", png("green"))
    assert seen.fields["image is"] == "image/png"
    assert seen.fields["prompt"] == "paint it blue"


def test_a_model_that_always_gives_base64_is_not_asked_for_it(server: OpenAiServer) -> None:
    asked = client(server, model="gpt-image-1")
    asyncio.run(asked.generate_image("a red box"))
    assert "response_format" not in server.seen[0].fields


def test_without_a_key_no_authorization_is_sent(server: OpenAiServer) -> None:
    ask(Client(Endpoint("mine", f"{server.origin}/v1", "tiny-vlm"), HASTY))
    assert "authorization" not in server.seen[0].headers


@pytest.mark.parametrize("key", [None, KEY])
def test_nothing_of_the_environment_reaches_the_endpoint(
    server: OpenAiServer, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """openai's client sends what these variables hold to whatever address it is given."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-elsewhere")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-planted-admin")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-planted")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-planted")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Own: planted\nAuthorization: Bearer planted")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.2/planted")
    ask(Client(Endpoint("mine", f"{server.origin}/v1", "tiny-vlm", key), HASTY))
    sent = server.seen[0].headers
    assert sent.get("authorization") == (f"Bearer {key}" if key else None)
    rest = {name: value for name, value in sent.items() if name != "authorization"}
    assert "planted" not in str(rest)


def test_a_reply_that_is_packed_is_not_unpacked(server: OpenAiServer) -> None:
    """1 MB of gzip can hold 1 GB; none is asked for."""
    packed = gzip.compress(server.answer("/chat/completions"))
    server.turns = [Turn(body=packed, headers={"content-encoding": "gzip"})]
    with pytest.raises(ToolError, match="malformed reply"):
        ask(client(server))
    assert server.seen[0].headers["accept-encoding"] == "identity"


def test_an_image_may_be_an_address_on_the_same_host(server: OpenAiServer) -> None:
    server.files["/made/1.png"] = png("red")
    server.turns = [
        Turn(body=image_reply(url=f"{server.origin}/made/1.png")),
        Turn(body=image_reply(url="/made/1.png")),
        Turn(body=image_reply(url="data:image/png;base64," + base64.b64encode(png()).decode())),
    ]
    made = [asyncio.run(client(server).generate_image("x")) for _ in range(3)]
    assert made == [png("red"), png("red"), png()]


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.2/x.png", "http://169.254.169.254/latest", "file:///etc/passwd", "//evil/x"],
)
def test_an_image_on_another_host_is_never_fetched(server: OpenAiServer, address: str) -> None:
    server.turns = [Turn(body=image_reply(url=address))]
    with pytest.raises(ToolError, match="keeps its image on another host"):
        asyncio.run(client(server).generate_image("x"))
    assert len(server.seen) == 1


# What goes wrong

MALFORMED = {
    "not json": b"<html>hello</html>",
    "empty body": b"",
    "cut json": b'{"choices": [',
    "no choices": b'{"model": "x"}',
    "empty choices": b'{"choices": []}',
    "null message": b'{"choices": [{"message": null}]}',
    "empty text": b'{"choices": [{"message": {"content": "  "}}]}',
    "null text": b'{"choices": [{"message": {"content": null, "refusal": "I will not"}}]}',
    "a list": b"[1, 2]",
    "not UTF-8": b"\xff\xfe\x00{",
    "deep": b"[" * 5000,
}


@pytest.mark.parametrize("name", sorted(MALFORMED))
def test_a_malformed_chat_reply_is_a_tool_error_and_is_not_asked_for_again(
    server: OpenAiServer, name: str
) -> None:
    server.turns = [Turn(body=MALFORMED[name])]
    with pytest.raises(ToolError, match=r"Endpoint 'mine' sent"):
        ask(client(server))
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"data": []}', "sent no image"),
        (b'{"data": [{}]}', "sent no image"),
        (image_reply(b64_json="%%%"), "not base64"),
        (image_reply(b64_json="iVBORw0KGgo"), "not base64"),
        (image_reply(b64_json="Grüße"), "not base64"),
        (image_reply(url="http://[::bad"), "invalid address"),
        (b'{"created": 1}', "malformed reply: data: missing"),
    ],
)
def test_a_malformed_image_reply_is_a_tool_error(
    server: OpenAiServer, body: bytes, said: str
) -> None:
    server.turns = [Turn(body=body)]
    with pytest.raises(ToolError, match=said):
        asyncio.run(client(server).generate_image("x"))


@pytest.mark.parametrize(
    "turn",
    [
        Turn(429, b'{"error": {"message": "slow down"}}'),
        Turn(500),
        Turn(503, b"busy"),
        Turn(body=b'{"choices', cut=True),
        Turn(sleep=1.5),
    ],
    ids=["429", "500", "503", "cut", "late"],
)
def test_a_passing_fault_is_survived(server: OpenAiServer, turn: Turn) -> None:
    server.turns = [turn, turn]
    assert ask(client(server)).text == "A blue rectangle."
    assert len(server.seen) == 3


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        (
            Turn(429, b'{"error": {"message": "slow down"}}'),
            "status 429.*The server's message: slow down",
        ),
        (Turn(500, b""), "status 500"),
        (Turn(body=b'{"choices', cut=True), "closed the connection"),
        (Turn(sleep=1.2), "did not answer within 1 seconds"),
    ],
    ids=["429", "500", "cut", "late"],
)
def test_a_lasting_fault_ends_after_the_bounded_number_of_tries(
    server: OpenAiServer, turn: Turn, said: str
) -> None:
    server.turns = [turn] * 10
    with pytest.raises(ToolError, match=said):
        ask(client(server))
    assert len(server.seen) == HASTY.retries + 1


def test_retry_after_is_kept(server: OpenAiServer) -> None:
    server.turns = [Turn(429, headers={"retry-after": "0.7"})]
    ask(client(server))
    first, second = server.seen
    assert second.at - first.at >= 0.7


def test_retry_after_may_be_a_date(server: OpenAiServer) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    server.turns = [Turn(503, headers={"retry-after": soon})]
    ask(client(server))
    first, second = server.seen
    assert 0.1 < second.at - first.at < 10


@pytest.mark.parametrize("wait", ["3600", "Fri, 31 Dec 2999 23:59:59 GMT"])
def test_a_server_that_wants_more_patience_than_there_is_gets_one_request(
    server: OpenAiServer, wait: str
) -> None:
    server.turns = [Turn(429, headers={"retry-after": wait})] * 5
    with pytest.raises(ToolError, match="status 429"):
        ask(client(server))
    assert len(server.seen) == 1


@pytest.mark.parametrize("wait", ["soon", "", "-5", "nan", "inf", "Mon, 01 Jan 2001 00:00:00"])
def test_a_strange_retry_after_does_no_harm(server: OpenAiServer, wait: str) -> None:
    server.turns = [Turn(429, headers={"retry-after": wait})]
    assert ask(client(server)).text == "A blue rectangle."


def test_all_tries_together_end_in_time(server: OpenAiServer) -> None:
    server.turns = [Turn(500, headers={"retry-after": "1"})] * 10
    limits = EndpointLimits(retries=9, seconds=1, total_seconds=2.5)
    with pytest.raises(ToolError, match=r"did not answer within 2\.5 seconds"):
        ask(client(server, limits=limits))
    assert 2 <= len(server.seen) <= 3


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_a_wrong_key_or_address_is_unavailable_with_the_lines_to_mend(
    server: OpenAiServer, status: int
) -> None:
    server.turns = [Turn(status, headers={"location": "http://127.0.0.2/"})] * 5
    with pytest.raises(ToolUnavailable, match=r"\[endpoints.mine\] in gta.toml .* TEST_KEY"):
        ask(client(server))
    assert len(server.seen) == 1


def test_a_refused_request_is_told_in_the_server_s_words(server: OpenAiServer) -> None:
    server.turns = [Turn(400, b'{"error": {"message": "image  too\\nlarge"}}')]
    with pytest.raises(ToolError, match=r"\(status 400\). The server's message: image too large"):
        ask(client(server))


def test_a_huge_reply_is_dropped_at_the_bound(server: OpenAiServer) -> None:
    limits = EndpointLimits(reply_bytes=100_000, image_bytes=200_000)
    server.turns = [
        Turn(body=b" " * 5_000_000),
        Turn(body=b" " * 5_000_000),
        Turn(500, b"x" * 10**6),
    ]
    with pytest.raises(ToolError, match="more than 100000 bytes"):
        ask(client(server, limits=limits))
    with pytest.raises(ToolError, match="more than 200000 bytes"):
        asyncio.run(client(server, limits=limits).generate_image("x"))
    with pytest.raises(ToolError, match="more than 100000 bytes"):
        ask(client(server, limits=limits))


def test_a_server_that_is_not_there_is_unavailable(loopback: None) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    nobody = Client(Endpoint("mine", f"http://127.0.0.1:{port}/v1", "m"), HASTY)
    with pytest.raises(ToolUnavailable, match=r"cannot be reached.*endpoints.mine"):
        ask(nobody)


def test_an_address_that_is_none_is_unavailable(loopback: None) -> None:
    nowhere = Client(Endpoint("mine", "http://[::bad", "m"), HASTY)
    with pytest.raises(ToolUnavailable, match="invalid address"):
        ask(nowhere)


# Keys

Call = Callable[[Client], Awaitable[object]]
CALLS: dict[str, Call] = {
    "chat": lambda asked: asked.chat("What?", [EncodedImage(png(), "image/png")]),
    "generate": lambda asked: asked.generate_image("x"),
    "edit": lambda asked: asked.edit_image("x", EncodedImage(png(), "image/png")),
}


@pytest.mark.parametrize("call", sorted(CALLS))
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_a_key_shows_in_no_error_and_no_log_even_if_the_server_repeats_it(
    server: OpenAiServer, status: int, call: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = json.dumps({"error": {"message": f"bad key: Bearer {KEY}"}}).encode()
    server.turns = [Turn(status, echo)] * 5
    asked = client(server)

    async def run() -> None:
        await CALLS[call](asked)

    with pytest.raises(GtaError) as caught:
        asyncio.run(run())
    assert KEY not in repr((caught.value, caught.value.__cause__, asked.endpoint))
    assert KEY not in caplog.text
    assert all(seen.headers["authorization"] == f"Bearer {KEY}" for seen in server.seen)


def test_a_key_with_escaped_letters_shows_in_no_error(server: OpenAiServer) -> None:
    """JSON may spell a letter as an escape: the raw body does not contain the key then."""
    spelled = f"\\u{ord(KEY[0]):04x}{KEY[1:]}"
    server.turns = [Turn(400, f'{{"error": {{"message": "bad key: {spelled}"}}}}'.encode())]
    with pytest.raises(ToolError, match=r"bad key: \*\*\*") as caught:
        ask(client(server))
    assert KEY not in str(caught.value)


def test_a_password_of_the_address_is_sent_as_basic_authentication(server: OpenAiServer) -> None:
    address = f"{server.origin}/v1".replace("http://", "http://user:secret@")
    ask(Client(Endpoint("mine", address, "tiny-vlm"), HASTY))
    assert server.seen[-1].headers["authorization"] == "Basic dXNlcjpzZWNyZXQ="


def test_an_image_at_an_address_that_is_none_is_an_error(server: OpenAiServer) -> None:
    server.turns = [Turn(body=b'{"data": [{"url": "/image\\u0001.png"}]}')]
    with pytest.raises(ToolError, match="invalid address"):
        asyncio.run(client(server).generate_image("x"))


def test_a_refusal_that_repeats_the_key_is_cleaned(server: OpenAiServer) -> None:
    reply = {"choices": [{"message": {"content": None, "refusal": f"no {KEY}"}}]}
    server.turns = [Turn(body=json.dumps(reply).encode())]
    with pytest.raises(ToolError, match=r"sent no text: no \*\*\*"):
        ask(client(server))


# Settings


def equipped(key: str | None, **changes: str | None) -> Equipment:
    fields = {"url": "http://127.0.0.1:1/v1", "model": "m", "key_env": "TEST_KEY", **changes}
    endpoint = EndpointSettings.model_validate(fields)
    settings = Settings(endpoints={"mine": endpoint}, tools={"OCR": ToolSettings(endpoint="mine")})
    return Equipment(settings, key=lambda _: key)


def test_an_endpoint_comes_from_the_settings_with_its_key() -> None:
    found = find_endpoint(equipped(f" {KEY}\n", url="http://127.0.0.1:1/v1/"), "OCR")
    assert found == Endpoint("mine", "http://127.0.0.1:1/v1", "m", KEY, "TEST_KEY")
    assert found.label("m-7") == "m-7 at 127.0.0.1:1 (endpoint mine)"


def test_a_password_in_an_address_is_in_no_label() -> None:
    hidden = Endpoint("mine", "https://user:secret@host.example/v1", "m")
    assert hidden.label() == "m at host.example (endpoint mine)"
    usual = Endpoint("mine", "https://API.Example.com:443/v1", "m")
    assert usual.label() == "m at api.example.com (endpoint mine)"


@pytest.mark.parametrize(
    ("equipment", "tool", "reason", "fix"),
    [
        (equipped(KEY), "Plot", "no endpoint is set for Plot", "[tools.Plot] endpoint"),
        (equipped(None), "OCR", "TEST_KEY is not set", "export TEST_KEY="),
        (equipped("sk-ü"), "OCR", "TEST_KEY is not a key", "export TEST_KEY="),
        (equipped("a\nb"), "OCR", "TEST_KEY is not a key", "export TEST_KEY="),
        (equipped(KEY, model=None), "OCR", "names no model", "[endpoints.mine]"),
    ],
)
def test_what_is_missing_for_an_endpoint_is_named(
    equipment: Equipment, tool: str, reason: str, fix: str
) -> None:
    found = find_endpoint(equipment, tool)
    assert isinstance(found, Unavailable)
    assert reason in found.reason
    assert fix in found.fix
