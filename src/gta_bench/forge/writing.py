"""Write drafts as task folders: each complete once it is there, none written twice."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol, get_args

from gta_bench.authoring.declared import WRONG_FILE
from gta_bench.datasets.convert import format_task_file
from gta_bench.datasets.folders import INPUTS, REQUEST_FILE, TASK_FILE, GroupEntry, TaskFile
from gta_bench.errors import UsageError
from gta_bench.forge.draft import (
    FORMAT,
    LEVELS,
    Namespace,
    TaskDice,
    TaskDraft,
    TaskFamily,
    TaskLevel,
    Work,
)
from gta_bench.records.base import Record

ABOUT: Final = "forge.json"
LICENSE: Final = "CC0-1.0"
_SEED: Final = re.compile(r"[A-Za-z0-9_]{1,20}")
# Bytes of a key: fewer could be found by trying.
_LEAST_KEY: Final = 16
_CHECK: Final = "the key of a private namespace"
ForgedKind = Literal["workflow", "atomic"]


class NamedFamily(Protocol):
    """A family of either kind."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


class Forge(Record):
    """`forge.json`: what a folder of forged tasks was made by.

    `key` is a digest that tells two keys of the private namespace apart and reveals neither.
    """

    format: Literal[1] = 1
    kind: ForgedKind = "workflow"
    version: int
    namespace: Namespace
    seed: str
    level: TaskLevel
    key: str | None = None


@dataclass(frozen=True)
class Order:
    """What to forge: the namespace with its secret, which is not shown, the seed and the level."""

    namespace: Namespace
    seed: str
    level: TaskLevel
    secret: bytes = field(default=b"", repr=False)

    def describe(self, kind: ForgedKind = "workflow") -> Forge:
        """Return what `forge.json` says."""
        return Forge(
            kind=kind,
            version=FORMAT,
            namespace=self.namespace,
            seed=self.seed,
            level=self.level,
            key=f"{TaskDice(_CHECK, self.secret).getrandbits(64):016x}" if self.secret else None,
        )

    def check(self) -> None:
        """Raise UsageError for what cannot be part of a name, and for a missing secret."""
        if self.namespace not in get_args(Namespace):
            known = ", ".join(get_args(Namespace))
            raise UsageError(f"There is no namespace {self.namespace!r}. Known: {known}.")
        if type(self.level) is not int or self.level not in LEVELS:
            raise UsageError(f"There is no level {self.level!r}. Levels are 1, 2 and 3.")
        if not isinstance(self.seed, str) or not _SEED.fullmatch(self.seed):
            raise UsageError(
                f"The seed {self.seed!r} is not 1 to 20 letters, digits and underscores."
            )
        if (self.namespace == "private") != bool(self.secret):
            raise UsageError(
                "The namespace private needs a key (`gta forge --key-file FILE`), and no other one "
                "has a key. An empty file is none."
            )
        if self.secret and len(self.secret) < _LEAST_KEY:
            raise UsageError(
                f"The key has {len(self.secret)} characters, which can be guessed: use 32 random "
                "ones, such as those of `openssl rand -hex 32`."
            )


def name_task(family: NamedFamily, order: Order, number: int) -> str:
    """Return the id of a task."""
    return f"{family.name}-{order.namespace}-{order.seed}-{order.level}-{number:05}"


def make_task(family: TaskFamily, order: Order, number: int) -> TaskDraft:
    """Return a task; the same for the same order and number."""
    key = f"{FORMAT}/{name_task(family, order, number)}"
    return family.make(TaskDice(key, order.secret), order.level)


def forge_tasks(
    families: Sequence[TaskFamily],
    order: Order,
    count: int,
    out: Path,
) -> int:
    """Write `count` tasks, the families in turn, and return how many are new.

    A task that the folder has already is not written again.
    """
    order.check()
    check_folder(out, order.describe())
    new = 0
    for number in range(count):
        family = families[number % len(families)]
        name = name_task(family, order, number // len(families) + 1)
        if not (out / name).exists():
            draft = make_task(family, order, number // len(families) + 1)
            write_draft(draft, out, name)
            new += 1
    return new


def check_folder(out: Path, about: Forge) -> None:
    """Start a folder, or raise UsageError if it was started for something else."""
    file = out / ABOUT
    if file.is_file():
        made = Forge.model_validate_json(file.read_bytes())
        if made.kind != about.kind:
            raise UsageError(
                f"{out} has tasks of {made.kind} families, which {about.kind} ones cannot join. "
                "Name another folder with --out."
            )
        if made != about:
            raise UsageError(
                f"{out} was forged with other options. Name another folder with --out."
            )
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty. Name a new folder with --out.")
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{about.model_dump_json(indent=2)}\n", encoding="utf-8", newline="\n")


def write_draft(draft: TaskDraft, out: Path, name: str) -> None:
    """Write a task folder."""
    hidden = Path(tempfile.mkdtemp(prefix=".forge-", dir=out))
    try:
        write_files(hidden, list_files(draft, name))
        hidden.chmod(0o755)
        hidden.replace(out / name)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def write_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write files by their paths below a folder."""
    for path, data in files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def list_files(draft: TaskDraft, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a task folder by their paths in it."""
    yield from list_task_files(draft, name)
    for place, works in (("gold", draft.gold), ("cheat", draft.cheat)):
        for folder, work in works.items():
            yield from _list_work(f"{place}/{folder}", work)
    for folder, wrong in draft.wrong.items():
        yield from _list_work(f"wrong/{folder}", wrong.work)
        broken = ", ".join(f'"{one}"' for one in wrong.breaks)
        about = f'breaks = [{broken}]\nfrom = "{wrong.origin}"\n'
        yield f"wrong/{folder}/{WRONG_FILE}", about.encode()


def list_task_files(draft: TaskDraft, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a task folder without its works."""
    task = TaskFile(
        format=1,
        id=name,
        category=draft.category,
        tools=draft.tools,
        license=LICENSE,
        deliverables=dict(draft.deliverables),
        leaf=tuple(one for one in draft.nodes if not isinstance(one, GroupEntry)),
        group=tuple(one for one in draft.nodes if isinstance(one, GroupEntry)),
    )
    yield TASK_FILE, format_task_file(task).encode()
    yield REQUEST_FILE, f"{draft.request.strip()}\n".encode()
    yield from _below(INPUTS, draft.inputs)
    yield from _below("checks", draft.checks)


def _list_work(place: str, work: Work) -> Iterator[tuple[str, bytes]]:
    yield from _below(place, work.files)
    if work.answer:
        yield f"{place}/final.txt", f"{work.answer}\n".encode()


def _below(place: str, files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    for name, data in files.items():
        yield f"{place}/{name}", data
