import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gta_bench.errors import RunError
from gta_bench.records.tape import TapeCall, TapeUse
from gta_bench.tape.storage import TAPE, Tape, tape_digest, tape_use
from tests.conftest import REPOSITORY
from tests.tape.builders import LOOK, line, recording


def found(tape: Tape, task: str, **arguments: str) -> str | None:
    call = TapeCall(dataset="atomic", task=task, tool="Look", arguments=arguments)
    reply = tape.find(call, epoch=1, number=1)
    return None if reply is None else reply.model_dump()["parts"][0]["content"]


def test_a_tape_is_a_readable_file_of_sorted_json_lines(tmp_path: Path) -> None:
    recording(tmp_path).keep(line("3", "ä reply", note="x"))
    lines = (tmp_path / TAPE).read_text(encoding="utf-8").splitlines()
    assert [json.loads(text)["line"] for text in lines] == ["tape", "tool", "call"]
    assert "ä reply" in lines[2]
    for text in lines:
        assert text == json.dumps(
            json.loads(text), sort_keys=True, ensure_ascii=False, separators=(",", ":")
        )


def test_the_digest_does_not_depend_on_the_order_of_recording(tmp_path: Path) -> None:
    calls = [line(str(task), f"said {task}", note="x") for task in range(20)]
    for name in ("one", "two"):
        tape = recording(tmp_path / name)
        for one in calls:
            tape.keep(one)
        random.Random(1).shuffle(calls)
    assert tape_digest(tmp_path / "one") == tape_digest(tmp_path / "two")
    recording(tmp_path / "two").keep(line("99", "more"))
    assert tape_digest(tmp_path / "one") != tape_digest(tmp_path / "two")


def test_what_a_kill_left_half_written_is_no_line(tmp_path: Path) -> None:
    recording(tmp_path).keep(line("1", "whole", note="x"))
    digest = tape_digest(tmp_path)
    with (tmp_path / TAPE).open("ab") as stream:
        stream.write(b'{"line":"call","call":{"dat')
    assert found(Tape.open(tmp_path), "1", note="x") == "whole"
    assert tape_digest(tmp_path) == digest
    recording(tmp_path).keep(line("2", "next", note="x"))
    assert found(Tape.open(tmp_path), "2", note="x") == "next"
    assert len(Tape.open(tmp_path)) == 2


KILLED = """
import sys
from pathlib import Path
from tests.tape.builders import line, recording
tape = recording(Path(sys.argv[1]))
for task in range(10**9):
    tape.keep(line(str(task), "x" * 2000, note="n"))
"""


def test_a_recording_that_is_killed_leaves_a_tape(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], env=environment)
    file = tmp_path / TAPE
    deadline = time.monotonic() + 60
    while not (file.is_file() and file.stat().st_size > 500_000) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    tape = Tape.open(tmp_path)
    assert len(tape) > 100
    assert found(tape, str(len(tape) - 1), note="n") == "x" * 2000


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    recording(tmp_path).keep(line("1", "whole"))
    text = (tmp_path / TAPE).read_text(encoding="utf-8").replace('"tool":"Look"', '"tool":7')
    (tmp_path / TAPE).write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"tape\.jsonl, line 3 cannot be read"):
        Tape.open(tmp_path)


@pytest.mark.parametrize("content", [None, "", "no json\n"])
def test_another_folder_is_not_a_tape(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / TAPE).write_text(content, encoding="utf-8")
    with pytest.raises(RunError, match=r"is not a tape|does not start with a tape header"):
        Tape.open(tmp_path)


def test_a_tape_of_another_kind_is_not_recorded_over(tmp_path: Path) -> None:
    Tape.record(tmp_path, dataset="atomic", origin="reference").close()
    with pytest.raises(RunError, match="with reference replies; record into another folder"):
        Tape.record(tmp_path, dataset="atomic", origin="live")


def test_the_newest_definition_of_a_tool_counts(tmp_path: Path) -> None:
    tape = recording(tmp_path)
    tape.offer([LOOK])
    tape.offer([LOOK.model_copy(update={"description": "new"})])
    assert (tmp_path / TAPE).read_text(encoding="utf-8").count('"line":"tool"') == 2
    assert Tape.open(tmp_path).specs["Look"].description == "new"


def test_two_recordings_at_once_lose_nothing_and_the_first_of_equal_ones_counts(
    tmp_path: Path,
) -> None:
    one, two = recording(tmp_path), recording(tmp_path)
    one.keep(line("1", "first", note="x"))
    two.keep(line("1", "second", note="x"))
    two.keep(line("2", "other", note="x"))
    assert found(two, "2", note="x") == "other"
    tape = Tape.open(tmp_path)
    assert found(tape, "1", note="x") == "first"
    assert len(tape) == 2


def test_lone_surrogates_of_a_model_do_not_stop_a_recording(tmp_path: Path) -> None:
    recording(tmp_path).keep(line("1", "said \ud800", note="\ud800"))
    assert found(Tape.open(tmp_path), "1", note="\ud800") == "said ?"


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = recording(tmp_path)
    monkeypatch.setattr(os, "write", lambda *_: 3)
    with pytest.raises(RunError, match="the disk is full"):
        tape.keep(line("1", "x"))


def test_what_a_manifest_says_of_a_tape(tmp_path: Path) -> None:
    recording(tmp_path)
    use = tape_use(tmp_path, "replay")
    assert use == TapeUse(mode="replay", origin="live", digest=tape_digest(tmp_path))
    assert tape_use(tmp_path / "new", "record") == TapeUse(mode="record", origin="live")


def test_opening_and_looking_up_stay_quick_on_a_larger_tape(tmp_path: Path) -> None:
    """The small form of tests/measure/test_tape_scale.py."""
    tape = recording(tmp_path)
    for number in range(3000):
        tape.keep(line(str(number % 300), f"said {number}", note=f"n{number}"))
    opened = Tape.open(tmp_path)
    start = time.perf_counter()
    for number in range(1000):
        assert found(opened, str(number % 300), note=f"n{number}") == f"said {number}"
    assert (time.perf_counter() - start) / 1000 < 0.02
