"""A cell: the namespaces in which a harness works on one task, and all that bounds it.

Inside are the system's programs (read-only), the task's workspace, a home and a temporary folder
of their own, and nothing else of this machine. `network="tools"` leaves loopback alone, with one
port for each socket that the host lends; `"open"` adds a way to outside addresses
(`confine/network.py`).
"""

import asyncio
import base64
import json
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Self

import anyio

from gta_bench.confine import files, network
from gta_bench.confine.bubblewrap import filter_file, job_user
from gta_bench.confine.process import count_deleted_bytes, memory_exceeds
from gta_bench.errors import EnvironmentProblem
from gta_bench.harnesses.cell_plan import (
    SOCKETS,
    WORKSPACE,
    Plan,
    StopCause,
    cell_environment,
    command,
    own_files,
)

TICK = 0.1
READY_SECONDS = 60.0
GONE_SECONDS = 10.0
CLOSE_SECONDS = 60.0
LENGTH = struct.Struct("!I")
SHOWN = 300
FIRST_BYTES = 1 << 16  # of the frame that says that the cell is ready
FRAME_BYTES = 1 << 12  # of a reply besides what a command printed


# What reading a reply raises that the cell's first process did not write.
FORGED = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


class CellGone(Exception):
    """The cell ended before the command did; `stop` says why, None where it did so itself."""

    def __init__(self, stop: StopCause | None) -> None:
        self.stop = stop
        super().__init__(f"The cell is gone ({stop or 'it ended itself'}).")


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ended in a cell."""

    status: int
    stdout: bytes
    stderr: bytes
    stop: StopCause | None


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Who waits for the end of a command, and how long the frame that says so may be."""

    reply: "asyncio.Future[Ran]"
    most: int


class Cell:
    """A cell that is open; leaving it kills everything inside."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.folder = Path(tempfile.mkdtemp(prefix="gta-cell-"))
        self.ports: dict[str, int] = {}
        self.stop: StopCause | None = None
        self._numbers = count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._way: network.Way | None = None
        self._namespace = ""
        self._user = job_user("bubblewrap")
        self._owner = plan.outputs.stat()
        for name in ("work", "task", "etc", "sockets"):
            (self.folder / name).mkdir()
            (self.folder / name).chmod(0o755)
        for name in ("inputs", "outputs"):  # where the real ones are mounted
            (self.folder / "work" / name).mkdir()
        for name, text in own_files(self._user).items():
            self.show("etc", name, text)
        for folder in (self.folder / "work", plan.outputs):
            files.give(folder, self._user)

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _open(self) -> None:
        if self.plan.network == "open":
            self._way = await network.open_way()
        with filter_file() as filter_:
            argv = command(self.plan, self.folder, user=self._user, filter_=filter_)
            join = () if self._way is None else self._way.join
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    self._process = await asyncio.create_subprocess_exec(
                        *(*join, *argv),
                        stdin=theirs.fileno(),
                        stdout=asyncio.subprocess.DEVNULL,
                        stderr=asyncio.subprocess.PIPE,
                        env={},
                        cwd="/",
                        start_new_session=True,
                        pass_fds=[filter_],
                    )
                except OSError as exc:
                    ours.close()
                    raise EnvironmentProblem(
                        "A harness needs bubblewrap: `apt install bubblewrap`; `gta doctor` says "
                        "more."
                    ) from exc
        reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        try:
            async with asyncio.timeout(READY_SECONDS):
                first = await _frame(reader, FIRST_BYTES)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError) as exc:
            self._kill()
            assert self._process.stderr is not None
            said = (await self._process.stderr.read()).decode("utf-8", "replace").strip()
            raise EnvironmentProblem(
                f"The harness's cell could not be made: {said[-SHOWN:] or 'no message'}; "
                "`gta doctor` shows what the jail needs."
            ) from exc
        self._namespace, self.ports = first["ready"], first["ports"]
        self._tasks = [
            asyncio.create_task(self._listen(reader)),
            asyncio.create_task(self._watch()),
            asyncio.create_task(self._drain()),
        ]

    def show(self, folder: str, name: str, text: str) -> None:
        """Write a file that the cell can read, whatever rights our files usually have."""
        file = self.folder / folder / name
        file.write_text(text, encoding="utf-8")
        file.chmod(0o644)

    def port(self, name: str) -> int:
        """The loopback port, inside, of the socket of that name."""
        return self.ports[f"{SOCKETS}/{name}"]

    def socket(self, name: str) -> Path:
        """Where the host listens for what comes to that port."""
        return self.folder / "sockets" / name

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str = WORKSPACE,
        environment: Mapping[str, str] | None = None,
        seconds: float | None = None,
        output_bytes: int | None = None,
    ) -> Ran:
        """Run a command in the cell; raises CellGone where the cell ends first."""
        if self._writer is None or self._writer.is_closing():
            raise CellGone(self.stop)
        number, most = next(self._numbers), output_bytes or self.plan.limits.output_bytes
        reply: asyncio.Future[Ran] = asyncio.get_running_loop().create_future()
        # Two streams in base64.
        self._waiting[number] = _Waiting(reply, 2 * 4 * (most // 3 + 1) + FRAME_BYTES)
        order = {
            "do": "run",
            "id": number,
            "argv": list(argv),
            "cwd": cwd,
            "environment": {**cell_environment(self.plan), **(environment or {})},
            "stdin": base64.b64encode(stdin).decode(),
            "seconds": seconds,
            "output_bytes": most,
        }
        try:
            self._say(order)
            return await reply
        except asyncio.CancelledError:
            self._say({"do": "kill", "id": number})
            raise
        finally:
            del self._waiting[number]

    async def close(self) -> None:
        """End what is inside, and remove the cell's folder, also where the run is interrupted.

        A cancelled scope of anyio cancels every `await` anew, so nothing would be done here.
        """
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self.end()
            if self.folder.exists():
                await asyncio.to_thread(files.remove_tree, self.folder)

    async def end(self) -> None:
        """Kill all that is inside, and wait until it is gone."""
        self._kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None:
            await self._process.wait()
        if self._writer is not None:
            self._writer.close()
        self._hang_up()
        await asyncio.to_thread(self._wait_until_gone)
        if self._way is not None:
            await self._way.close()
        await asyncio.to_thread(files.take_back, self.plan.outputs, self._owner)

    def halt(self, stop: StopCause) -> None:
        """End everything inside, for that reason."""
        self.stop = self.stop or stop
        self._kill()

    def _wait_until_gone(self) -> None:
        end = time.monotonic() + GONE_SECONDS
        while self._namespace and _inside(self._namespace) and time.monotonic() < end:
            time.sleep(0.02)

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    def _say(self, order: dict[str, Any]) -> None:
        text = json.dumps(order).encode()
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(LENGTH.pack(len(text)) + text)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Hand out replies. The cell may be anybody's by now: what it says is data."""
        try:
            while True:
                reply = await _frame(reader, self._most)
                waiting = self._waiting.get(reply["id"])
                if waiting is not None and not waiting.reply.done():
                    waiting.reply.set_result(_ran(reply))
        except (asyncio.IncompleteReadError, ConnectionError, *FORGED):
            self._hang_up()

    def _most(self) -> int:
        """The longest frame that anybody waits for."""
        return max((waiting.most for waiting in self._waiting.values()), default=FRAME_BYTES)

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
        for waiting in self._waiting.values():
            if not waiting.reply.done():
                waiting.reply.set_exception(CellGone(self.stop))

    async def _watch(self) -> None:
        """Stop a harness that takes more than it may."""
        while self.stop is None:
            await asyncio.sleep(TICK)
            stop = await asyncio.to_thread(self._excess)
            if stop is not None:
                self.halt(stop)

    def _excess(self) -> StopCause | None:
        limits = self.plan.limits
        processes = _inside(self._namespace)
        folders = (self.folder / "work", self.plan.outputs)
        size = count_deleted_bytes(processes, {folder.stat().st_dev for folder in folders})
        number = 0
        for folder in folders:
            used = files.usage(folder, most_bytes=limits.disk_bytes, most_files=limits.disk_files)
            size, number = size + used.bytes, number + used.files
        if size > limits.disk_bytes or number > limits.disk_files:
            return "disk"
        if len(processes) > limits.processes:
            return "processes"
        return "memory" if memory_exceeds(limits.memory_bytes, processes) else None

    async def _drain(self) -> None:
        """Nothing inside may block because nobody reads what bubblewrap says."""
        assert self._process is not None and self._process.stderr is not None
        while await self._process.stderr.read(1 << 16):
            pass


async def _frame(reader: asyncio.StreamReader, most: Callable[[], int] | int) -> dict[str, Any]:
    """The next frame; ValueError where it claims to be longer than it can be."""
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if length > (most if isinstance(most, int) else most()):
        raise ValueError(f"a frame of {length} bytes")
    message: dict[str, Any] = json.loads(await reader.readexactly(length))
    return message


def _ran(reply: dict[str, Any]) -> Ran:
    stop = reply["stopped"]
    if stop not in (None, "timeout", "output"):
        raise ValueError(f"stopped by {stop!r}")
    stdout, stderr = (base64.b64decode(reply[name], validate=True) for name in ("stdout", "stderr"))
    return Ran(int(reply["status"]), stdout, stderr, stop)


def _inside(namespace: str) -> list[str]:
    """The processes of a PID namespace, as this machine numbers them."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                if str((folder / "ns" / "pid").readlink()) == namespace and _lives(folder):
                    found.append(folder.name)
    return found


def _lives(process: Path) -> bool:
    """Whether it is more than a number that nobody has asked about yet."""
    state = (process / "stat").read_bytes().rpartition(b")")[2].split()[0]
    return state not in (b"Z", b"X")
