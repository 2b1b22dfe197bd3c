"""What a report says of a system and of what it took."""

from typing import Any

import pytest

from gta_bench.records.run import System
from gta_bench.records.units import Usage
from gta_bench.reports.summary import imported_remarks, system_name, usage_text
from tests.runs.test_directory import manifest

OURS = System(model="openai/x", agent="toolcalling")
STATED = Usage(input_tokens=1200, output_tokens=30, seconds=95, cost_usd=0.4)


def harness(agent: str, model: str) -> System:
    return System(model=model, agent=agent, harness="Manus", harness_version="1.6")


@pytest.mark.parametrize(
    ("system", "changes", "name"),
    [
        (OURS, {}, "openai/x · toolcalling"),
        (harness("harness", "openai/x"), {}, "Manus 1.6 · openai/x"),
        (harness("harness", "none/none"), {}, "Manus 1.6"),
        (harness("imported", "unknown"), {"imported_from": "out"}, "Manus 1.6 (imported)"),
        (harness("imported", "gpt"), {"imported_from": "out"}, "Manus 1.6 (imported) · gpt"),
        (System(model="gpt", agent="imported"), {"imported_from": "out"}, "gpt · imported"),
    ],
)
def test_a_system_is_named_in_a_few_words(
    system: System, changes: dict[str, Any], name: str
) -> None:
    assert system_name(manifest(system=system, **changes)) == name


NOTHING = "0 model calls (0 retries), 0 input and 0 output tokens, cost unknown, 0.0 s of tasks."
UNKNOWN = "model calls unknown, tokens unknown, cost unknown, time unknown."


@pytest.mark.parametrize(
    ("system", "usage", "said"),
    [
        (OURS, Usage(), NOTHING),
        (harness("harness", "openai/x"), Usage(), NOTHING),
        (harness("harness", "none/none"), Usage(), UNKNOWN),
        (harness("imported", "gpt"), Usage(), UNKNOWN),
        (
            harness("product", "unknown"),
            STATED,
            "model calls unknown, 1,200 input and 30 output tokens, $0.4000, 95.0 s of tasks.",
        ),
    ],
)
def test_what_a_foreign_system_did_not_state_is_unknown_and_not_nothing(
    system: System, usage: Usage, said: str
) -> None:
    assert usage_text(usage, manifest(system=system)) == said


def test_calls_that_nobody_saw_are_marked_where_they_count() -> None:
    imported = {"system": harness("imported", "gpt"), "imported_from": "out"}
    said = "imported: its tool calls are as stated, not observed"
    assert imported_remarks(manifest(mode="workflow", **imported)) == [
        f"{said} (Tool SR, P/O/L/C-SR)."
    ]
    assert imported_remarks(manifest(mode="end-to-end", **imported)) == [f"{said} (P/O/L/C-F1)."]
    assert imported_remarks(manifest(mode="step", **imported)) == []
    assert imported_remarks(manifest(mode="workflow", system=OURS)) == []
