"""Which jail works here, and what is said where none does."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from gta_bench.confine import probe, walls
from gta_bench.confine.inside import landlock
from gta_bench.confine.limits import JailKind
from gta_bench.confine.walls import Python
from gta_bench.errors import ToolUnavailable
from tests.confine.conftest import availability
from tests.needs import needs

BROKEN = Python("/usr/bin/no-such-python", ())


def found() -> dict[JailKind, probe.JailAvailability]:
    return {entry.kind: entry for entry in asyncio.run(probe.probe())}


def test_both_kinds_are_reported_the_better_one_first() -> None:
    assert [entry.kind for entry in asyncio.run(probe.probe())] == ["bubblewrap", "landlock"]


def test_what_works_is_what_is_used() -> None:
    working = [entry.kind for entry in availability().values() if entry.works]
    if not working:
        pytest.skip("no jail works here")
    with asyncio.run(probe.find_jail()) as jail:
        assert jail.kind == working[0]


def test_wishing_for_no_jail_changes_nothing_where_there_is_one() -> None:
    working = [entry.kind for entry in availability().values() if entry.works]
    if not working:
        pytest.skip("no jail works here")
    with asyncio.run(probe.find_jail(unconfined=True)) as jail:
        assert jail.kind == working[0]


def test_without_bubblewrap_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    entry = found()["bubblewrap"]
    assert not entry.works
    assert entry.reason == "bubblewrap is not installed."
    assert "apt install bubblewrap" in entry.fix


@needs("bwrap")
def test_without_the_programs_that_set_limits_their_package_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(walls, "_system_program", lambda name: f"/nowhere/{name}")
    entry = found()["bubblewrap"]
    assert "execvp /nowhere/prlimit" in entry.reason
    assert entry.fix == "Install util-linux, which has `prlimit` and `setpriv`."


def test_without_bubblewrap_landlock_is_used_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not availability()["landlock"].works:
        pytest.skip("no Landlock here")
    monkeypatch.setenv("PATH", "/nowhere")
    said: list[str] = []
    monkeypatch.setattr(probe.logger, "warning", lambda text, *parts: said.append(text % parts))
    with asyncio.run(probe.find_jail()) as jail:
        assert jail.kind == "landlock"
    assert said == [f"Using landlock: bubblewrap is not installed. {probe.INSTALL}"]


@needs("bwrap")
def test_an_interpreter_that_was_started_by_a_way_around_works() -> None:
    def around(path: str) -> str:
        return f"{Path(path).parent}/../{Path(path).parent.name}/{Path(path).name}"

    own = (sys.prefix, sys.base_prefix)
    python = Python.at(around(sys.executable), [around(prefix) for prefix in own])
    with asyncio.run(probe.find_jail(python=python)) as jail:
        assert jail.kind == "bubblewrap"


class TestWhereNothingWorks:
    @pytest.fixture(autouse=True)
    def nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setattr(landlock, "abi", lambda: 2)

    def test_foreign_code_is_refused_with_all_reasons_and_the_mending_line(self) -> None:
        with pytest.raises(ToolUnavailable) as caught:
            asyncio.run(probe.find_jail())
        assert "bubblewrap: bubblewrap is not installed." in caught.value.reason
        assert "landlock: The kernel offers Landlock ABI 2" in caught.value.reason
        assert "apt install bubblewrap" in caught.value.fix

    def test_only_the_users_explicit_wish_goes_without(self) -> None:
        with asyncio.run(probe.find_jail(unconfined=True)) as jail:
            assert jail.kind == "none"


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_are_pointed_to_the_tool_server(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    for entry in found().values():
        assert not entry.works
        assert "gta tools serve" in entry.fix
    with pytest.raises(ToolUnavailable, match="gta tools serve"):
        asyncio.run(probe.find_jail(unconfined=True))


def test_other_processors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    strange = os.uname_result((*os.uname()[:4], "riscv64"))
    monkeypatch.setattr(os, "uname", lambda: strange)
    assert {entry.reason for entry in found().values()} == {
        "Only x86_64 and aarch64 are supported."
    }


@needs("bwrap")
def test_a_jail_that_fails_is_reported_with_its_own_words() -> None:
    for entry in asyncio.run(probe.probe(python=BROKEN)):
        assert not entry.works
        assert "no-such-python" in entry.reason


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("bwrap: setting up uid map: Permission denied", "AppArmor"),
        ("bwrap: No permissions to create new namespace", "kernel.apparmor_restrict"),
        ("bwrap: Unknown option --disable-userns", "0.8 or newer"),
    ],
)
def test_the_words_of_bubblewrap_lead_to_what_mends_it(reason: str, words: str) -> None:
    assert words in probe._suggest_fix("bubblewrap", reason)
