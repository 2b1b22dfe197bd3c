"""The workspaces that clients have opened on the server, and the contents they sent for them."""

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gta_bench.confine.files import remove_tree
from gta_bench.confine.workspace import OutputFile, Quota, Workspace
from gta_bench.errors import EnvironmentProblem, RunError, ToolError
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.serving.limits import Busy, ServerLimits
from gta_bench.serving.tokens import TokenHolder
from gta_bench.serving.wire import CallFailure, CallReply, FileRef

REMEMBERED = 64  # outcomes kept for each workspace, for clients that ask again


class UnfitFiles(Exception):
    """Files that no workspace can begin with."""


class MissingContents(Exception):
    """Contents that nobody has sent yet."""

    def __init__(self, digests: Iterable[str]) -> None:
        self.digests = tuple(digests)
        super().__init__(f"{len(self.digests)} contents are missing.")


CallOutcome = CallReply | CallFailure


@dataclass(frozen=True, slots=True)
class CallWorkspace(Workspace):
    """A workspace as one call sees it: it remembers what the call wrote."""

    written: list[OutputFile] = field(default_factory=list)

    def write(
        self, name: str, data: bytes, *, suffix: str | None = None, overwrite: bool = False
    ) -> OutputFile:
        """Keep an output, and note it."""
        output = Workspace.write(self, name, data, suffix=suffix, overwrite=overwrite)
        self.written.append(output)
        return output


@dataclass
class Space:
    """An open workspace: whose it is, which contents it holds, and what its calls came to."""

    id: str
    run: TokenHolder
    token: str = field(repr=False)
    workspace: Workspace
    files: dict[str, FileRef] = field(default_factory=dict)  # by digest
    outcomes: "OrderedDict[str, asyncio.Task[CallOutcome]]" = field(default_factory=OrderedDict)
    used: float = field(default_factory=time.monotonic)

    def for_call(self) -> CallWorkspace:
        """The workspace for one call; all calls share its lock."""
        space = CallWorkspace(self.workspace.root, self.workspace.quota)
        object.__setattr__(space, "_lock", self.workspace._lock)
        return space

    def noted(self, outputs: Iterable[OutputFile]) -> tuple[FileRef, ...]:
        """References to what a call wrote, which can be fetched from now on."""
        refs = tuple(
            FileRef(path=output.path, sha256=output.sha256, bytes=output.bytes)
            for output in outputs
        )
        self.files |= {ref.sha256: ref for ref in refs}
        return refs

    def content(self, digest: str) -> bytes | None:
        """A file of the workspace by its content, if it is there still; blocks."""
        ref = self.files.get(digest)
        if ref is None:
            return None
        try:
            data = self.workspace.read(ref.path)
        except ToolError:
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    def once(
        self, key: str, work: "Callable[[], asyncio.Task[CallOutcome]]"
    ) -> "asyncio.Task[CallOutcome]":
        """The task of that key, begun now if it is new."""
        task = self.outcomes.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self.outcomes[key] = work()
            task.add_done_callback(_seen)
            while len(self.outcomes) > REMEMBERED:
                self.outcomes.popitem(last=False)
        return task


def _seen(task: "asyncio.Task[CallOutcome]") -> None:
    """A failure that nobody waited for is no surprise to the event loop."""
    if not task.cancelled():
        task.exception()


class Contents:
    """What the clients of one run have sent, by digest; the oldest go when it is too much."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._store = ArtefactStore(folder)
        self._most = most_bytes
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._total = 0

    def __contains__(self, digest: str) -> bool:
        return digest in self._sizes

    def path(self, digest: str) -> Path:
        """Where the content lies."""
        self._sizes.move_to_end(digest)
        path = self._store.path(digest)
        assert isinstance(path, Path)
        return path

    def read(self, digest: str) -> bytes:
        """The content, checked."""
        self._sizes.move_to_end(digest)
        return self._store.read(digest)

    async def keep(self, data: bytes) -> str:
        """Keep the bytes, and return their digest."""
        digest = await asyncio.to_thread(self._store.keep, data)
        if digest not in self._sizes:
            self._sizes[digest] = len(data)
            self._total += len(data)
            while self._total > self._most and len(self._sizes) > 1:
                oldest, size = self._sizes.popitem(last=False)
                self._total -= size
                self._store.path(oldest).unlink(missing_ok=True)
        return digest


class Spaces:
    """Every open workspace, below one folder of the server."""

    def __init__(self, folder: Path, limits: ServerLimits, quota: Quota | None = None) -> None:
        self._folder = folder
        self._limits = limits
        self._quota = quota or Quota()
        self._open: dict[str, Space] = {}
        self._contents: dict[str, Contents] = {}

    def get(self, workspace: str) -> Space | None:
        """The open workspace of that id."""
        return self._open.get(workspace)

    def contents(self, run: TokenHolder) -> Contents:
        """What the clients of a run have sent."""
        if run.id not in self._contents:
            folder = self._folder / run.id / "contents"
            self._contents[run.id] = Contents(folder, self._limits.artefacts_bytes)
        return self._contents[run.id]

    async def open(self, run: TokenHolder, refs: tuple[FileRef, ...]) -> Space:
        """A new workspace with these files."""
        if sum(space.run.id == run.id for space in self._open.values()) >= self._limits.workspaces:
            raise Busy("The run has as many workspaces open as it may.", wait=30)
        contents = self.contents(run)
        missing = {ref.sha256 for ref in refs if ref.sha256 not in contents}
        if missing:
            raise MissingContents(sorted(missing))
        name = secrets.token_hex(16)
        folder = self._folder / run.id / "spaces" / name
        try:
            workspace = await asyncio.to_thread(_fill, folder, refs, contents, self._quota)
        except (EnvironmentProblem, RunError, ToolError) as exc:
            await asyncio.to_thread(_discard, folder)
            raise UnfitFiles(str(exc)) from exc
        space = Space(name, run, run.workspace_token(name), workspace)
        space.files |= {ref.sha256: ref for ref in refs}
        self._open[name] = space
        return space

    async def close(self, space: Space) -> None:
        """Forget a workspace and its files; calls that still run are given up."""
        if self._open.pop(space.id, None) is None:
            return
        running = [task for task in space.outcomes.values() if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await asyncio.to_thread(_discard, space.workspace.root)

    async def close_idle(self) -> None:
        """Close what nobody has used for long; its client opens it again if it must."""
        now = time.monotonic()
        for space in list(self._idle(now)):
            await self.close(space)

    def _idle(self, now: float) -> Iterator[Space]:
        for space in self._open.values():
            busy = any(not task.done() for task in space.outcomes.values())
            if not busy and now - space.used > self._limits.idle_seconds:
                yield space


def _fill(folder: Path, refs: tuple[FileRef, ...], contents: Contents, quota: Quota) -> Workspace:
    """A workspace of a folder, with inputs and outputs as a client has them."""
    inputs = {ref.path: contents.path(ref.sha256) for ref in refs if ref.path.startswith("inputs/")}
    workspace = Workspace.create(folder, inputs, quota=quota)
    for ref in refs:
        if ref.path.startswith("outputs/"):
            name = ref.path.removeprefix("outputs/")
            if workspace.write(name, contents.read(ref.sha256)).path != ref.path:
                raise EnvironmentProblem(f"{ref.path!r} is not the name of an output.")
    return workspace


def _discard(folder: Path) -> None:
    if folder.exists():
        remove_tree(folder)
