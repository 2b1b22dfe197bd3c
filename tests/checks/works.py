"""Deliveries for tests, and what checks decide about them."""

import asyncio
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Any

import pytest

from gta_bench.checks.decide import decide_leaf
from gta_bench.checks.delivery import CheckedWork, Recognition
from gta_bench.confine.jail import Jail
from gta_bench.errors import ConfinedError
from gta_bench.records.verdicts import Scored, Unscored
from gta_bench.records.workflow import Checkpoint

INPUT = b"\0"


def deliver(
    files: Mapping[str, bytes],
    jail: Jail,
    answer: str = "",
    recognition: Recognition | None = None,
) -> CheckedWork:
    """Work of these files, with one input."""
    return CheckedWork(
        answer,
        {path: partial(bytes, data) for path, data in files.items()},
        jail,
        inputs=[sha256(INPUT).hexdigest()],
        recognition=recognition,
    )


def decide(work: CheckedWork, *checks: Mapping[str, Any], credit: str = "all") -> Scored | Unscored:
    leaf = Checkpoint.model_validate(
        {"id": "a", "by": "check", "checks": list(checks), "credit": credit}
    )
    return asyncio.run(decide_leaf(leaf, work))


def stop_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, every reader waits until it is stopped, as on a machine that is too busy."""

    async def wait(*_: object) -> None:
        raise ConfinedError("the machine was too slow", cause="timeout", jail="none", seconds=28.0)

    monkeypatch.setattr(CheckedWork, "_read", wait)


def points(verdict: Scored | Unscored) -> float:
    assert isinstance(verdict, Scored), verdict
    return verdict.value


def value(file: str, row: str, column: str, equals: object, **more: object) -> dict[str, Any]:
    cell = {"file": file, "row": row, "column": column, "equals": equals}
    return {"is": "table.value", **cell, **more}
