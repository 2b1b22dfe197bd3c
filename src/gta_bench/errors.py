"""The exception tree: every failure that is reported to a user, not traced as a bug.

GtaError                 reported in one line: what happened, where, and the next step
├── UsageError           exit 2: contradictory arguments, or an unknown name
├── ConfigError          exit 2: gta.toml has a wrong key, type or name
├── EnvironmentProblem   exit 3: something is missing on this machine
│   ├── RequestRefused   exit 3: a model's provider rejected our request
│   └── WorkspaceDamaged exit 3: a folder of a task's workspace that is gone or was replaced
├── DatasetError         exit 3: benchmark files that cannot be read as records
├── FetchError           exit 3: a download that failed, or an archive that must not be used
├── RunError             exit 2: a run folder that is not what the command needs
├── StoreError           exit 3: a store of runs that cannot be reached or written
├── WorkFailed           exit 1: a run or a worker that ended early; or the exit code of its cause
├── ToolError            exit 1: shown to the agent and recorded; the run continues
│   ├── CallRefused      exit 1: a call of a tool that is not offered, or with wrong arguments
│   ├── ConfinedError    exit 1: code or a program that failed or was stopped in the jail
│   └── InjectedFault    exit 1: a failure that a control condition caused on purpose
├── ToolServerFailure    exit 3: a tool server that does not respond; the unit fails
├── EvidenceFailed       exit 3: a file that this machine cannot show to a judge
└── ToolUnavailable      exit 3: a tool that this machine cannot offer, why, and how to fix it
    ├── NotInstalled     exit 3: a package or program that is not installed
    ├── NotOnTape        exit 3: a call that the replayed tape has no reply for
    └── NoReferenceReply exit 3: a call of the reference that has no reply in it
"""

import difflib
from collections.abc import Iterator, Sequence
from typing import Literal

ConfinedCause = Literal[
    "error", "timeout", "memory", "disk", "output", "killed", "crashed", "cancelled"
]
RefusalCause = Literal["tool", "arguments"]

# The exit code of an interrupted command, as in shells.
INTERRUPTED = 130

_WRAPPERS = ("ModelGenerateError", "RetryError")
_SHOWN = 300
# The end of the note on a unit that a limit of the run prevented from starting.
NOT_BEGUN = "this unit did not begin."
# How the evaluation engine records a unit that was running when the run was interrupted.
_CANCELLED = ("CancelledError(", "Cancelled(")


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun; pass the plural if it is not formed with an s.

    >>> format_count(1, "task"), format_count(2290, "task"), format_count(2, "leaf", "leaves")
    ('1 task', '2,290 tasks', '2 leaves')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def suggest_name(name: str, known: Sequence[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest known one, or a period.

    >>> suggest_name("demmo", ["demo", "data"])
    "; did you mean 'demo'?"
    """
    found = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else "."


def iter_causes(exc: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and its causes, without the engine's wrappers, which quote the prompt."""
    while exc is not None:
        if type(exc).__name__ not in _WRAPPERS or not (exc.__cause__ or exc.__context__):
            yield exc
        exc = exc.__cause__ or exc.__context__


def describe_fault(raised: BaseException) -> str:
    """Return the type and the first line of what a model's provider raised."""
    found = next(iter_causes(raised))
    lines = str(found).strip().splitlines() or [""]
    return f"{type(found).__name__}: {lines[0][:_SHOWN]}"


def find_status(raised: BaseException) -> int | None:
    """Return the HTTP status of an exception or of its causes; None if no server sent one."""
    for exc in iter_causes(raised):
        for name in ("status_code", "code"):
            value = getattr(exc, name, None)
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def is_stop_note(noted: str) -> bool:
    """Check whether a unit did not start or was interrupted, neither of which is a failure."""
    return noted.endswith(NOT_BEGUN) or noted.startswith(_CANCELLED)


def join_first(names: Sequence[str], most: int = 8) -> str:
    """Join the first names of a list, and say how many more there are.

    >>> join_first(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class GtaError(Exception):
    """A failure that is not a bug, with a message of one line.

    `exit_code` is the exit code of the command.

    >>> import gta_bench
    >>> try:
    ...     gta_bench.load("no-such-folder")
    ... except gta_bench.GtaError as error:
    ...     error.exit_code
    3
    """

    exit_code = 1

    @property
    def message(self) -> str:
        """The message, under the name that the evaluation engine looks for."""
        return str(self)


class UsageError(GtaError):
    """Arguments that contradict each other or name something unknown."""

    exit_code = 2


class ConfigError(GtaError):
    """`gta.toml` cannot be used; the message names the file and the key."""

    exit_code = 2


class EnvironmentProblem(GtaError):
    """Something is missing on this machine; the message says how to fix it."""

    exit_code = 3


class RequestRefused(EnvironmentProblem):
    """A model's provider rejected our request, which never counts against the model.

    The cause is a wrong option or a bug in gta-bench.
    """


class WorkspaceDamaged(EnvironmentProblem):
    """A folder of a task's workspace is gone or was replaced, as a harness can do to its own."""


class DatasetError(GtaError):
    """Benchmark files that cannot be read as records, with the file, task and field."""

    exit_code = 3

    def __init__(
        self, problem: str, *, file: str, task: str | None = None, field: str | None = None
    ) -> None:
        self.problem = problem
        self.file = file
        self.task = task
        self.field = field
        location = [file]
        if task is not None:
            location.append(f"task {task!r}")
        if field is not None:
            location.append(f"field {field!r}")
        super().__init__(f"{', '.join(location)}: {problem}")


class FetchError(GtaError):
    """A download that failed, or an archive that is not what it should be."""

    exit_code = 3


class RunError(GtaError):
    """A folder that is not a run, belongs to another run, or lacks an earlier result."""

    exit_code = 2


class StoreError(GtaError):
    """A store that cannot be reached or written; the message says how to continue."""

    exit_code = 3


class WorkFailed(GtaError):
    """Work that ended early; the message has the cause and says how to continue."""

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        self.exit_code = exit_code
        super().__init__(message)


class ToolError(GtaError):
    """A tool call that failed for a reason that the agent can act on; shown as an error."""


class CallRefused(ToolError):
    """A call that was not made, because of the tool's name or because of the arguments."""

    def __init__(self, message: str, *, cause: RefusalCause) -> None:
        self.cause = cause
        super().__init__(message)


class ConfinedError(ToolError):
    """Code or a program that failed or was stopped in the jail that `jail` names.

    `error`: the code raised. `timeout`, `memory`, `disk`, `output`: it reached that limit.
    `killed`, `crashed`: it ended without a result. `cancelled`: its caller stopped waiting. A
    `busy` one used a processor nearly all the time that it had, so this machine was not too slow.
    """

    def __init__(
        self, message: str, *, cause: ConfinedCause, jail: str, seconds: float, busy: bool = False
    ) -> None:
        self.cause = cause
        self.busy = busy
        self.jail = jail
        self.seconds = seconds
        super().__init__(message)


class ToolServerFailure(GtaError):
    """A tool server that cannot be reached or closed the connection; hidden from the agent.

    The unit stays unscored, and the same command runs it again.
    """

    exit_code = 3


class InjectedFault(ToolError):
    """A transient failure that a control condition caused; no tool was called."""


class ToolUnavailable(GtaError):
    """Something that a tool needs is missing: `reason` says what, `fix` how to get it."""

    exit_code = 3

    def __init__(self, reason: str, *, fix: str) -> None:
        self.reason = reason
        self.fix = fix
        super().__init__(f"{reason} {fix}")


class NotInstalled(ToolUnavailable):
    """A package or program that is not installed, or that cannot run in the jail."""


class EvidenceFailed(GtaError):
    """Files that this machine cannot read or render, so that nothing can be scored."""

    exit_code = 3


class NotOnTape(ToolUnavailable):
    """A call without a recorded reply. `nearest`, the nearest recorded call, is for the user only.

    The agent must not see `nearest`, which may be the reference's own call and give the answer
    away. The message does not mention a tape, because the agent must not know that there is one.
    """

    def __init__(self, call: str, *, nearest: str) -> None:
        self.nearest = nearest
        super().__init__(f"{call} gave no reply.", fix="Make another call.")


class NoReferenceReply(ToolUnavailable):
    """A call that the reference makes, too, but without a reply in its dialogue."""
