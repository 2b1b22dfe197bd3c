"""Products behind HTTP: the example service, and products that break off, lie or never end."""

import asyncio
import json
import runpy
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner, Result
from fastapi import FastAPI, Request, Response

from gta_bench.cli import app
from gta_bench.confine.workspace import Quota
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import EnvironmentProblem, GtaError, ToolError, ToolUnavailable
from gta_bench.harnesses.collecting import Keeping
from gta_bench.harnesses.product import About, Product, ProductClient, ProductFile, State, Submitted
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from gta_bench.tools.backends.transport import Bounds
from tests.builders import JPEG, atomic_task, workflow_task, write_atomic, write_workflow
from tests.conftest import REPOSITORY
from tests.harnesses.asgi import serving

KEY = "key-of-the-product"
CONTRACT = REPOSITORY / "docs" / "reference" / "product-api.yaml"
HASTY = Bounds(attempts=3, seconds=20, first_delay=0.01, longest_delay=0.05)


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def units(run: Path) -> dict[str, WorkflowUnit]:
    manifest = read_manifest(run)
    found = read_units(log_folder(run), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit)
    return {unit.task.id: unit for unit in found.units}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: None) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRODUCT_KEY", KEY)
    files = [{"type": "image", "path": "image/menu.jpg", "url": None}]
    tasks = {"7": workflow_task(files=files), "8": workflow_task()}
    data = write_workflow(tmp_path / "data" / "gta_workflow", tasks)
    (data / "image").mkdir()
    (data / "image" / "menu.jpg").write_bytes(JPEG)
    return tmp_path


@pytest.fixture
def example() -> Iterator[str]:
    with serving(runpy.run_path(str(REPOSITORY / "examples" / "product_service.py"))["app"]) as url:
        yield url


def run(url: str, *more: str) -> Result:
    keyed = ("--product", url, "--product-key-env", "PRODUCT_KEY")
    return gta("run", "workflow", *keyed, "--out", "runs/product", *more)


def test_the_example_is_measured_like_any_system(here: Path, example: str) -> None:
    result = run(example)
    assert result.exit_code == 0, result.output
    assert "Example 1.0 · none;" in result.stderr
    manifest = read_manifest(here / "runs/product")
    assert (manifest.spec.system.harness, manifest.spec.system.harness_version) == (
        "Example",
        "1.0",
    )
    assert manifest.spec.tools == "own"
    found = units(here / "runs/product")
    assert {unit.answer for unit in found.values()} == {"The report is in docs/report.md."}
    (report,) = found["7"].deliverables
    assert report.path == "outputs/docs/report.md"
    text = ArtefactStore(here / "runs/product" / ARTEFACTS).read(report.digest).decode()
    assert "These files belong to the request: `menu.jpg`\n\nWrite a report." in text
    assert "Given: menu.jpg." in text
    assert [item.path for item in found["7"].inputs] == ["inputs/menu.jpg"]
    assert found["7"].usage.cost_usd == 0.01
    assert found["7"].usage.seconds > 0
    dataset = load_workflow(here / "data" / "gta_workflow")
    assert found["7"].digests == task_digests(dataset, "7")


def test_an_atomic_task_is_answered_end_to_end(here: Path) -> None:
    write_atomic(here / "data" / "gta_atomic", {"0": atomic_task(), "1": atomic_task()})
    command = ("run", "atomic", "--similarity", "exact-or-half", "--out", "runs/a", "--product")
    product = Scripted({"name": "Clever", "status": "done", "final": "It costs 7."})
    with serving(product.app) as url:
        wrong = gta(*command, url, "--mode", "step")
        result = gta(*command, url, "--mode", "end-to-end", "--tasks", "0,1")
    assert "--mode step means nothing to a product" in str(wrong.exception)
    assert result.exit_code == 0, result.output
    assert "Clever; model calls unknown" in result.stderr
    scores = json.loads((here / "runs/a/scores.json").read_bytes())
    assert (scores["n"], scores["strict"]["ans_acc"]) == (2, 100.0)


def test_the_same_command_asks_for_nothing_twice(here: Path, example: str) -> None:
    run(example, "--tasks", "8")
    logs = sorted((here / "runs/product/logs").iterdir())
    assert run(example, "--tasks", "8").exit_code == 0
    assert sorted((here / "runs/product/logs").iterdir()) == logs


def test_a_key_that_is_wrong_or_not_there_is_told_before_anything_runs(
    here: Path, example: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = gta("run", "workflow", "--product", example, "--out", "runs/x")
    assert isinstance(refused.exception, ToolUnavailable)
    assert "refused the key (status 401)" in str(refused.exception)
    monkeypatch.delenv("PRODUCT_KEY")
    missing = run(example)
    assert isinstance(missing.exception, EnvironmentProblem)
    assert "PRODUCT_KEY is not set" in str(missing.exception)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    "more",
    [
        ["--model", "a/b"],
        ["--harness", "true {task_file}"],
        ["--tools", "http://127.0.0.1:1"],
        ["--control", "no-tools"],
    ],
)
def test_a_product_brings_its_own_model_and_tools(here: Path, more: list[str]) -> None:
    result = run("http://127.0.0.1:9", *more)
    assert "means nothing to a product behind HTTP; leave it out" in str(result.exception)


def test_an_address_must_be_one(here: Path) -> None:
    assert "is no address" in str(run("product.example").exception)


# Products that a test makes


class Scripted:
    """A product whose states and files a test gives; it counts what it is asked."""

    def __init__(self, *states: dict[str, Any], files: dict[str, bytes] | None = None) -> None:
        self.states, self.files = list(states), files or {}
        self.asked: Counter[str] = Counter()
        self.keys: set[str] = set()
        self.faults: list[int] = []
        self.app = FastAPI()
        self.app.add_api_route("/{path:path}", self.answer, methods=["GET", "POST", "DELETE"])

    async def answer(self, path: str, request: Request) -> Response:
        await request.body()
        self.asked[f"{request.method} {path}"] += 1
        if self.faults:
            return Response(status_code=self.faults.pop(0), headers={"retry-after": "0"})
        if request.method == "POST":
            self.keys.add(request.headers["idempotency-key"])
            return Response(json.dumps({"id": "t1"}), 201)
        if request.method == "DELETE":
            return Response(status_code=204)
        if "/files/" in path:
            return Response(self.files[path.rpartition("/")[2]])
        return Response(json.dumps(self.states.pop(0) if len(self.states) > 1 else self.states[0]))


Asking = Callable[[Scripted], tuple[State, Keeping]]


@pytest.fixture
def ask(tmp_path: Path, loopback: None) -> Asking:
    def asking(product: Scripted) -> tuple[State, Keeping]:
        keeping = Keeping(ArtefactStore(tmp_path / "kept"), quota=Quota(file_bytes=100, files=2))
        with serving(product.app) as url:
            client = ProductClient(Product(url=url, seconds=0.5, bounds=HASTY))
            return asyncio.run(client.work("Do it.", {"a.txt": b"x"}, keeping)), keeping

    return asking


def listed(*names: str, size: int = 1) -> list[dict[str, Any]]:
    return [{"id": f"f{n}", "name": name, "size": size} for n, name in enumerate(names)]


def test_a_lost_reply_is_asked_again_under_the_same_key(ask: Asking) -> None:
    product = Scripted({"status": "queued"}, {"status": "done", "final": "ok"})
    product.faults = [503, 429]
    state, _ = ask(product)
    assert (state.status, state.final) == ("done", "ok")
    assert product.asked["POST v1/tasks"] == 3
    assert len(product.keys) == 1


def test_a_product_that_never_ends_is_cancelled_and_keeps_what_it_made(ask: Asking) -> None:
    product = Scripted({"status": "running", "files": listed("a.txt")}, files={"f0": b"1"})
    state, keeping = ask(product)
    assert (state.status, state.error) == ("failed", "not done after 0.5 seconds")
    assert [file.path for file in keeping.result.deliverables] == ["outputs/a.txt"]
    assert product.asked["DELETE v1/tasks/t1"] == 1


def test_files_with_unusable_names_or_beyond_the_quota_are_left_out(ask: Asking) -> None:
    names = ("../a.txt", "/etc/passwd", "a//b", "a\\b", "ok/1.txt", "2.txt", "3.txt")
    files = [*listed("huge.bin", size=101), *listed(*names)]
    product = Scripted({"status": "done", "files": files}, files={f"f{n}": b"1" for n in range(9)})
    _, keeping = ask(product)
    assert [file.path for file in keeping.result.deliverables] == [
        "outputs/2.txt",
        "outputs/ok/1.txt",
    ]
    reasons = {item.name: item.reason for item in keeping.result.left_out}
    assert reasons.pop("huge.bin") == "is larger than the task's quota allows"
    assert reasons.pop("3.txt") == "is one file too many"
    assert set(reasons.values()) == {"is not a usable file name"}


@pytest.mark.parametrize(
    ("state", "kind", "said"),
    [
        ({"status": "sleeping"}, EnvironmentProblem, "does not keep the contract: status: Input"),
        ([], EnvironmentProblem, "does not keep the contract: the reply"),
        (
            {"status": "done", "files": [{"id": "../x", "name": "a", "size": 1}]},
            GtaError,
            "files.0.id",
        ),
        ({"status": "done", "meta": {"cost": 1}}, GtaError, "meta.cost: Extra inputs"),
        ({"status": "done", "files": listed("a.txt")}, ToolError, "sent more than 1 bytes"),
    ],
)
def test_a_product_that_breaks_the_contract_fails_the_unit(
    ask: Asking, state: Any, kind: type[GtaError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        ask(Scripted(state, files={"f0": b"more than it said"}))


def test_a_product_that_is_gone_fails_the_unit_and_the_same_command_completes_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "gta_bench.cli.product.Product", lambda **given: Product(bounds=HASTY, **given)
    )
    product = Scripted({"name": "Flaky", "status": "done", "final": "ok"})
    original = product.answer

    async def gone_while_working(path: str, request: Request) -> Response:
        if product.asked.total() and path != "v1/about":
            return Response(status_code=500)
        return await original(path, request)

    flaky = FastAPI()
    flaky.add_api_route("/{path:path}", gone_while_working, methods=["GET", "POST", "DELETE"])
    with serving(flaky) as url:
        first = run(url, "--tasks", "8")
    assert first.exit_code == 1, first.output
    assert "not able to answer now (status 500)" in str(units(here / "runs/product")["8"].failure)
    with serving(product.app) as url:  # at another port
        second = run(url, "--tasks", "8")
    assert second.exit_code == 0, second.output
    assert units(here / "runs/product")["8"].answer == "ok"


def test_a_product_that_says_that_it_failed_has_delivered_what_there_is(here: Path) -> None:
    state = {"name": "Sorry", "status": "failed", "error": "no credit", "final": "Half of it."}
    with serving(Scripted(state).app) as url:
        assert run(url, "--tasks", "8").exit_code == 0
    unit = units(here / "runs/product")["8"]
    assert (unit.answer, unit.failure, unit.deliverables) == ("", None, ())
    assert unit.trace[0].model_dump()["error"] == {"type": "failed", "message": "no credit"}


# The contract's document


def contract() -> Any:
    return yaml.safe_load(CONTRACT.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", [About, Submitted, ProductFile, State])
def test_the_document_names_the_fields_that_are_read(kind: Any) -> None:
    schema = contract()["components"]["schemas"][kind.__name__]
    assert set(schema["properties"]) == set(kind.model_fields)
    needed = {name for name, field in kind.model_fields.items() if field.is_required()}
    assert set(schema["required"]) == needed


def test_the_example_s_replies_are_those_of_the_document(here: Path, example: str) -> None:
    meta = json.loads((CONTRACT.parent / "schemas/ResultMeta.schema.json").read_bytes())
    document = contract() | {"$defs": meta["$defs"]}
    document["components"]["schemas"]["State"]["properties"]["meta"] = meta
    headers = {"authorization": f"Bearer {KEY}", "idempotency-key": "0" * 32}
    with httpx.Client(base_url=example, headers=headers) as client:
        replies = {
            "About": client.get("/v1/about"),
            "Submitted": client.post("/v1/tasks", data={"prompt": "Hello"}),
            "State": client.get(f"/v1/tasks/{'0' * 32}"),
        }
    for name, reply in replies.items():
        jsonschema.validate(reply.json(), document | {"$ref": f"#/components/schemas/{name}"})
