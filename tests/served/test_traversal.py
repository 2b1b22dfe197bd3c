"""Texts that try to lead out of a workspace, in every argument that is a text, over sockets."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gta_bench.records.tools import ToolSpec
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.equipment import close_equipment, open_equipment
from gta_bench.tools.toolbox import Toolbox
from tests.confine.test_hostile_files import HOSTILE_PATHS
from tests.served.examples import FILM, SOUND, light_files, media_files
from tests.served.support import Served, tool_server

pytestmark = pytest.mark.usefixtures("loopback")
DOTS = "\uff0e\uff0e"  # as wide as Chinese letters
TRAVERSALS = [
    *HOSTILE_PATHS,
    *(f"{'../' * depth}{target}" for depth in range(1, 9) for target in ("etc/passwd", "x.txt")),
    *(f"{dots}/{dots}/etc/passwd" for dots in ("..;", "%2e%2e", "%252e%252e", "..%00", DOTS)),
    *(f"inputs/{name}" for name in ("..%5c..", "..%c0%af..", "....//....//x", ".../...//x")),
    *(f"outputs/../{name}" for name in ("inputs/receipt.png", ".partial", "x", "../spaces")),
    *(f"{root}etc/passwd" for root in ("/./", "//?/", "file:", "jar:file:", "phar://", "\\\\.\\")),
]
PLAIN = frozenset({"int", "float", "bool"})
# A local model would be asked by each of these calls; its file argument is tested by the others.
LOADS_A_MODEL = {"OCR", "ImageDescription", "CountGivenObject", "TextToBbox", "ImageStylization"}
LOADS_A_MODEL |= {"RegionAttributeDescription", "MathOCR"}
# No value of these is refused, so a call that spoils one can spoil `output_dir` as well.
FREE = {"content", "html_code", "text", "annotation"}


@dataclass(frozen=True)
class Target:
    """A server that is attacked: where its folder lies, and what each workspace holds."""

    served: Served
    folder: Path
    files: Mapping[str, bytes]


@pytest.fixture(scope="module")
def without_jail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The real tools, as many as need no jail."""
    folder = tmp_path_factory.mktemp("traversal")
    with tool_server(Toolbox(Equipment(Settings())), folder / "served") as served:
        yield Target(served, folder, light_files())


def whole(spec: ToolSpec) -> dict[str, Any]:
    """Arguments that are right, to be spoiled."""
    values = {
        "image": "inputs/receipt.png", "audio": SOUND, "video": FILM,
        "file": "inputs/table.csv", "csv_file": "inputs/table.csv", "bbox": "(1, 1, 9, 9)",
        "position": "lt", "text": "x", "image_paths": "", "data_str": '[["a"]]',
        "expression": "1", "filename": "name", "attribute": "color", "html_code": "<p>x</p>",
        "content": "x", "slides_content_str": '[{"title": "a", "content": "b"}]',
    }  # fmt: skip
    required = [entry.name or "" for entry in spec.inputs if not entry.optional]
    return {name: values.get(name, "x") for name in required}


def asks_a_model(spec: ToolSpec, kind: str) -> bool:
    """Whether a text of this kind goes to a local model."""
    return spec.name in LOADS_A_MODEL and kind == "text"


def attacks(spec: ToolSpec) -> list[tuple[str, ...]]:
    """The arguments that one call spoils; each argument that is a text is in one of them."""
    texts = [
        entry.name or ""
        for entry in spec.inputs
        if entry.type not in PLAIN and not asks_a_model(spec, entry.type)
    ]
    carrier = next((name for name in texts if name in FREE), None)
    if carrier is None or "output_dir" not in texts:
        return [(name,) for name in texts]
    pair = (carrier, "output_dir")
    return [pair, *((name,) for name in texts if name not in pair)]


def attack(
    target: Target, spec: ToolSpec, names: tuple[str, ...], texts: list[str]
) -> Counter[int]:
    """One call for each text, in a workspace of their own; how many had which status."""
    statuses: Counter[int] = Counter()
    space = target.served.open(target.files)  # anew, because outputs are bounded
    with target.served.client(space.token) as client:
        for text in texts:
            body = json.dumps({**whole(spec), **dict.fromkeys(names, text)})
            answer = client.post(f"/v1/w/{space.workspace}/tools/{spec.name}", content=body)
            assert answer.status_code in (200, 400, 413, 422, 424), (spec.name, names, text)
            for secret in ("planted-secret", "root:x:0:0", str(target.folder)):
                assert secret not in answer.text, (spec.name, names, text)
            statuses[answer.status_code] += 1
        assert client.delete(f"/v1/w/{space.workspace}").status_code == 204
    return statuses


def asked(spec: ToolSpec) -> list[tuple[str, ...]]:
    """The arguments that go to a local model."""
    return [(entry.name or "",) for entry in spec.inputs if asks_a_model(spec, entry.type)]


def sweep(
    target: Target,
    *,
    every: int,
    at_once: int = 1,
    spoiled: Callable[[ToolSpec], list[tuple[str, ...]]] = attacks,
) -> dict[str, Counter[int]]:
    """Hostile texts in every argument that is a text; what the calls of each tool came to."""
    planted = target.folder / "secret.txt"
    planted.write_text("planted-secret", encoding="utf-8")
    target.served.open(target.files)  # so that all contents are there
    before = everything(target)
    found: dict[str, Counter[int]] = {}
    with ThreadPoolExecutor(at_once) as pool:
        jobs: list[tuple[str, Future[Counter[int]]]] = []
        for name, spec in Toolbox(Equipment(Settings())).specs().items():
            for names in spoiled(spec):
                texts = TRAVERSALS[len(jobs) % every :: every]
                jobs.append((name, pool.submit(attack, target, spec, names, texts)))
        for name, job in jobs:
            found[name] = found.get(name, Counter()) + job.result()
    assert everything(target) == before
    return found


def everything(target: Target) -> set[tuple[str, bytes]]:
    """Every file below and beside the server's folder, and what it holds."""
    paths = (path for path in target.folder.rglob("*") if path.is_file())
    return {(str(path), path.read_bytes()) for path in paths}


def calls(found: Mapping[str, Counter[int]]) -> int:
    return sum(statuses.total() for statuses in found.values())


def test_no_text_of_any_argument_leads_out_of_the_workspace(without_jail: Target) -> None:
    assert calls(sweep(without_jail, every=40)) > 150


@pytest.mark.measure
def test_no_text_of_the_whole_corpus_in_any_argument_leads_out_of_the_workspace(
    without_jail: Target,
) -> None:
    assert len(set(TRAVERSALS)) >= 100
    assert calls(sweep(without_jail, every=1)) > 5000


@pytest.fixture
def equipped(tmp_path: Path) -> Iterator[Target]:
    """All tools that run here: with the jail, and with local models."""
    files = {**light_files(), **media_files(tmp_path)}
    equipment = asyncio.run(open_equipment(Settings()))
    try:
        with tool_server(Toolbox(equipment), tmp_path / "served") as served:
            yield Target(served, tmp_path, files)
    finally:
        close_equipment(equipment)


def say(found: Mapping[str, Counter[int]]) -> None:
    for name, statuses in found.items():
        print(name, dict(statuses))
    print(f"{calls(found)} calls")


@pytest.mark.measure
def test_nor_in_what_local_models_are_asked(equipped: Target) -> None:
    found = sweep(equipped, every=1, at_once=2, spoiled=asked)
    say(found)
    assert calls(found) >= 4 * len(TRAVERSALS)


@pytest.mark.measure
def test_nor_with_the_jail(equipped: Target) -> None:
    """The same with every tool that runs foreign code or programs; takes some minutes."""
    found = sweep(equipped, every=1, at_once=4)
    say(found)
    # Each tool that takes a name or a folder did write, if it can run here.
    for name, spec in Toolbox(Equipment(Settings())).specs().items():
        if {"filename", "output_dir"} & {entry.name for entry in spec.inputs}:
            assert found[name][200] or found[name][424], name
