"""Tools of a server as a ToolSource: the connection, its retries, and the workspace's copy there.

A local workspace has a copy on the server. Its files are uploaded by digest when it is first
needed, and what a call writes is downloaded, so that a run with remote tools leaves the same files.
"""

import asyncio
import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from pydantic import JsonValue, ValidationError
from pydantic_core import to_json
from tenacity import AsyncRetrying

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import (
    EnvironmentProblem,
    GtaError,
    ToolError,
    ToolServerFailure,
    ToolUnavailable,
)
from gta_bench.packages import require_packages
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import ToolSpec
from gta_bench.serving.choice import SERVER_PACKAGES, TOKEN_VARIABLE, ServerAddress
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
from gta_bench.tools.http import RetryLater, certificates, read_retry_after, retry_policy
from gta_bench.tools.offering import check_call

# Files that a task may not have: too many, too large, or with names that no tool takes.
WRONG_FILES = frozenset({400, 413})
TRIES = 3  # how often a workspace that the server has forgotten is opened again
# 500 too: a proxy answers it when the server behind it ended during the request.
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Retries and timeouts of a client; by default it gives up after about 15 seconds."""

    attempts: int = 6
    first_delay: float = 0.5
    longest_delay: float = 8
    connect_seconds: float = 10
    seconds: float = 1200  # more than the slowest tool may take

    def policy(self) -> AsyncRetrying:
        """Return the retries as a tenacity policy."""
        return retry_policy(
            attempts=self.attempts,
            first_delay=self.first_delay,
            longest_delay=self.longest_delay,
        )


@dataclass(frozen=True, slots=True)
class Exchange:
    """A connection to one server; close it in the event loop that used it."""

    url: str
    patience: Patience
    client: httpx.AsyncClient = field(repr=False)

    @classmethod
    def to(cls, url: str, token: str | None, patience: Patience | None = None) -> "Exchange":
        """Return a connection to the server at an address; nothing is sent yet."""
        chosen = patience or Patience()
        headers = {"accept-encoding": "identity"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        timeout = httpx.Timeout(chosen.seconds, connect=chosen.connect_seconds)
        client = httpx.AsyncClient(
            base_url=url, headers=headers, timeout=timeout, verify=certificates()
        )
        return cls(url, chosen, client)

    async def send(
        self, method: str, path: str, *, final: frozenset[int] = frozenset(), **options: Any
    ) -> httpx.Response:
        """Return the server's response; raises ToolServerFailure if it sends none.

        A request may be sent more than once. Statuses in `final` are never retried. `options` are
        httpx's: headers and a body.
        """

        async def attempt() -> httpx.Response:
            try:
                response = await self.client.request(method, path, **options)
            except httpx.HTTPError as exc:
                raise RetryLater(self._explain_silence(str(exc) or type(exc).__name__)) from exc
            status = response.status_code
            if status in final:
                return response
            if status in AGAIN:
                error = self._explain_silence(f"status {status}")
                raise RetryLater(error, read_retry_after(response.headers))
            if status in (401, 403):
                raise EnvironmentProblem(
                    f"The tool server at {self.url} rejected the token. Set {TOKEN_VARIABLE} to "
                    "the token that `gta tools serve` was started with."
                )
            if status >= 500:
                raise self.explain(f"failed (status {status}). Check its log.")
            return response

        return await self.patience.policy()(attempt)

    def explain(self, problem: str) -> ToolServerFailure:
        """Return the error for a server that does not work as it should."""
        return ToolServerFailure(f"The tool server at {self.url} {problem}")

    def _explain_silence(self, cause: str) -> ToolServerFailure:
        return self.explain(
            f"does not answer ({cause}). Start it, or check its log, and run the same command "
            "again."
        )


class RemoteSource(ABC):
    """A ToolSource whose tools run on a server; use it within one event loop."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._specs: dict[str, ToolSpec] = {}

    @abstractmethod
    async def connect(self) -> None:
        """Read which tools the server has; call this first."""

    def specs(self) -> dict[str, ToolSpec]:
        """Return the tools of the server."""
        return self._specs

    @abstractmethod
    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call a tool on the server; its output files are written to the workspace."""

    @abstractmethod
    async def release(self, workspace: Workspace) -> None:
        """Forget a workspace that is no longer used."""

    async def aclose(self) -> None:
        """Close the connection."""
        await self._exchange.client.aclose()


async def connect(
    server: ServerAddress, token: str | None, patience: Patience | None = None
) -> RemoteSource:
    """Return the tools of a server, ready to be called; close them with `aclose`."""
    if token is None and server.protocol != "agentlego":
        raise EnvironmentProblem(
            f"{TOKEN_VARIABLE} is not set. `gta tools serve` prints the token that it accepts."
        )
    kind: type[RemoteSource] = HttpTools
    if server.protocol == "agentlego":
        from gta_bench.serving.agentlego import AgentLegoTools

        kind = AgentLegoTools
    elif server.protocol == "mcp":
        require_packages("--tools mcp+http", *SERVER_PACKAGES, extra="serve")
        from gta_bench.serving.mcp_client import McpTools

        kind = McpTools
    source = kind(Exchange.to(server.url, token, patience))
    try:
        await source.connect()
    except BaseException:
        await source.aclose()
        raise
    return source


class Forgotten(Exception):
    """The server does not know the workspace: it was restarted, or closed it."""


class RemoteTools(RemoteSource):
    """Tools of a gta-bench server, which run in a copy of the workspace."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._copies: dict[Path, OpenedWorkspace] = {}
        self._opening = asyncio.Lock()

    async def connect(self) -> None:
        """Read which tools the server has; call this first."""
        response = await self._exchange.send("GET", "/v1/tools")
        try:
            listed = ToolList.model_validate_json(response.content)
        except ValidationError as exc:
            raise EnvironmentProblem(
                f"{self._exchange.url} is not a tool server of gta-bench "
                f"(status {response.status_code}). Use the address that `gta tools serve` printed."
            ) from exc
        self._specs = {spec.name: spec for spec in listed.tools}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call a tool in the workspace's copy, and download what it wrote."""
        check_call(self._specs, name, arguments)
        key = secrets.token_hex(16)
        for _ in range(TRIES):
            async with self._opening:
                if workspace.root not in self._copies:
                    self._copies[workspace.root] = await self._open(workspace)
                copy = self._copies[workspace.root]
            try:
                outcome = await self._invoke(copy, name, arguments, key)
            except Forgotten:
                self._copies.pop(workspace.root, None)
                continue
            if isinstance(outcome, CallFailure):
                raise make_tool_error(outcome)
            for ref in outcome.files:
                await self._download(workspace, copy, ref)
            return outcome.result
        raise self._exchange.explain("keeps forgetting its workspaces. Check its log.")

    @abstractmethod
    async def _invoke(
        self, copy: OpenedWorkspace, name: str, arguments: Mapping[str, JsonValue], key: str
    ) -> CallReply | CallFailure:
        """Make one call; raises Forgotten if the server has no such workspace."""

    async def release(self, workspace: Workspace) -> None:
        """Close the copy on the server. If that fails, the server closes it when it is idle."""
        copy = self._copies.pop(workspace.root, None)
        if copy is not None:
            with suppress(httpx.HTTPError):
                await self._exchange.client.delete(f"/v1/w/{copy.workspace}")

    async def _open(self, workspace: Workspace) -> OpenedWorkspace:
        refs = await asyncio.to_thread(_describe_files, workspace)
        paths = {ref.sha256: ref.path for ref in refs}
        wanted = OpenWorkspace(files=refs).model_dump_json()
        for _ in range(TRIES):
            response = await self._exchange.send("POST", "/v1/workspaces", content=wanted)
            if response.status_code == 201:
                return OpenedWorkspace.model_validate_json(response.content)
            if response.status_code != 409:
                break
            for digest in MissingFiles.model_validate_json(response.content).missing:
                data = await asyncio.to_thread(read_file, workspace, paths[digest])
                sent = await self._exchange.send("PUT", f"/v1/artefacts/{digest}", content=data)
                if sent.status_code != 204:
                    raise self._explain_refusal(repr(paths[digest]), sent)
        raise self._explain_refusal("the task's files", response)

    def _explain_refusal(self, what: str, response: httpx.Response) -> GtaError:
        said = f"rejected {what} (status {response.status_code}: {response.text[:200]})."
        if response.status_code in WRONG_FILES:
            return ToolError(f"The tool server {said}")
        return self._exchange.explain(said)

    async def _download(self, workspace: Workspace, copy: OpenedWorkspace, ref: FileRef) -> None:
        path = f"/v1/w/{copy.workspace}/artefacts/{ref.sha256}"
        response = await self._exchange.send("GET", path)
        if hashlib.sha256(response.content).hexdigest() != ref.sha256:
            raise self._exchange.explain(
                f"did not send {ref.path!r} (status {response.status_code})."
            )
        name = ref.path.removeprefix("outputs/")
        written = await asyncio.to_thread(workspace.write, name, response.content, overwrite=True)
        if written.path != ref.path:
            raise self._exchange.explain(
                f"wrote {ref.path!r}, which is not a valid name of an output."
            )


class HttpTools(RemoteTools):
    """Calls over plain HTTP."""

    async def _invoke(
        self, copy: OpenedWorkspace, name: str, arguments: Mapping[str, JsonValue], key: str
    ) -> CallReply | CallFailure:
        path = f"/v1/w/{copy.workspace}/tools/{name}"
        response = await self._exchange.send(
            "POST", path, content=to_json(arguments), headers={KEY_HEADER: key}
        )
        if response.status_code == 404:
            raise Forgotten
        kind = CallReply if response.status_code == 200 else CallFailure
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as exc:
            raise self._exchange.explain(
                "sent a reply that this version cannot read. Use the same version on both sides."
            ) from exc


def make_tool_error(failure: CallFailure) -> ToolError | ToolUnavailable:
    """Return the error that the tool raised on the server."""
    if failure.kind == "unavailable":
        return ToolUnavailable(failure.message, fix=failure.fix)
    return ToolError(failure.message)


def list_files(workspace: Workspace) -> list[str]:
    """Return the path of every file of a workspace, outputs oldest first; blocks."""
    paths = [path for path in workspace.listing() if path.startswith("inputs/")]
    made = [output.path for output in workspace.outputs().files]
    made.sort(key=lambda path: (workspace.root / path).stat().st_mtime_ns)
    return [*paths, *made]


def read_file(workspace: Workspace, path: str) -> bytes:
    """Return the content of a file that goes to a server or replica, up to the input limit."""
    return workspace.read(path, most_bytes=workspace.quota.input_bytes)


def _describe_files(workspace: Workspace) -> tuple[FileRef, ...]:
    refs = []
    for path in list_files(workspace):
        data = read_file(workspace, path)
        digest = hashlib.sha256(data).hexdigest()
        refs.append(FileRef(path=path, sha256=digest, bytes=len(data)))
    return tuple(refs)
