"""A thousand forged tasks: gold passes everything, wrong work fails exactly what it says.

Results are kept in pytest's cache: a run that was stopped continues, and a task whose bytes have
been proven is not proven again. The figures go to docs/measurements.md.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import fmean

import pytest

from gta_bench.checks.decide import VERSION
from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.draft import LEVELS, TaskFamily
from gta_bench.forge.writing import Order
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from tests.measure.forge_proofs import ProvenTask, WarmJail, forge_draft, prove_group

pytestmark = pytest.mark.measure
SEEDS = ("1", "autumn", "m28", "Zz9")
# Tasks of a family for each seed and level: more of those that are proven in two seconds.
NUMBERS = {"bundle": 15, "chart": 15, "clean": 15, "invoices": 15, "terms": 15}
FEW = 1
LEAST_WRONG = 5000
SAME = 10  # tasks of each family whose bytes are compared
GROUP = 36  # tasks whose workbooks LibreOffice computes in one process


def list_tasks() -> Iterator[tuple[TaskFamily, Order, int]]:
    """Yield 1,008 tasks, families and levels in turn, so that any part of them is even."""
    for number, seed, level in product(range(1, max(NUMBERS.values()) + 1), SEEDS, LEVELS):
        for family in FAMILIES.values():
            if number <= NUMBERS.get(family.name, FEW):
                yield family, Order("public", seed, level), number


def read_results(file: Path) -> dict[tuple[str, str], ProvenTask]:
    """What earlier runs found, by task and bytes."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    found = [ProvenTask(**json.loads(line)) for line in lines]
    return {(one.task, one.digest): one for one in found if one.version == VERSION}


async def prove_all(file: Path) -> list[ProvenTask]:
    """Prove every task that was not proven before; each result is written at once."""
    known = read_results(file)
    results = []
    with ThreadPoolExecutor(2) as threads, WarmJail() as jail, file.open("a") as kept:
        equipment = Equipment(Settings(), jail=jail, threads=threads)
        tasks = [*list_tasks()]
        for start in range(0, len(tasks), GROUP):
            group = [forge_draft(*task) for task in tasks[start : start + GROUP]]
            new = [one for one in group if (one.name, one.digest) not in known]
            async for result in prove_group(new, equipment):
                known[result.task, result.digest] = result
                kept.write(f"{json.dumps(result._asdict())}\n")
                kept.flush()
            results += [known[one.name, one.digest] for one in group]
    return results


def test_a_thousand_tasks_are_what_the_forge_says(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.cache is not None
    results = asyncio.run(prove_all(pytestconfig.cache.mkdir("forge-scale") / "results.jsonl"))
    report(results)
    assert [f"{one.task}: {said}" for one in results for said in one.problems] == []
    assert len(results) >= 1000 and sum(one.wrong for one in results) >= LEAST_WRONG


def test_bytes_are_those_of_earlier_runs(pytestconfig: pytest.Config) -> None:
    """Run it with another Python or on another day; `--cache-clear` forgets older bytes."""
    assert pytestconfig.cache is not None
    file = pytestconfig.cache.mkdir("forge-scale") / "digests.json"
    earlier = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    made = {}
    for number, family in product(range(SAME), FAMILIES.values()):
        order = Order("public", SEEDS[number % len(SEEDS)], LEVELS[number % len(LEVELS)])
        forged = forge_draft(family, order, number + 1)
        made[forged.name] = forged.digest
    print(f"{len(made)} tasks on Python {sys.version.split()[0]}, {len(earlier)} known before")
    assert {name for name, digest in made.items() if earlier.get(name, digest) != digest} == set()
    file.write_text(json.dumps(made), encoding="utf-8")


def report(results: Sequence[ProvenTask]) -> None:
    """Print a row for each family."""
    for name in (*FAMILIES, ""):
        own = [one for one in results if name in ("", one.family)]
        if own:
            print(
                f"{name or 'all'}: {len(own)} tasks, {sum(one.gold for one in own)} gold, "
                f"{sum(one.wrong for one in own)} wrong ({sum(one.needy for one in own)} with "
                f"leaves that need others), {sum(one.nothing for one in own)} nothing or cheat, "
                f"{sum(bool(one.problems) for one in own)} with problems; CPU seconds a task: "
                f"{fmean(one.forging for one in own):.2f} forging, "
                f"{fmean(one.proving for one in own):.2f} proving"
            )
