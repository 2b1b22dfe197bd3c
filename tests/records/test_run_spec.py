"""The one description of a run: what makes it another run, and how a manifest keeps it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gta_bench.records.run import (
    Feedback,
    Growth,
    Limits,
    LoopLimits,
    RunManifest,
    RunSpec,
    System,
    compare_specs,
    show_setting,
)
from gta_bench.records.tape import TapeUse
from gta_bench.records.tool_servers import ServerPin
from tests.builders import manifest

LATER = datetime(2026, 11, 16, tzinfo=UTC)
SPEC = RunSpec(
    dataset="atomic",
    mode="end-to-end",
    system=System(model="m", agent="toolcalling"),
    tasks=("1", "2"),
    epochs=2,
    loop=LoopLimits(max_turns=5),
)
# Another value for every option of a run: a new field must be added here.
OTHERS: dict[str, Any] = {
    "dataset": "workflow",
    "mode": "step",
    "system": System(model="m", agent="react"),
    "tasks": ("1",),
    "epochs": 3,
    "tools": "http://tools",
    "network": "open",
    "loop": LoopLimits(max_turns=6),
    "limits": Limits(seconds=1),
    "tape": TapeUse(mode="replay", origin="live", digest="t"),
    "controls": ("no-tools",),
    "control_seed": 1,
    "feedback": Feedback(round=2, level="score", judge="j"),
    "judges": ("j",),
    "similarity": "exact",
    "wording": "published",
    "tool_servers": ("s",),
    "server_pins": {"s": ServerPin(tools={})},
}


def test_a_run_has_a_unit_for_every_task_in_every_epoch() -> None:
    assert SPEC.units == 4


def test_every_option_is_tried_below() -> None:
    assert set(OTHERS) == set(RunSpec.model_fields)


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_another_value_is_another_run_unless_the_run_grows_or_every_scoring_settles_it_again(
    name: str,
) -> None:
    other = SPEC.model_copy(update={name: OTHERS[name]})
    continues = name in (
        *("judges", "similarity", "limits", "tasks", "epochs", "wording", "server_pins"),
    )
    assert (SPEC.difference(other) is None) is continues
    assert [found for found, *_ in compare_specs(SPEC, other)] == [
        {"system": "agent", "loop": "max_turns"}.get(name, name)
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"top_p": 0.9}, ("top_p", None, 0.9)),
        ({"stop": ("END",)}, ("stop", None, ("END",))),
        ({"generate": {"verbosity": "low"}}, ("generate.verbosity", None, "low")),
        ({"args": {"stream": True}}, ("args.stream", None, True)),
    ],
)
def test_another_generation_is_another_run_and_both_values_are_named(
    changes: dict[str, Any], said: tuple[str, Any, Any]
) -> None:
    system = SPEC.system.model_copy(update=changes)
    assert SPEC.difference(SPEC.model_copy(update={"system": system})) == said


def test_a_manifest_from_before_an_option_says_that_it_was_not_set() -> None:
    written = manifest().model_dump(mode="json")
    for name in ("top_p", "top_k", "presence_penalty", "stop", "reasoning_effort"):
        del written["system"][name]
    del written["system"]["generate"], written["system"]["args"]
    assert RunManifest.model_validate(written) == manifest()


def test_a_limit_that_was_recorded_counts_and_one_that_was_not_does_not() -> None:
    recorded = SPEC.model_copy(update={"limits": Limits(seconds=1)})
    assert recorded.difference(SPEC) == ("limits", Limits(seconds=1), None)
    unrecorded = SPEC.model_copy(update={"loop": None})
    assert unrecorded.difference(SPEC) is None
    assert SPEC.difference(unrecorded) == ("max_turns", 5, None)


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_a_manifest_survives_its_file_with_every_option(name: str) -> None:
    held = manifest().with_spec(**{name: OTHERS[name]})
    assert RunManifest.model_validate_json(held.model_dump_json()) == held
    assert RunManifest.model_validate(held.model_dump()) == held


def test_other_data_are_named_before_what_follows_from_them() -> None:
    one = manifest()
    other = manifest(dataset_digest="e", tasks=("9",), prompts={"a": "b"})
    assert one.difference(other) == ("dataset_digest", "d", "e")
    dataset = one.difference(manifest(dataset="workflow", dataset_digest="e"))
    assert dataset == ("dataset", "atomic", "workflow")
    mode = one.difference(manifest(mode="end-to-end", prompts={"a": "b"}))
    assert mode == ("mode", "step", "end-to-end")
    assert one.difference(manifest()) is None


def test_of_prompts_those_are_named_that_differ() -> None:
    one, two = manifest(prompts={"a": "1", "b": "2"}), manifest(prompts={"a": "1", "b": "3"})
    assert one.difference(two) == ("prompts", {"b": "2"}, {"b": "3"})


@pytest.mark.parametrize(
    ("tasks", "epochs", "then"),
    [
        (("1", "2"), 1, None),
        (("2", "1"), 1, None),
        (("2",), 1, None),
        (("0", "1", "2"), 1, (("0", "1", "2"), 1, ("0",))),
        (("2", "3"), 1, (("1", "2", "3"), 1, ("3",))),
        (("1", "2"), 3, (("1", "2"), 3, ())),
        (("3",), 2, (("1", "2", "3"), 2, ("3",))),
    ],
)
def test_a_run_grows_by_tasks_and_epochs_and_keeps_what_it_has(
    tasks: tuple[str, ...], epochs: int, then: tuple[Any, ...] | None
) -> None:
    held, wanted = manifest(), manifest(tasks=tasks, epochs=epochs, created=LATER)
    grown = held.extend(wanted)
    if then is None:
        assert grown is held
        return
    assert (grown.spec.tasks, grown.spec.epochs) == then[:2]
    assert grown.growth == (Growth(when=LATER, tasks=then[2], epochs=1),)
    assert RunManifest.model_validate_json(grown.model_dump_json()) == grown


def test_every_growth_is_kept_with_what_was_noted() -> None:
    grown = manifest(notes=("a",)).extend(manifest(tasks=("3",), notes=("a", "b"), created=LATER))
    again = grown.extend(manifest(epochs=2, created=LATER))
    assert [(one.tasks, one.epochs) for one in again.growth] == [(("3",), 1), ((), 1)]
    assert again.notes == ("a", "b")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "none"),
        ((), "none"),
        (("a", "b"), "a, b"),
        ({"b": "2" * 64}, f"b {'2' * 12}"),
        ({}, "-"),
        (Limits(seconds=900, cost_usd=2), "seconds 900, cost_usd 2"),
        (TapeUse(mode="record", origin="live"), "record"),
        (0.5, "0.5"),
    ],
)
def test_a_setting_is_shown_in_a_few_words(value: object, shown: str) -> None:
    assert show_setting(value) == shown
