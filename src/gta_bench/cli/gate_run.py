"""`gta gate --run`: runs NEW with the machinery of `gta run`, as far as the gate needs it."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Final

import click
from click.exceptions import Exit

from gta_bench.cli.output import say, unit_bar
from gta_bench.cli.run_options import (
    Options,
    PartwiseRun,
    estimate_before_start,
    open_run_backend,
)
from gta_bench.datasets.digest import task_digests
from gta_bench.decisions.gate_run import (
    expect_outcomes,
    plan_gate,
    refuse_other_plan,
    run_gate,
)
from gta_bench.errors import RunError, UsageError, format_count
from gta_bench.records.cost import read_cost, sum_costs
from gta_bench.records.gate import GATE_NOTE, GatePlan, GateResult, RunOutcomes
from gta_bench.records.progress import RunProgress
from gta_bench.running.backends.backend import Backend
from gta_bench.running.planning import PlannedRun
from gta_bench.running.preflight import check_start
from gta_bench.running.system_run import execute, read_dataset
from gta_bench.runs.directory import (
    MANIFEST,
    SCORES,
    find_run,
    read_gate_plan,
    write_gate_plan,
)
from gta_bench.runs.store import StorePath, lock_folder
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import Settings

USAGE: Final = (
    'gta gate BASE NEW --sequential --run -- workflow --data tasks --harness "my-agent {task_file}"'
)
# Where the options of each kind of run become a plan.
_KINDS: Final = {"atomic": ".run_atomic", "workflow": ".run_workflow"}


def run_and_decide(
    arguments: Sequence[str],
    out: StorePath,
    base: RunOutcomes,
    read: Callable[[], RunOutcomes],
    *,
    margin: float | None,
    seed: str | None,
) -> GateResult:
    """Run what the arguments of `gta run` describe in `out`, as far as the gate needs it."""
    with _parse(arguments, out) as context:
        options = context.params
        kind = import_module(_KINDS[str(context.info_name)], __package__)
        partwise: PartwiseRun = kind.plan_partwise(options, base.judge)
        run = _add_note(partwise.run)
        find_run(out, run.manifest)
        plan = _write_plan(partwise, base, margin, seed)
        with _Player(partwise._replace(run=run), options) as player, _name_rival(out):
            return run_gate(
                base,
                plan,
                lambda: read() if (out / SCORES).is_file() else None,
                player.play,
                at_once=options["workers"] or 1,
            )


@contextmanager
def _name_rival(out: StorePath) -> Iterator[None]:
    """Say that another command works on the run if it replaces a log while this one reads it."""
    try:
        yield
    except FileNotFoundError:
        with lock_folder(out):
            raise


def _parse(arguments: Sequence[str], out: StorePath) -> click.Context:
    """Parse the arguments as `gta run` does, with NEW as --out."""
    from gta_bench.cli import run as group

    if not arguments:
        raise UsageError(f"After --run, say what to run, as for `gta run`: {USAGE}")
    if any(word == "--out" or word.startswith("--out=") for word in arguments):
        raise UsageError("NEW is the folder of the run: leave --out out.")
    parent = click.get_current_context()
    name, command, rest = group.resolve_command(parent, [*arguments])
    assert command is not None
    try:
        context = command.make_context(name, [*rest, "--out", str(out)], parent=parent)
    except Exit as exc:  # of `--help`; ending with 0 would mean "not worse"
        raise UsageError(
            f"Nothing was run or decided. For help alone: gta run {name} --help"
        ) from exc
    if context.params["only_estimate"]:
        raise UsageError("--estimate is for `gta run`: run it there, or leave it out.")
    return context


def _add_note(run: PlannedRun) -> PlannedRun:
    manifest = run.manifest
    return run._replace(
        manifest=manifest.model_copy(update={"notes": (*manifest.notes, GATE_NOTE)})
    )


def _write_plan(
    partwise: PartwiseRun, base: RunOutcomes, margin: float | None, seed: str | None
) -> GatePlan:
    """Write what is decided and in which order, or return what an earlier command wrote."""
    out, manifest, resources = partwise.run
    dataset = read_dataset(manifest.spec.dataset, resources.data)
    judge = partwise.settings.judge
    workflow = manifest.spec.dataset == "workflow"
    new = expect_outcomes(
        str(out),
        manifest,
        base,
        {task: task_digests(dataset, task) for task in manifest.spec.tasks},
        judge=partwise.judge,
        thresholds=(judge.leaf_threshold, judge.root_threshold) if workflow else None,
    )
    kept = _read_plan(out)
    if kept is not None:
        margin, seed = kept.margin if margin is None else margin, seed or kept.seed
    plan = plan_gate(
        base, new, margin=margin, seed=seed or secrets.token_hex(8), when=datetime.now(UTC)
    )
    if kept is not None:
        refuse_other_plan(str(out), kept, plan.model_dump(exclude={"format", "created"}))
        return kept
    with lock_folder(out):
        if _read_plan(out) is not None:
            raise RunError(f"Another gate has just begun with {out}. Run this command again.")
        write_gate_plan(out, plan)
    return plan


def _read_plan(out: StorePath) -> GatePlan | None:
    """Read what an earlier command wrote; before the run begins, another plan may replace it."""
    return read_gate_plan(out) if (out / MANIFEST).is_file() else None


class _Player:
    """Runs and scores tasks; checks the system and opens the backend before the first ones."""

    def __init__(self, partwise: PartwiseRun, options: Options) -> None:
        self.partwise = partwise
        self.options = options
        self.began = datetime.now(UTC)
        self.stack = ExitStack()
        self.backend: Backend | None = None
        self.judged_before: float | None = None

    def __enter__(self) -> "_Player":
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def play(self, tasks: tuple[str, ...]) -> bool:
        """Run and score these tasks as far as they are not; whether a limit stopped that."""
        run = self.partwise.run
        part = run._replace(manifest=run.manifest.with_spec(tasks=tasks))
        backend = self.backend or self._begin(part)
        stopped = False
        with unit_bar(str(run.out)) as listener:

            def listen(progress: RunProgress) -> None:
                nonlocal stopped
                stopped = stopped or progress.stopped is not None
                listener(progress)

            resources = replace(run.resources, settings=self._limit(0.0))
            execute(part.manifest, resources, run.out, listen, backend=backend)
        judged = self.partwise.score(tasks, backend, self._limit(self._count_judged()))
        return judged or stopped

    def _begin(self, part: PlannedRun) -> Backend:
        run, _, judging, *_ = self.partwise
        check_start([part], judging, ask=self.options["preflight"], watching=unit_bar, say=say)
        tasks = format_count(len(run.manifest.spec.tasks), "task")
        for one in estimate_before_start(run):
            say(f"If all {tasks} are needed: {one}")
        self.backend = self.stack.enter_context(open_run_backend([run], self.options))
        return self.backend

    def _limit(self, spent_usd: float) -> Settings:
        """Return the settings with what is left of the time, and of the money after `spent_usd`.

        Running counts what earlier commands and parts have spent; judging starts from zero.
        """
        settings = self.partwise.run.resources.settings
        hours, most = settings.budget.hours, settings.budget.cost_usd
        if hours is not None:
            hours = max(0.0, hours - (datetime.now(UTC) - self.began) / timedelta(hours=1))
        if most is not None:
            most = max(0.0, most - spent_usd)
        budget = settings.budget.model_copy(update={"hours": hours, "cost_usd": most})
        return settings.model_copy(update={"budget": budget})

    def _count_judged(self) -> float:
        """Return what judges have cost since the command began."""
        if self.partwise.judging is None:
            return 0.0
        rows = read_verdicts(self.partwise.run.out).values()
        total = sum_costs(map(read_cost, rows)).known or 0.0
        if self.judged_before is None:
            self.judged_before = total
        return total - self.judged_before
