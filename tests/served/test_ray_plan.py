"""Plans of tools on Ray, and a replica's work; the cluster: `tests/measure/test_ray_serve.py`."""

import asyncio
from collections.abc import Coroutine, Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import JsonValue

from gta_bench.cli import app
from gta_bench.errors import ConfigError, ToolError, ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.serving.ray_plan import Scaling, read_plan
from gta_bench.serving.ray_replica import Returned, ToolReplica
from gta_bench.settings import Settings, bind_ray_to_loopback, quiet_ray, use_haproxy
from gta_bench.tools.catalog import load_tool, tool_names
from tests.served.support import contents, workspace_of

KNOWN = ("OCR", "DrawBox", "Calculator", "Plot")


def plan_file(folder: Path, text: str) -> Path:
    file = folder / "plan.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_plan_says_which_tools_go_where(tmp_path: Path) -> None:
    plan = read_plan(
        plan_file(
            tmp_path,
            """
cluster: auto
groups:
  - {name: vision, tools: [OCR], gpus: 0.25, replicas: {min: 0, max: 4, calls: 2}}
  - {name: boxes, tools: [DrawBox], replicas: 2, pip: [pillow==12.3.0]}
  - {name: rest, tools: ["*"]}
""",
        ),
        KNOWN,
    )
    vision, boxes, rest = plan.groups
    assert plan.cluster == "auto" and plan.proxy == "default"
    assert vision.replicas == Scaling(min=0, max=4, calls=2) and vision.runtime_env == {}
    assert boxes.replicas == 2 and boxes.runtime_env == {"pip": ["pillow==12.3.0"]}
    assert rest.tools == ("Calculator", "Plot")


def test_a_rest_of_nothing_is_no_group(tmp_path: Path) -> None:
    file = plan_file(tmp_path, "groups: [{name: a, tools: [OCR]}, {name: b, tools: ['*']}]")
    assert [group.name for group in read_plan(file, ["OCR"]).groups] == ["a"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("groups: [", "is not valid YAML"),
        ("", "the file: Input should be a valid dictionary"),
        ("groups: []", "groups: Tuple should have at least 1 item"),
        ("groups: [{name: a, tools: [OCR], gpu: 1}]", "groups.0.gpu: Extra inputs"),
        ("groups: [{name: a b, tools: [OCR]}]", "groups.0.name: String should match"),
        ("groups: [{name: a, tools: [Nothing]}]", "unknown tool 'Nothing'. Known tools: OCR"),
        ("groups: [{name: a, tools: [OCR, OCR]}]", "'OCR' is in two groups"),
        ("groups: [{name: a, tools: [OCR]}, {name: a, tools: [Plot]}]", "two groups are called"),
        ("groups: [{name: a, tools: [OCR, '*']}]", r"'\*' must be its only entry"),
        ("groups: [{name: a, tools: [OCR], pip: [x], python: y}]", "`pip` or `python`, not both"),
        ("groups: [{name: a, tools: [OCR], replicas: {min: 3, max: 2}}]", "min is more than"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_plan(plan_file(tmp_path, text), KNOWN)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--on", "ray"], "Use --on ray and PLAN together"),
        (["plan.yaml"], "Use --on ray and PLAN together"),
        (["--on", "ray", "plan.yaml", "--stdio"], "have no effect with --on ray"),
        (["--on", "ray", "plan.yaml", "--tool", "OCR"], "have no effect with --on ray"),
        (["--on", "ray", "plan.yaml"], "`proxy: haproxy` opens ports on every address"),
    ],
)
def test_a_command_that_means_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    plan_file(tmp_path, "proxy: haproxy\ngroups: [{name: a, tools: ['*']}]")
    result = CliRunner().invoke(app, ["tools", "serve", *arguments])
    assert said in str(result.exception)


def test_ray_reads_its_environment_only() -> None:
    environment = {"RAY_USAGE_STATS_ENABLED": "1"}
    quiet_ray(environment)
    bind_ray_to_loopback(environment)
    use_haproxy(environment)
    assert environment["RAY_USAGE_STATS_ENABLED"] == "1", "the user's word holds"
    assert environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    assert environment["RAY_SERVE_ENABLE_HA_PROXY"] == "1"


HTML: dict[str, JsonValue] = {"filename": "page", "html_code": "<p>hello</p>"}


def test_a_replica_takes_files_and_gives_new_ones_back() -> None:
    replica = ToolReplica(("HtmlFileGenerator", "Calculator", "MathOCR"), Settings())
    files = {"inputs/a.txt": b"one", "outputs/page.html": b"before"}

    async def calls() -> list[Returned]:
        return [
            await replica.call("HtmlFileGenerator", HTML, files),
            await replica.call("Calculator", {"expression": "1/"}, {}),
            await replica.call("MathOCR", {"image": "inputs/a.txt"}, files),
        ]

    page, broken, missing = asyncio.run(calls())
    assert page.done and [path for path, _ in page.files] == ["outputs/page-2.html"]
    assert ToolResult.model_validate_json(page.outcome).tool == "HtmlFileGenerator"
    assert not broken.done and '"kind":"error"' in broken.outcome
    assert not missing.done and '"kind":"unavailable"' in missing.outcome


class Handle:
    """In Ray's place: replicas of which the first ones end under a call."""

    def __init__(self, replica: ToolReplica, ends: list[Exception]) -> None:
        self.call = self
        self._replica, self._ends = replica, ends

    async def remote(self, *call: Any) -> Returned:
        if self._ends:
            raise self._ends.pop()
        return await self._replica.call(*call)


@pytest.mark.filterwarnings("ignore:Using extra keyword arguments:DeprecationWarning")  # Ray's
def test_calls_go_to_another_replica_and_files_come_here(tmp_path: Path) -> None:
    from ray.exceptions import RayActorError
    from ray.serve.exceptions import BackPressureError

    from gta_bench.serving.limits import Busy
    from gta_bench.serving.ray_serve import TRIES, RayTools

    names = ("HtmlFileGenerator", "Calculator", "MathOCR")
    assert {*names} <= {*tool_names()}
    ends: list[Exception] = []
    handle: Any = Handle(ToolReplica(names, Settings()), ends)
    specs = {name: load_tool(name).spec() for name in names}
    tools = RayTools(specs, dict.fromkeys(names, handle))
    assert tools.specs() == specs

    async def call(name: str, arguments: Mapping[str, JsonValue], *failures: Exception) -> str:
        ends[:] = failures
        return (await tools.call(workspace, name, arguments)).text

    with workspace_of(tmp_path, {"inputs/a.txt": b"one"}) as workspace:
        both = asyncio.run(_twice(call("HtmlFileGenerator", HTML), call("HtmlFileGenerator", HTML)))
        assert len({*both}) == 2, "calls in one workspace take turns"
        assert {*contents(workspace)} == {
            "inputs/a.txt",
            "outputs/page.html",
            "outputs/page-2.html",
        }
        died = [RayActorError() for _ in range(TRIES)]
        sums = {"expression": "1 + 1"}
        assert asyncio.run(call("Calculator", sums, *died[1:])) == "2"
        with pytest.raises(Busy, match="ended during the call"):
            asyncio.run(call("Calculator", sums, *died))
        with pytest.raises(Busy, match=r"replicas of .* are busy"):
            asyncio.run(call("Calculator", sums, BackPressureError(1, 1)))
        with pytest.raises(ToolError, match="Calculator"):
            asyncio.run(call("Calculator", {"expression": "1/"}))
        with pytest.raises(ToolUnavailable):
            asyncio.run(call("MathOCR", {"image": "inputs/a.txt"}))
        with pytest.raises(ToolError, match="Unknown tool 'Nothing'"):
            asyncio.run(call("Nothing", {}))


async def _twice(*calls: Coroutine[Any, Any, str]) -> list[str]:
    return list(await asyncio.gather(*calls))


def test_ray_opens_the_port_of_a_replica_as_our_patch_expects() -> None:
    """`bind_replica_to_loopback` replaces this function in this module; see there."""
    source = distribution("ray").locate_file("ray/serve/_private/replica.py").read_text()
    assert "import add_port_to_grpc_server\n" in source
    assert source.count("add_port_to_grpc_server(") == 1
    assert 'add_port_to_grpc_server(self._server, "[::]:0")' in source
