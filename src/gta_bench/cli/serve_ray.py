"""`gta tools serve --on ray`: the tools on a Ray cluster, until a signal ends them."""

import signal
from collections.abc import Sequence
from pathlib import Path

from gta_bench.cli.output import say
from gta_bench.errors import UsageError, counted
from gta_bench.serving.choice import TOKEN_VARIABLE
from gta_bench.serving.ray_plan import LOCAL, Group, Scaling, read_plan
from gta_bench.settings import Settings, keep_ray_here, quiet_ray, use_haproxy
from gta_bench.tools.catalog import load_tool, tool_names

ENDS = (signal.SIGINT, signal.SIGTERM)


def serve_on_ray(
    file: Path, settings: Settings, tokens: Sequence[str], host: str, port: int, *, new: bool
) -> None:
    """Start what the plan says, and end it with Ctrl-C."""
    plan = read_plan(file, tool_names())
    quiet_ray()
    if plan.cluster == LOCAL:
        keep_ray_here()
    if plan.proxy == "haproxy":
        if new:
            raise UsageError(
                "proxy: haproxy opens ports on every address of the machine; give a token with "
                "--token-env or --token-file."
            )
        use_haproxy()
    # Ray reads its environment when it is imported.
    from gta_bench.serving import ray_serve

    specs = {name: load_tool(name).spec() for name in tool_names()}
    ray_serve.connect(plan.cluster)
    try:
        # Both are held back until there is nothing left to break off.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
        ray_serve.deploy(plan, specs, settings, tuple(tokens), host=host, port=port)
        if new:
            say(f"{TOKEN_VARIABLE}={tokens[0]}")
        for group in plan.groups:
            say(f"{group.name}: {_described(group)}")
        count = sum(len(group.tools) for group in plan.groups)
        say(f"{counted(count, 'tool')} at http://{host}:{port}; end with Ctrl-C.")
        signal.sigwait(ENDS)
    finally:
        ray_serve.shut_down()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)


def _described(group: Group) -> str:
    many = group.replicas
    replicas = f"{many.min} to {many.max}" if isinstance(many, Scaling) else str(many)
    parts = [counted(len(group.tools), "tool"), f"replicas {replicas}", f"{group.cpus:g} CPUs each"]
    if group.gpus:
        parts.append(f"{group.gpus:g} GPUs each")
    parts += group.pip or ([group.python] if group.python else [])
    return ", ".join(parts)
