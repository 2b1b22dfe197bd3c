"""One process group: fed, read, bounded and gone."""

import sys
import threading
import time

import pytest

from gta_bench.confine.process import EndedProcess, ProcessBounds, run
from tests.confine.corpus import wait_until_gone


def start(argv: list[str], *, stdin: bytes = b"", **bounds: object) -> EndedProcess:
    time_limits = {"wall_seconds": 10.0, "start_seconds": 10.0, "ready": b""}
    limits = {**time_limits, "stdout_bytes": 1 << 20, "stderr_bytes": 1 << 20, **bounds}
    environment = {"PATH": "/usr/bin:/bin"}
    return run(argv, stdin=stdin, environment=environment, cwd="/", bounds=ProcessBounds(**limits))  # type: ignore[arg-type]


def test_both_outputs_and_the_status_come_back() -> None:
    ended = start(["sh", "-c", "echo out; echo err >&2; exit 7"])
    assert (ended.stdout, ended.stderr, ended.status) == (b"out\n", b"err\n", 7)
    assert ended.stopped is None


def test_a_signal_is_a_negative_status() -> None:
    assert start(["sh", "-c", "kill -SEGV $$"]).status == -11


def test_more_input_than_a_pipe_holds_goes_both_ways() -> None:
    data = bytes(range(256)) * 3000
    assert start(["cat"], stdin=data).stdout == data


def test_input_that_nobody_reads_is_no_error() -> None:
    assert start(["true"], stdin=b"x" * 3_000_000).status == 0


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_flood_is_stopped_at_its_cap(stream: str) -> None:
    ended = start(["sh", "-c", f"cat /dev/zero >&{stream}"], stdout_bytes=9999, stderr_bytes=9999)
    assert ended.stopped == "output"
    assert len(ended.stdout) + len(ended.stderr) == 9999
    assert ended.seconds < 10


def test_time_is_up_even_for_a_process_that_closed_its_outputs() -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(60)"
    ended = start([sys.executable, "-c", code], wall_seconds=0.5)
    assert ended.stopped == "timeout"
    assert 0.4 < ended.seconds < 30


def test_time_is_up_even_for_a_process_that_ignores_signals() -> None:
    ended = start(["sh", "-c", "trap '' TERM INT HUP; sleep 60"], wall_seconds=0.3)
    assert (ended.stopped, ended.status) == ("timeout", -9)


def test_the_processor_time_of_a_stopped_process_is_known() -> None:
    busy = start(["sh", "-c", "while :; do :; done & wait"], wall_seconds=2)
    assert busy.stopped == "timeout" and busy.processor_seconds > 0.5
    assert start(["sleep", "60"], wall_seconds=1).processor_seconds < 0.3


def test_its_time_begins_when_it_is_ready() -> None:
    script = "sleep 1; echo ready >&2; sleep 1; echo done"
    ended = start(["sh", "-c", script], wall_seconds=60, start_seconds=30, ready=b"ready\n")
    assert (ended.stopped, ended.stdout) == (None, b"done\n")
    ended = start(["sh", "-c", script], wall_seconds=0.2, start_seconds=30, ready=b"ready\n")
    assert (ended.stopped, ended.stderr) == ("timeout", b"ready\n")
    assert ended.seconds > 1
    ended = start(["sh", "-c", script], wall_seconds=30, start_seconds=0.2, ready=b"ready\n")
    assert (ended.stopped, ended.stderr) == ("timeout", b"")


def test_children_that_hold_the_pipes_do_not_hold_us() -> None:
    """With `communicate()` a forgotten child kept a call waiting long after its limit."""
    ended = start(["sh", "-c", "sleep 71.125 & echo started"], wall_seconds=20)
    assert ended.stdout == b"started\n"
    assert ended.seconds < 20
    assert wait_until_gone("sleep 71.125") == []


def test_a_full_disk_stops_it() -> None:
    looks = iter([False, False, True])
    ended = start(["sleep", "60"], disk_is_full=lambda _: next(looks))
    assert ended.stopped == "disk"


def test_a_caller_that_loses_interest_stops_it() -> None:
    cancelled = threading.Event()
    threading.Timer(0.2, cancelled.set).start()
    begun = time.monotonic()
    assert start(["sleep", "60"], cancelled=cancelled).stopped == "cancelled"
    assert time.monotonic() - begun < 3


def test_nothing_of_our_environment_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-outside")
    assert b"OPENAI" not in start(["env"]).stdout


def test_no_descriptor_of_ours_is_inherited() -> None:
    with open("/etc/hostname", "rb") as ours:  # noqa: PTH123 - a plain descriptor
        listed = start(["ls", "/proc/self/fd"]).stdout.split()
        assert str(ours.fileno()).encode() not in listed[3:-1] or ours.fileno() < 4
