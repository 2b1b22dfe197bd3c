from collections.abc import Iterator

import pytest

from tests.chat_server import ChatServer, chat_server


@pytest.fixture
def judge(loopback: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """A server whose replies a test decides; the key that settings name is there."""
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    with chat_server() as server:
        yield server
