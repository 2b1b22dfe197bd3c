"""A gate that runs NEW only as far as its sequential test needs.

The order of the tasks is random and written down before the first one runs. The test looks at the
beginning of that order only: a task that finished early waits for those before it. So neither the
number of workers nor an interruption can change the decision.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from gta_bench.decisions.gate import (
    bound_drop,
    choose_margin,
    choose_metric,
    decide_gate,
    digest_task,
    find_scale,
    pair_tasks,
    refuse_unlike,
)
from gta_bench.errors import RunError, format_count
from gta_bench.metrics.run_scores import SCORING_VERSION
from gta_bench.records.digests import TaskDigests, content_digest
from gta_bench.records.gate import GatePlan, GateResult, RunOutcomes, TaskOutcomes
from gta_bench.records.run import RunManifest
from gta_bench.statistics.gate import (
    BoundedTest,
    decide_bounded,
    find_next_look,
    shuffle_tasks,
)

# Returns the outcomes of NEW so far; None if nothing is scored yet.
ReadOutcomes = Callable[[], RunOutcomes | None]
# Runs and scores these tasks of NEW as far as they are not; whether a limit of the budget stopped
# it.
PlayTasks = Callable[[tuple[str, ...]], bool]
# What a plan fixes, and how to name it.
_FIXED: Final = {
    "base": "another BASE",
    "metric": "the metric {}",
    "judge": "the judge {}",
    "margin": "a margin of {:g} points",
    "epochs": "{} epochs",
    "seed": "the seed {!r}",
    "tasks": "other tasks",
}


def expect_outcomes(
    name: str,
    manifest: RunManifest,
    base: RunOutcomes,
    digests: Mapping[str, TaskDigests],
    *,
    judge: str | None,
    thresholds: tuple[float, float] | None,
) -> RunOutcomes:
    """Return the outcomes of a run that has not begun: all of them are missing."""
    spec = manifest.spec
    choose_metric(spec.mode, base.metric)
    nothing = (None,) * spec.epochs
    return RunOutcomes(
        name=name,
        metric=base.metric,
        judge=judge,
        created=manifest.created,
        spec=spec,
        dataset_digest=manifest.dataset_digest,
        scoring_version=SCORING_VERSION,
        similarity=base.similarity,
        thresholds=thresholds,
        tasks=tuple(
            TaskOutcomes(task=task, values=nothing, digest=digest_task(digests[task]))
            for task in spec.tasks
        ),
    )


def plan_gate(
    base: RunOutcomes, new: RunOutcomes, *, margin: float | None, seed: str, when: datetime
) -> GatePlan:
    """Return the plan for a run that has not begun; raise if it could not decide anything."""
    refuse_unlike(base, new)
    plan = GatePlan(
        created=when,
        base=digest_outcomes(base),
        metric=base.metric,
        judge=base.judge,
        margin=choose_margin(base, margin),
        epochs=new.spec.epochs,
        seed=seed,
        tasks=tuple(shuffle_tasks([*pair_tasks(base, new)[0]], seed)),
    )
    decision = _look(base, None, plan).test.decision
    if decision is None:
        return plan
    tasks = format_count(len(plan.tasks), "task")
    if decision == "not worse":
        raise RunError(
            f"{base.name} is so low in {base.metric} that {plan.margin:g} points over {tasks} "
            "cannot be lost, so that every system passes. Use tasks that BASE can do, or a smaller "
            "margin."
        )
    raise RunError(
        f"{tasks} cannot decide about a margin of {plan.margin:g} points, whatever their outcomes "
        "are. Use more tasks or a larger margin, or run all of them and test once."
    )


def digest_outcomes(run: RunOutcomes) -> str:
    """Return a digest of everything in a baseline, whatever file it is in."""
    return content_digest(run.model_dump(mode="json", exclude={"name"}))


def refuse_other_plan(name: str, kept: GatePlan, asked: Mapping[str, object]) -> None:
    """Raise if something else is asked now than when the run began."""
    for field, value in asked.items():
        if value is not None and value != getattr(kept, field):
            began = _FIXED[field].format(getattr(kept, field))
            now = "" if began == _FIXED[field] else f", not {_FIXED[field].format(value)}"
            raise RunError(
                f"The gate of {name} began with {began}{now}. Continue with that, or choose "
                "another folder for NEW."
            )


def refuse_other_question(
    kept: GatePlan, base: RunOutcomes, name: str, *, margin: float | None, seed: str | None
) -> None:
    """Raise if the run was begun by a gate with another BASE, margin or seed."""
    asked = {"base": digest_outcomes(base), "metric": base.metric, "judge": base.judge}
    refuse_other_plan(name, kept, {**asked, "margin": margin, "seed": seed})


class _Look(NamedTuple):
    """The test of a run so far, which looks at the first `seen` tasks.

    `scored` counts the tasks before the first one without a score.
    """

    test: BoundedTest
    scored: int
    seen: int


def _look(
    base: RunOutcomes, new: RunOutcomes | None, plan: GatePlan, tried: int | None = 0
) -> _Look:
    """Test in the order of the plan, up to the first task without a score.

    Of the first `tried` tasks, those without a score may have any; None stands for all tasks up to
    the first one that the run was not given.
    """
    if new is not None:
        refuse_other_plan(new.name, plan, {"epochs": new.spec.epochs})
    after = {} if new is None else {own.task: own for own in new.tasks}
    scored = _count_first(plan, lambda task: task in after and None not in after[task].values)
    if tried is None:
        tried = _count_first(plan, lambda task: task in after)
    seen = max(scored, tried)
    before = {own.task: own for own in base.tasks}
    ends = []
    for place, task in enumerate(plan.tasks):
        own = after.get(task) if place < seen else None
        ends.append(bound_drop(before[task], own or _expect(task, plan)))
    return _Look(decide_bounded(ends, margin=plan.margin / find_scale(base)), scored, seen)


def _expect(task: str, plan: GatePlan) -> TaskOutcomes:
    return TaskOutcomes(task=task, values=(None,) * plan.epochs)


def _count_first(plan: GatePlan, is_one: Callable[[str], bool]) -> int:
    """Count the tasks before the first one in the order that is not one."""
    return next(
        (place for place, task in enumerate(plan.tasks) if not is_one(task)), len(plan.tasks)
    )


def decide_planned(
    base: RunOutcomes,
    new: RunOutcomes,
    plan: GatePlan,
    *,
    tried: int | None = None,
    stopped: bool = False,
) -> GateResult:
    """Decide by the beginning of the order: as far as needed, or as far as the run has come.

    If a limit `stopped` the run, tasks that did not start do not count as lacking.
    """
    test, scored, seen = _look(base, new, plan, tried)
    upto = scored if stopped else seen
    if test.decision not in (None, "undecided"):
        upto = min(test.used, seen)
    own = {one.task: one for one in new.tasks if one.task in plan.tasks[:upto]}
    tasks = tuple(own.get(task) or _expect(task, plan) for task in plan.tasks)
    return decide_gate(
        base,
        new.model_copy(update={"tasks": tasks}),
        margin=plan.margin,
        sequential=True,
        seed=plan.seed,
        unused=plan.tasks[upto:],
    )


def run_gate(
    base: RunOutcomes,
    plan: GatePlan,
    read: ReadOutcomes,
    play: PlayTasks,
    *,
    at_once: int = 1,
) -> GateResult:
    """Run NEW until it is decided, cannot be decided, or a limit stops it; return the decision.

    Before each look, as few tasks are run as could decide, but at least `at_once`, so that no
    worker waits.
    """
    new, tried, stopped = read(), 0, False
    while not stopped:
        test, scored, _ = _look(base, new, plan, tried)
        upto = find_next_look(test, scored=scored, tried=tried, at_once=at_once)
        if upto is None:
            break
        tried = min(upto, len(plan.tasks))
        stopped = play(plan.tasks[:tried])
        new = read()
    assert new is not None
    return decide_planned(base, new, plan, tried=tried, stopped=stopped)
