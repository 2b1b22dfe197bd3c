"""What the OpenAPI page says, and whether random requests after it find a crash."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core.result import Err

from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox
from tests.served.examples import light_files
from tests.served.support import TOKEN, Served, tool_server

pytestmark = pytest.mark.usefixtures("loopback")
# Models and programs are not what is tested here.
TOOLS = [
    "Calculator",
    "DrawBox",
    "AddText",
    "ReadCSV",
    "CsvFileGenerator",
    "GoogleSearch",
    "Solver",
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    box = Toolbox(Equipment(Settings()), TOOLS)
    with tool_server(box, tmp_path_factory.mktemp("openapi")) as running:
        yield running


def test_each_tool_has_a_route_with_its_arguments(served: Served) -> None:
    with served.client() as client:
        page = client.get("/openapi.json").json()
    route = page["paths"]["/v1/w/{workspace}/tools/DrawBox"]["post"]
    assert route["operationId"] == "DrawBox"
    schema = route["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["image", "bbox"]
    assert "inputs/NAME" in schema["properties"]["image"]["description"]
    assert set(TOOLS) == {path.rpartition("/")[2] for path in page["paths"] if "/tools/" in path}


def test_whatever_the_page_refers_to_is_there(served: Served) -> None:
    """The form of a workspace's files was looked for where it was not."""
    with served.client() as client:
        page = client.get("/openapi.json").text
    referred = set(re.findall(r'"\$ref":\s*"#/components/schemas/([^"]+)"', page))
    assert {"FileRef", "CallReply"} <= referred <= set(json.loads(page)["components"]["schemas"])
    assert page.count('"$ref"') == page.count("#/components/schemas/")


def test_versions_and_the_list_of_tools(served: Served) -> None:
    with served.client() as client:
        versions = client.get("/version").json()
        assert versions["protocol"] == 1
        assert set(versions["packages"]) == {"gta-bench", "fastapi", "mcp", "uvicorn"}
        assert [tool["name"] for tool in client.get("/v1/tools").json()["tools"]] == TOOLS


def test_random_requests_find_no_crash(served: Served) -> None:
    assert probe_all(served, GenerationMode.POSITIVE, examples=8) == 9 + len(TOOLS)


@pytest.mark.slow
def test_random_requests_to_every_tool_find_no_crash(tmp_path: Path) -> None:
    """Right and wrong ones; tools that need a jail or a key say so."""
    box = Toolbox(Equipment(Settings()))
    with tool_server(box, tmp_path) as served:
        for mode in GenerationMode:
            assert probe_all(served, mode, examples=12) == 9 + len(box.specs())


def probe_all(served: Served, mode: GenerationMode, *, examples: int) -> int:
    """Random requests to every operation, about half of them in a real workspace."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json", headers=headers)
    space = served.open(light_files())
    tried = 0
    for result in schema.get_all_operations():
        assert not isinstance(result, Err)
        operation = result.ok()
        tried += 1
        if mode is GenerationMode.NEGATIVE and operation.method.upper() != "POST":
            continue  # any text is a path, and any bytes are a content: nothing can be wrong

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
        def probe(case: schemathesis.Case[Any], real: bool) -> None:
            if real and "workspace" in case.path_parameters and case.method != "DELETE":
                case.path_parameters["workspace"] = space.workspace
            response = case.call(headers=headers, timeout=60)
            assert response.status_code < 500, (case.method, case.path, case.body)

        probe()
    return tried
