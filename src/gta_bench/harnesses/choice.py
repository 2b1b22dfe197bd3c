"""Which harness a run measures, and what it may use."""

import re
import shlex
import shutil
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from gta_bench.confine.walls import ENVIRONMENT
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import UsageError
from gta_bench.harnesses.cell_plan import CellLimits, Plan
from gta_bench.records.run import Limits, Network
from gta_bench.redaction import PLAIN_NAME, mask_text, secrets_in_text
from gta_bench.settings import read_key, read_variables

HarnessKind = Literal["command", "named", "bridged"]
PLACE = "harness"  # where a secret of the command stands
# What is filled into a command.
PLACES = ("{task_file}", "{workspace}")
UNCONFINED = (
    "The agent ran unconfined in the process of the run; steps with tools of its own are as it "
    "states them."
)
OPEN_NETWORK = (
    "The harness had the open network, by pasta and to outside addresses alone: its results "
    "compare with no others."
)


@dataclass(frozen=True, kw_only=True)
class Harness:
    """A harness as the command line names it: a command, a name, or a Python function.

    `readable` are folders of this machine that it may read, `variables` what it gets of the
    environment.
    """

    kind: HarnessKind
    target: str
    version: str | None = None
    network: Network = "tools"
    limits: CellLimits = field(default_factory=CellLimits)
    readable: Sequence[Path] = ()
    variables: Sequence[str] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results must know."""
        most = self.limits.cost_usd
        cost = "" if most is None else f" and ${most:g}"
        had = (f"The harness had {self.limits.seconds:g} s{cost} for each task.",)
        if self.kind == "bridged":
            return (*had, UNCONFINED)
        if self.network == "open":
            return (*had, OPEN_NETWORK)
        return had

    @property
    def bounds(self) -> Limits:
        """What it may use on one task, for the manifest; time and cost alone bound a function."""
        if self.kind == "bridged":
            return Limits(seconds=self.limits.seconds, cost_usd=self.limits.cost_usd)
        return Limits(**asdict(self.limits))

    @property
    def secrets(self) -> dict[str, str]:
        """What of its command and its variables must not be written, with where it stands."""
        own = [name for name in self.variables if not PLAIN_NAME.search(name)]
        return read_variables(own) | secrets_in_text(self.target, PLACE)

    @property
    def shown_target(self) -> str:
        """Its command as it may be written."""
        return mask_text(self.target, PLACE)

    def cell(
        self,
        workspace: Workspace,
        *,
        readable: Sequence[Path],
        search: Sequence[Path],
        sockets: Sequence[str] = (),
    ) -> Plan:
        """Its cell on one task; `readable` and `search` are what the program itself needs."""
        keys = {name: read_key(name) for name in self.variables}
        return Plan(
            inputs=workspace.root / "inputs",
            outputs=workspace.root / "outputs",
            network=self.network,
            limits=self.limits,
            readable=[*readable, *self.readable],
            search=search,
            sockets=sockets,
            environment={name: key for name, key in keys.items() if key is not None},
        )


def parse_command(text: str) -> list[str]:
    """The words of a command; what is not the system's own gets its whole path."""
    try:
        words = shlex.split(text)
    except ValueError as exc:
        raise UsageError(f"--harness {text!r} cannot be read as a command: {exc}.") from exc
    if not words:
        raise UsageError('--harness needs a command, such as "my-agent {task_file} {workspace}".')
    for name in re.findall(r"(?<!\$)\{[a-z_]+\}", text):
        if name not in PLACES:
            raise UsageError(f"--harness has {name}; what is filled in is {' and '.join(PLACES)}.")
    if shutil.which(words[0], path=ENVIRONMENT["PATH"]) is not None:
        return [words[0], *(_absolute(word) for word in words[1:])]
    program = shutil.which(words[0])
    if program is None:
        raise UsageError(
            f"--harness: there is no program {words[0]!r} here; install it, or give its whole path."
        )
    return [str(Path(program).absolute()), *(_absolute(word) for word in words[1:])]


def shown_files(words: Sequence[str]) -> list[Path]:
    """What of this machine a command names, and must therefore see."""
    paths = [Path(word) for word in words if word.startswith("/")]
    found = [path for path in paths if path.exists() and not path.is_relative_to("/usr")]
    return [*found, *(path.resolve() for path in found if path.is_symlink())]


def _absolute(word: str) -> str:
    """A path from here as a whole one, for the command starts elsewhere; `run` is a mere word."""
    if word.startswith(("/", "-", "{")):
        return word
    path = Path(word)
    is_path = path.exists() if "/" in word else bool(path.suffix) and path.is_file()
    return str(path.absolute()) if is_path else word


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
