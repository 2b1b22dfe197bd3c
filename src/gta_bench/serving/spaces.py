"""Workspaces that clients opened on the server, the files they uploaded, and their calls."""

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from gta_bench.confine.files import remove_tree
from gta_bench.confine.workspace import OutputFile, Quota, Workspace
from gta_bench.errors import EnvironmentProblem, RunError, ToolError, ToolUnavailable
from gta_bench.records.tools import ToolSpec
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.serving.limits import Busy, ServerLimits, Slots
from gta_bench.serving.tokens import TokenHolder
from gta_bench.serving.wire import CallFailure, CallReply, FileRef
from gta_bench.tools.source import ToolSource

REMEMBERED = 64  # outcomes kept for each workspace, for clients that repeat a request


class UnfitFiles(Exception):
    """Files that a workspace cannot be opened with."""


class MissingContents(Exception):
    """Digests of files that were not uploaded yet."""

    def __init__(self, digests: Iterable[str]) -> None:
        self.digests = tuple(digests)
        super().__init__(f"{len(self.digests)} files are missing.")


CallOutcome = CallReply | CallFailure


@dataclass(frozen=True, slots=True)
class CallWorkspace(Workspace):
    """The workspace of one call; `written` lists what the call wrote."""

    written: list[OutputFile] = field(default_factory=list)

    def write(
        self, name: str, data: bytes, *, suffix: str | None = None, overwrite: bool = False
    ) -> OutputFile:
        """Write an output and add it to `written`."""
        output = Workspace.write(self, name, data, suffix=suffix, overwrite=overwrite)
        self.written.append(output)
        return output


@dataclass
class Space:
    """An open workspace: its run, its files by digest, and the outcomes of its calls."""

    id: str
    run: TokenHolder
    token: str = field(repr=False)
    workspace: Workspace
    files: dict[str, FileRef] = field(default_factory=dict)  # by digest
    outcomes: "OrderedDict[str, asyncio.Task[CallOutcome]]" = field(default_factory=OrderedDict)
    used: float = field(default_factory=time.monotonic)

    def for_call(self) -> CallWorkspace:
        """Return the workspace for one call; all calls share its lock."""
        space = CallWorkspace(self.workspace.root, self.workspace.quota)
        object.__setattr__(space, "_lock", self.workspace._lock)
        return space

    def add_outputs(self, outputs: Iterable[OutputFile]) -> tuple[FileRef, ...]:
        """Make what a call wrote available for download, and return references to it."""
        refs = tuple(
            FileRef(path=output.path, sha256=output.sha256, bytes=output.bytes)
            for output in outputs
        )
        self.files |= {ref.sha256: ref for ref in refs}
        return refs

    def content(self, digest: str) -> bytes | None:
        """Return a file of the workspace by its digest; None if it is gone or changed. Blocks."""
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
        """Return the task of that key; starts it if the key is new or its task failed."""
        task = self.outcomes.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self.outcomes[key] = work()
            task.add_done_callback(_retrieve_exception)
            while len(self.outcomes) > REMEMBERED:
                self.outcomes.popitem(last=False)
        return task


def _retrieve_exception(task: "asyncio.Task[CallOutcome]") -> None:
    """Keep asyncio from logging an exception that no client waited for."""
    if not task.cancelled():
        task.exception()


class Contents:
    """What the clients of one run have uploaded, by digest; the oldest go when it is too much."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._store = ArtefactStore(folder)
        self._most = most_bytes
        self._sizes: OrderedDict[str, int] = OrderedDict()

    def __contains__(self, digest: str) -> bool:
        return digest in self._sizes

    def path(self, digest: str) -> Path:
        """Return the path of a content, and mark it as used."""
        self._sizes.move_to_end(digest)
        path = self._store.path(digest)
        assert isinstance(path, Path)
        return path

    def read(self, digest: str) -> bytes:
        """Return a content, checked against its digest, and mark it as used."""
        self._sizes.move_to_end(digest)
        return self._store.read(digest)

    async def keep(self, data: bytes) -> str:
        """Store the bytes and return their digest."""
        digest = await asyncio.to_thread(self._store.keep, data)
        self._sizes.setdefault(digest, len(data))
        while sum(self._sizes.values()) > self._most and len(self._sizes) > 1:
            oldest, _ = self._sizes.popitem(last=False)
            self._store.path(oldest).unlink(missing_ok=True)
        return digest


class Spaces:
    """All open workspaces, in one folder of the server."""

    def __init__(self, folder: Path, limits: ServerLimits, quota: Quota | None = None) -> None:
        self._folder = folder
        self._limits = limits
        self._quota = quota or Quota()
        self._open: dict[str, Space] = {}
        self._contents: dict[str, Contents] = {}

    def get(self, workspace: str) -> Space | None:
        """Return the open workspace of that id, if there is one."""
        return self._open.get(workspace)

    def contents(self, run: TokenHolder) -> Contents:
        """Return what the clients of a run have uploaded."""
        if run.id not in self._contents:
            folder = self._folder / run.id / "contents"
            self._contents[run.id] = Contents(folder, self._limits.artefacts_bytes)
        return self._contents[run.id]

    async def open(self, run: TokenHolder, refs: tuple[FileRef, ...]) -> Space:
        """Open a new workspace with these files."""
        if sum(space.run.id == run.id for space in self._open.values()) >= self._limits.workspaces:
            raise Busy(
                f"The run has {self._limits.workspaces} open workspaces, which is the limit.",
                wait=30,
            )
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
        """Delete a workspace and its files; cancels calls that are still running."""
        if self._open.pop(space.id, None) is None:
            return
        running = [task for task in space.outcomes.values() if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await asyncio.to_thread(_discard, space.workspace.root)

    async def close_idle(self) -> None:
        """Close workspaces that were not used for long; a client opens its own again if needed."""
        oldest = time.monotonic() - self._limits.idle_seconds
        for space in list(self._open.values()):
            busy = any(not task.done() for task in space.outcomes.values())
            if not busy and space.used < oldest:
                await self.close(space)


def _fill(folder: Path, refs: tuple[FileRef, ...], contents: Contents, quota: Quota) -> Workspace:
    """Create a workspace with the client's inputs and outputs."""
    inputs = {ref.path: contents.path(ref.sha256) for ref in refs if ref.path.startswith("inputs/")}
    workspace = Workspace.create(folder, inputs, quota=quota)
    for ref in refs:
        if ref.path.startswith("outputs/"):
            name = ref.path.removeprefix("outputs/")
            if workspace.write(name, contents.read(ref.sha256)).path != ref.path:
                raise EnvironmentProblem(f"{ref.path!r} is not a valid name of an output.")
    return workspace


def _discard(folder: Path) -> None:
    if folder.exists():
        remove_tree(folder)


def make_failure(exc: ToolError | ToolUnavailable) -> CallFailure:
    """Return a tool's error as the message that is sent to the client."""
    if isinstance(exc, ToolUnavailable):
        return CallFailure(kind="unavailable", message=exc.reason, fix=exc.fix)
    return CallFailure(kind="error", message=str(exc))


class Caller:
    """Calls the tools of a source for clients, whichever protocol they use.

    Each call takes a slot and has a time limit.
    """

    def __init__(self, source: ToolSource, limits: ServerLimits) -> None:
        self.specs: Mapping[str, ToolSpec] = dict(source.specs())
        self._source = source
        self._limits = limits
        self._slots = Slots(limits.calls, limits.waiting)

    async def call(
        self, space: Space, name: str, arguments: Mapping[str, JsonValue], *, key: str | None
    ) -> CallOutcome:
        """Call a tool. Requests with the same key share one call.

        Raises Busy if no slot is free.
        """
        space.used = time.monotonic()
        if key is None:
            return await self._execute(space, name, arguments)

        def begin() -> asyncio.Task[CallOutcome]:
            return asyncio.create_task(self._execute(space, name, arguments))

        # A client that disconnected may come back for the result.
        return await asyncio.shield(space.once(key, begin))

    async def _execute(
        self, space: Space, name: str, arguments: Mapping[str, JsonValue]
    ) -> CallOutcome:
        async with self._slots.one():
            workspace = space.for_call()
            most = self._limits.seconds(name)
            try:
                async with asyncio.timeout(most) as limit:
                    result = await self._source.call(workspace, name, arguments)
            except (ToolUnavailable, ToolError) as exc:
                return make_failure(exc)
            except TimeoutError:
                if not limit.expired():
                    raise
                message = f"{name} took longer than {most:g} seconds."
                return CallFailure(kind="error", message=message)
            finally:
                space.used = time.monotonic()
        return CallReply(result=result, files=space.add_outputs(workspace.written))
