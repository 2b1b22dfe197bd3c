"""A cell: the namespaces in which a harness works on one task, and all that bounds it.

Inside are the system's programs (read-only), the task's workspace, a home and a temporary folder
of their own, and nothing else of this machine. `network="tools"` leaves loopback alone, with one
port for each socket that the host lends; `"open"` shares the host's network.
"""

import asyncio
import base64
import json
import os
import shutil
import socket
import struct
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, Self

import gta_bench
from gta_bench.confine import files, walls
from gta_bench.confine.inside.protocol import Orders
from gta_bench.confine.limits import MIB
from gta_bench.confine.walls import Python
from gta_bench.errors import EnvironmentProblem
from gta_bench.records.run import Network

Stop = Literal["timeout", "output", "disk", "memory", "processes"]
WORKSPACE, TASK, SOCKETS, HOME = "/workspace", "/task", "/run/gta", "/home/harness"
INSIDE = ("gta_bench/confine/inside", "gta_bench/harnesses/inside")
TICK = 0.1
READY_SECONDS = 60.0
GONE_SECONDS = 10.0
LENGTH = struct.Struct("!I")
SHOWN = 300
SYSTEM_NAMES = ("/etc/os-release", "/etc/debian_version")  # Inspect asks which system it is
OPEN_NETWORK_FILES = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl"),
    *("/etc/ca-certificates", "/etc/pki"),
)
OWN_FILES = {
    "passwd": f"harness:x:{walls.NOBODY}:{walls.NOBODY}::{HOME}:/bin/sh\n",
    "group": f"harness:x:{walls.NOBODY}:\n",
    "hosts": "127.0.0.1 localhost harness\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLimits:
    """What a harness may use on one task; what exceeds it is stopped and recorded by name.

    `disk_bytes` and `disk_files` bound workspace and outputs together, `memory_bytes` all
    processes together.
    """

    seconds: float = 1800.0
    output_bytes: int = MIB
    disk_bytes: int = 256 * MIB
    disk_files: int = 2000
    memory_bytes: int = 8192 * MIB
    processes: int = 512

    def words(self, stop: Stop) -> str:
        """What the harness did that it was stopped for."""
        return {
            "timeout": f"it had not ended after {self.seconds:g} seconds",
            "output": f"it printed more than {self.output_bytes} bytes",
            "disk": f"it wrote more than {self.disk_bytes} bytes or {self.disk_files} files",
            "memory": f"it used more than {self.memory_bytes} bytes of memory",
            "processes": f"it ran more than {self.processes} processes",
        }[stop]


class CellGone(Exception):
    """The cell ended before the command did; `stop` says why, None where it did so itself."""

    def __init__(self, stop: Stop | None) -> None:
        self.stop = stop
        super().__init__(f"The cell is gone ({stop or 'it ended itself'}).")


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ended in a cell."""

    status: int
    stdout: bytes
    stderr: bytes
    stop: Stop | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a cell shows of this machine.

    `inputs` and `outputs` are folders of the host. `readable` appears under its own paths, and
    `sockets` are names of unix sockets, each of which gets a loopback port.
    """

    inputs: Path
    outputs: Path
    network: Network
    limits: CellLimits = CellLimits()
    readable: Sequence[Path] = ()
    sockets: Sequence[str] = ()
    search: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class Cell:
    """A cell that is open; leaving it kills everything inside."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.folder = Path(tempfile.mkdtemp(prefix="gta-cell-"))
        self.ports: dict[str, int] = {}
        self.stop: Stop | None = None
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._namespace = ""
        for name in ("work", "task", "etc", "sockets"):
            (self.folder / name).mkdir()
        for name in ("inputs", "outputs"):  # where the real ones are mounted
            (self.folder / "work" / name).mkdir()
        for name, text in OWN_FILES.items():
            (self.folder / "etc" / name).write_text(text, encoding="utf-8")

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
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *_bubblewrap(self.plan, self.folder),
                    stdin=theirs.fileno(),
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.PIPE,
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as exc:
                ours.close()
                raise EnvironmentProblem(
                    "A harness needs bubblewrap: `apt install bubblewrap`; `gta doctor` says more."
                ) from exc
        reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        try:
            async with asyncio.timeout(READY_SECONDS):
                first = await _frame(reader)
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
        number = next(self._numbers)
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        order = {
            "do": "run",
            "id": number,
            "argv": list(argv),
            "cwd": cwd,
            "environment": {**cell_environment(self.plan), **(environment or {})},
            "stdin": base64.b64encode(stdin).decode(),
            "seconds": seconds,
            "output_bytes": output_bytes or self.plan.limits.output_bytes,
        }
        try:
            self._say(order)
            ended = await reply
        except asyncio.CancelledError:
            self._say({"do": "kill", "id": number})
            raise
        finally:
            del self._waiting[number]
        return Ran(
            int(ended["status"]),
            base64.b64decode(ended["stdout"]),
            base64.b64decode(ended["stderr"]),
            ended["stopped"],
        )

    async def close(self) -> None:
        """End what is inside, and remove the cell's folder."""
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

    def halt(self, stop: Stop) -> None:
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
                reply = await _frame(reader)
                waiting = self._waiting.get(reply["id"])
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, KeyError, TypeError):
            self._hang_up()

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(CellGone(self.stop))

    async def _watch(self) -> None:
        """Stop a harness that takes more than it may."""
        while self.stop is None:
            await asyncio.sleep(TICK)
            stop = await asyncio.to_thread(self._excess)
            if stop is not None:
                self.halt(stop)

    def _excess(self) -> Stop | None:
        limits = self.plan.limits
        size = number = 0
        for folder in (self.folder / "work", self.plan.outputs):
            used = files.usage(folder, most_bytes=limits.disk_bytes, most_files=limits.disk_files)
            size, number = size + used.bytes, number + used.files
        if size > limits.disk_bytes or number > limits.disk_files:
            return "disk"
        processes = _inside(self._namespace)
        if len(processes) > limits.processes:
            return "processes"
        return "memory" if sum(map(_resident, processes)) > limits.memory_bytes else None

    async def _drain(self) -> None:
        """Nothing inside may block because nobody reads what bubblewrap says."""
        assert self._process is not None and self._process.stderr is not None
        while await self._process.stderr.read(1 << 16):
            pass


def cell_environment(plan: Plan) -> dict[str, str]:
    """What every command inside finds in its environment."""
    search = [str(folder) for folder in plan.search]
    return {
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "PATH": ":".join([*search, walls.ENVIRONMENT["PATH"]]),
        "TMPDIR": "/tmp",
        "USER": "harness",
        **plan.environment,
    }


async def _frame(reader: asyncio.StreamReader) -> dict[str, Any]:
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    message: dict[str, Any] = json.loads(await reader.readexactly(length))
    return message


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


def _resident(process: str) -> int:
    """Bytes of memory that a process holds now."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _bubblewrap(plan: Plan, folder: Path) -> list[str]:
    python, limits = Python.current(), plan.limits
    argv = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--unshare-user", "--disable-userns"]
    argv += ["--share-net"] if plan.network == "open" else []
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    argv += ["--hostname", "harness", "--uid", walls.NOBODY, "--gid", walls.NOBODY]
    argv += walls.system_tree()
    for name in ("/tmp", "/var/tmp", HOME):
        argv += ["--size", str(limits.disk_bytes), "--tmpfs", name]
    for path in _outermost([*map(Path, python.roots), *plan.readable]):
        argv += ["--ro-bind", str(path), str(path)]
    source = Path(gta_bench.__file__).parent.parent
    for inside in INSIDE:
        argv += ["--ro-bind", str(source / inside), f"/jail/{inside}"]
    outside = OPEN_NETWORK_FILES if plan.network == "open" else ()
    for name in (*SYSTEM_NAMES, *outside):
        argv += ["--ro-bind-try", name, name]
    for name in OWN_FILES:
        if f"/etc/{name}" not in outside:
            argv += ["--ro-bind", str(folder / "etc" / name), f"/etc/{name}"]
    argv += ["--dev", "/dev", "--proc", "/proc"]
    argv += ["--size", str(limits.disk_bytes), "--tmpfs", "/dev/shm"]
    argv += ["--bind", str(folder / "work"), WORKSPACE]
    argv += ["--ro-bind", str(plan.inputs), f"{WORKSPACE}/inputs"]
    argv += ["--bind", str(plan.outputs), f"{WORKSPACE}/outputs"]
    argv += ["--ro-bind", str(folder / "task"), TASK]
    argv += ["--ro-bind", str(folder / "sockets"), SOCKETS]
    argv += ["--chdir", WORKSPACE, "--remount-ro", "/", "--remount-ro", "/dev"]
    boot = [python.executable, "-s", "-P", "-B", "-c", walls.BOOT, "/jail"]
    return [*argv, "--", *boot, json.dumps(_orders(plan, python))]


def _outermost(paths: Sequence[Path]) -> list[Path]:
    """Each path once, without those that lie below another one."""
    distinct = dict.fromkeys(paths)
    return [path for path in distinct if not any(parent in distinct for parent in path.parents)]


def _orders(plan: Plan, python: Python) -> Orders:
    """What the jail's launcher does before it becomes the cell's first process."""
    limits = plan.limits
    told = {
        "sockets": [f"{SOCKETS}/{name}" for name in plan.sockets],
        "data_bytes": limits.memory_bytes,
    }
    first = [python.executable, "-I", "-B", f"/jail/{INSIDE[1]}/cell.py", json.dumps(told)]
    return {
        "parent": None,
        "limits": {
            "cpu_seconds": int(limits.seconds) + 60,
            "memory_bytes": None,
            "file_bytes": limits.disk_bytes,
            "open_files": 4096,
            # A fork bomb between two looks; the kernel does not count root's.
            "processes": 2 * limits.processes,
        },
        "landlock": None,
        "profile": "program",
        "forks": True,
        "argv": first,
        "environment": cell_environment(plan),
        "scratch": "/tmp",
        "reply_bytes": 0,
    }
