"""Judges are asked while the evidence of the next units is made."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import gta_bench
from gta_bench.demo import WORKFLOW
from gta_bench.demo.script import make_scripted_model
from gta_bench.judging.judge import judge_unit
from gta_bench.judging.run_evidence import RunEvidence
from gta_bench.records.evidence import Evidence
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored
from gta_bench.running.stopping import run_beside
from gta_bench.tasks import judging

JUDGE = "scripted/honest"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    gta_bench.run(
        "workflow", folder, model=make_scripted_model(), data=WORKFLOW, tasks="sales", epochs=3
    )
    return folder


@pytest.mark.measure
def test_a_judge_is_asked_before_all_evidence_is_made(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = RunEvidence.evidence
    asked = threading.Event()
    begun: list[int] = []

    async def make_late(self: RunEvidence, unit: WorkflowUnit) -> Evidence:
        begun.append(unit.epoch)
        if unit.epoch > 1:
            assert await asyncio.to_thread(asked.wait, 60)
        return await make(self, unit)

    async def ask_and_note(*args: Any, **options: Any) -> Any:
        asked.set()
        return await judge_unit(*args, **options)

    monkeypatch.setattr(RunEvidence, "evidence", make_late)
    monkeypatch.setattr(judging, "judge_unit", ask_and_note)
    gta_bench.judge(run, JUDGE)
    verdicts = gta_bench.verdicts(run)
    assert sorted(begun) == [1, 2, 3]
    assert {key.epoch for key in verdicts} == {1, 2, 3}
    assert all(isinstance(row.verdict, Scored) for row in verdicts.values())


def test_a_bug_in_making_evidence_is_raised_and_gives_no_verdict(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: RunEvidence, unit: WorkflowUnit) -> Evidence:
        raise ZeroDivisionError

    monkeypatch.setattr(RunEvidence, "evidence", fail)
    with pytest.raises(ExceptionGroup) as raised:
        gta_bench.judge(run, JUDGE)
    assert raised.group_contains(ZeroDivisionError)
    assert not gta_bench.verdicts(run)


def test_work_beside_ends_with_the_block_and_its_error_is_raised() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def fail() -> None:
        raise ZeroDivisionError

    with run_beside(wait()):
        begun.wait()
    assert ended.is_set()
    with pytest.raises(KeyError), run_beside(wait()):
        raise KeyError
    with pytest.raises(ZeroDivisionError), run_beside(fail()):
        raise KeyError
