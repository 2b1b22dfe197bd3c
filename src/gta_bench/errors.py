"""The exception tree: every failure that is told to a user rather than traced as a bug.

GtaError                 told to the user in one line: what, where, what next
├── UsageError           exit 2: the command cannot mean anything
├── ConfigError          exit 2: gta.toml has a wrong key, type or name
├── EnvironmentProblem   exit 3: something this machine lacks
│   └── RequestRefused   exit 3: a request of ours that a model's provider does not take
├── DatasetError         exit 3: benchmark files that cannot become records
├── FetchError           exit 3: a download or an archive that must not be used
├── RunError             exit 2: a run directory that is not what the command needs
├── StoreError           exit 3: a store of runs that cannot be reached or written
├── WorkFailed           exit 1: work elsewhere, or a run, that ended early; or as its cause does
├── ToolError            exit 1: told to the agent and recorded; the run goes on
│   ├── ConfinedError    exit 1: foreign code or a program that failed or was stopped in the jail
│   └── InjectedFault    exit 1: a failure that a control made on purpose
├── ToolServerFailure    exit 3: a tool server that does not answer; the unit fails
├── EvidenceFailed       exit 3: a file that this machine cannot show to a judge, why, what next
└── ToolUnavailable      exit 3: a tool this machine cannot offer, why, and how to mend it
    ├── NotInstalled     exit 3: a package or program that is not installed
    └── NotOnTape        exit 3: a call that the replayed tape has no reply to
"""

import difflib
from collections.abc import Iterator, Sequence
from typing import Literal

ConfinedCause = Literal[
    "error", "timeout", "memory", "disk", "output", "killed", "crashed", "cancelled"
]


# What a command that was interrupted ends with, as shells do.
INTERRUPTED = 130

_WRAPPERS = ("ModelGenerateError", "RetryError")
_SHOWN = 300
# The end of what is noted of a unit that a limit of the run kept from beginning.
NOT_BEGUN = "this unit did not begin."
# What the evaluation engine notes of a unit that was running when the run was interrupted.
_CANCELLED = ("CancelledError(", "Cancelled(")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: `1 task`, `2,290 tasks`; the plural where it is not with an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def near(name: str, known: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: the known one that was probably meant."""
    found = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else "."


def raised_chain(exc: BaseException | None) -> Iterator[BaseException]:
    """What was raised and what caused it, without the engine's wrappers: those quote the prompt."""
    while exc is not None:
        if type(exc).__name__ not in _WRAPPERS or not (exc.__cause__ or exc.__context__):
            yield exc
        exc = exc.__cause__ or exc.__context__


def fault_words(raised: BaseException) -> str:
    """The kind and the first line of what a model's provider raised."""
    told = next(raised_chain(raised))
    lines = str(told).strip().splitlines() or [""]
    return f"{type(told).__name__}: {lines[0][:_SHOWN]}"


def fault_status(raised: BaseException) -> int | None:
    """The HTTP status of an exception or of what caused it; None where no server gave one."""
    found = map(_status, raised_chain(raised))
    return next((status for status in found if status is not None), None)


def _status(exc: BaseException) -> int | None:
    for name in ("status_code", "code"):
        value = getattr(exc, name, None)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None


def was_stopped(noted: str) -> bool:
    """Whether a unit did not begin or was interrupted; neither is a failure."""
    return noted.endswith(NOT_BEGUN) or noted.startswith(_CANCELLED)


def few(names: Sequence[str], most: int = 8) -> str:
    """The first names of a list, and how many there are beside."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class GtaError(Exception):
    """Told to the user in one line; `exit_code` is what the command ends with."""

    exit_code = 1

    @property
    def message(self) -> str:
        """The line itself, by the name that the evaluation engine looks for."""
        return str(self)


class UsageError(GtaError):
    """The command's arguments contradict each other or name something unknown."""

    exit_code = 2


class ConfigError(GtaError):
    """`gta.toml` cannot be used; the message names the file and the key."""

    exit_code = 2


class EnvironmentProblem(GtaError):
    """This machine lacks something; the message says how to mend it."""

    exit_code = 3


class RequestRefused(EnvironmentProblem):
    """A model's provider refuses what we sent: a wrong option, or a bug of ours; never a score."""


class DatasetError(GtaError):
    """Benchmark files that cannot become records, with the place of the fault."""

    exit_code = 3

    def __init__(
        self, problem: str, *, file: str, task: str | None = None, field: str | None = None
    ) -> None:
        self.problem = problem
        self.file = file
        self.task = task
        self.field = field
        place = [file]
        if task is not None:
            place.append(f"task {task!r}")
        if field is not None:
            place.append(f"field {field!r}")
        super().__init__(f"{', '.join(place)}: {problem}")


class FetchError(GtaError):
    """A download that failed, or an archive that is not what it should be."""

    exit_code = 3


class RunError(GtaError):
    """A folder that is no run, another run's folder, or one that lacks a stage's result."""

    exit_code = 2


class StoreError(GtaError):
    """A store that does not answer or refuses; the message says what is safe and how to go on."""

    exit_code = 3


class WorkFailed(GtaError):
    """Work that ended before its end; what is safe and how to go on is said with the cause."""

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        self.exit_code = exit_code
        super().__init__(message)


class ToolError(GtaError):
    """A tool call that failed for a reason the agent can act on; never posing as a result."""


class ConfinedError(ToolError):
    """Code or a program in the jail that failed or was stopped; `jail` says which jail it was.

    `error`: the code raised. `timeout`, `memory`, `disk`, `output`: it hit that limit.
    `killed`, `crashed`: it ended without a result. `cancelled`: nobody waited for it any more.
    """

    def __init__(self, message: str, *, cause: ConfinedCause, jail: str, seconds: float) -> None:
        self.cause = cause
        self.jail = jail
        self.seconds = seconds
        super().__init__(message)


class ToolServerFailure(GtaError):
    """A tool server that cannot be reached or broke off; never told to the agent.

    The unit stays unscored, and the same command runs it again.
    """

    exit_code = 3


class InjectedFault(ToolError):
    """A transient failure that a control made; no tool was called."""


class ToolUnavailable(GtaError):
    """Something a tool needs is missing here: `reason` says what, `mend` how to get it."""

    exit_code = 3

    def __init__(self, reason: str, *, mend: str) -> None:
        self.reason = reason
        self.mend = mend
        super().__init__(f"{reason} {mend}")


class NotInstalled(ToolUnavailable):
    """A package or program that is not installed, or a jail that it cannot run in."""


class EvidenceFailed(GtaError):
    """Files that this machine cannot read or render: nothing is scored without them."""

    exit_code = 3


class NotOnTape(ToolUnavailable):
    """A call without a recorded reply. `nearest` is for the user only.

    The recorded call may be the reference's own, and an agent that is told it is told the answer.
    Nor do its words speak of a recording: a measured system does not know that there is one.
    """

    def __init__(self, call: str, *, nearest: str) -> None:
        self.nearest = nearest
        super().__init__(f"{call} gave no reply.", mend="Make another call.")
