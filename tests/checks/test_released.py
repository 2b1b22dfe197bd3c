"""Checks for leaves of the released tasks, against the stored verdicts of the published judge."""

import asyncio
import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from gta_bench.checks.decide import decide_leaf
from gta_bench.checks.delivery import CheckedWork
from gta_bench.datasets.workflow import load_workflow
from gta_bench.records.verdicts import Scored
from gta_bench.records.workflow import Checkpoint
from gta_bench.settings import Settings
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.recognition import make_recognition
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("bwrap", "chromium", "ffmpeg")]

PREDICTIONS = "predictions/workflow_gemini25pro_lagent_20"
LEAVES = tomllib.loads(Path(__file__).with_name("released_leaves.toml").read_text("utf-8"))["leaf"]
PASSES = 7.0


class Compared(NamedTuple):
    """A leaf: what the checks and the published judge say, and whether its files exist."""

    task: str
    leaf: str
    check: Scored
    judge: float
    delivered: bool
    differs: str | None

    @property
    def agrees(self) -> bool:
        return (self.check.value >= PASSES) == (self.judge >= PASSES)


@pytest.fixture(scope="module")
def compared(data_dir: Path) -> list[Compared]:
    return asyncio.run(_compare(data_dir))


async def _compare(data: Path) -> list[Compared]:
    found = []
    async with use_equipment(Settings()) as equipment:
        recognition = make_recognition(equipment)
        works: dict[str, CheckedWork] = {}
        for entry in LEAVES:
            folder = data / PREDICTIONS / f"task{entry['task']}"
            if entry["task"] not in works:
                works[entry["task"]] = CheckedWork(
                    "",
                    {file.name: file.read_bytes for file in folder.glob("attachments/*")},
                    equipment.need_jail(),
                    inputs=[*_digest_inputs(data)],
                    recognition=recognition,
                )
            work = works[entry["task"]]
            leaf = Checkpoint.model_validate(
                {"id": entry["id"], "by": "check", "checks": entry["checks"]}
            )
            verdict = await decide_leaf(leaf, work)
            assert isinstance(verdict, Scored), (entry["task"], entry["id"], verdict)
            lacking = "was not delivered" in verdict.reason
            judge = _read_scores(folder)[entry["id"]]
            found.append(
                Compared(
                    entry["task"], entry["id"], verdict, judge, not lacking, entry.get("differs")
                )
            )
    return found


def _digest_inputs(data: Path) -> Iterator[str]:
    for file in (data / "gta_workflow" / "resources").rglob("*.*"):
        if file.is_file():
            yield sha256(file.read_bytes()).hexdigest()


def _read_scores(folder: Path) -> dict[str, float]:
    stored = json.loads((folder / "official_rescore_result.json").read_text(encoding="utf-8"))
    return {node["id"]: node["score"] for node in stored["details"][0]["nodes"]}


def test_every_leaf_is_one_of_the_dataset(data_dir: Path) -> None:
    tasks = load_workflow(data_dir / "gta_workflow").tasks.values()
    known = {(task.id, leaf.id) for task in tasks for leaf in task.leaves()}
    listed = [(entry["task"], entry["id"]) for entry in LEAVES]
    assert len(listed) >= 40 and len({*listed}) == len(listed)
    assert {*listed} <= known


def test_every_disagreement_with_the_stored_verdicts_is_explained(
    compared: list[Compared],
) -> None:
    wrong = [one for one in compared if one.agrees == bool(one.differs)]
    assert not wrong, "\n".join(map(str, wrong))


def test_the_figures_of_the_docs(compared: list[Compared]) -> None:
    """docs/measurements.md, Checks against stored verdicts."""
    kinds = {check["is"] for entry in LEAVES for check in entry["checks"]}
    assert (len({one.task for one in compared}), len(compared), len(kinds)) == (20, 101, 18)
    table = Counter(
        (one.delivered, one.check.value >= PASSES, one.judge >= PASSES) for one in compared
    )
    assert table == {
        (True, True, True): 31,
        (True, False, False): 16,
        (True, True, False): 17,
        (True, False, True): 4,
        (False, False, False): 28,
        (False, False, True): 5,
    }
