"""What each jail looks like from inside: its paths, its environment and the command to enter it."""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import gta_bench
from gta_bench.confine import bubblewrap
from gta_bench.confine.bubblewrap import SYSTEM_FILES, SYSTEM_LINKS, Bind, Walls
from gta_bench.confine.inside.protocol import READY, LandlockOrders, Orders, Profile
from gta_bench.confine.limits import JailKind, JailLimits

PACKAGE_FOLDERS = ("site-packages", "dist-packages")
# A prefix can be a project's folder or a home, so only Python's own files in it are visible. A
# Conda prefix contains nothing else, and its packages need its libraries and data.
OWN = (
    *("bin", "pyvenv.cfg"),
    *(f"{lib}/{name}" for lib in ("lib", "lib64") for name in ("python3*", "libpython3*")),
)
OWN_OF_CONDA = ("bin", "lib", "share", "etc", "ssl")


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter: its path, and the files and folders (`roots`) that it needs to run."""

    executable: str
    roots: tuple[str, ...]

    @classmethod
    def current(cls) -> "Python":
        """The running interpreter, with its virtual environment if it has one."""
        prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
        return cls.at(sys.executable, prefixes, packages=sys.path)

    @classmethod
    def at(
        cls, executable: str, prefixes: Sequence[str], *, packages: Sequence[str] = ()
    ) -> "Python":
        """An interpreter by its path, its prefixes (`sys.prefix`, …) and its `sys.path`.

        Only package folders of `packages` are visible: an editable install adds a whole project.
        Paths are normalized, because no jail accepts `../venv/bin/python`.
        """
        executable = os.path.normpath(executable)
        prefixes = [os.path.normpath(prefix) for prefix in prefixes]
        packages = [os.path.normpath(name) for name in packages]
        wanted = [own for prefix in dict.fromkeys(prefixes) for own in _own_files(Path(prefix))]
        wanted += [Path(name) for name in packages if Path(name).name in PACKAGE_FOLDERS]
        link = Path(executable)
        wanted.append(link)
        for _ in range(9):  # a chain of links may lead through other folders
            if link.is_symlink():
                link = Path(os.path.normpath(link.parent / link.readlink()))
                wanted.append(link)
        roots: list[Path] = [Path("/usr")]
        for path in wanted:
            if path.exists() and not any(path.is_relative_to(root) for root in roots):
                roots.append(path)
        return cls(executable, tuple(map(str, roots[1:])))


def _own_files(prefix: Path) -> Iterator[Path]:
    if prefix == Path("/"):
        return
    for name in OWN_OF_CONDA if (prefix / "conda-meta").is_dir() else OWN:
        yield from sorted(prefix.glob(name))


DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
INSIDE = "gta_bench/confine/inside"

# Without PYTHONHASHSEED, the order of sets could change a snippet's answer from run to run.
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONHASHSEED": "0",
}
# The shell adds variables to the environment, then becomes the program.
START = f"echo '{READY.decode().strip()}' >&2; unset PWD OLDPWD SHLVL; exec \"$@\""
SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from gta_bench.confine.inside.launch import main; "
    "del sys.path[0]; main(sys.argv[2])"
)


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of a confined program, under the same names in every jail.

    `inputs` is read-only. Files left in `work`, the current folder, are returned. `scratch` is the
    home and temporary folder, and is deleted.
    """

    inputs: str
    work: str
    scratch: str


INSIDE_BUBBLEWRAP = Places(inputs="/job/inputs", work="/job/work", scratch="/tmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One use of the jail; without `argv`, a snippet.

    `folder` on the host contains `inputs`, `work` and `scratch`. `user` is the user that root's
    job becomes (`bubblewrap.choose_job_user`).
    """

    folder: Path
    limits: JailLimits
    argv: Sequence[str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    readable: Sequence[str] = ()
    forks: bool = True
    user: int | None = None

    @property
    def on_host(self) -> Places:
        """The job's folders as the host sees them."""
        return Places(*(str(self.folder / part) for part in ("inputs", "work", "scratch")))


class _Command(NamedTuple):
    """What to start, with which environment, in which folder."""

    argv: list[str]
    environment: dict[str, str]
    cwd: str


def find_places(kind: JailKind, job: Job) -> Places:
    """The job's folders as the code inside sees them."""
    return INSIDE_BUBBLEWRAP if kind == "bubblewrap" else job.on_host


def command(kind: JailKind, job: Job, python: Python, filter_: int | None) -> _Command:
    """The command that starts the job in that kind of jail.

    `filter_` is the descriptor of `bubblewrap.open_filter_file`, None for other kinds.
    """
    return _bare(kind, job, python) if filter_ is None else _bubblewrap(job, python, filter_)


def _environment(job: Job, where: Places) -> dict[str, str]:
    home = {"HOME": where.scratch, "TMPDIR": where.scratch}
    return {**ENVIRONMENT, **home, **job.environment}


def _orders(kind: JailKind, job: Job, where: Places, landlock: LandlockOrders | None) -> Orders:
    limits = job.limits
    # The filter that the launcher adds. Bubblewrap itself installs the one for programs.
    profile: Profile = "snippet" if job.argv is None else "program-unwalled"
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
        "profile": None if kind == "none" else profile,
        "forks": job.forks and job.argv is not None,
        "argv": None if job.argv is None else list(job.argv),
        "environment": _environment(job, where),
        "scratch": where.scratch,
        "reply_bytes": limits.reply_bytes,
    }


def _process_limit(kind: JailKind, job: Job) -> int | None:
    """The job's limit, plus our user's threads where the kernel counts both together."""
    most = job.limits.processes
    if kind == "bubblewrap" or job.user is not None:
        return most
    if sys.platform != "linux":
        return None
    user = os.getuid()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if folder.stat().st_uid == user:
                most += len(list((folder / "task").iterdir()))
    return most


def _python_command(python: Python, root: str, orders: Orders) -> list[str]:
    # Not -I: it would drop PYTHONHASHSEED, and the environment is ours anyway. Unbuffered (-u),
    # because a snippet's process ends without flushing.
    return [python.executable, "-s", "-P", "-B", "-u", "-c", BOOT, root, json.dumps(orders)]


def _bare(kind: JailKind, job: Job, python: Python) -> _Command:
    """Landlock or no jail: the launcher itself gives up its rights."""
    where = job.on_host
    landlock: LandlockOrders | None = None
    if kind == "landlock":
        read = ["/usr", *SYSTEM_LINKS, *SYSTEM_FILES, *python.roots, *job.readable, where.inputs]
        landlock = {"read": read, "work": [where.work, where.scratch], "devices": list(DEVICES)}
    root = str(Path(gta_bench.__file__).parent.parent)
    argv = _python_command(python, root, _orders(kind, job, where, landlock))
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
        launcher = _python_command(python, bubblewrap.CODE, orders)
    else:
        launcher = [*limit_command(job.limits), *user_command(job.user)]
        launcher += ["/bin/sh", "-c", START, "sh", *job.argv]
    return _Command([*bubblewrap.build(walls, filter_), *launcher], {}, "/")


def limit_command(limits: JailLimits) -> list[str]:
    """The start of a command that sets the limits.

    System programs do here what `inside.launch` does for snippets, because starting Python takes
    longer than many programs run.
    """
    import resource  # Windows has none, and no job gets that far there

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
            ceiling = resource.getrlimit(what)[1]  # keep a limit that is already lower
            most = soft + more if ceiling == resource.RLIM_INFINITY else ceiling
            argv.append(f"--{name}={min(soft, most)}:{min(soft + more, most)}")
    return argv


def user_command(user: int | None) -> list[str]:
    """The start of a command that runs as that user, with no way back."""
    if user is None:
        return []
    options = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return [_system_program("setpriv"), *options, "--inh-caps=-all", "--bounding-set=-all"]


def _system_program(name: str) -> str:
    return shutil.which(name, path=SYSTEM_PATH) or name
