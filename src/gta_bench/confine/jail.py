"""The one way to run foreign code: Python that a model wrote, and programs on foreign files."""

import asyncio
import binascii
import json
import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Self, TypeVar

from gta_bench.confine import bubblewrap, files, held, outcomes, process, walls
from gta_bench.confine.inside.protocol import READY, SnippetRequest
from gta_bench.confine.limits import JailKind, JailLimits, ProgramResult, SnippetResult
from gta_bench.confine.names import is_plain, shown
from gta_bench.confine.python import Python
from gta_bench.confine.users import job_user
from gta_bench.confine.walls import Job, Places
from gta_bench.errors import ToolError, ToolUnavailable

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Argv = Sequence[str] | Callable[[Places], Sequence[str]]

# The least a driver does: the code defines `solution()`, its value is the reply.
CALL_SOLUTION = """
def prepare():
    return {}

def finish(names):
    if not callable(names.get("solution")):
        raise NameError("the code must define a function `solution()`")
    return str(names["solution"]())
"""


class Jail:
    """Runs jobs in one kind of jail, at most `slots` at a time; more wait for their turn.

    Get one from `find_jail`, which makes sure that this kind works here. The methods never block
    the event loop; a cancelled call kills its process.
    """

    def __init__(
        self,
        kind: JailKind,
        *,
        slots: int = 4,
        python: Python | None = None,
        temporary: Path | None = None,
    ) -> None:
        self.kind: JailKind = kind
        self.slots = slots
        self._python = python or Python.current()
        self._temporary = temporary
        self._threads = ThreadPoolExecutor(max_workers=slots, thread_name_prefix="jail")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for what still runs, and end the threads."""
        self._threads.shutdown(cancel_futures=True)

    async def run_snippet(
        self,
        code: str,
        *,
        driver: str = CALL_SOLUTION,
        files: Mapping[str, bytes] | None = None,
        limits: JailLimits | None = None,
        label: str = "The code",
    ) -> SnippetResult:
        """Run Python that a model wrote and return what it came to, or raise ConfinedError.

        `driver` is trusted source with `prepare() -> dict` (names for the code; imports and
        everything else that needs freedom) and `finish(names) -> str | bytes` (the reply).
        `files` are put into the scratch folder, the current one, before anything starts.
        """
        contents = {name: _base64(data) for name, data in (files or {}).items()}
        request: SnippetRequest = {"driver": driver, "code": code, "files": contents}
        wanted = limits or JailLimits()

        def run(cancelled: threading.Event) -> SnippetResult:
            user = job_user(self.kind)
            with self._folder(user) as folder:
                job = Job(
                    folder=folder,
                    limits=wanted,
                    argv=None,
                    environment={},
                    readable=(),
                    user=user,
                )
                ended = self._run(job, json.dumps(request).encode(), cancelled)
                return outcomes.snippet_result(ended, kind=self.kind, limits=wanted, label=label)

        return await self._in_thread(run)

    async def run_program(
        self,
        argv: Argv,
        *,
        inputs: Mapping[str, bytes | Path] | None = None,
        stdin: bytes = b"",
        limits: JailLimits | None = None,
        environment: Mapping[str, str] | None = None,
        readable: Sequence[Path] = (),
        allow_fork: bool = True,
    ) -> ProgramResult:
        """Run a program on foreign files, without network; raise ConfinedError if it is stopped.

        `inputs` appear by their plain names in `Places.inputs` (`../inputs` from the current
        folder), read-only; what the program leaves in the current folder comes back as bytes.
        `argv` may be a function of `Places` where absolute paths are needed. `readable` adds
        folders of the host under their own paths, such as a program's settings.
        """
        wanted = limits or JailLimits()
        label = argv[0] if isinstance(argv, Sequence) else "The program"

        def run(cancelled: threading.Event) -> ProgramResult:
            user = job_user(self.kind)
            with self._folder(user) as folder:
                _stage(inputs or {}, folder / "inputs")
                job = Job(
                    folder=folder,
                    limits=wanted,
                    argv=[],
                    environment=environment or {},
                    readable=[str(path) for path in readable],
                    forks=allow_fork,
                    user=user,
                )
                job = replace(job, argv=_argv(argv, walls.places(self.kind, job)))
                ended = self._run(job, stdin, cancelled)
                name = PurePath(label).name
                report = outcomes.check_program(ended, kind=self.kind, limits=wanted, label=name)
                left = outcomes.collect(folder / "work", report, limits=wanted, label=name)
                return ProgramResult(
                    stdout=ended.stdout,
                    stderr=outcomes.after_ready(ended.stderr),
                    files=left.files,
                    skipped=left.skipped,
                    report=report,
                )

        try:
            return await self._in_thread(run)
        except outcomes.NeverBegan as exc:
            # Seen on a machine with a load of 26, and not since.
            logger.warning("%s Trying once more.", exc.reason)
            return await self._in_thread(run)

    def _run(self, job: Job, stdin: bytes, cancelled: threading.Event) -> process.EndedProcess:
        limits = job.limits
        own_disk = self.kind == "bubblewrap" and job.argv is None
        bounds = process.ProcessBounds(
            wall_seconds=limits.wall_seconds,
            start_seconds=limits.start_seconds,
            ready=READY,
            stdout_bytes=limits.reply_bytes if job.argv is None else limits.output_bytes,
            stderr_bytes=limits.output_bytes,
            disk_is_full=None if own_disk else lambda process: _is_full(job, process),
            cancelled=cancelled,
        )
        try:
            with ExitStack() as stack:
                walled = self.kind == "bubblewrap"
                forks = bubblewrap.filter_file(forks=job.forks)
                filter_ = stack.enter_context(forks) if walled else None
                command = walls.command(self.kind, job, self._python, filter_)
                return process.run(
                    command.argv,
                    stdin=stdin,
                    environment=command.environment,
                    cwd=command.cwd,
                    bounds=bounds,
                    descriptors=() if filter_ is None else (filter_,),
                )
        except OSError as exc:
            raise ToolUnavailable(
                f"The jail cannot start {exc.filename!r}: {exc.strerror}.",
                mend="`gta doctor` shows what the jail needs.",
            ) from exc

    @contextmanager
    def _folder(self, user: int | None) -> Iterator[Path]:
        """A folder of our own for one job, gone afterwards whatever was done in it."""
        folder = Path(tempfile.mkdtemp(prefix="gta-jail-", dir=self._temporary))
        try:
            for part in ("inputs", "work", "scratch"):
                (folder / part).mkdir()
            for part in ("inputs", "work"):  # others enter them, whatever our umask is
                (folder / part).chmod(0o755)
            for place in (folder, folder / "work", folder / "scratch"):
                files.give(place, user)
            yield folder
        finally:
            files.remove_tree(folder)

    async def _in_thread(self, run: Callable[[threading.Event], Result]) -> Result:
        cancelled = threading.Event()
        future = self._threads.submit(run, cancelled)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            cancelled.set()
            raise


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _argv(argv: Argv, where: Places) -> list[str]:
    return list(argv if isinstance(argv, Sequence) else argv(where))


def _is_full(job: Job, process: int) -> bool:
    """Whether the job wrote more than it may, deleted files that it still holds included."""
    limits = job.limits
    used = [
        files.usage(job.folder / part, most_bytes=limits.disk_bytes, most_files=limits.disk_files)
        for part in ("work", "scratch")
    ]
    devices = {(job.folder / "work").stat().st_dev}
    size = sum(part.bytes for part in used)
    size += held.unlinked_bytes(held.descendants(process), devices)
    return size > limits.disk_bytes or sum(part.files for part in used) > limits.disk_files


def _stage(inputs: Mapping[str, bytes | Path], folder: Path) -> None:
    """Copy the inputs: what was checked is then what is read, whoever changes the original."""
    for name, source in inputs.items():
        if not is_plain(name):
            raise ToolError(f"{shown(name)} is not a plain file name.")
        if isinstance(source, bytes):
            (folder / name).write_bytes(source)
        else:
            with files.open_regular(source) as original, (folder / name).open("xb") as copy:
                shutil.copyfileobj(original, copy, files.CHUNK)
        (folder / name).chmod(0o644)
