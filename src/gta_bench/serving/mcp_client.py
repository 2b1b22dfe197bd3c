"""Calls over MCP to a gta-bench server; files travel over HTTP as usual."""

from collections.abc import Iterator, Mapping
from typing import cast

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, RequestParamsMeta
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue, ValidationError

from gta_bench.serving.client import Forgotten, RemoteTools
from gta_bench.serving.wire import (
    FAILURE_META,
    KEY_META,
    REPLY_META,
    CallFailure,
    CallReply,
    OpenedWorkspace,
)
from gta_bench.tools.http import RetryLater


class McpTools(RemoteTools):
    """An MCP client of the server; each call uses the token of one workspace only."""

    async def _invoke(
        self, copy: OpenedWorkspace, name: str, arguments: Mapping[str, JsonValue], key: str
    ) -> CallReply | CallFailure:
        async def attempt() -> CallReply | CallFailure:
            problem = ""
            try:
                return self._read(await self._ask(copy, name, arguments, key))
            except* (MCPError, httpx2.HTTPError) as group:
                problem = "; ".join(str(exc) for exc in _leaves(group))
            # Is it the server, or only this workspace? Waits until the server answers.
            there = await self._exchange.send("GET", f"/v1/w/{copy.workspace}")
            if there.status_code == 404:
                raise Forgotten
            raise RetryLater(self._exchange.explain(f"does not answer over MCP ({problem})."))

        return await self._exchange.patience.policy()(attempt)

    async def _ask(
        self, copy: OpenedWorkspace, name: str, arguments: Mapping[str, JsonValue], key: str
    ) -> CallToolResult:
        url = f"{self._exchange.url}{copy.mcp}"
        headers = {"authorization": f"Bearer {copy.token}"}
        timeout = httpx2.Timeout(
            self._exchange.patience.seconds, connect=self._exchange.patience.connect_seconds
        )
        async with (
            httpx2.AsyncClient(headers=headers, timeout=timeout) as http,
            Client(
                streamable_http_client(url, http_client=http), mode=MODERN_PROTOCOL_VERSIONS[-1]
            ) as client,
        ):
            return await client.call_tool(
                name, dict(arguments), meta=cast(RequestParamsMeta, {KEY_META: key})
            )

    def _read(self, result: CallToolResult) -> CallReply | CallFailure:
        meta = result.meta or {}
        try:
            if FAILURE_META in meta:
                return CallFailure.model_validate(meta[FAILURE_META])
            return CallReply.model_validate(meta.get(REPLY_META))
        except ValidationError as exc:
            raise self._exchange.explain(
                "is not a gta-bench server, or has another version: its MCP reply cannot be read."
            ) from exc


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for exc in group.exceptions:
        if isinstance(exc, BaseExceptionGroup):
            yield from _leaves(exc)
        else:
            yield exc
