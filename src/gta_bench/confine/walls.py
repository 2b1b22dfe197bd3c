"""What stands where in each jail: paths, environment and the command that closes the door."""

import json
import os
import resource
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import gta_bench
from gta_bench.confine import bubblewrap
from gta_bench.confine.bubblewrap import SYSTEM_FILES, SYSTEM_LINKS, Bind, Walls
from gta_bench.confine.inside.protocol import READY, LandlockOrders, Orders, Profile
from gta_bench.confine.limits import JailKind, JailLimits
from gta_bench.confine.python import Python

DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
INSIDE = "gta_bench/confine/inside"

# Without PYTHONHASHSEED the order of sets would make a snippet's answer change from run to run.
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONHASHSEED": "0",
}
# The shell adds to the environment, and then is the program.
START = f"echo '{READY.decode().strip()}' >&2; unset PWD OLDPWD SHLVL; exec \"$@\""
SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from gta_bench.confine.inside.launch import main; "
    "del sys.path[0]; main(sys.argv[2])"
)


@dataclass(frozen=True, slots=True)
class Places:
    """Where a confined program finds its folders; the same words in every jail.

    `inputs` can only be read. Files left in `work`, the current folder, are brought home.
    `scratch` is home and temporary folder, and is thrown away.
    """

    inputs: str
    work: str
    scratch: str


INSIDE_BUBBLEWRAP = Places(inputs="/job/inputs", work="/job/work", scratch="/tmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One use of the jail. `folder` on the host holds inputs, work and scratch.

    `user` is whom it becomes where we are root (`users.job_user`).
    """

    folder: Path
    limits: JailLimits
    argv: Sequence[str] | None
    environment: Mapping[str, str]
    readable: Sequence[str]
    forks: bool = True
    user: int | None = None

    @property
    def on_host(self) -> Places:
        """The job's folders as the host sees them."""
        return Places(*(str(self.folder / part) for part in ("inputs", "work", "scratch")))


@dataclass(frozen=True, slots=True)
class _Command:
    """What to start, with which environment, in which folder."""

    argv: list[str]
    environment: dict[str, str]
    cwd: str


def places(kind: JailKind, job: Job) -> Places:
    """Where the job's folders are for the code inside."""
    return INSIDE_BUBBLEWRAP if kind == "bubblewrap" else job.on_host


def command(kind: JailKind, job: Job, python: Python, filter_: int | None) -> _Command:
    """How to start the job in that kind of jail; `filter_` is `bubblewrap.filter_file`."""
    return _bare(kind, job, python) if filter_ is None else _bubblewrap(job, python, filter_)


def _environment(job: Job, where: Places) -> dict[str, str]:
    home = {"HOME": where.scratch, "TMPDIR": where.scratch}
    return {**ENVIRONMENT, **home, **job.environment}


def _orders(kind: JailKind, job: Job, where: Places, landlock: LandlockOrders | None) -> Orders:
    limits = job.limits
    return {
        "user": job.user,
        "parent": None if kind == "bubblewrap" else os.getpid(),
        "limits": {
            "cpu_seconds": limits.cpu_seconds,
            "memory_bytes": limits.memory_bytes,
            "file_bytes": limits.file_bytes,
            "open_files": limits.open_files,
            "processes": _process_limit(kind, job),
        },
        "landlock": landlock,
        "profile": _profile(kind, job),
        "forks": job.forks and job.argv is not None,
        "argv": None if job.argv is None else list(job.argv),
        "environment": _environment(job, where),
        "scratch": where.scratch,
        "reply_bytes": limits.reply_bytes,
    }


def _profile(kind: JailKind, job: Job) -> Profile | None:
    """The filter that the launcher adds; bubblewrap itself installs that of programs."""
    if kind == "none":
        return None
    return "snippet" if job.argv is None else "program-unwalled"


def _process_limit(kind: JailKind, job: Job) -> int | None:
    """The limit counts the user's processes in the same user namespace, so add those outside."""
    most = job.limits.processes
    if kind == "bubblewrap" or job.user is not None:
        return most
    return _tasks_of(os.getuid()) + most if sys.platform == "linux" else None


def _tasks_of(user: int) -> int:
    """Threads of every process of a user, as the kernel counts them for its limit."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid == user:
                count += len(list((folder / "task").iterdir()))
        except OSError:  # it ended meanwhile
            continue
    return count


def _python(job: Job, python: Python, root: str, orders: Orders) -> list[str]:
    # Not -I: it would drop PYTHONHASHSEED, and the environment is ours anyway. Unbuffered (-u),
    # because a snippet's process ends without flushing.
    return [python.executable, "-s", "-P", "-B", "-u", "-c", BOOT, root, json.dumps(orders)]


def _bare(kind: JailKind, job: Job, python: Python) -> _Command:
    """Landlock or nothing: the launcher itself closes the door, if there is one."""
    where = job.on_host
    landlock: LandlockOrders | None = None
    if kind == "landlock":
        read = ["/usr", *SYSTEM_LINKS, *SYSTEM_FILES, *python.roots, *job.readable, where.inputs]
        landlock = {"read": read, "work": [where.work, where.scratch], "devices": list(DEVICES)}
    root = str(Path(gta_bench.__file__).parent.parent)
    argv = _python(job, python, root, _orders(kind, job, where, landlock))
    return _Command(argv, _environment(job, where), where.work)


def _bubblewrap(job: Job, python: Python, filter_: int) -> _Command:
    where, host = INSIDE_BUBBLEWRAP, job.on_host
    disk = job.limits.disk_bytes
    binds = [Bind(path, path) for path in dict.fromkeys((*python.roots, *job.readable))]
    if job.argv is not None:  # a snippet has its scratch folder and replies with bytes
        binds += [Bind(host.inputs, where.inputs), Bind(host.work, where.work, writable=True)]
    walls = Walls(
        name="jail",
        user=job.user,
        cwd=where.scratch if job.argv is None else where.work,
        code=[INSIDE],
        memory={where.scratch: disk},
        binds=binds,
        shared_memory=None if job.argv is None else disk,
        environment=_environment(job, where),
    )
    if job.argv is None:
        orders = _orders("bubblewrap", job, where, None)
        launcher = _python(job, python, bubblewrap.CODE, orders)
    else:
        launcher = [*_bounded(job.limits), *_as_user(job.user), "/bin/sh", "-c", START, "sh"]
        launcher += job.argv
    return _Command([*bubblewrap.build(walls, filter_), *launcher], {}, "/")


def _bounded(limits: JailLimits) -> list[str]:
    """The start of a command that keeps the limits; a Python would take longer than many programs.

    The system's own programs do here what `inside.launch` does for snippets.
    """
    wanted = {
        "as": (resource.RLIMIT_AS, limits.memory_bytes, 0),
        "core": (resource.RLIMIT_CORE, 0, 0),
        "cpu": (resource.RLIMIT_CPU, limits.cpu_seconds, 1),  # the hard one cannot be caught
        "fsize": (resource.RLIMIT_FSIZE, limits.file_bytes, 0),
        "nofile": (resource.RLIMIT_NOFILE, limits.open_files, 0),
        "nproc": (resource.RLIMIT_NPROC, limits.processes, 0),
    }
    argv = [_system_program("prlimit")]
    for name, (what, soft, more) in wanted.items():
        if soft is not None:
            ceiling = resource.getrlimit(what)[1]  # one that already is lower stays
            most = soft + more if ceiling == resource.RLIM_INFINITY else ceiling
            argv.append(f"--{name}={min(soft, most)}:{min(soft + more, most)}")
    return argv


def _as_user(user: int | None) -> list[str]:
    """The start of a command that runs as that user, with no way back."""
    if user is None:
        return []
    whom = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return [_system_program("setpriv"), *whom, "--inh-caps=-all", "--bounding-set=-all"]


def _system_program(name: str) -> str:
    return shutil.which(name, path=SYSTEM_PATH) or name
