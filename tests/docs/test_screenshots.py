"""Pictures of pages, as `make screenshots` makes them."""

import struct

import pytest

from tests.conftest import REPOSITORY

PICTURES = REPOSITORY / "docs" / "pictures"


@pytest.mark.parametrize(
    ("name", "page", "width"),
    [
        ("report", "reports.md", 1280),
        ("site", "leaderboard.md", 1280),
        ("preview", "tutorials/own-tasks.md", 1280),
        ("own-tasks-report", "tutorials/own-tasks.md", 1280),
    ],
)
def test_a_screenshot_is_small_wide_and_shown(name: str, page: str, width: int) -> None:
    data = (PICTURES / f"{name}.png").read_bytes()
    assert struct.unpack(">I", data[16:20]) == (width,)
    assert len(data) < 250_000
    assert f"pictures/{name}.png" in (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
