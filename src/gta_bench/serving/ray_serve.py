"""The tool server on a Ray cluster: the usual app in front, each group of tools as a deployment.

The app keeps the workspaces, so it is one process; the slow work is done by the replicas.
"""

import asyncio
import logging
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import ray
from pydantic import JsonValue
from ray import serve
from ray.exceptions import AuthenticationError, RayActorError
from ray.serve._private import replica
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.serve.handle import DeploymentHandle
from ray.util import get_node_ip_address

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ConfigError, EnvironmentProblem
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import ToolSpec
from gta_bench.serving.app import make_app
from gta_bench.serving.client import list_files, make_tool_error, read_file
from gta_bench.serving.gate import App
from gta_bench.serving.limits import Busy, ServerLimits
from gta_bench.serving.ray_plan import LOCAL, Group, Scaling, ServePlan
from gta_bench.serving.ray_replica import Returned, ToolReplica
from gta_bench.serving.tokens import RunTokens
from gta_bench.serving.wire import CallFailure
from gta_bench.settings import Settings
from gta_bench.tools.offering import check_call

APPLICATION = "gta-tools"
LOOPBACK = "127.0.0.1"
TRIES = 4  # replicas that a call is tried on, one after the other, if they end during the call
WAITING = 512  # calls of a group that may wait for a replica; the client has to repeat others


class RayTools:
    """The replicas of all groups as a ToolSource.

    Calls in one workspace run one after the other: each sees what the previous one wrote, and no
    name of a new file is used twice.
    """

    def __init__(
        self, specs: Mapping[str, ToolSpec], handles: Mapping[str, DeploymentHandle[Any]]
    ) -> None:
        self._specs = dict(specs)
        self._handles = handles
        self._turns: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def specs(self) -> dict[str, ToolSpec]:
        """Return the tools of all groups."""
        return self._specs

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call a tool in a replica; a replica that ends during a call changes nothing here."""
        check_call(self._specs, name, arguments)
        turn = self._turns.setdefault(workspace.root, asyncio.Lock())
        async with turn:
            files = await asyncio.to_thread(_read_files, workspace)
            returned = await self._ask(name, dict(arguments), files)
            if not returned.done:
                raise make_tool_error(CallFailure.model_validate_json(returned.outcome))
            for path, data in returned.files:
                output = path.removeprefix("outputs/")
                await asyncio.to_thread(workspace.write, output, data, overwrite=True)
            return ToolResult.model_validate_json(returned.outcome)

    async def _ask(
        self, name: str, arguments: dict[str, JsonValue], files: dict[str, bytes]
    ) -> Returned:
        for _ in range(TRIES):
            try:
                answer = await self._handles[name].call.remote(name, arguments, files)
            except RayActorError:
                continue
            except (BackPressureError, DeploymentUnavailableError) as exc:
                raise Busy(f"All replicas of {name} are busy.", wait=1) from exc
            return Returned(*answer)
        raise Busy(f"{TRIES} replicas of {name} ended during the call.", wait=2)


@serve.ingress()
class ToolServer:
    """The deployment in front of the tools: routes, MCP, tokens, limits and workspaces."""

    def __init__(
        self,
        specs: dict[str, ToolSpec],
        handles: dict[str, DeploymentHandle[Any]],
        tokens: tuple[str, ...],
    ) -> None:
        bind_replica_to_loopback()
        self._source = RayTools(specs, handles)
        self._tokens = RunTokens(tokens)
        self._folder = tempfile.TemporaryDirectory(prefix="gta-serve-")

    def __serve_build_asgi_app__(self) -> App:
        """Return the same application as under uvicorn."""
        return make_app(
            self._source, tokens=self._tokens, folder=Path(self._folder.name), limits=ServerLimits()
        )


class ToolGroup(ToolReplica):
    """The deployment of one group."""

    def __init__(self, names: tuple[str, ...], settings: Settings) -> None:
        bind_replica_to_loopback()
        super().__init__(names, settings)


def bind_replica_to_loopback() -> None:
    """Make this replica listen on loopback only, if the cluster is this machine alone.

    Serve opens a port on all addresses for every replica and has no option for it (Ray 2.60), so
    this patches Ray's own module; a test fails when Ray changes there. Call it in a replica's
    constructor, which runs before the port is opened.
    """
    names = vars(replica)
    listen = names["add_port_to_grpc_server"]
    if get_node_ip_address() == LOOPBACK:  # type: ignore[no-untyped-call]
        names["add_port_to_grpc_server"] = lambda server, address: listen(
            server, address.replace("[::]", LOOPBACK)
        )


def connect(address: str) -> None:
    """Join a cluster, or start one (`local`)."""
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address == LOCAL:
            ray.init(LOCAL, include_dashboard=False, **quiet)
        else:
            ray.init(address, **quiet)
    except (ConnectionError, AuthenticationError) as exc:
        raise EnvironmentProblem(
            f"No Ray cluster answers at {address}: {_first_line(exc)}"
        ) from exc
    except ValueError as exc:
        raise ConfigError(f"cluster: {address!r}: {exc}") from exc


def deploy(
    plan: ServePlan,
    specs: Mapping[str, ToolSpec],
    settings: Settings,
    tokens: tuple[str, ...],
    *,
    host: str,
    port: int,
) -> None:
    """Start every group and the server in front of them; returns when they accept calls."""
    groups = {group: _deployment(group, settings) for group in plan.groups}
    handles = {tool: bound for group, bound in groups.items() for tool in group.tools}
    offered = {name: spec for name, spec in specs.items() if name in handles}
    server = serve.deployment(ToolServer).options(  # type: ignore[attr-defined]
        name="server",
        num_replicas=1,
        max_ongoing_requests=ServerLimits().calls + ServerLimits().waiting,
        ray_actor_options={"num_cpus": 0},
    )
    quiet = {"log_level": "ERROR", "enable_access_log": False}
    serve.start(http_options={"host": host, "port": port}, logging_config=quiet)
    try:
        serve.run(
            server.bind(offered, handles, tokens),
            name=APPLICATION,
            route_prefix="/",
            logging_config=quiet,
        )
    except RuntimeError as exc:
        raise EnvironmentProblem(f"Ray Serve cannot start the tools: {_first_line(exc)}") from exc


def _deployment(group: Group, settings: Settings) -> Any:
    scaling = group.replicas
    many: dict[str, Any] = {"num_replicas": scaling}
    if isinstance(scaling, Scaling):
        many = {
            "autoscaling_config": {
                "min_replicas": scaling.min,
                "max_replicas": scaling.max,
                "target_ongoing_requests": scaling.calls,
                "upscale_delay_s": 1,
                "downscale_delay_s": scaling.idle_seconds,
                "downscale_to_zero_delay_s": scaling.idle_seconds,
                "metrics_interval_s": 1,
                "look_back_period_s": 2,
            }
        }
    options: dict[str, Any] = {"num_cpus": group.cpus, "num_gpus": group.gpus}
    if group.runtime_env:
        options["runtime_env"] = group.runtime_env
    deployment = serve.deployment(ToolGroup).options(  # type: ignore[attr-defined]
        name=group.name,
        max_ongoing_requests=group.calls,
        max_queued_requests=WAITING,
        ray_actor_options=options,
        **many,
    )
    return deployment.bind(group.tools, settings)


def shut_down() -> None:
    """Stop the tools, and the cluster if it was started here."""
    serve.shutdown()  # type: ignore[no-untyped-call]
    ray.shutdown()


def _read_files(workspace: Workspace) -> dict[str, bytes]:
    return {path: read_file(workspace, path) for path in list_files(workspace)}


def _first_line(exc: Exception) -> str:
    return str(exc).strip().splitlines()[0]
