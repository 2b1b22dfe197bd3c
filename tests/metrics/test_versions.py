import pytest

from gta_bench.metrics.versions import DoneUnit, JudgeLoad, TaskVersion, plan_run, plan_task
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.checks import FileExists
from gta_bench.records.digests import TaskDigests, digest_atomic, digest_workflow
from gta_bench.records.versions import RunNeeds
from gta_bench.records.workflow import Checkpoint, WorkflowTask

CHECKS = (FileExists.model_validate({"is": "file.exists", "file": "a.csv"}),)
LEAVES = (
    Checkpoint(id="judged", requirements="Is fine"),
    Checkpoint(id="checked", requirements="Is there", by="check", checks=CHECKS),
    Checkpoint(id="both", requirements="Is good", by="check-then-judge", checks=CHECKS),
)


def version(
    *leaves: Checkpoint, request: str = "Do it.", inputs: str | None = "1", proofs: str = "1"
) -> TaskVersion:
    task = WorkflowTask(
        id="x",
        request=request,
        category=None,
        tools=(),
        attachments=(),
        checkpoints=leaves or LEAVES,
    )
    given = None if inputs is None else {"inputs/a": inputs}
    digests = digest_workflow(task, inputs=given, tools={})
    return TaskVersion(task, digests.model_copy(update={"proofs": proofs * 32}))


def edited(index: int, **changes: object) -> tuple[Checkpoint, ...]:
    leaves = [*LEAVES]
    leaves[index] = leaves[index].model_copy(update=changes)
    return tuple(leaves)


OLD = version().digests


@pytest.mark.parametrize(
    ("after", "action", "changed", "recheck", "judge"),
    [
        (version(), "reuse", (), (), ()),
        (version(proofs="2"), "reuse", ("proofs",), (), ()),
        (version(inputs=None), "reuse", (), (), ()),
        (version(inputs="2"), "run", ("inputs",), (), ()),
        (
            version(*edited(0, requirements="x"), request="y"),
            "run",
            ("request", "leaf judged"),
            (),
            (),
        ),
        (version(*edited(0, weight=2)), "rescore", ("weights",), (), ()),
        (version(*edited(0, requirements="x")), "judge", ("leaf judged",), (), ("judged",)),
        (version(*edited(1, requirements="x")), "recheck", ("leaf checked",), ("checked",), ()),
        (version(*edited(2, requirements="x")), "judge", ("leaf both",), ("both",), ("both",)),
        (version(*edited(0, id="new")), "rescore", ("leaf new", "leaf judged", "weights"), (), ()),
        (version(*LEAVES[1:]), "rescore", ("leaf judged", "weights"), (), ()),
        (None, "removed", (), (), ()),
    ],
)
def test_a_task_needs_no_more_than_what_changed(
    after: TaskVersion | None,
    action: str,
    changed: tuple[str, ...],
    recheck: tuple[str, ...],
    judge: tuple[str, ...],
) -> None:
    found = plan_task("x", OLD, after)
    assert (found.action, found.changed, found.recheck, found.judge) == (
        action,
        changed,
        recheck,
        judge,
    )


def test_a_task_without_an_earlier_version_is_added() -> None:
    assert plan_task("x", None, version()).action == "added"


def test_an_atomic_task_is_run_again_if_its_reference_changes() -> None:
    task = AtomicTask.model_validate(
        {"id": "x", "tools": [], "attachments": [], "dialogue": [], "answer": None}
    )
    digests = digest_atomic(task, inputs={})
    other = digests.model_copy(update={"leaf": {**digests.leaf, "answer": "0" * 32}})
    assert plan_task("x", other, TaskVersion(task, digests)).action == "run"
    needs = plan_run("r", [("x", 1)], [], {"x": TaskVersion(task, digests)}, [JudgeLoad()])
    assert (needs.to_run, needs.new_judge_calls, needs.system_calls) == (1, 0, None)


def unit(task: str, epoch: int = 1, calls: int | None = 3, digests: TaskDigests = OLD) -> DoneUnit:
    return DoneUnit((task, epoch), digests, calls)


def needs(*done: DoneUnit, judges: tuple[JudgeLoad, ...] = (JudgeLoad(),)) -> RunNeeds:
    after = {
        "same": version(),
        "leaf": version(*edited(0, requirements="x")),
        "check": version(*edited(1, requirements="x")),
        "input": version(inputs="2"),
        "new": version(),
    }
    wanted = [("same", 1), ("leaf", 1), ("check", 1), ("input", 1), ("gone", 1)]
    return plan_run("r", wanted, done, after, judges, added=[("new", 1)])


def test_a_run_needs_calls_for_changed_leaves_and_for_units_to_run() -> None:
    done = [unit(name) for name in ("same", "leaf", "check", "gone")]
    found = needs(*done, unit("input", calls=5))
    assert found.units == {
        "added": 1, "judge": 1, "recheck": 1, "removed": 1, "reuse": 1, "run": 1,
    }  # fmt: skip
    assert (found.recheck, found.judge, found.judge_calls) == (1, 1, 1)
    # The changed input costs what it cost before, the added task the mean of all, rounded up.
    assert (found.to_run, found.system_calls, found.new_judge_calls) == (2, 5 + 4, 2 * 2)


def test_an_unfinished_unit_is_run_and_unknown_calls_stay_unknown() -> None:
    found = needs(unit("same", calls=None))
    assert (found.units["run"], found.units["removed"], found.system_calls) == (3, 1, None)


def test_repeats_and_packed_calls_and_controls_are_counted() -> None:
    many = (JudgeLoad(leaves_per_call=2, repeats=3), JudgeLoad(control=True))
    found = needs(unit("leaf"), judges=many)
    assert found.judge_calls == 3 + (1 + 1)
    assert found.new_judge_calls == 4 * (3 + (1 + 2))
    assert JudgeLoad(leaves_per_call=2, repeats=3).calls(3) == 6
    assert JudgeLoad().calls(0) == 0
