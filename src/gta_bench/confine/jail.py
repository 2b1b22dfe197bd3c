"""Run foreign code in a jail: Python that a model wrote, and programs that read foreign files.

What comes out of the jail is not trusted. A snippet can forge its reply, so a reply is only ever
text, bytes or an error message. Which jail was used, how long the job took and how it ended are
observed from outside.
"""

import asyncio
import base64
import binascii
import json
import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import NamedTuple, NoReturn, Self, TypeVar

from pydantic import ConfigDict, ValidationError

from gta_bench.confine import bubblewrap, files, process, walls
from gta_bench.confine.inside.protocol import NOT_STARTED, READY, SnippetRequest
from gta_bench.confine.limits import (
    MIB,
    JailKind,
    JailLimits,
    ProgramResult,
    Report,
    SnippetResult,
)
from gta_bench.confine.names import is_plain, quote_foreign
from gta_bench.confine.process import EndedProcess
from gta_bench.confine.systems import require_linux
from gta_bench.confine.walls import Job, Places, Python
from gta_bench.errors import ConfinedCause, ConfinedError, ToolError, ToolUnavailable
from gta_bench.records.base import Record

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Argv = Sequence[str] | Callable[[Places], Sequence[str]]

# The simplest driver: the code defines `solution()`, whose value is the reply.
CALL_SOLUTION = """
def prepare():
    return {}

def finish(names):
    if not callable(names.get("solution")):
        raise NameError("the code must define a function `solution()`")
    return str(names["solution"]())
"""
CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGSYS", "SIGTRAP")
SHOWN_STDERR = 300
# The part of its time that a busy process uses a processor.
BUSY = 0.8
DOCTOR = "`gta doctor` shows what the jail needs."


class Jail:
    """Runs jobs in one kind of jail, at most `slots` at a time; further jobs wait.

    Get one from `find_jail`, which tests that this kind works here. The methods never block the
    event loop; canceling a call kills its process.
    """

    def __init__(
        self,
        kind: JailKind,
        *,
        slots: int = 4,
        python: Python | None = None,
        temporary: Path | None = None,
    ) -> None:
        require_linux()
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
        """Wait for running jobs, then stop the threads."""
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
        """Run Python that a model wrote and return its result, or raise ConfinedError.

        `driver` is trusted source with `prepare() -> dict` (names for the code; imports and
        anything else that needs more rights) and `finish(names) -> str | bytes` (the reply).
        `files` are written to the scratch folder, the current one, before anything starts.
        """
        contents = {
            name: base64.b64encode(data).decode("ascii") for name, data in (files or {}).items()
        }
        request: SnippetRequest = {"driver": driver, "code": code, "files": contents}

        def run(cancelled: threading.Event) -> SnippetResult:
            with self._open_job(limits) as job:
                ended = self._run(job, json.dumps(request).encode(), cancelled)
                case = _check_end(ended, kind=self.kind, limits=job.limits, label=label)
                printed = _foreign_stderr(ended).decode("utf-8", "replace")
                value = _read_reply(ended.stdout, case)
                return SnippetResult(value=value, printed=printed, report=case.report)

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

        `inputs` are read-only under their plain names in `Places.inputs` (`../inputs` from the
        current folder); files that the program leaves in the current folder are returned as bytes.
        `argv` can be a function of `Places` if the command needs absolute paths. `readable` adds
        folders of the host under their own paths, such as a program's settings.
        """
        label = PurePath(argv[0] if isinstance(argv, Sequence) else "The program").name

        def run(cancelled: threading.Event) -> ProgramResult:
            with self._open_job(limits) as job:
                _stage(inputs or {}, job.folder / "inputs")
                places = walls.find_places(self.kind, job)
                job = replace(
                    job,
                    argv=_normalize(argv if isinstance(argv, Sequence) else argv(places)),
                    environment=environment or {},
                    readable=[str(path) for path in readable],
                    forks=allow_fork,
                )
                ended = self._run(job, stdin, cancelled)
                case = _check_end(ended, kind=self.kind, limits=job.limits, label=label)
                return _program_result(ended, job, case)

        try:
            return await self._in_thread(run)
        except NeverBegan as exc:
            # Seen on a machine with a load of 26, and not since.
            logger.warning("%s Trying once more.", exc.reason)
            return await self._in_thread(run)

    def _run(self, job: Job, stdin: bytes, cancelled: threading.Event) -> EndedProcess:
        limits = job.limits
        walled, is_snippet = self.kind == "bubblewrap", job.argv is None
        bounds = process.ProcessBounds(
            wall_seconds=limits.wall_seconds,
            start_seconds=limits.start_seconds,
            ready=READY,
            stdout_bytes=limits.reply_bytes if is_snippet else limits.output_bytes,
            stderr_bytes=limits.output_bytes,
            disk_is_full=None if walled and is_snippet else partial(_is_full, job),
            cancelled=cancelled,
        )
        try:
            with ExitStack() as stack:
                forks = bubblewrap.open_filter_file(forks=job.forks)
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
            problem = f"The jail cannot start {exc.filename!r}: {exc.strerror}."
            raise ToolUnavailable(problem, fix=DOCTOR) from exc

    @contextmanager
    def _open_job(self, limits: JailLimits | None) -> Iterator[Job]:
        """A job with a new folder, which is removed afterwards whatever the job did in it."""
        user = bubblewrap.choose_job_user(self.kind)
        folder = Path(tempfile.mkdtemp(prefix="gta-jail-", dir=self._temporary))
        try:
            for part in ("inputs", "work", "scratch"):
                (folder / part).mkdir()
            for part in ("inputs", "work"):  # other users enter these, whatever our umask is
                (folder / part).chmod(0o755)
            for owned in (folder, folder / "work", folder / "scratch"):
                files.give(owned, user)
            yield Job(folder=folder, limits=limits or JailLimits(), user=user)
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


class NeverBegan(ToolUnavailable):
    """The jail ended without output before it was ready, so no foreign code has run."""


class _SnippetReply(Record):
    """The line of JSON that a snippet replies with; exactly one field is set."""

    model_config = ConfigDict(strict=True)

    text: str | None = None
    bytes: str | None = None
    error: str | None = None
    memory: str | None = None
    large: str | None = None
    setup: str | None = None


class _Case(NamedTuple):
    """Everything an error message needs."""

    label: str
    limits: JailLimits
    report: Report

    def fail(self, cause: ConfinedCause, problem: str, *, busy: bool = False) -> NoReturn:
        raise ConfinedError(
            f"{self.label} {problem}",
            cause=cause,
            jail=self.report.jail,
            seconds=self.report.seconds,
            busy=busy,
        )


def _stage(inputs: Mapping[str, bytes | Path], folder: Path) -> None:
    """Copy the inputs, so that a later change of the original cannot bypass earlier checks."""
    for name, source in inputs.items():
        if not is_plain(name):
            raise ToolError(f"{quote_foreign(name)} is not a plain file name.")
        if isinstance(source, bytes):
            (folder / name).write_bytes(source)
        else:
            with files.open_regular(source) as original, (folder / name).open("xb") as copy:
                shutil.copyfileobj(original, copy, files.CHUNK)
        (folder / name).chmod(0o644)


def _is_full(job: Job, pid: int) -> bool:
    """Whether the job exceeds its disk limits; deleted files that are still open count."""
    limits = job.limits
    used = [
        files.usage(job.folder / part, most_bytes=limits.disk_bytes, most_files=limits.disk_files)
        for part in ("work", "scratch")
    ]
    devices = {(job.folder / "work").stat().st_dev}
    size = sum(part.bytes for part in used)
    size += process.count_deleted_bytes(process.list_descendants(pid), devices)
    return size > limits.disk_bytes or sum(part.files for part in used) > limits.disk_files


def _check_end(ended: EndedProcess, *, kind: JailKind, limits: JailLimits, label: str) -> _Case:
    """The case of foreign code that ended by itself; raises if it never ran or was stopped."""
    status = ended.status
    # Bubblewrap reports signals as shells do.
    if kind == "bubblewrap" and 128 < status <= 128 + signal.NSIG:
        status = 128 - status
    case = _Case(label, limits, Report(jail=kind, exit_status=status, seconds=ended.seconds))
    if READY not in ended.stderr and ended.stopped != "cancelled":
        _raise_not_ready(ended, limits)
    if ended.stopped is not None:
        reasons: dict[process.ProcessStop, str] = {
            "timeout": f"was stopped after {limits.wall_seconds:g} seconds.",
            "output": f"was stopped because it printed more than {_size(limits.output_bytes)}.",
            "disk": f"was stopped because it wrote more than {_size(limits.disk_bytes)} or "
            f"{limits.disk_files} files, or made a folder that cannot be read.",
            "cancelled": "was stopped because its result is no longer needed.",
        }
        busy = ended.processor_seconds >= BUSY * limits.wall_seconds
        case.fail(ended.stopped, reasons[ended.stopped], busy=busy)
    if status < 0:
        _raise_signal(-status, case)
    return case


def _raise_not_ready(ended: EndedProcess, limits: JailLimits) -> NoReturn:
    """Raise what is not the foreign code's fault, because it never ran."""
    if ended.stopped is not None:
        problem = f"The jail was not ready within {limits.start_seconds:g} s."
        raise ToolUnavailable(problem, fix=DOCTOR)
    try:
        reason = _SnippetReply.model_validate_json(ended.stdout).setup
    except ValidationError:
        reason = None
    if reason is None and not ended.stderr:
        raise NeverBegan(f"The jail failed with status {ended.status}.", fix=DOCTOR)
    raise ToolUnavailable(f"The jail failed: {reason or _tail(ended.stderr)}.", fix=DOCTOR)


def _raise_signal(number: int, case: _Case) -> NoReturn:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if name == "SIGXCPU":
        seconds = case.limits.cpu_seconds
        case.fail("timeout", f"was stopped after {seconds} seconds of processor time.", busy=True)
    if name == "SIGXFSZ":
        most = _size(case.limits.file_bytes)
        case.fail("disk", f"was stopped because it wrote a file larger than {most}.")
    if name in CRASHES:
        case.fail("crashed", f"crashed ({name}).")
    case.fail("killed", f"was killed ({name}); it may have used too much time or memory.")


def _read_reply(stdout: bytes, case: _Case) -> str | bytes:
    """The value that a snippet replied with; anything else is raised as its error."""
    if not stdout:
        status = case.report.exit_status
        case.fail("crashed", f"ended without a result (exit status {status}).")
    try:
        reply = _SnippetReply.model_validate_json(stdout)
    except ValidationError:
        case.fail("crashed", "gave a reply that cannot be read.")
    if len(reply.model_fields_set) != 1 or case.report.exit_status != 0:
        case.fail("crashed", "gave a reply that contradicts itself.")
    if reply.text is not None:
        return reply.text
    if reply.bytes is not None:
        try:
            return binascii.a2b_base64(reply.bytes, strict_mode=True)
        except (binascii.Error, ValueError):
            case.fail("crashed", "gave a reply that cannot be read.")
    if reply.memory is not None:
        most = case.limits.memory_bytes
        bound = "" if most is None else f" of {_size(most)}"
        case.fail("memory", f"needed more memory than its limit{bound}.")
    if reply.large is not None:
        most_reply = _size(case.limits.reply_bytes)
        case.fail("output", f"gave a result that is larger than {most_reply}.")
    case.fail("error", f"failed: {reply.error}" if reply.error else "failed without a message.")


def _normalize(argv: Sequence[str]) -> list[str]:
    """The command without `..` in the path of its program, which no jail would find."""
    program = os.path.normpath(argv[0]) if Path(argv[0]).is_absolute() else argv[0]
    return [program, *argv[1:]]


def _program_result(ended: EndedProcess, job: Job, case: _Case) -> ProgramResult:
    """The output of a program and the regular files that it left; no link is followed."""
    folder = job.folder / "work"
    if case.report.exit_status == NOT_STARTED:
        program = PurePath((job.argv or [case.label])[0]).name
        raise ToolUnavailable(
            f"{program} could not be started: {_tail(_foreign_stderr(ended))}.",
            fix=f"Install {program}; `gta doctor` names the package.",
        )
    limits = case.limits
    found: dict[str, bytes] = {}
    skipped: list[str] = []
    room = limits.disk_bytes
    for number, entry in enumerate(files.walk(folder)):
        name = Path(entry.path).relative_to(folder).as_posix()
        if number >= limits.disk_files:
            case.fail("disk", f"left more than {limits.disk_files} files.")
        if entry.is_dir(follow_symlinks=False):
            continue
        try:
            with files.open_regular(entry.path) as stream:
                data = files.read_bounded(stream, room)
        except OSError:
            skipped.append(name)
            continue
        if data is None:
            case.fail("disk", f"left more than {_size(limits.disk_bytes)} of files.")
        room -= len(data)
        found[name] = data
    return ProgramResult(
        stdout=ended.stdout,
        stderr=_foreign_stderr(ended),
        files=dict(sorted(found.items())),
        skipped=tuple(sorted(skipped)),
        report=case.report,
    )


def _foreign_stderr(ended: EndedProcess) -> bytes:
    """What the foreign code wrote to stderr; it starts after the first `READY` line."""
    return ended.stderr.partition(READY)[2]


def _tail(stderr: bytes) -> str:
    return stderr.decode("utf-8", "replace").strip()[-SHOWN_STDERR:] or "no message"


def _size(number: int) -> str:
    return f"{number / MIB:g} MiB"
