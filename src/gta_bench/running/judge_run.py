"""Judges a stored run: asks each judge in turn, while the evidence of the next units is rendered.

Evidence is rendered once for all judges.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from inspect_ai import eval as inspect_eval
from inspect_ai.model import Model

from gta_bench.agents.generation import make_generate_config
from gta_bench.agents.models import ChosenModel, check_price, choose_model, open_model
from gta_bench.content.needs import EVIDENCE_PACKAGES
from gta_bench.errors import UsageError, WorkFailed
from gta_bench.judging.judge import Judge, judge_entry, pending_leaves, verdict_settings
from gta_bench.judging.options import JudgeOptions, judge_name, judge_options
from gta_bench.judging.own import OwnJudge
from gta_bench.judging.run_evidence import MadeEvidence, RunEvidence
from gta_bench.judging.spending import SharedSpending, Spending
from gta_bench.packages import require_packages
from gta_bench.records.progress import Command
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored
from gta_bench.running.backends.backend import INLINE, Backend, Call, WorkFunction
from gta_bench.running.budget import SharedBudget, open_share
from gta_bench.running.check_run import check_run
from gta_bench.running.evaluation import QUIET, check_interrupt, part_counter, silence_engine
from gta_bench.running.leases import Items, LeaseSource, LeaseTable, LeaseType
from gta_bench.running.shards import (
    Listener,
    RunPart,
    count_parallel,
    explain_failure,
    report_progress,
)
from gta_bench.running.stopping import check_stop, run_async, run_beside
from gta_bench.runs.directory import begin_progress, judge_folder_name, progress_folder
from gta_bench.runs.store import StorePath, disk_full_hint, explain_store_errors, lock_folder
from gta_bench.runs.verdicts import append_verdicts, read_judges, read_verdicts, record_judge
from gta_bench.settings import Settings
from gta_bench.tasks.context import Material, RunContext, open_workspaces, run_context
from gta_bench.tasks.judging import (
    ROLE,
    find_judgeable_units,
    judge_task,
    open_judge,
)


def cascade_name(cheap: str, strong: str, band: float) -> str:
    """Return the name of a cascade, which is recorded as a judge of its own."""
    return f"{strong} after {cheap} within {band:g}"


def copy_clear_scores(
    run: StorePath, cheap: str, cascade: str, *, threshold: float, band: float
) -> None:
    """Copy the cheap judge's scores that are not near the threshold to the cascade.

    The copies cost nothing. All other leaves stay open, so the strong judge is asked for them.
    """
    known = read_verdicts(run)
    taken = []
    for key, row in known.items():
        if key.judge != cheap or not isinstance(row.verdict, Scored):
            continue
        own = key.model_copy(update={"judge": cascade})
        near = abs(row.verdict.value - threshold) <= band
        kept = known.get(own)
        if near or (kept and (kept.evidence, kept.prompts) == (row.evidence, row.prompts)):
            continue
        free = {"input_tokens": 0, "cached_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}
        taken.append(row.model_copy(update={"key": own, **free}))
    append_verdicts(run, taken)


JUDGING = "judging"


@dataclass(frozen=True)
class Judging:
    """Which judges are asked, and how.

    With a `cascade`, the second is asked only if the first is that close to the threshold. With
    `tasks`, they are asked only about those.
    """

    models: tuple[ChosenModel, ...]
    options: JudgeOptions
    repeats: int
    settings: Settings
    cascade: float | None = None
    tasks: tuple[str, ...] | None = None


class JudgedBy(NamedTuple):
    """A judge's name in the run, how many verdicts were missing, and how many it gave now.

    `stopped` names the limit of the budget that stopped it.
    """

    judge: str
    wanted: int
    scored: int
    stopped: str | None = None


# Opens a progress bar for a judge.
Watching = Callable[[str], AbstractContextManager[Listener]]


def plan_judging(
    names: Sequence[str],
    settings: Settings,
    *,
    cascade: float | None = None,
    tasks: tuple[str, ...] | None = None,
) -> Judging:
    """Plan to ask the judges with these names, with the options in the settings."""
    if cascade is not None and len(names) != 2:
        raise UsageError("--cascade needs two judges: first the cheap one, then the strong one.")
    require_packages("Judging", *EVIDENCE_PACKAGES, extra="workflow")
    models = tuple(choose_model(name, settings) for name in names)
    if len({model.name for model in models}) < len(models):
        raise UsageError("The same --judge was given twice. Remove one of them.")
    options = judge_options(settings.judge)
    return Judging(models, options, settings.judge.repeats, settings, cascade, tasks)


def name_judge(model: ChosenModel, options: JudgeOptions) -> str:
    """Return the name of a model as a judge, without opening the model."""
    asked = verdict_settings(make_generate_config(model.settings), model.settings.args)
    return judge_name(model.name, options, asked)


def judge_run(
    run: StorePath,
    judging: Judging,
    watching: Watching,
    backend: Backend = INLINE,
    *,
    models: Sequence[Model] | None = None,
) -> Iterator[JudgedBy]:
    """Ask every judge for the scores that the run does not have yet; leaves with checks first.

    `models` replace those that `judging` names; they are used in this process only.
    """
    check_run(run, judging.settings, judging.tasks)
    units = find_judgeable_units(run, judging.tasks)
    opened = models or [open_judge_model(one, judging) for one in judging.models]
    if backend is not INLINE:
        _refuse_functions(opened)
    judges = open_judges(judging, opened)
    # Elsewhere, workers make the evidence of what they judge.
    here = backend is INLINE
    ahead = _make_ahead(run, units.values(), judging.settings) if here else nullcontext()
    with ahead as evidence:
        yield from _ask_in_turn(run, judging, judges, units, evidence, watching, backend)


def _ask_in_turn(
    run: StorePath,
    judging: Judging,
    judges: Sequence[Judge],
    units: Mapping[str, WorkflowUnit],
    evidence: MadeEvidence | None,
    watching: Watching,
    backend: Backend,
) -> Iterator[JudgedBy]:
    spending, asked = Spending(judging.settings.budget), judging.settings.budget
    budget = SharedBudget(connections=asked.max_connections, places=backend.places, rpm=asked.rpm)
    count_open = partial(_open_leaves, run, units, evidence, judging.settings)
    # One of each for all judges, since limits are for the whole command.
    with backend.share(budget) as call, backend.share(spending) as count:
        for chosen, judge in zip(judging.models, judges, strict=True):
            # Two commands with the same judge would pay for the same leaves.
            what = f"asking {judge.name} about {run}"
            with lock_folder(progress_folder(run, judge.name), what=what):
                if judging.cascade is not None and judge is not judges[0]:
                    threshold = judging.settings.judge.leaf_threshold
                    copy_clear_scores(
                        run, judges[0].name, judge.name, threshold=threshold, band=judging.cascade
                    )
                before = count_open(judge)
                if before:
                    with watching(judge.name) as listener:
                        _ask(
                            run,
                            judge,
                            chosen,
                            {name: units[name] for name in before},
                            evidence,
                            judging,
                            listener,
                            backend,
                            spending,
                            before,
                            call,
                            count,
                        )
                elif not read_judges(run).of(judge.name):
                    record_judge(run, judge_entry(judge, datetime.now(UTC)))
            wanted = sum(before.values())
            left = sum(count_open(judge).values())
            yield JudgedBy(judge.name, wanted, wanted - left, spending.over() if left else None)


def _refuse_functions(models: Sequence[Model]) -> None:
    for model in models:
        if isinstance(model.api, OwnJudge):
            raise UsageError(
                f"Judge {str(model)!r} is a function of this process: judge without workers or a "
                "cluster."
            )


def judge_names(judging: Judging, names: Sequence[str]) -> list[str]:
    """Return the names under which judges are recorded: the second of a cascade has its own."""
    if judging.cascade is None:
        return list(names)
    return [names[0], cascade_name(names[0], names[1], judging.cascade)]


def open_judges(judging: Judging, opened: Sequence[Model]) -> list[Judge]:
    """Return the judges in the order in which they are asked."""
    judges = [open_judge(model, judging.options, repeats=judging.repeats) for model in opened]
    names = judge_names(judging, [judge.name for judge in judges])
    return [replace(judge, name=name) for judge, name in zip(judges, names, strict=True)]


def _ask(
    run: StorePath,
    judge: Judge,
    chosen: ChosenModel,
    units: dict[str, WorkflowUnit],
    evidence: MadeEvidence | None,
    judging: Judging,
    listener: Listener,
    backend: Backend,
    spending: Spending,
    leaves: Mapping[str, int],
    call: Call,
    count: Call,
) -> None:
    """Let the judge score the units: in this process, or in leases elsewhere.

    `call` and `count` call the budget and the spending that all judges of a command share.
    """
    progress = progress_folder(run, judge.name)
    command = Command(
        started=datetime.now(UTC),
        judge=judge.name,
        units=len(units),
        finished=0,
        backend=backend.name,
        places=backend.places,
    )
    begin_progress(progress, command)
    record_judge(run, judge_entry(judge, command.started))
    logs = judging_folder(run, judge.name)
    tasks = _by_task(units)
    expected = {task: float(sum(leaves[name] for name in names)) for task, names in tasks.items()}

    def tick() -> None:
        # What counts for workers may be in another process, and be lost with it.
        spending.agree(count("agree", spending.agree(0.0)))
        report_progress(progress, listener)

    with explain_failure(partial(_safe, run)):
        make = partial(RunPart, logs=logs, progress=progress, command=command, budget=call)
        work: WorkFunction
        if evidence is not None:
            work = partial(
                _judge, run, judge, units, evidence, judging.settings, spending, listener=listener
            )
        else:
            work = partial(_judge_part, run, judging, chosen, judge.name, count)
        backend.run(
            work,
            _lease(tasks, expected, backend, make),
            at_once=count_parallel(len(tasks), judging.settings, backend),
            tick=tick,
        )
        tick()


def _safe(run: StorePath) -> str:
    return (
        f"All verdicts so far are safe in {run}{disk_full_hint(run)}; run the same command again "
        "to get the rest."
    )


def _by_task(units: Mapping[str, WorkflowUnit]) -> dict[str, list[str]]:
    """Group the names of units by task, since one worker judges all epochs of a task."""
    found: dict[str, list[str]] = {}
    for name, unit in units.items():
        found.setdefault(unit.task.id, []).append(name)
    return found


def _lease(
    tasks: Mapping[str, Sequence[str]],
    expected: Mapping[str, float],
    backend: Backend,
    make: Callable[..., LeaseType],
) -> LeaseSource[LeaseType]:
    """Return the leases of these tasks; this process has a single one."""

    def make_lease(number: str, leased: tuple[str, ...]) -> LeaseType:
        return make(name=number, tasks=tuple(name for task in leased for name in tasks[task]))

    if backend is INLINE:
        return Items([make_lease("0", tuple(tasks))])
    return LeaseTable(expected, make=make_lease, places=backend.places)


def _judge_part(
    run: StorePath, judging: Judging, chosen: ChosenModel, name: str, count: Call, part: RunPart
) -> None:
    """Do a lease of a judge's work in a process of its own."""
    units = _units_of(run, part.tasks)
    model = open_judge_model(chosen, judging)
    judge = open_judge(model, judging.options, repeats=judging.repeats, name=name)
    spending = SharedSpending(judging.settings.budget, count)
    with _make_ahead(run, units.values(), judging.settings) as evidence:
        _judge(run, judge, units, evidence, judging.settings, spending, part)


def _units_of(run: StorePath, names: Sequence[str]) -> dict[str, WorkflowUnit]:
    tasks = {task for name in names for task in (name, name.rpartition(".")[0])}
    found = find_judgeable_units(run, tasks)
    return {name: found[name] for name in names}


def open_judge_model(chosen: ChosenModel, judging: Judging) -> Model:
    """Open a judge's model; raises if the budget needs its price and it is unknown."""
    model = open_model(chosen, judging.settings.budget)
    check_price(model, judging.settings.budget)
    if judging.options.batch:
        # A batch takes hours, and collects all requests in flight.
        model.config.attempt_timeout = None
        model.config.max_connections = None
    return model


def _open_leaves(
    run: StorePath,
    units: Mapping[str, WorkflowUnit],
    evidence: MadeEvidence | None,
    settings: Settings,
    judge: Judge,
) -> dict[str, int]:
    """Count the leaves without a score by the judge, for the units that have any.

    Scores count for the evidence that they were given for, so it must be made.
    """
    known = read_verdicts(run)
    begun = {(key.task, key.epoch) for key in known if key.judge == judge.name}
    with_scores = [unit for unit in units.values() if (unit.task.id, unit.epoch) in begun]
    if evidence is None:
        evidence = run_async(prepare_evidence(run, with_scores, settings))
    else:
        run_async(evidence.wait(with_scores))
    counts = {}
    for name, unit in units.items():
        shown = evidence.made(unit) if (unit.task.id, unit.epoch) in begun else None
        counts[name] = pending_leaves(unit.task, shown, judge, epoch=unit.epoch, known=known)
    return {name: count for name, count in counts.items() if count}


async def prepare_evidence(
    run: StorePath, units: Collection[WorkflowUnit], settings: Settings
) -> MadeEvidence:
    """Return the evidence of these units, rendering what is missing."""
    source = RunEvidence(run, settings)
    evidence = MadeEvidence(source, units)
    await _make(source, evidence)
    return evidence


async def _make(source: RunEvidence, evidence: MadeEvidence) -> None:
    async with source.ready():
        await evidence.make()


@contextmanager
def _make_ahead(
    run: StorePath, units: Collection[WorkflowUnit], settings: Settings
) -> Iterator[MadeEvidence]:
    """Make the evidence of these units while the block asks judges."""
    source = RunEvidence(run, settings)
    evidence = MadeEvidence(source, units)
    with run_beside(_make(source, evidence)):
        yield evidence


def _judge(
    run: StorePath,
    judge: Judge,
    units: dict[str, WorkflowUnit],
    evidence: MadeEvidence,
    settings: Settings,
    spending: Spending,
    part: RunPart,
    *,
    listener: Listener | None = None,
) -> None:
    batch, budget = judge.options.batch, settings.budget
    with (
        # A leaf is a call, and a unit has many of them.
        open_share(part.budget, part.name, budget, units=budget.max_connections) as share,
        open_workspaces(run) as files,
        run_context(
            RunContext(
                files=files,
                settings=settings,
                spending=spending,
                watcher=part_counter(part, listener),
                models=(judge.model,),
                material=Material(run, units, evidence),
            )
        ),
        explain_store_errors(run, writing=True),
    ):
        check_stop()
        silence_engine()
        if not batch:
            judge.model.config.max_connections = share.connections
            spending.turn = share.take_turn
        logs = inspect_eval(
            judge_task(
                run=str(run),
                repeats=judge.repeats,
                name=judge.name,
                **judge.options.model_dump(),
            ),
            model=judge.model,
            model_roles={ROLE: judge.model},
            sample_id=list(part.tasks),
            log_dir=str(part.logs),
            max_samples=len(units) if batch else share.connections,
            **QUIET,
        )
    check_interrupt(logs)
    # A failing judge leaves verdicts without a score, so an error here is one of the run's folder.
    samples = [sample for log in logs for sample in log.samples or ()]
    errors = [sample.error.traceback for sample in samples if sample.error is not None]
    if errors:
        raise WorkFailed(f"Judging stopped early: {errors[0].splitlines()[-1]}.", exit_code=3)


def judging_folder(run: StorePath, judge: str) -> StorePath:
    """Return the folder of one judge's logs."""
    return run / JUDGING / judge_folder_name(judge)
