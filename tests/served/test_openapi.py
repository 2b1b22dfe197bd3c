"""What the OpenAPI page says, and whether random requests after it find a crash."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
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


def test_versions_and_the_list_of_tools(served: Served) -> None:
    with served.client() as client:
        versions = client.get("/version").json()
        assert versions["protocol"] == 1
        assert set(versions["packages"]) == {"gta-bench", "fastapi", "mcp", "uvicorn"}
        assert [tool["name"] for tool in client.get("/v1/tools").json()["tools"]] == TOOLS


def test_random_requests_find_no_crash(served: Served) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json", headers=headers)
    space = served.open(light_files())
    tried = 0
    for result in schema.get_all_operations():
        assert not isinstance(result, Err)
        operation = result.ok()
        tried += 1

        @settings(
            max_examples=8,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), real=st.booleans())
        def probe(case: schemathesis.Case[Any], real: bool) -> None:
            if real and "workspace" in case.path_parameters and case.method != "DELETE":
                case.path_parameters["workspace"] = space.workspace
            response = case.call(headers=headers, timeout=60)
            assert response.status_code < 500, (case.method, case.path, case.body)

        probe()
    assert tried == 9 + len(TOOLS)
