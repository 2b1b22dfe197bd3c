"""Leaves that works of a drafted task pass, without walls around the readers."""

import asyncio
from collections.abc import Iterable
from functools import partial
from hashlib import sha256
from pathlib import Path

from gta_bench.authoring.proofs import read_authored
from gta_bench.checks.decide import decide_leaf
from gta_bench.checks.delivery import CheckedWork
from gta_bench.confine.jail import Jail
from gta_bench.forge.draft import TaskDraft, Work
from gta_bench.forge.writing import write_draft
from gta_bench.records.verdicts import Scored


def list_passed(
    draft: TaskDraft, work: Work, folder: Path, jail: Jail, *, without: Iterable[str] = ()
) -> set[str]:
    """The leaves that a work passes; those of `without` are not decided."""
    if not (folder / "task").is_dir():
        write_draft(draft, folder, "task")
    checked = CheckedWork(
        work.answer,
        {path: partial(bytes, data) for path, data in work.files.items()},
        jail,
        inputs=[sha256(data).hexdigest() for data in draft.inputs.values()],
    )
    passed = set()
    for leaf in read_authored(folder / "task").task.leaves():
        if leaf.id not in without:
            verdict = asyncio.run(decide_leaf(leaf, checked))
            assert isinstance(verdict, Scored), (leaf.id, verdict)
            passed |= {leaf.id} if verdict.value == 10 else set()
    return passed
