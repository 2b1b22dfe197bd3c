"""A task as lint sees it: read part by part, so that one mistake does not hide the others."""

import hashlib
import os
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from gta_bench.content.identify import Identity, identify
from gta_bench.content.kinds import KIND_OF_SUFFIX, KINDS
from gta_bench.content.text import read_text
from gta_bench.datasets.folders import (
    INPUTS,
    REQUEST_FILE,
    TASK_FILE,
    GroupEntry,
    LeafEntry,
    TaskFile,
    try_task_file,
)
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.errors import DatasetError, ToolError
from gta_bench.records.checks import AnyCheck
from gta_bench.records.finding import Severity
from gta_bench.records.workflow import Checkpoint, WorkflowTask

GOLD, WRONG, CHEAT, NOTES = "gold", "wrong", "cheat", "notes.md"
PILOT_FILE: Final = "pilot.json"
# Of a larger file only the beginning is read.
LARGEST: Final = 32 << 20
BEGINNING: Final = 1 << 16
# Texts above this size are data; they are searched in part.
MOST_TEXT: Final = 1 << 20
_DASHES: Final = str.maketrans("‐‑‒–—−’‘“”\u00a0\u202f", "------''\"\"  ")  # noqa: RUF001


class LintSpot(NamedTuple):
    """What a rule found. `file` defaults to the task's main file, `severity` to the rule's."""

    message: str
    field: str | None = None
    file: str | None = None
    severity: Severity | None = None


LintFound = Iterator[LintSpot]


def plain(text: str) -> str:
    """Return a text in one form of Unicode, quotes, dashes, case and space, for comparing."""
    composed = unicodedata.normalize("NFKC", text.translate(_DASHES))
    return " ".join(composed.translate(_DASHES).casefold().split())


@dataclass(frozen=True)
class LintedFile:
    """A file of a task. `path` is relative to the task folder, or to a released dataset."""

    path: str
    file: Path

    @property
    def name(self) -> str:
        """Its name without folders."""
        return PurePosixPath(self.path).name

    @cached_property
    def size(self) -> int | None:
        """Its size in bytes; None if it is missing or cannot be read."""
        try:
            with self.file.open("rb") as stream:
                return os.fstat(stream.fileno()).st_size
        except OSError:
            return None

    @cached_property
    def data(self) -> bytes:
        """Its bytes; of a very large file, only the beginning."""
        if self.size is None:
            return b""
        with self.file.open("rb") as stream:
            return stream.read(LARGEST if self.size <= LARGEST else BEGINNING)

    @cached_property
    def digest(self) -> str | None:
        """The SHA-256 of a file that was read as a whole."""
        if self.size is None or self.size > LARGEST:
            return None
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def identity(self) -> Identity:
        """What it claims to be and what it is."""
        return identify(self.name, self.data)

    @cached_property
    def text(self) -> str | None:
        """Its text, if its kind is a text that can be searched as it is."""
        kind = KIND_OF_SUFFIX.get(PurePosixPath(self.name).suffix.lower())
        if kind is None or KINDS[kind].form != "text" or not self.size:
            return None
        try:
            return read_text(self.data[:MOST_TEXT]).text
        except ToolError:
            return None


def file_of(check: AnyCheck) -> str:
    """Return the file that a check names; empty if it names none."""
    file = getattr(check, "file", "")
    return file if isinstance(file, str) else ""


@dataclass(frozen=True)
class LintedLeaf:
    """A leaf with its share of the root."""

    id: str
    says: str
    share: float
    weight: float
    has_levels: bool = False
    by: str = "judge"
    checks: tuple[AnyCheck, ...] = ()

    @cached_property
    def plain(self) -> str:
        """What it says, for comparing."""
        return plain(self.says)


@dataclass(frozen=True)
class LintedGroup:
    """A group of the tree."""

    id: str
    weight: float
    size: int


@dataclass(frozen=True)
class LintedTree:
    """The leaves and groups of a task, each in order."""

    leaves: tuple[LintedLeaf, ...]
    groups: tuple[LintedGroup, ...]

    @property
    def nodes(self) -> list[LintedLeaf | LintedGroup]:
        """All leaves, then all groups."""
        return [*self.leaves, *self.groups]


@dataclass(frozen=True)
class LintedTask:
    """A task with the parts that could be read.

    `folder` is None in the released layout. `toml` and `tree` are None if `task.toml` is broken:
    then `problems` says how.
    """

    id: str
    main: str
    folder: Path | None
    request: str | None
    toml: TaskFile | None
    tree: LintedTree | None
    inputs: tuple[LintedFile, ...]
    tools: tuple[str, ...]
    category: str | None
    problems: tuple[DatasetError, ...] = ()
    # Files of gold, wrong and cheat by folder, as `gold/formulas`.
    proofs: Mapping[str, tuple[LintedFile, ...]] = field(default_factory=dict)
    others: tuple[LintedFile, ...] = ()
    links: tuple[str, ...] = ()
    # Tools that the dataset defines, and ids of the tasks linted beside this one.
    known_tools: Collection[str] = ()
    neighbors: Sequence[str] = ()

    @cached_property
    def plain_request(self) -> str:
        """The request, for comparing."""
        return plain(self.request or "")

    @cached_property
    def given(self) -> str:
        """Everything that a system is given and can read as text, for comparing."""
        texts = [plain(file.text) for file in self.inputs if file.text is not None]
        names = [plain(file.name) for file in self.inputs]
        return "\n".join([self.plain_request, *names, *texts])

    @cached_property
    def has_opaque_inputs(self) -> bool:
        """Whether an input has content that is not searched here, such as a workbook."""
        return any(file.text is None for file in self.inputs)

    @property
    def leaves(self) -> tuple[LintedLeaf, ...]:
        """The leaves that could be read."""
        return self.tree.leaves if self.tree is not None else ()

    @property
    def deliverables(self) -> Mapping[str, str]:
        """The files that `task.toml` declares, with their kinds."""
        return self.toml.deliverables if self.toml is not None else {}

    def proof_files(self, kind: str) -> dict[str, tuple[LintedFile, ...]]:
        """Return the folders of `gold`, `wrong` or `cheat`, with their files."""
        return {name: files for name, files in self.proofs.items() if name.startswith(f"{kind}/")}

    def texts(self) -> Iterator[LintedFile]:
        """Yield every file with searchable text, except for the author's notes."""
        proofs = (one for part in self.proofs.values() for one in part)
        every = [*self.others, *self.inputs, *proofs]
        yield from (file for file in every if file.text is not None and file.path != NOTES)


def read_folder(
    folder: Path, *, known_tools: Collection[str] = (), neighbors: Sequence[str] = ()
) -> LintedTask:
    """Read a task folder, whatever is wrong with it."""
    read = try_task_file(folder)
    toml = read if isinstance(read, TaskFile) else None
    files, links = _list_files(folder)
    parts: dict[str, list[LintedFile]] = {}
    for file in files:
        first, *rest = PurePosixPath(file.path).parts
        # A file directly in `gold/` belongs to no gold, and gets a part of its own.
        named = f"{first}/{rest[0] if len(rest) > 1 else ''}" if rest else ""
        proof = first in (GOLD, WRONG, CHEAT)
        parts.setdefault(named if proof else first if first == INPUTS else "", []).append(file)
    request = next((file for file in files if file.path == REQUEST_FILE), None)
    return LintedTask(
        id=folder.name,
        main=f"{folder.name}/{TASK_FILE}",
        folder=folder,
        request=None if request is None else (request.text or ""),
        toml=toml,
        tree=None if toml is None else _read_tree(toml),
        inputs=tuple(parts.pop(INPUTS, ())),
        tools=() if toml is None else toml.tools,
        category=None if toml is None else toml.category,
        problems=() if isinstance(read, TaskFile) else tuple(read),
        others=tuple(parts.pop("", ())),
        proofs={name: tuple(files) for name, files in sorted(parts.items())},
        links=tuple(links),
        known_tools=known_tools,
        neighbors=neighbors,
    )


def read_released(dataset: WorkflowDataset, task: WorkflowTask) -> LintedTask:
    """Return a task of the released layout."""
    leaves, groups = [], []
    for node, share in _weigh(task.checkpoints, 1.0):
        if node.children:
            groups.append(LintedGroup(node.id, node.weight, len(node.children)))
        else:
            leaves.append(LintedLeaf(node.id, node.requirements or "", share, node.weight))
    return LintedTask(
        id=task.id,
        main=dataset.file,
        folder=None,
        request=task.request,
        toml=None,
        tree=LintedTree(tuple(leaves), tuple(groups)),
        inputs=tuple(LintedFile(one.source, dataset.root / one.source) for one in task.attachments),
        tools=task.tools,
        category=task.category,
        known_tools=tuple(dataset.tools),
    )


def _list_files(folder: Path) -> tuple[list[LintedFile], list[str]]:
    """List the files of a task folder without those that begin with a dot, and the links."""
    files, links = [], []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here = Path(place)
        for name in [*folders, *sorted(names)]:
            path = (here / name).relative_to(folder).as_posix()
            if (here / name).is_symlink():
                links.append(path)
            elif name in names and not name.startswith("."):
                files.append(LintedFile(path, here / name))
    return files, links


def _read_tree(toml: TaskFile) -> LintedTree:
    leaves: list[LintedLeaf] = []
    groups: list[LintedGroup] = []

    def read(level: TaskFile | GroupEntry, share: float) -> None:
        entries: list[LeafEntry | GroupEntry] = [*level.leaf, *level.group]
        for entry, part in zip(entries, _shares(entries, share), strict=True):
            if isinstance(entry, GroupEntry):
                size = len(entry.leaf) + len(entry.group)
                groups.append(LintedGroup(entry.id, entry.weight, size))
                read(entry, part)
                continue
            leaves.append(
                LintedLeaf(
                    id=entry.id,
                    says=entry.says or "",
                    share=part,
                    weight=entry.weight,
                    has_levels=bool(entry.levels),
                    by=entry.by or ("check" if entry.checks else "judge"),
                    checks=entry.checks,
                )
            )

    read(toml, 1.0)
    return LintedTree(tuple(leaves), tuple(groups))


def _weigh(nodes: Sequence[Checkpoint], share: float) -> Iterator[tuple[Checkpoint, float]]:
    for node, part in zip(nodes, _shares(nodes, share), strict=True):
        yield node, part
        yield from _weigh(node.children, part)


def _shares(
    nodes: Sequence[Checkpoint] | Sequence[LeafEntry | GroupEntry], share: float
) -> list[float]:
    total = sum(node.weight for node in nodes)
    return [share * node.weight / total if total else 0.0 for node in nodes]


# Endings of one letter are rather abbreviations, and these names are rather those of libraries.
_ENDINGS: Final = sorted((one[1:] for one in KIND_OF_SUFFIX if len(one) > 2), key=len, reverse=True)
_LIBRARIES: Final = frozenset({"node.js", "vue.js", "react.js", "next.js", "three.js", "d3.js"})
FILE_NAME: Final = re.compile(
    rf"(?<![\w./<>@-])(?:[\w-]+/)*\w[\w.+-]*\.(?:{'|'.join(_ENDINGS)})(?![\w/-])", re.IGNORECASE
)


def find_file_names(text: str) -> list[str]:
    """Return the file names in a text, without folders, in order."""
    found = (PurePosixPath(name).name for name in FILE_NAME.findall(text))
    return [name for name in dict.fromkeys(found) if name.lower() not in _LIBRARIES]
