"""The exception tree: every failure that is told to a user rather than traced as a bug.

GtaError                 told to the user in one line: what, where, what next
├── UsageError           exit 2: the command cannot mean anything
├── ConfigError          exit 2: gta.toml has a wrong key, type or name
├── EnvironmentProblem   exit 3: something this machine lacks
├── DatasetError         exit 3: benchmark files that cannot become records
├── FetchError           exit 3: a download or an archive that must not be used
└── RunError             exit 2: a run directory that is not what the command needs
"""


class GtaError(Exception):
    """Told to the user in one line; `exit_code` is what the command ends with."""

    exit_code = 1


class UsageError(GtaError):
    """The command's arguments contradict each other or name something unknown."""

    exit_code = 2


class ConfigError(GtaError):
    """`gta.toml` cannot be used; the message names the file and the key."""

    exit_code = 2


class EnvironmentProblem(GtaError):
    """This machine lacks something; the message says how to mend it."""

    exit_code = 3


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
