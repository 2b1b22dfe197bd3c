"""What came out of the jail: a result, or a typed error that says which limit was hit.

Nothing here believes the far side. A reply may be forged: all it can be is a text, bytes or the
words of an error. Which jail it was, how long it took and how it ended is seen from outside.
"""

import binascii
import signal
from pathlib import Path
from typing import NamedTuple, NoReturn

from pydantic import ConfigDict, ValidationError

from gta_bench.confine import files
from gta_bench.confine.inside.protocol import NOT_STARTED, READY
from gta_bench.confine.limits import MIB, JailKind, JailLimits, Report, SnippetResult
from gta_bench.confine.process import EndedProcess
from gta_bench.errors import ConfinedCause, ConfinedError, ToolUnavailable
from gta_bench.records.base import Record

CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGSYS", "SIGTRAP")
SHOWN_STDERR = 300


class SnippetReply(Record):
    """The one line of JSON that a snippet answers with; exactly one field is set."""

    model_config = ConfigDict(strict=True)

    text: str | None = None
    bytes: str | None = None
    error: str | None = None
    memory: str | None = None
    large: str | None = None
    setup: str | None = None


class Collected(NamedTuple):
    """What lay in a folder."""

    files: dict[str, bytes]
    skipped: tuple[str, ...]


class _Case(NamedTuple):
    """Everything an error message needs."""

    label: str
    limits: JailLimits
    report: Report

    def fail(self, cause: ConfinedCause, words: str) -> NoReturn:
        raise ConfinedError(
            f"{self.label} {words}",
            cause=cause,
            jail=self.report.jail,
            seconds=self.report.seconds,
        )


def snippet_result(
    ended: EndedProcess, *, kind: JailKind, limits: JailLimits, label: str
) -> SnippetResult:
    """The value of a snippet, or the error that it came to."""
    case = _Case(label, limits, _report(ended, kind))
    _require_ready(ended, case)
    _refuse_stopped(ended, case)
    _refuse_signals(case)
    value = _value(_parse(ended.stdout, case), case)
    printed = after_ready(ended.stderr).decode("utf-8", "replace")
    return SnippetResult(value=value, printed=printed, report=case.report)


def check_program(ended: EndedProcess, *, kind: JailKind, limits: JailLimits, label: str) -> Report:
    """The report of a program that ended by itself; anything else is raised."""
    case = _Case(label, limits, _report(ended, kind))
    _require_ready(ended, case)
    _refuse_stopped(ended, case)
    _refuse_signals(case)
    if case.report.exit_status == NOT_STARTED:
        raise ToolUnavailable(
            f"{label} could not be started: {_tail(after_ready(ended.stderr))}.",
            mend=f"Install {label}; `gta doctor` names the package.",
        )
    return case.report


def collect(folder: Path, report: Report, *, limits: JailLimits, label: str) -> Collected:
    """The regular files that a program left, read without following anything."""
    case = _Case(label, limits, report)
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
    return Collected(dict(sorted(found.items())), tuple(sorted(skipped)))


class NeverBegan(ToolUnavailable):
    """The jail ended without a word before it was ready, so nothing foreign has run."""


def after_ready(stderr: bytes) -> bytes:
    """What the foreign code wrote; before the first such line it had not begun."""
    return stderr.partition(READY)[2]


def _report(ended: EndedProcess, kind: JailKind) -> Report:
    status = ended.status
    # Bubblewrap reports signals as shells do.
    if kind == "bubblewrap" and 128 < status <= 128 + signal.NSIG:
        status = 128 - status
    return Report(jail=kind, exit_status=status, seconds=ended.seconds)


def _require_ready(ended: EndedProcess, case: _Case) -> None:
    """Raise what is not the foreign code's fault, because it never ran."""
    if READY in ended.stderr or ended.stopped == "cancelled":
        return
    mend = "`gta doctor` shows what the jail needs."
    if ended.stopped is not None:
        seconds = f"{case.limits.start_seconds:g} s"
        raise ToolUnavailable(f"The jail was not ready within {seconds}.", mend=mend)
    try:
        reason = SnippetReply.model_validate_json(ended.stdout).setup
    except ValidationError:
        reason = None
    if reason is None and not ended.stderr:
        raise NeverBegan(f"The jail failed with status {ended.status}.", mend=mend)
    raise ToolUnavailable(f"The jail failed: {reason or _tail(ended.stderr)}.", mend=mend)


def _refuse_stopped(ended: EndedProcess, case: _Case) -> None:
    limits = case.limits
    if ended.stopped == "timeout":
        case.fail("timeout", f"was stopped after {limits.wall_seconds:g} seconds.")
    if ended.stopped == "output":
        most = _size(limits.output_bytes)
        case.fail("output", f"was stopped because it printed more than {most}.")
    if ended.stopped == "disk":
        most = f"{_size(limits.disk_bytes)} or {limits.disk_files} files"
        words = f"wrote more than {most}, or made a folder that cannot be looked into"
        case.fail("disk", f"was stopped because it {words}.")
    if ended.stopped == "cancelled":
        case.fail("cancelled", "was stopped because its result is not wanted any more.")


def _refuse_signals(case: _Case) -> None:
    status = case.report.exit_status
    if status >= 0:
        return
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    if name == "SIGXCPU":
        seconds = case.limits.cpu_seconds
        case.fail("timeout", f"was stopped after {seconds} seconds of processor time.")
    if name == "SIGXFSZ":
        most = _size(case.limits.file_bytes)
        case.fail("disk", f"was stopped because it wrote a file larger than {most}.")
    if name in CRASHES:
        case.fail("crashed", f"crashed ({name}).")
    case.fail("killed", f"was killed ({name}); it may have used too much time or memory.")


def _parse(reply: bytes, case: _Case) -> SnippetReply:
    if not reply:
        status = case.report.exit_status
        case.fail("crashed", f"ended without a result (exit status {status}).")
    try:
        parsed = SnippetReply.model_validate_json(reply)
    except ValidationError:
        case.fail("crashed", "gave a reply that cannot be read.")
    if len(parsed.model_fields_set) != 1 or case.report.exit_status != 0:
        case.fail("crashed", "gave a reply that contradicts itself.")
    return parsed


def _value(reply: SnippetReply, case: _Case) -> str | bytes:
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


def _tail(stderr: bytes) -> str:
    return stderr.decode("utf-8", "replace").strip()[-SHOWN_STDERR:] or "no message"


def _size(number: int) -> str:
    return f"{number / MIB:g} MiB"
