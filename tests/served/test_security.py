"""What a hostile client can and cannot do, over real sockets."""

import asyncio
import contextlib
import gzip
import json
import logging
import re
import socket
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from gta_bench.serving.limits import ServerLimits
from gta_bench.settings import Settings
from gta_bench.tools.equipment import close_equipment, open_equipment
from gta_bench.tools.toolbox import Toolbox
from tests.content.samples import bomb
from tests.served.support import OTHER, TOKEN, Served, SmallTools, tool_server

pytestmark = pytest.mark.usefixtures("loopback")
PARTS = {
    "docx": "word/document.xml",
    "xlsx": "xl/workbook.xml",
    "pptx": "ppt/presentation.xml",
}
TOO_LARGE = re.compile("unpack|larg|too many|pixels|more than|at most")
HASTE = ServerLimits(header_seconds=1, body_seconds=1, body_bytes=1 << 16, artefact_bytes=1 << 20)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with little patience, so that the tests need little too."""
    with tool_server(SmallTools(), tmp_path_factory.mktemp("hasty"), limits=HASTE) as served:
        yield served


def paths(space: str) -> list[tuple[str, str]]:
    digest = "0" * 64
    return [
        ("GET", "/version"),
        ("GET", "/openapi.json"),
        ("GET", "/v1/tools"),
        ("POST", "/v1/workspaces"),
        ("PUT", f"/v1/artefacts/{digest}"),
        ("GET", f"/v1/w/{space}"),
        ("DELETE", f"/v1/w/{space}"),
        ("GET", f"/v1/w/{space}/artefacts/{digest}"),
        ("POST", f"/v1/w/{space}/tools/Echo"),
        ("POST", f"/w/{space}/mcp"),
        ("GET", f"/w/{space}/mcp"),
        ("GET", "/anything/else"),
    ]


class TestTokens:
    @pytest.mark.parametrize("token", [None, "wrong-token-wrong-token", TOKEN[:-1], TOKEN + "x"])
    def test_no_route_but_health_answers_without_the_right_token(
        self, small: Served, token: str | None
    ) -> None:
        space = small.open().workspace
        with small.client(token) as client:
            for method, path in paths(space):
                assert client.request(method, path).status_code == 401, path
            assert client.get("/healthz").status_code == 200
            assert client.get("/readyz").json() == {"tools": 8}

    def test_another_runs_token_does_not_see_the_workspace(self, small: Served) -> None:
        space = small.open().workspace
        with small.client(OTHER) as client:
            for method, path in paths(space):
                if space in path:
                    assert client.request(method, path).status_code == 404, path
        with small.client() as client:
            assert client.get(f"/v1/w/{space}").status_code == 200

    def test_a_workspaces_token_opens_that_workspace_alone(self, small: Served) -> None:
        mine, other = small.open(), small.open()
        with small.client(mine.token) as client:
            for method, path in paths(other.workspace):
                assert client.request(method, path).status_code == 401, path
            assert client.get(f"/v1/w/{mine.workspace}").status_code == 200

    def test_a_content_of_another_run_or_workspace_cannot_be_fetched(self, small: Served) -> None:
        secret = b"of the first run"
        mine = small.open({"inputs/a.txt": secret})
        with small.client() as client:
            ref = client.get(f"/v1/w/{mine.workspace}").json()["files"][0]
        other, sibling = small.open(token=OTHER), small.open()
        for space in (other, sibling):
            with small.client(space.token) as client:
                answer = client.get(f"/v1/w/{space.workspace}/artefacts/{ref['sha256']}")
                assert answer.status_code == 404
        with small.client(OTHER) as client:
            answer = client.post("/v1/workspaces", json={"files": [ref]})
            assert (answer.status_code, answer.json()) == (409, {"missing": [ref["sha256"]]})

    def test_a_closed_workspace_is_gone_with_its_token(self, small: Served) -> None:
        space = small.open({"inputs/a.txt": b"x"})
        with small.client(space.token) as client:
            assert client.delete(f"/v1/w/{space.workspace}").status_code == 204
            assert client.get(f"/v1/w/{space.workspace}").status_code == 401


def statuses(caplog: pytest.LogCaptureFixture) -> list[int]:
    return [json.loads(record.message)["status"] for record in caplog.records]


def test_the_log_holds_no_token_and_no_content(
    small: Served, caplog: pytest.LogCaptureFixture
) -> None:
    space = small.open({"inputs/secret.txt": b"content-of-a-file"})
    with caplog.at_level(logging.INFO, logger="gta_bench.serving.access"):
        small.call(space, "Echo", {"text": "words-of-an-agent"})
        small.call(space, "Refuse", {"text": "words-of-an-agent"})
        with small.client("a-token-that-is-wrong") as client:
            client.get("/v1/tools", params={"token": TOKEN})
            client.get(f"/{TOKEN}")
        # A request is logged when all of it is over, which is after its answer has arrived: the
        # entry of the opening may still come, and the last one may not be there yet.
        end = time.monotonic() + 10
        wanted = [200, 422, 401, 401]
        while statuses(caplog)[-4:] != wanted and time.monotonic() < end:
            time.sleep(0.01)
    assert statuses(caplog)[-4:] == wanted
    entries = [json.loads(record.message) for record in caplog.records[-4:]]
    assert entries[0]["workspace"] == space.workspace
    assert entries[0]["path"].endswith("/tools/Echo")
    for unwanted in (TOKEN, space.token, "a-token-that", "words-of", "content-of", "secret.txt"):
        assert unwanted not in caplog.text


class TestSizes:
    def test_a_body_that_says_it_is_too_large_is_not_read(self, hasty: Served) -> None:
        space = hasty.open()
        head = (
            f"POST /v1/w/{space.workspace}/tools/Echo HTTP/1.1\r\nhost: x\r\n"
            f"authorization: Bearer {space.token}\r\ncontent-length: 99999999999\r\n\r\n"
        )
        assert talk(hasty, head.encode()).startswith(b"HTTP/1.1 413 ")

    @pytest.mark.parametrize("path", ["/v1/workspaces", "/w/{}/mcp", "/v1/w/{}/tools/Echo"])
    def test_a_body_that_does_not_say_so_is_cut_all_the_same(
        self, hasty: Served, path: str
    ) -> None:
        space = hasty.open()
        with hasty.client() as client:
            chunks = (b"x" * 4096 for _ in range(64))
            with contextlib.suppress(httpx.WriteError, httpx.ReadError):
                answer = client.post(path.format(space.workspace), content=chunks)
                assert answer.status_code == 413

    def test_a_file_that_is_too_large_is_refused(self, hasty: Served) -> None:
        with hasty.client() as client, contextlib.suppress(httpx.WriteError, httpx.ReadError):
            answer = client.put(f"/v1/artefacts/{'0' * 64}", content=bytes(2 << 20))
            assert answer.status_code == 413

    def test_compressed_bodies_are_refused_unopened(self, small: Served) -> None:
        packed = gzip.compress(b'{"text": "' + b"x" * (64 << 20) + b'"}')
        assert len(packed) < 1 << 17
        space = small.open()
        for encoding, body in (("gzip", packed), ("deflate", zlib.compress(b"{}")), ("br", b"x")):
            with small.client(space.token) as client:
                answer = client.post(
                    f"/v1/w/{space.workspace}/tools/Echo",
                    content=body,
                    headers={"content-encoding": encoding},
                )
            assert answer.status_code == 415

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"[]",
            b"7",
            b"{",
            b'{"text": NaN}',
            b'{"text": "\\ud800"}',
            b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
            b"\xff\xfe",
            b'{"text": ' + b"9" * 100_000 + b"}",
        ],
    )
    def test_odd_json_is_a_clients_error(self, small: Served, body: bytes) -> None:
        space = small.open()
        with small.client(space.token) as client:
            answer = client.post(f"/v1/w/{space.workspace}/tools/Echo", content=body)
            assert answer.status_code in (200, 400), body[:40]
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            text = json.dumps(call)[:-1].encode() + b', "params": {"name": "Echo", "arguments": '
            over_mcp = client.post(
                f"/w/{space.workspace}/mcp",
                content=text + body + b"}}",
                headers={"accept": "application/json", "content-type": "application/json"},
            )
            assert over_mcp.status_code in (200, 400), body[:40]

    @pytest.mark.parametrize(
        "ref",
        [
            {"path": "../x", "sha256": "0" * 64, "bytes": 1},
            {"path": "inputs/../x", "sha256": "0" * 64, "bytes": 1},
            {"path": "inputs/a\nb", "sha256": "", "bytes": 1},
            {"path": "inputs/a", "sha256": "../../etc/passwd", "bytes": 1},
            {"path": "inputs/a", "sha256": "0" * 64, "bytes": -1},
        ],
    )
    def test_a_workspace_with_odd_files_is_not_opened(
        self, small: Served, ref: dict[str, Any]
    ) -> None:
        with small.client() as client:
            assert client.post("/v1/workspaces", json={"files": [ref]}).status_code == 400

    def test_a_content_under_another_digest_is_refused(self, small: Served) -> None:
        with small.client() as client:
            for name in ("0" * 64, "..%2f..%2fx", "x"):
                answer = client.put(f"/v1/artefacts/{name}", content=b"abc")
                assert answer.status_code in (400, 404)


class TestSlowness:
    def test_a_slow_body_is_cut(self, hasty: Served) -> None:
        space = hasty.open()
        start = time.monotonic()
        with connection(hasty) as stream:
            stream.sendall(
                f"POST /v1/w/{space.workspace}/tools/Echo HTTP/1.1\r\nhost: x\r\n"
                f"authorization: Bearer {space.token}\r\ncontent-length: 1000\r\n\r\n".encode()
            )
            answer = trickle(stream)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - start < 20

    @pytest.mark.parametrize("path", ["/healthz", "/version"])
    def test_a_slow_body_that_nobody_asked_for_is_cut_too(self, hasty: Served, path: str) -> None:
        """A body behind GET was never read, so its connection stayed as long as it liked."""
        with connection(hasty) as stream:
            stream.sendall(
                f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n"
                "content-length: 1000\r\n\r\n".encode()
            )
            answer = trickle(stream)
            while answer != b"":
                answer = trickle(stream)

    def test_slow_headers_are_cut(self, hasty: Served) -> None:
        start = time.monotonic()
        with connection(hasty) as stream:
            stream.sendall(b"GET /healthz HTTP/1.1\r\nx-slow: ")
            assert trickle(stream) == b""
        assert time.monotonic() - start < 20

    def test_slow_headers_of_a_second_request_are_cut_too(self, hasty: Served) -> None:
        with connection(hasty) as stream:
            stream.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += stream.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200 ")
            stream.sendall(b"GET /healthz HTTP/1.1\r\nx-slow: ")
            assert trickle(stream) == b""

    def test_two_hundred_slow_connections_do_not_stop_others(self, served_folder: Path) -> None:
        """Even where nothing cuts them."""
        limits = ServerLimits(header_seconds=600)
        with (
            tool_server(SmallTools(), served_folder, limits=limits) as served,
            contextlib.ExitStack() as stack,
        ):
            space = served.open()
            slow = [stack.enter_context(connection(served)) for _ in range(200)]
            for stream in slow:
                stream.sendall(b"POST /v1/workspaces HTTP/1.1\r\nhost: x\r\nx-slow: ")
            answers = [served.call(space, "Echo", {"text": "hello"}) for _ in range(20)]
            assert [answer.status_code for answer in answers] == [200] * 20
            for stream in slow:  # they are all still there
                stream.sendall(b"x")

    def test_silent_connections_make_room_when_there_are_too_many(
        self, served_folder: Path
    ) -> None:
        with (
            tool_server(SmallTools(), served_folder, limits=ServerLimits(connections=20)) as served,
            contextlib.ExitStack() as stack,
        ):
            for _ in range(60):
                stack.enter_context(connection(served))
            with served.client() as client:
                assert client.get("/healthz").status_code == 200

    @pytest.mark.slow
    def test_the_limits_that_users_have_cut_slow_bodies_within_thirty_seconds(
        self, small: Served
    ) -> None:
        space = small.open()
        start = time.monotonic()
        with connection(small) as stream:
            stream.sendall(
                f"POST /v1/w/{space.workspace}/tools/Echo HTTP/1.1\r\nhost: x\r\n"
                f"authorization: Bearer {space.token}\r\ncontent-length: 1000\r\n\r\n".encode()
            )
            assert trickle(stream, times=400).startswith(b"HTTP/1.1 408 ")
        assert 15 < time.monotonic() - start < 30


class TestBusy:
    def test_more_requests_than_the_rate_are_told_to_wait(self, served_folder: Path) -> None:
        limits = ServerLimits(rate=1, burst=5)
        with (
            tool_server(SmallTools(), served_folder, limits=limits) as served,
            served.client() as client,
        ):
            answers = [client.get("/version") for _ in range(8)]
            assert [answer.status_code for answer in answers][-1] == 429
            assert 0 < float(answers[-1].headers["retry-after"]) <= 1
            with served.client(OTHER) as other:
                assert other.get("/version").status_code == 200

    def test_more_calls_than_wait_are_told_so_and_none_is_lost(self, served_folder: Path) -> None:
        limits = ServerLimits(calls=1, waiting=1)
        with tool_server(SmallTools(), served_folder, limits=limits) as served:
            space = served.open()
            with ThreadPoolExecutor(4) as pool:
                given = {"seconds": 0.5}
                calls = [pool.submit(served.call, space, "Wait", given) for _ in range(4)]
                statuses = sorted(call.result().status_code for call in calls)
            assert statuses == [200, 200, 429, 429]

    def test_a_call_that_takes_too_long_is_ended_and_the_agent_told(
        self, served_folder: Path
    ) -> None:
        limits = ServerLimits(slow_tools={"Wait": 0.1})
        with tool_server(SmallTools(), served_folder, limits=limits) as served:
            answer = served.call(served.open(), "Wait", {"seconds": 30})
            assert answer.status_code == 422
            assert answer.json()["message"] == "Wait took longer than 0.1 seconds."

    def test_a_run_opens_only_so_many_workspaces(self, served_folder: Path) -> None:
        with tool_server(SmallTools(), served_folder, limits=ServerLimits(workspaces=2)) as served:
            first = served.open()
            served.open()
            with served.client() as client:
                assert client.post("/v1/workspaces", content="{}").status_code == 429
                client.delete(f"/v1/w/{first.workspace}")
                assert client.post("/v1/workspaces", content="{}").status_code == 201

    def test_the_oldest_contents_go_when_a_run_sends_too_many(self, served_folder: Path) -> None:
        with tool_server(
            SmallTools(), served_folder, limits=ServerLimits(artefacts_bytes=250)
        ) as served:
            for letter in b"abc":
                served.open({"inputs/x": bytes([letter]) * 100})
            kept = [path for path in served_folder.rglob("contents/*/*") if path.is_file()]
            assert sum(path.stat().st_size for path in kept) == 200


@pytest.mark.slow
def test_documents_and_pictures_that_unpack_to_gigabytes_are_refused(tmp_path: Path) -> None:
    """By the tools that read them, each of which runs here."""
    equipment = asyncio.run(open_equipment(Settings()))
    packed = {kind: bomb({part: b"<x/>"}, 400) for kind, part in PARTS.items()}
    assert all(len(data) < 1 << 20 for data in packed.values())
    files = {f"inputs/b.{kind}": data for kind, data in packed.items()}
    try:
        with tool_server(Toolbox(equipment), tmp_path) as served:
            space = served.open({**files, "inputs/b.png": png_bomb()})
            for tool, given in (
                ("ReadDOCX", {"file": "inputs/b.docx"}),
                ("ReadXLSX", {"file": "inputs/b.xlsx"}),
                ("ReadPPTX", {"file": "inputs/b.pptx"}),
                ("DrawBox", {"image": "inputs/b.png", "bbox": "(1, 1, 9, 9)"}),
                ("ImageQualityTest", {"image": "inputs/b.png"}),
                ("OCR", {"image": "inputs/b.png"}),
            ):
                answer = served.call(space, tool, given)
                assert answer.status_code == 422, (tool, answer.text)
                assert TOO_LARGE.search(answer.json()["message"]), answer.text
    finally:
        close_equipment(equipment)


def png_bomb() -> bytes:
    """A picture of 60,000 by 60,000 dots in some kilobytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + kind + data + check

    size = (60_000).to_bytes(4, "big") * 2
    head = chunk(b"IHDR", size + b"\x01\x00\x00\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(4 << 20)))


@contextlib.contextmanager
def connection(served: Served) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", served.port), timeout=25) as stream:
        yield stream


def talk(served: Served, data: bytes) -> bytes:
    with connection(served) as stream:
        stream.sendall(data)
        return stream.recv(4096)


def trickle(stream: socket.socket, times: int = 100) -> bytes:
    """A byte now and then until the server has had enough; what it says at the end."""
    stream.settimeout(0.2)
    for _ in range(times):
        try:
            stream.sendall(b"x")
            return stream.recv(4096)
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return b""
    raise AssertionError("it was not cut")
