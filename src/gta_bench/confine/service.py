"""A foreign program that answers over its standard input and output for as long as a task lasts.

It runs behind the walls of bubblewrap, with a folder of its own, the files that are declared, and
no network unless that is declared. What it prints is not trusted.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

import anyio

from gta_bench.confine import bubblewrap, files, network, process
from gta_bench.confine.bubblewrap import Bind, Walls
from gta_bench.confine.inside.protocol import READY
from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.confine.names import quote_foreign
from gta_bench.confine.systems import require_linux
from gta_bench.confine.walls import ENVIRONMENT, START, Python, limit_command, user_command
from gta_bench.errors import EnvironmentProblem

WORKSPACE = "/workspace"
HOME = "/home/server"
CHUNK = 1 << 16
TICK = 0.25
END_SECONDS = 10.0
LAST_SECONDS = 2.0
SHOWN = 300

FileAccess = Literal["none", "read", "write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """Bounds of a service; one that exceeds them is ended.

    `line_bytes` limits one line of its output, and `flood_bytes` all that it prints without being
    asked for more.
    """

    memory_bytes: int = 2048 * MIB
    disk_bytes: int = 256 * MIB
    disk_files: int = 2000
    processes: int = 256
    line_bytes: int = 32 * MIB
    flood_bytes: int = 64 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """What to start, and what it sees of this machine.

    The task's folders `inputs` and `outputs` below `task` appear in its own folder, as `files`
    says. `readable` appears under the same paths.
    """

    argv: Sequence[str]
    task: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    readable: Sequence[Path] = ()
    files: FileAccess = "none"
    network: Literal["none", "open"] = "none"
    limits: ServiceLimits = ServiceLimits()


class ServiceProcess:
    """A running service; leaving the context ends everything that it started.

    With `beside`, it has the folder and the user of that service instead of its own.
    """

    def __init__(self, plan: ServicePlan, beside: "ServiceProcess | None" = None) -> None:
        require_linux("A tool server that is started here")
        self.plan = plan
        self.problem: str | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._way: network.OpenNetwork | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._buffer = bytearray()
        self._unasked = 0
        self._errors = b""
        self._outputs = plan.task / "outputs"
        self._owner = self._outputs.stat()
        if beside is None:
            self._user = bubblewrap.find_job_user(self._outputs)
        else:
            self._user = beside._user
        self._folder = Path(tempfile.mkdtemp(prefix="gta-service-"))
        self.work: Path = self._folder / "work" if beside is None else beside.work
        if beside is None:
            self.work.mkdir()
            for name in ("inputs", "outputs") if plan.files != "none" else ():
                (self.work / name).mkdir()
            files.give(self.work, self._user)
        if plan.files == "write":
            files.give(self._outputs, self._user)

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def send(self, line: bytes) -> None:
        """Write a line to the service; raises ConnectionError if it has ended."""
        assert self._process is not None and self._process.stdin is not None
        self._unasked = 0
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()

    async def receive(self) -> bytes | None:
        """Return the next line that the service prints, None when it has ended."""
        assert self._process is not None and self._process.stdout is not None
        limits, start = self.plan.limits, 0
        while (end := self._buffer.find(b"\n", start)) < 0:
            start = len(self._buffer)
            data = await self._process.stdout.read(CHUNK)
            self._unasked += len(data)
            await asyncio.sleep(0)  # others have their turn, however fast the service prints
            if start > limits.line_bytes:
                self._stop(f"it printed a line of more than {limits.line_bytes} bytes")
            elif self._unasked > limits.flood_bytes:
                self._stop(f"it printed more than {limits.flood_bytes} bytes without being asked")
            if not data or self.problem is not None:
                return None
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    async def read_all(self, most: int) -> bytes | None:
        """Return everything that the service prints until it ends; None if that is too much."""
        assert self._process is not None and self._process.stdout is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        found = bytearray()
        while data := await self._process.stdout.read(CHUNK):
            found += data
            if len(found) > most:
                return None
        await self._process.wait()
        return bytes(found)

    @property
    def succeeded(self) -> bool:
        """Whether the service ended by itself, with status 0."""
        ended = self._process is not None and self._process.returncode == 0
        return ended and self.problem is None

    async def finish(self) -> None:
        """Close the input of the service so that it ends by itself, then end what is left of it."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._wait()
        with anyio.CancelScope(shield=True):
            await self._end()

    async def describe_end(self) -> str:
        """Say why the service ended, and the last line that it printed as an error."""
        if self._process is not None and self.problem is None:
            # Its output can be closed before the end and the last words are known.
            deadline = asyncio.get_running_loop().time() + LAST_SECONDS
            while self._process.returncode is None and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(0.02)
            await asyncio.wait(self._tasks[:1], timeout=LAST_SECONDS)
        if self.problem is not None:
            return self.problem
        status = None if self._process is None else self._process.returncode
        said = self._errors.partition(READY)[2].decode("utf-8", "replace").strip()
        last = said.splitlines()[-1].strip() if said else ""
        how = "it closed its output" if status is None else f"it ended with status {status}"
        return f"{how} and said {quote_foreign(last[-SHOWN:])}" if last else how

    async def _open(self) -> None:
        if self.plan.network == "open":
            self._way = await network.open_network()
        join = () if self._way is None else self._way.join
        with bubblewrap.open_filter_file() as filter_, self._options(filter_) as (program, options):
            command = [*limit_command(self._limits()), *user_command(self._user)]
            command += ["/bin/sh", "-c", START, "sh", *self.plan.argv]
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *(*join, program, "--args", str(options), "--", *command),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env={},
                    cwd="/",
                    start_new_session=True,
                    pass_fds=[filter_, options],
                )
            except OSError as exc:
                raise EnvironmentProblem(
                    "A tool server needs bubblewrap: `apt install bubblewrap`. `gta doctor` shows "
                    "details."
                ) from exc
        self._tasks = [asyncio.create_task(self._drain()), asyncio.create_task(self._watch())]

    def _limits(self) -> JailLimits:
        limits = self.plan.limits
        # Time is limited by the callers; runtimes reserve far more memory than they use.
        return JailLimits(
            cpu_seconds=24 * 3600,
            memory_bytes=None,
            file_bytes=limits.disk_bytes,
            open_files=1024,
            processes=limits.processes,
        )

    @contextmanager
    def _options(self, filter_: int) -> Iterator[tuple[str, int]]:
        """Yield bubblewrap and a descriptor with its options, whose keys no process list shows."""
        program, *options, _ = bubblewrap.build(self._walls(), filter_)
        with ExitStack() as stack:
            descriptor = os.memfd_create("gta-options")
            stack.callback(os.close, descriptor)
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.write(b"".join(word.encode() + b"\0" for word in options))
            os.lseek(descriptor, 0, os.SEEK_SET)
            yield shutil.which(program) or program, descriptor

    def _walls(self) -> Walls:
        plan, disk = self.plan, self.plan.limits.disk_bytes
        shown = dict.fromkeys((*map(Path, Python.current().roots), *plan.readable))
        binds = [
            Bind(str(path), str(path))
            for path in shown
            if not any(parent in shown for parent in path.parents)
        ]
        if plan.network == "open":
            (self._folder / "resolv.conf").write_bytes(f"nameserver {network.RESOLVER}\n".encode())
            (self._folder / "resolv.conf").chmod(0o644)
            binds += [Bind(name, name, optional=True) for name in network.CERTIFICATES]
            binds.append(Bind(str(self._folder / "resolv.conf"), "/etc/resolv.conf"))
        binds.append(Bind(str(self.work), WORKSPACE, writable=True))
        if plan.files != "none":
            outputs = Bind(
                str(plan.task / "outputs"), f"{WORKSPACE}/outputs", writable=plan.files == "write"
            )
            binds += [Bind(str(plan.task / "inputs"), f"{WORKSPACE}/inputs"), outputs]
        return Walls(
            name="server",
            user=self._user,
            cwd=WORKSPACE,
            code=(),
            memory=dict.fromkeys(("/tmp", "/var/tmp", HOME), disk),
            binds=binds,
            shared_memory=disk,
            environment={
                "HOME": HOME,
                "LANG": "C.UTF-8",
                "PATH": ENVIRONMENT["PATH"],
                "TMPDIR": "/tmp",
                **plan.environment,
            },
            network=plan.network == "open",
        )

    def _stop(self, problem: str) -> None:
        """End the service and note why."""
        self.problem = self.problem or problem
        self._kill()

    def _kill(self) -> None:
        """Kill the first process of the namespace; the kernel then ends all others before it."""
        if self._process is None or self._process.returncode is not None:
            return
        first = [*process.list_descendants(self._process.pid)][1:2]
        for number in (*map(int, first), *(() if first else (self._process.pid,))):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    async def _close(self) -> None:
        """End everything and take the outputs back, even if the run is interrupted."""
        with anyio.CancelScope(shield=True):
            await self._end()
            if self._way is not None:
                await self._way.close()
            if self.plan.files == "write":
                await asyncio.to_thread(files.take_back, self._outputs, self._owner)
            await asyncio.to_thread(files.remove_tree, self._folder)

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is None:
            return
        self._kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._wait()

    async def _wait(self) -> None:
        """Wait for the end; asyncio waits for a full pipe that nobody reads, so it is read."""
        assert self._process is not None and self._process.stdout is not None
        while await self._process.stdout.read(CHUNK):
            pass
        await self._process.wait()

    async def _drain(self) -> None:
        """Keep the end of what it prints as errors, because a full pipe would block it."""
        assert self._process is not None and self._process.stderr is not None
        while data := await self._process.stderr.read(CHUNK):
            self._errors += data
            if len(self._errors) > 2 * CHUNK:
                self._errors = READY + self._errors[-CHUNK:]

    async def _watch(self) -> None:
        while self.problem is None:
            await asyncio.sleep(TICK)
            problem = await asyncio.to_thread(self._find_excess)
            if problem is not None:
                self._stop(problem)

    def _find_excess(self) -> str | None:
        assert self._process is not None
        limits = self.plan.limits
        processes = [*process.list_descendants(self._process.pid)]
        folders = [self.work]
        if self.plan.files == "write":
            folders.append(self._outputs)
        size = process.count_deleted_bytes(processes, {one.stat().st_dev for one in folders})
        number = 0
        for folder in folders:
            used = files.usage(folder, most_bytes=limits.disk_bytes, most_files=limits.disk_files)
            size, number = size + used.bytes, number + used.files
        if size > limits.disk_bytes or number > limits.disk_files:
            return f"it wrote more than {limits.disk_bytes} bytes or {limits.disk_files} files"
        if len(processes) > limits.processes:
            return f"it ran more than {limits.processes} processes"
        if process.memory_exceeds(limits.memory_bytes, processes):
            return f"it used more than {limits.memory_bytes} bytes of memory"
        return None
