"""The plan of a tool server on Ray: which tools run in which group, read from a YAML file."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml  # type: ignore[import-untyped]
from pydantic import Field, ValidationError

from gta_bench.errors import ConfigError
from gta_bench.records.base import Record

LOCAL = "local"  # a cluster that the command starts and stops
OTHERS = "*"  # the tools that no other group names


class Scaling(Record):
    """The number of replicas: as many as the calls need, between two bounds."""

    min: Annotated[int, Field(ge=0)] = 0
    max: Annotated[int, Field(ge=1)]
    calls: Annotated[float, Field(gt=0)] = 1  # running calls for each replica
    idle_seconds: Annotated[float, Field(ge=0)] = 300  # before a replica is stopped


class Group(Record):
    """Tools that share replicas: processes with the same resources and packages."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,60}$")]
    tools: Annotated[tuple[str, ...], Field(min_length=1)]
    replicas: Annotated[int, Field(ge=1)] | Scaling = 1
    calls: Annotated[int, Field(ge=1)] = 8  # concurrent calls in a replica
    cpus: Annotated[float, Field(ge=0)] = 1
    gpus: Annotated[float, Field(ge=0)] = 0
    pip: tuple[str, ...] = ()
    python: str | None = None

    @property
    def runtime_env(self) -> dict[str, Any]:
        """Return Ray's runtime environment of the group; Ray rejects empty values."""
        given = {"pip": list(self.pip), "py_executable": self.python}
        return {name: value for name, value in given.items() if value}


class ServePlan(Record):
    """The tools of a server on Ray, in groups."""

    cluster: str = LOCAL  # or `auto`, or the address of one that runs
    proxy: Literal["default", "haproxy"] = "default"
    groups: Annotated[tuple[Group, ...], Field(min_length=1)]


def read_plan(file: Path, known: Collection[str]) -> ServePlan:
    """Read a plan and check that each tool exists and is in one group."""
    try:
        plan = ServePlan.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except yaml.YAMLError as exc:
        raise ConfigError(f"{file} is not valid YAML: {' '.join(str(exc).split())}") from exc
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{file}: {where or 'the file'}: {first['msg']}.") from exc
    problem = _find_problem(plan, known)
    if problem is not None:
        raise ConfigError(f"{file}: {problem}")
    named = {tool for group in plan.groups for tool in group.tools}
    others = tuple(name for name in known if name not in named)
    groups = [
        group.model_copy(update={"tools": others}) if group.tools == (OTHERS,) else group
        for group in plan.groups
    ]
    return plan.model_copy(update={"groups": tuple(group for group in groups if group.tools)})


def _find_problem(plan: ServePlan, known: Collection[str]) -> str | None:
    """Return what is wrong with a plan as a whole, if anything is."""
    tools = Counter(tool for group in plan.groups for tool in group.tools)
    unknown = [tool for tool in tools if tool not in known and tool != OTHERS]
    if unknown:
        return f"unknown tool {unknown[0]!r}. Known tools: {', '.join(known)}."
    tool, count = tools.most_common(1)[0]
    if count > 1:
        return f"{tool!r} is in two groups; name it in one."
    name, count = Counter(group.name for group in plan.groups).most_common(1)[0]
    if count > 1:
        return f"two groups are called {name!r}; give each its own name."
    for group in plan.groups:
        if OTHERS in group.tools and len(group.tools) > 1:
            return f"group {group.name!r}: {OTHERS!r} must be its only entry."
        if group.pip and group.python:
            return f"group {group.name!r}: give `pip` or `python`, not both."
        if isinstance(group.replicas, Scaling) and group.replicas.min > group.replicas.max:
            return f"group {group.name!r}: replicas.min is more than replicas.max."
    return None
