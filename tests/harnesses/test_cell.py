"""The cell itself: what it bounds, and what it says when it cannot be made."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from inspect_ai.util import SandboxUserUnsupportedError

from gta_bench.confine.limits import MIB
from gta_bench.errors import EnvironmentProblem
from gta_bench.harnesses.cell import Cell, CellGone, Ran, _Waiting
from gta_bench.harnesses.choice import CellLimits, Plan
from gta_bench.harnesses.work import CellSandbox
from tests.needs import needs

pytestmark = needs("bwrap")


def plan(folder: Path, **limits: int) -> Plan:
    for name in ("inputs", "outputs"):
        (folder / name).mkdir()
    return Plan(
        inputs=folder / "inputs",
        outputs=folder / "outputs",
        network="tools",
        limits=replace(CellLimits(), **limits),
    )


def inside(plan: Plan, work: Callable[[Cell], Awaitable[Ran]]) -> Ran:
    async def run() -> Ran:
        async with Cell(plan) as cell:
            return await work(cell)

    return asyncio.run(run())


MEMORY = "import time; kept = bytearray(90 << 20); time.sleep(60)"
DEEP = """
import os, time
os.chdir("outputs")
for _ in range(20):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
open("hidden", "w").write("a")
"""
UNLINKED = """
import os, time
for _ in range(6):
    file = os.open("outputs/u", os.O_CREAT | os.O_WRONLY | os.O_EXCL)
    os.unlink("outputs/u")
    os.write(file, bytes(1 << 20))
time.sleep(60)
"""
FORKS = "import os, time\nfor _ in range(60): os.fork() or time.sleep(60)\ntime.sleep(60)"


@pytest.mark.parametrize(
    ("limits", "script", "stop"),
    [
        ({"memory_bytes": 200 * MIB}, f"python3 -c '{MEMORY}' & python3 -c '{MEMORY}'", "memory"),
        ({"processes": 40}, f"python3 -c '{FORKS}'", "processes"),
        ({"disk_files": 50}, "for i in $(seq 90); do echo > $i; done; sleep 60", "disk"),
        ({"disk_bytes": MIB}, "yes | head -c 900000 > a; cp a b; sleep 60", "disk"),
        ({"disk_bytes": 4 * MIB}, f"python3 -c '{UNLINKED}'", "disk"),
        ({}, f"python3 -c '{DEEP}time.sleep(60)'", "disk"),
    ],
)
def test_what_exceeds_a_bound_ends_the_cell(
    limits: dict[str, int], script: str, stop: str, tmp_path: Path
) -> None:
    with pytest.raises(CellGone) as gone:
        inside(plan(tmp_path, **limits), lambda cell: cell.run(["sh", "-c", script]))
    assert gone.value.stop == stop


def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    script = "import os, time\nkept = bytearray(b'x') * (90 << 20)\nfor _ in range(4):\n"
    script += "    if os.fork() == 0: break\ntime.sleep(1)\n"
    ran = inside(
        plan(tmp_path, memory_bytes=200 * MIB), lambda cell: cell.run(["python3", "-c", script])
    )
    assert ran.status == 0, ran.stderr


def test_one_process_gets_no_more_memory_than_all_may_have(tmp_path: Path) -> None:
    script = "python3 -c 'bytearray(300 << 20)'"
    ran = inside(
        plan(tmp_path, memory_bytes=200 * MIB), lambda cell: cell.run(["sh", "-c", script])
    )
    assert b"MemoryError" in ran.stderr


def test_a_command_that_takes_too_long_is_killed_and_the_cell_lives(tmp_path: Path) -> None:
    async def work(cell: Cell) -> Ran:
        slow = await cell.run(["sleep", "60"], seconds=0.2)
        assert (slow.status, slow.stop) == (-9, "timeout")
        waiting = asyncio.create_task(cell.run(["sh", "-c", "echo $$ > pid; sleep 60"]))
        while not (cell.folder / "work" / "pid").exists():
            await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        missing = await cell.run(["no-such-program"])
        assert (missing.status, missing.stderr[:15]) == (127, b"no-such-program")
        gone = "for i in $(seq 100); do kill -0 $(cat pid) || exit 7; sleep 0.2; done"
        return await cell.run(["sh", "-c", gone])

    assert inside(plan(tmp_path), work).status == 7


def test_nothing_of_this_machine_is_seen_or_written(tmp_path: Path) -> None:
    script = "ls / /home; touch /x /usr/x /etc/x /task/x inputs/x; id -un; echo $HOME $PATH"
    ran = inside(plan(tmp_path), lambda cell: cell.run(["sh", "-c", script]))
    assert str(tmp_path.parts[1]) not in ("workspace", "task")
    assert ran.stderr.count(b"Read-only file system") == 5
    assert ran.stdout.decode().splitlines()[-2:] == [
        "harness",
        "/home/harness /usr/local/bin:/usr/bin:/bin",
    ]


def test_a_cell_that_cannot_be_made_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = plan(tmp_path)
    missing = replace(wanted, readable=[tmp_path / "missing"])
    with pytest.raises(EnvironmentProblem, match="could not be opened: bwrap: Can't find source"):
        inside(missing, lambda cell: cell.run(["true"]))
    monkeypatch.setattr("shutil.which", lambda name: str(tmp_path / "bwrap"))
    with pytest.raises(EnvironmentProblem, match="apt install bubblewrap"):
        inside(wanted, lambda cell: cell.run(["true"]))


def test_a_closed_cell_runs_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with Cell(plan(tmp_path)) as cell:
            pass
        with pytest.raises(CellGone, match="it ended itself"):
            await cell.run(["true"])
        assert not cell.folder.exists()

    asyncio.run(work())


def test_nothing_is_left_of_a_cell_whose_run_is_interrupted(tmp_path: Path) -> None:
    """Ctrl-C left the folder, with a key in it, and outputs of the job's user."""
    cells: list[Cell] = []

    async def work() -> None:
        async with Cell(plan(tmp_path)) as cell:
            cells.append(cell)
            await cell.run(["sh", "-c", "echo key > final.txt; echo a > outputs/a; sleep 60"])

    async def interrupted() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            while not (tmp_path / "outputs" / "a").exists():
                await anyio.sleep(0.05)
            group.cancel_scope.cancel()

    asyncio.run(interrupted())
    assert not cells[0].folder.exists()
    for path in (tmp_path / "outputs", tmp_path / "outputs" / "a"):
        assert path.stat().st_uid == os.geteuid()


def test_files_of_the_sandbox_are_those_of_the_cell(tmp_path: Path) -> None:
    async def work() -> None:
        box = CellSandbox()
        async with Cell(plan(tmp_path)) as cell:
            box.cell = cell
            await box.write_file("deep/a.txt", "ä\r\n")
            await box.write_file("/tmp/b.bin", b"\xff")
            assert await box.read_file("deep/a.txt") == "ä\r\n"
            assert await box.read_file("/tmp/b.bin", text=False) == b"\xff"
            with pytest.raises(FileNotFoundError):
                await box.read_file("missing")
            with pytest.raises(PermissionError, match="Is a directory"):
                await box.read_file("deep")
            with pytest.raises(PermissionError, match="Read-only"):
                await box.write_file("/usr/x", "")
            with pytest.raises(TimeoutError):
                await box.exec(["sleep", "60"], timeout=1)
            ran = await box.exec(["cat"], input="in", cwd="deep", env={"A": "1"})
            assert (ran.success, ran.stdout) == (True, "in")
            assert (await box.exec(["id", "-un"], user="root")).stdout == "harness\n"
            with pytest.raises(
                SandboxUserUnsupportedError, match="A cell has only the user 'harness'"
            ):
                await box.exec(["id"], user="postgres")

    asyncio.run(work())


def test_a_server_of_this_machine_is_out_of_reach(tmp_path: Path, loopback: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        ran = inside(plan(tmp_path), lambda cell: cell.run(["python3", "-c", script]))
    assert ran.status == 1
    assert b"Connection refused" in ran.stderr


def test_a_lent_socket_answers_on_its_port(tmp_path: Path) -> None:
    async def work(cell: Cell) -> Ran:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write((await reader.readline()).upper())
            await writer.drain()
            writer.close()

        ask = (
            f"import socket; s = socket.create_connection(('127.0.0.1', {cell.port('echo')})); "
            "s.sendall(b'hello\\n'); print(s.recv(9).decode())"
        )
        refused = await cell.run(["python3", "-c", ask])
        assert refused.stdout in (b"\n", b""), "nobody listens yet: ended, or reset"
        async with await asyncio.start_unix_server(echo, cell.socket("echo")):
            cell.socket("echo").chmod(0o666)
            return await cell.run(["python3", "-c", ask])

    assert inside(replace(plan(tmp_path), sockets=["echo"]), work).stdout == b"HELLO\n\n"


OVER = """
try:
    open("/proc/2/mem", "r+b")
except OSError as exc:
    print(exc.strerror)
"""


def test_the_first_process_cannot_be_taken_over(tmp_path: Path) -> None:
    """A harness wrote into its memory and spoke to the host in its name."""
    ran = inside(plan(tmp_path), lambda cell: cell.run(["python3", "-c", OVER]))
    assert ran.stdout == b"Permission denied\n", ran.stderr


@pytest.mark.parametrize(
    "said",
    [
        (1 << 32) - 1,
        b"[]",
        b"[" * 5000,
        b"\xff",
        b'{"id": []}',
        b'{"id": 1}',
        b'{"id": 1, "status": "x", "stdout": "", "stderr": "", "stopped": null}',
        b'{"id": 1, "status": 0, "stdout": "#", "stderr": "", "stopped": null}',
        b'{"id": 1, "status": 0, "stdout": "", "stderr": "", "stopped": "cost"}',
    ],
)
def test_what_no_first_process_says_ends_the_cell(said: bytes | int, tmp_path: Path) -> None:
    """A length of four bytes was believed: the host's process grew by 2.9 GB."""

    async def work() -> None:
        cell, reader = Cell(plan(tmp_path)), asyncio.StreamReader()
        reply: asyncio.Future[Ran] = asyncio.get_running_loop().create_future()
        cell._waiting[1] = _Waiting(reply, 10_000)
        text = b"" if isinstance(said, int) else said
        length = said if isinstance(said, int) else len(said)
        reader.feed_data(length.to_bytes(4, "big") + text)
        await asyncio.wait_for(cell._listen(reader), 10)
        with pytest.raises(CellGone):
            await reply
        await cell.close()

    asyncio.run(work())


def test_outputs_come_back_with_plain_rights(tmp_path: Path) -> None:
    closed = "000" if os.geteuid() == 0 else "500"  # what we cannot look into ends the cell
    script = (
        "cd outputs; echo a > plain; echo b > shut; chmod 000 shut; mkdir shut-folder;"
        "echo c > shut-folder/c; ln -s /etc/passwd link; mkfifo pipe;"
        f"chmod {closed} shut-folder; chmod 4755 plain; chmod 1777 .;"
        "i=0; while [ $i -lt 80 ]; do mkdir d; cd d; i=$((i+1)); done"
    )
    inside(plan(tmp_path), lambda cell: cell.run(["sh", "-c", script]))
    outputs = tmp_path / "outputs"
    found = {str(path.relative_to(outputs)): path.lstat() for path in outputs.rglob("*")}
    assert {about.st_uid for about in found.values()} == {outputs.stat().st_uid} == {os.geteuid()}
    modes = {name: about.st_mode & 0o7777 for name, about in found.items() if name[0] in "ps"}
    modes.pop("pipe")
    assert modes == {"plain": 0o644, "shut": 0o644, "shut-folder": 0o755, "shut-folder/c": 0o644}
    assert outputs.stat().st_mode & 0o7777 == 0o755
    assert 60 < sum(name.startswith("d") for name in found) < 70, "the depth is bounded"


def test_no_output_has_a_path_that_is_too_long(tmp_path: Path) -> None:
    inside(plan(tmp_path), lambda cell: cell.run(["python3", "-c", DEEP]))
    longest = max((tmp_path / "outputs").rglob("*"), key=lambda path: len(str(path)))
    assert 1500 < len(str(longest.relative_to(tmp_path))) < 2400
    assert [*longest.iterdir()] == []
