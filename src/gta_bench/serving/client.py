"""Tools of a gta-bench server as a ToolSource: over HTTP, or with calls over MCP.

A local workspace has a twin on the server. Its files go there by digest when it is first needed,
and what a call writes comes back, so that a run with remote tools leaves the same files.
"""

import asyncio
import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import httpx
from pydantic import JsonValue, ValidationError
from pydantic_core import to_json

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import EnvironmentProblem, ToolError, ToolServerFailure, ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import ToolSpec
from gta_bench.serving.exchange import Exchange
from gta_bench.serving.wire import (
    KEY_HEADER,
    CallFailure,
    CallReply,
    FileRef,
    MissingFiles,
    OpenedWorkspace,
    OpenWorkspace,
    ToolList,
)

TRIES = 3  # how often a workspace that the server has forgotten is opened again


class Forgotten(Exception):
    """The server does not know the workspace: it was restarted, or closed it."""


class RemoteTools(ABC):
    """Tools that run elsewhere on a workspace that is kept equal to ours."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._specs: dict[str, ToolSpec] = {}
        self._twins: dict[Path, OpenedWorkspace] = {}
        self._opening = asyncio.Lock()

    async def connect(self) -> None:
        """Learn which tools there are; the first thing to do."""
        response = await self._exchange.send("GET", "/v1/tools")
        try:
            listed = ToolList.model_validate_json(response.content)
        except ValidationError as exc:
            raise EnvironmentProblem(
                f"{self._exchange.url} is no tool server of gta-bench "
                f"(status {response.status_code})."
            ) from exc
        self._specs = {spec.name: spec for spec in listed.tools}

    def specs(self) -> dict[str, ToolSpec]:
        """The tools of the server."""
        return self._specs

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call there, and bring what was written here."""
        if name not in self._specs:
            raise ToolError(f"There is no tool {name!r}. Tools: {', '.join(self._specs)}.")
        key = secrets.token_hex(16)
        for _ in range(TRIES):
            twin = await self._twin(workspace)
            try:
                outcome = await self._invoke(twin, name, arguments, key)
            except Forgotten:
                self._twins.pop(workspace.root, None)
                continue
            if isinstance(outcome, CallFailure):
                raise told_failure(outcome)
            for ref in outcome.files:
                await self._bring(workspace, twin, ref)
            return outcome.result
        raise ToolServerFailure(f"The tool server at {self._exchange.url} forgets its workspaces.")

    @abstractmethod
    async def _invoke(
        self, twin: OpenedWorkspace, name: str, arguments: Mapping[str, JsonValue], key: str
    ) -> CallReply | CallFailure:
        """One call; raises Forgotten where the server has no such workspace."""

    async def release(self, workspace: Workspace) -> None:
        """Close the workspace's twin; its files stay here. Where it fails, time will do it."""
        twin = self._twins.pop(workspace.root, None)
        if twin is not None:
            with suppress(httpx.HTTPError):
                await self._exchange.client.delete(f"/v1/w/{twin.workspace}")

    async def aclose(self) -> None:
        """Close the connection."""
        await self._exchange.client.aclose()

    async def _twin(self, workspace: Workspace) -> OpenedWorkspace:
        async with self._opening:
            if workspace.root not in self._twins:
                self._twins[workspace.root] = await self._open(workspace)
            return self._twins[workspace.root]

    async def _open(self, workspace: Workspace) -> OpenedWorkspace:
        refs = await asyncio.to_thread(_files, workspace)
        wanted = OpenWorkspace(files=refs).model_dump_json()
        for _ in range(TRIES):
            response = await self._exchange.send("POST", "/v1/workspaces", content=wanted)
            if response.status_code == 201:
                return OpenedWorkspace.model_validate_json(response.content)
            if response.status_code != 409:
                break
            missing = MissingFiles.model_validate_json(response.content).missing
            await self._upload(workspace, {ref.sha256: ref for ref in refs}, missing)
        raise ToolServerFailure(
            f"The tool server at {self._exchange.url} does not take the task's files "
            f"(status {response.status_code}: {response.text[:200]})."
        )

    async def _upload(
        self, workspace: Workspace, refs: Mapping[str, FileRef], missing: tuple[str, ...]
    ) -> None:
        for digest in missing:
            path = refs[digest].path
            data = await asyncio.to_thread(_read, workspace, path)
            response = await self._exchange.send("PUT", f"/v1/artefacts/{digest}", content=data)
            if response.status_code != 204:
                raise ToolServerFailure(
                    f"The tool server at {self._exchange.url} does not take {path!r} "
                    f"(status {response.status_code}: {response.text[:200]})."
                )

    async def _bring(self, workspace: Workspace, twin: OpenedWorkspace, ref: FileRef) -> None:
        path = f"/v1/w/{twin.workspace}/artefacts/{ref.sha256}"
        response = await self._exchange.send("GET", path)
        if hashlib.sha256(response.content).hexdigest() != ref.sha256:
            raise ToolServerFailure(
                f"The tool server at {self._exchange.url} did not give {ref.path!r} "
                f"(status {response.status_code})."
            )
        name = ref.path.removeprefix("outputs/")
        kept = await asyncio.to_thread(workspace.write, name, response.content, overwrite=True)
        if kept.path != ref.path:
            raise ToolServerFailure(
                f"The tool server at {self._exchange.url} wrote {ref.path!r}, "
                "which is not the name of an output."
            )


class HttpTools(RemoteTools):
    """Calls over plain HTTP."""

    async def _invoke(
        self, twin: OpenedWorkspace, name: str, arguments: Mapping[str, JsonValue], key: str
    ) -> CallReply | CallFailure:
        path = f"/v1/w/{twin.workspace}/tools/{name}"
        response = await self._exchange.send(
            "POST", path, content=to_json(arguments), headers={KEY_HEADER: key}
        )
        if response.status_code == 404:
            raise Forgotten
        kind = CallReply if response.status_code == 200 else CallFailure
        return self._read(kind, response.content)

    def _read(
        self, kind: type[CallReply] | type[CallFailure], content: bytes
    ) -> CallReply | CallFailure:
        try:
            return kind.model_validate_json(content)
        except ValidationError as exc:
            raise ToolServerFailure(
                f"The tool server at {self._exchange.url} answered in another form than "
                "this version's."
            ) from exc


def told_failure(failure: CallFailure) -> ToolError | ToolUnavailable:
    """The tool's own words, as the error that they were."""
    if failure.kind == "unavailable":
        return ToolUnavailable(failure.message, mend=failure.mend)
    return ToolError(failure.message)


def workspace_files(workspace: Workspace) -> list[str]:
    """The path of every file of a workspace, outputs in the order they were made; blocks."""
    paths = [path for path in workspace.listing() if path.startswith("inputs/")]
    made = [output.path for output in workspace.outputs().files]
    made.sort(key=lambda path: (workspace.root / path).stat().st_mtime_ns)
    return [*paths, *made]


def _files(workspace: Workspace) -> tuple[FileRef, ...]:
    refs = []
    for path in workspace_files(workspace):
        data = _read(workspace, path)
        digest = hashlib.sha256(data).hexdigest()
        refs.append(FileRef(path=path, sha256=digest, bytes=len(data)))
    return tuple(refs)


def _read(workspace: Workspace, path: str) -> bytes:
    return workspace.read(path, most_bytes=workspace.quota.input_bytes)
