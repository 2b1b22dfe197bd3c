"""The harness that a run measures: its options, its limits, and the plan of its cell.

The plan says what a cell shows of this machine, and which command opens it.
"""

import json
import re
import shlex
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from gta_bench.confine import bubblewrap, network, walls
from gta_bench.confine.bubblewrap import NOBODY, Bind, Walls
from gta_bench.confine.commands import locate
from gta_bench.confine.inside.protocol import Orders
from gta_bench.confine.limits import MIB
from gta_bench.confine.walls import Python
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import UsageError
from gta_bench.records.run import Limits, Network
from gta_bench.redaction import PLAIN_NAME, find_text_secrets, mask_text
from gta_bench.settings import read_key, read_variables

HarnessKind = Literal["command", "named", "bridged"]
SECRET_SOURCE = "harness"  # names the command as the source of a secret
PLACEHOLDERS = ("{task_file}", "{workspace}")
UNCONFINED = (
    "The agent ran unconfined in the process of the run; steps with its own tools are recorded as "
    "it reports them."
)
OPEN_NETWORK = (
    "The harness had the open network, through pasta and only to outside addresses: its results "
    "are not comparable with others."
)
StopCause = Literal["timeout", "cost", "output", "disk", "memory", "processes"]
WORKSPACE, TASK, SOCKETS, HOME = "/workspace", "/task", "/run/gta", "/home/harness"
INSIDE = (walls.INSIDE, "gta_bench/harnesses/inside")
SYSTEM_NAMES = ("/etc/os-release", "/etc/debian_version")  # Inspect asks which system it is


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLimits:
    """The limits of a harness on one task; exceeding one stops it and is recorded by name.

    `cost_usd` limits the calls of the run's model, `disk_bytes` and `disk_files` limit workspace
    and outputs together, and `memory_bytes` limits all processes together.
    """

    seconds: float = 1800.0
    cost_usd: float | None = None
    output_bytes: int = MIB
    disk_bytes: int = 256 * MIB
    disk_files: int = 2000
    memory_bytes: int = 8192 * MIB
    processes: int = 512

    def describe(self, stop: StopCause) -> str:
        """Describe how the harness exceeded a limit."""
        return {
            "timeout": f"it had not ended after {self.seconds:g} seconds",
            "cost": f"it cost more than ${self.cost_usd or 0:g}",
            "output": f"it printed more than {self.output_bytes} bytes",
            "disk": f"it wrote more than {self.disk_bytes} bytes or {self.disk_files} files, or "
            "made a folder that cannot be read",
            "memory": f"it used more than {self.memory_bytes} bytes of memory",
            "processes": f"it ran more than {self.processes} processes",
        }[stop]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a cell shows of this machine.

    `inputs` and `outputs` are folders of the host. `readable` appears under the same paths, and
    `sockets` are names of Unix sockets, each of which gets a loopback port.
    """

    inputs: Path
    outputs: Path
    network: Network
    limits: CellLimits = CellLimits()
    readable: Sequence[Path] = ()
    sockets: Sequence[str] = ()
    search: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Harness:
    """A harness as given on the command line: a command, a name, or a Python function.

    `readable` are folders of this machine that it may read, and `variables` are the environment
    variables that it gets.
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
        """What readers of the results must know."""
        most = self.limits.cost_usd
        cost = "" if most is None else f" and ${most:g}"
        had = (f"The harness had {self.limits.seconds:g} s{cost} for each task.",)
        if self.kind == "bridged":
            return (*had, UNCONFINED)
        return (*had, OPEN_NETWORK) if self.network == "open" else had

    @property
    def bounds(self) -> Limits:
        """The limits for one task, for the manifest; a function has only time and cost limits."""
        if self.kind == "bridged":
            return Limits(seconds=self.limits.seconds, cost_usd=self.limits.cost_usd)
        return Limits(**asdict(self.limits))

    @property
    def secrets(self) -> dict[str, str]:
        """Secrets in its command and variables, by source; they must not be written anywhere."""
        own = [name for name in self.variables if not PLAIN_NAME.search(name)]
        return read_variables(own) | find_text_secrets(self.target, SECRET_SOURCE)

    @property
    def shown_target(self) -> str:
        """Its command without secrets."""
        return mask_text(self.target, SECRET_SOURCE)

    def plan_cell(
        self,
        workspace: Workspace,
        *,
        readable: Sequence[Path],
        search: Sequence[Path],
        sockets: Sequence[str] = (),
    ) -> Plan:
        """Plan its cell for one task; the program itself needs `readable` and `search`."""
        return Plan(
            inputs=workspace.root / "inputs",
            outputs=workspace.root / "outputs",
            network=self.network,
            limits=self.limits,
            readable=[*readable, *self.readable],
            search=search,
            sockets=sockets,
            environment={name: key for name in self.variables if (key := read_key(name))},
        )


def parse_command(text: str) -> list[str]:
    """Split a command into words; files outside the system's own get absolute paths."""
    try:
        words = shlex.split(text)
    except ValueError as exc:
        raise UsageError(f"--harness {text!r} is not a valid command: {exc}.") from exc
    if not words:
        raise UsageError('--harness needs a command, such as "my-agent {task_file} {workspace}".')
    for name in re.findall(r"(?<!\$)\{[a-z_]+\}", text):
        if name not in PLACEHOLDERS:
            known = " and ".join(PLACEHOLDERS)
            raise UsageError(f"--harness: unknown placeholder {name}. Use {known}.")
    located = locate(words)
    if located is None:
        raise UsageError(
            f"--harness: program {words[0]!r} not found; install it, or give its full path."
        )
    return located


def free_port() -> int:
    """Return a loopback port that is currently unused."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def make_own_files(user: int | None) -> dict[str, str]:
    """Return the files in /etc that replace this machine's accounts and names."""
    number = NOBODY if user is None else user
    return {
        "passwd": f"harness:x:{number}:{number}::{HOME}:/bin/sh\n",
        "group": f"harness:x:{number}:\n",
        "hosts": "127.0.0.1 localhost harness\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        "resolv.conf": f"nameserver {network.RESOLVER}\n",
    }


def make_environment(plan: Plan) -> dict[str, str]:
    """Return the environment of every command inside."""
    search = [str(folder) for folder in plan.search]
    return {
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "PATH": ":".join([*search, walls.ENVIRONMENT["PATH"]]),
        "TMPDIR": "/tmp",
        "USER": "harness",
        **plan.environment,
    }


def make_command(plan: Plan, folder: Path, *, user: int | None, filter_: int) -> list[str]:
    """Return the command that opens a cell whose own files are in `folder`."""
    python, disk = Python.current(), plan.limits.disk_bytes
    is_open = plan.network == "open"
    outside = network.CERTIFICATES if is_open else ()
    readable = dict.fromkeys((*map(Path, python.roots), *plan.readable))
    binds = [
        Bind(str(path), str(path))
        for path in readable
        if not any(parent in readable for parent in path.parents)
    ]
    binds += [Bind(name, name, optional=True) for name in (*SYSTEM_NAMES, *outside)]
    binds += [Bind(str(folder / "etc" / name), f"/etc/{name}") for name in make_own_files(user)]
    binds += [
        Bind(str(folder / "work"), WORKSPACE, writable=True),
        Bind(str(plan.inputs), f"{WORKSPACE}/inputs"),
        Bind(str(plan.outputs), f"{WORKSPACE}/outputs", writable=True),
        Bind(str(folder / "task"), TASK),
        Bind(str(folder / "sockets"), SOCKETS),
    ]
    built = Walls(
        name="harness",
        user=user,
        cwd=WORKSPACE,
        code=INSIDE,
        memory=dict.fromkeys(("/tmp", "/var/tmp", HOME), disk),
        binds=binds,
        shared_memory=disk,
        network=is_open,
    )
    boot = [python.executable, "-s", "-P", "-B", "-c", walls.BOOT, bubblewrap.CODE]
    return [*bubblewrap.build(built, filter_), *boot, json.dumps(_orders(plan, python, user))]


def _orders(plan: Plan, python: Python, user: int | None) -> Orders:
    """Return the orders for the jail's launcher, which becomes the cell's first process."""
    limits = plan.limits
    orders = {
        "sockets": [f"{SOCKETS}/{name}" for name in plan.sockets],
        "data_bytes": limits.memory_bytes,
    }
    program = f"{bubblewrap.CODE}/{INSIDE[1]}/cell.py"
    return {
        "user": user,
        "parent": None,
        "limits": {
            "cpu_seconds": int(limits.seconds) + 60,
            "memory_bytes": None,
            "file_bytes": limits.disk_bytes,
            "open_files": 4096,
            # Stops a fork bomb between two checks.
            "processes": 2 * limits.processes,
        },
        "landlock": None,
        "profile": None,  # bubblewrap has installed it
        "forks": True,
        "argv": [python.executable, "-I", "-B", program, json.dumps(orders)],
        "environment": make_environment(plan),
        "scratch": "/tmp",
        "reply_bytes": 0,
    }
