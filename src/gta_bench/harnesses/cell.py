"""A cell: the namespaces in which a harness works on one task, within its limits.

Inside are the system's programs (read-only), the task's workspace, and an own home and temporary
folder, but nothing else of this machine. `network="tools"` provides only loopback, with one port
for each socket of the host; `"open"` adds a way to outside addresses (`confine/network.py`).
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
from gta_bench.confine.bubblewrap import find_job_user, open_filter_file
from gta_bench.confine.process import count_deleted_bytes, memory_exceeds
from gta_bench.confine.systems import require_linux
from gta_bench.errors import EnvironmentProblem
from gta_bench.harnesses import choice

TICK = 0.1
READY_SECONDS = 60.0
GONE_SECONDS = 10.0
CLOSE_SECONDS = 60.0
LENGTH = struct.Struct("!I")
SHOWN = 300
FIRST_BYTES = 1 << 16  # for the frame that reports that the cell is ready
FRAME_BYTES = 1 << 12  # for a reply without the output of its command
# Raised by reading a reply that the cell's first process did not write.
FORGED = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


class CellGone(Exception):
    """The cell ended before the command did; `stop` is the limit that ended it, if one did."""

    def __init__(self, stop: choice.StopCause | None) -> None:
        self.stop = stop
        super().__init__(f"The cell is gone ({stop or 'it ended itself'}).")


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ended in a cell."""

    status: int
    stdout: bytes
    stderr: bytes
    stop: choice.StopCause | None


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A command that has not ended yet, and the most bytes of its reply."""

    reply: "asyncio.Future[Ran]"
    most: int


class Cell:
    """An open cell; leaving the context kills everything inside."""

    def __init__(self, plan: choice.Plan) -> None:
        require_linux("A harness")
        self.plan = plan
        self.folder = Path(tempfile.mkdtemp(prefix="gta-cell-"))
        self.ports: dict[str, int] = {}
        self.stop: choice.StopCause | None = None
        self._numbers = count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._way: network.OpenNetwork | None = None
        self._namespace = ""
        self._user = find_job_user(plan.outputs)
        self._owner = plan.outputs.stat()
        for name in ("work", "task", "etc", "sockets"):
            (self.folder / name).mkdir()
            (self.folder / name).chmod(0o755)
        for name in ("inputs", "outputs"):  # mount points of the real folders
            (self.folder / "work" / name).mkdir()
        for name, text in choice.make_own_files(self._user).items():
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
            self._way = await network.open_network()
        with open_filter_file() as filter_:
            argv = choice.make_command(self.plan, self.folder, user=self._user, filter_=filter_)
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
                        "A harness needs bubblewrap: `apt install bubblewrap`. `gta doctor` shows "
                        "details."
                    ) from exc
        reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        try:
            async with asyncio.timeout(READY_SECONDS):
                first = await _receive(reader, FIRST_BYTES)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError) as exc:
            self._kill()
            assert self._process.stderr is not None
            said = (await self._process.stderr.read()).decode("utf-8", "replace").strip()
            raise EnvironmentProblem(
                f"The harness's cell could not be opened: {said[-SHOWN:] or 'no message'}. "
                "Run `gta doctor` to see what the jail needs."
            ) from exc
        self._namespace, self.ports = first["ready"], first["ports"]
        self._tasks = [
            asyncio.create_task(self._listen(reader)),
            asyncio.create_task(self._watch()),
            asyncio.create_task(self._drain()),
        ]

    def show(self, folder: str, name: str, text: str) -> None:
        """Write a file that the cell can read, regardless of the umask."""
        file = self.folder / folder / name
        file.write_text(text, encoding="utf-8", newline="\n")
        file.chmod(0o644)

    def port(self, name: str) -> int:
        """Return the loopback port, inside the cell, of the socket of that name."""
        return self.ports[f"{choice.SOCKETS}/{name}"]

    def socket(self, name: str) -> Path:
        """Return the socket on which the host listens for connections to that port."""
        return self.folder / "sockets" / name

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str = choice.WORKSPACE,
        environment: Mapping[str, str] | None = None,
        seconds: float | None = None,
        output_bytes: int | None = None,
    ) -> Ran:
        """Run a command in the cell; raises CellGone if the cell ends first."""
        if self._writer is None or self._writer.is_closing():
            raise CellGone(self.stop)
        number, most = next(self._numbers), output_bytes or self.plan.limits.output_bytes
        reply: asyncio.Future[Ran] = asyncio.get_running_loop().create_future()
        # Two streams in base64, and the rest of the frame.
        self._waiting[number] = _Waiting(reply, 2 * 4 * (most // 3 + 1) + FRAME_BYTES)
        order = {
            "do": "run",
            "id": number,
            "argv": list(argv),
            "cwd": cwd,
            "environment": {**choice.make_environment(self.plan), **(environment or {})},
            "stdin": base64.b64encode(stdin).decode(),
            "seconds": seconds,
            "output_bytes": most,
        }
        try:
            self._send(order)
            return await reply
        except asyncio.CancelledError:
            self._send({"do": "kill", "id": number})
            raise
        finally:
            del self._waiting[number]

    async def close(self) -> None:
        """Kill everything inside and remove the cell's folder, even if the run is interrupted.

        The shield is needed because a canceled scope of anyio cancels every later `await` too.
        """
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self.end()
            if self.folder.exists():
                await asyncio.to_thread(files.remove_tree, self.folder)

    async def end(self) -> None:
        """Kill everything inside, and wait until it is gone."""
        self._kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None:
            await self._process.wait()
        self._hang_up()
        await asyncio.to_thread(self._wait_until_gone)
        if self._way is not None:
            await self._way.close()
        await asyncio.to_thread(files.take_back, self.plan.outputs, self._owner)

    def halt(self, stop: choice.StopCause) -> None:
        """Kill everything inside and note the limit that was exceeded."""
        self.stop = self.stop or stop
        self._kill()

    def _wait_until_gone(self) -> None:
        end = time.monotonic() + GONE_SECONDS
        while self._namespace and _list_processes(self._namespace) and time.monotonic() < end:
            time.sleep(0.02)

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    def _send(self, order: dict[str, Any]) -> None:
        text = json.dumps(order).encode()
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(LENGTH.pack(len(text)) + text)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Deliver replies. A harness may have taken over the cell, so do not trust them."""
        try:
            while True:
                reply = await _receive(reader, self._find_most)
                waiting = self._waiting.get(reply["id"])
                if waiting is not None and not waiting.reply.done():
                    waiting.reply.set_result(_read_reply(reply))
        except (asyncio.IncompleteReadError, ConnectionError, *FORGED):
            self._hang_up()

    def _find_most(self) -> int:
        """Return the most bytes of any expected reply."""
        return max((waiting.most for waiting in self._waiting.values()), default=FRAME_BYTES)

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
        for waiting in self._waiting.values():
            if not waiting.reply.done():
                waiting.reply.set_exception(CellGone(self.stop))

    async def _watch(self) -> None:
        """Stop a harness that exceeds a limit."""
        while self.stop is None:
            await asyncio.sleep(TICK)
            stop = await asyncio.to_thread(self._find_excess)
            if stop is not None:
                self.halt(stop)

    def _find_excess(self) -> choice.StopCause | None:
        limits = self.plan.limits
        processes = _list_processes(self._namespace)
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
        """Read bubblewrap's messages, because a full pipe would block it."""
        assert self._process is not None and self._process.stderr is not None
        while await self._process.stderr.read(1 << 16):
            pass


async def _receive(reader: asyncio.StreamReader, most: Callable[[], int] | int) -> dict[str, Any]:
    """Return the next frame; raises ValueError if it claims to be longer than allowed."""
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if length > (most if isinstance(most, int) else most()):
        raise ValueError(f"a frame of {length} bytes")
    message: dict[str, Any] = json.loads(await reader.readexactly(length))
    return message


def _read_reply(reply: dict[str, Any]) -> Ran:
    stop = reply["stopped"]
    if stop not in (None, "timeout", "output"):
        raise ValueError(f"stopped by {stop!r}")
    stdout, stderr = (base64.b64decode(reply[name], validate=True) for name in ("stdout", "stderr"))
    return Ran(int(reply["status"]), stdout, stderr, stop)


def _list_processes(namespace: str) -> list[str]:
    """Return the processes of a PID namespace, by their ids on this machine."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                if str((folder / "ns" / "pid").readlink()) != namespace:
                    continue
                state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
                if state not in (b"Z", b"X"):  # neither a zombie nor dead
                    found.append(folder.name)
    return found
