"""The runs of a study: planned like `gta run`, run block by block, and read for the report."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from types import TracebackType
from typing import Final, NamedTuple

import click

from gta_bench.cli import run as run_group
from gta_bench.cli.output import say, say_nothing, say_once, unit_bar
from gta_bench.cli.run_options import Options, PartwiseRun, open_run_backend
from gta_bench.decisions.study_file import (
    SET_BY_STUDY,
    ReadStudy,
    amend_study,
    begin_study,
    list_options,
    read_log,
    refuse_changed,
    write_log,
)
from gta_bench.decisions.study_plan import (
    UnitCost,
    add_expected,
    check_assumed_names,
    check_questions,
    find_unit_cost,
)
from gta_bench.decisions.study_report import report_study
from gta_bench.decisions.study_run import (
    NOTHING,
    Blocks,
    Coverage,
    RoundPart,
    cover,
    divide_tasks,
    list_rounds,
    list_units,
    run_rounds,
)
from gta_bench.errors import ConfigError, RunError, format_count, suggest_name
from gta_bench.records.cost import Cost, CostSum, read_cost, sum_costs
from gta_bench.records.progress import RunProgress
from gta_bench.records.run import RunMode
from gta_bench.records.scores import RunScores
from gta_bench.records.study import (
    OptionValue,
    StudyCell,
    StudyLog,
    StudyResult,
    StudySpent,
)
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.running.backends.backend import Backend
from gta_bench.running.preflight import check_start
from gta_bench.running.system_run import Resources, execute, read_dataset
from gta_bench.runs.directory import (
    MANIFEST,
    SCORES,
    find_run,
    progress_folder,
    read_manifest,
    read_scores,
    read_spent,
    read_workflow_scores,
)
from gta_bench.runs.scoring import read_compared
from gta_bench.runs.store import StorePath, lock_folder, store_path
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import Settings

_KINDS: Final = {"atomic": ".run_atomic", "workflow": ".run_workflow"}
# How often the time spent is written while units end, in seconds.
_PACE: Final = 1.0


class PlannedCells(NamedTuple):
    """The runs of a study as `gta run` would plan them, and the blocks of their tasks."""

    runs: Mapping[StudyCell, PartwiseRun]
    options: Mapping[StudyCell, Options]
    blocks: Mapping[str, Blocks]

    @property
    def modes(self) -> dict[str, RunMode]:
        """The mode of each dataset."""
        return {cell.dataset: own.run.manifest.spec.mode for cell, own in self.runs.items()}

    @property
    def judges(self) -> dict[str, tuple[str, ...]]:
        """The judges of each dataset; the scores of the first one count."""
        return {cell.dataset: own.judges for cell, own in self.runs.items()}


def plan_cells(study: ReadStudy) -> PlannedCells:
    """Plan every run; raise with one line that names the table of what is wrong."""
    runs: dict[StudyCell, PartwiseRun] = {}
    options: dict[StudyCell, Options] = {}
    blocks: dict[str, Blocks] = {}
    check_assumed_names(study.file)
    with say_once():  # every run would say the same about its tools and tasks
        for cell in study.file.cells:
            kind = study.file.kind_of(cell.dataset)
            with _parse(study, cell) as context:
                own: PartwiseRun = import_module(_KINDS[kind], __package__).plan_partwise(
                    context.params, None
                )
            noted = own.run.manifest.model_copy(update={"study": (study.digest,)})
            runs[cell] = own._replace(run=own.run._replace(manifest=noted))
            options[cell] = context.params
            if cell.dataset not in blocks:
                loaded = read_dataset(kind, own.run.resources.data)
                blocks[cell.dataset] = divide_tasks(
                    loaded,
                    {*noted.spec.tasks},
                    seed=study.file.seed,
                    size=study.file.block,
                )
    planned = PlannedCells(runs, options, blocks)
    check_questions(study, planned.modes, planned.judges)
    return planned


def _parse(study: ReadStudy, cell: StudyCell) -> click.Context:
    """Parse the options of a cell as `gta run` does."""
    parent = click.get_current_context()
    name = study.file.kind_of(cell.dataset)
    command = run_group.get_command(parent, name)
    assert command is not None
    known = {
        flag.lstrip("-"): option
        for option in command.params
        for flag in (*option.opts, *option.secondary_opts)
    }
    arguments = ["--out", str(cell_folder(study, cell)), "--epochs", str(study.file.epochs)]
    for table, key, value in list_options(study.file, cell):
        where = f"{study.path}: [{table}]"
        if key in SET_BY_STUDY:
            raise ConfigError(f"{where}: leave `{key}` out; use {SET_BY_STUDY[key]}.")
        if key not in known:
            raise ConfigError(
                f"{where}: `gta run {name}` has no option {key!r}{suggest_name(key, [*known])}"
            )
        arguments += _spell(where, key, value, known[key])
    try:
        return command.make_context(name, arguments, parent=parent)
    except click.UsageError as exc:
        raise ConfigError(
            f"{study.path}: {cell.folder}, as options of `gta run {name}`: {exc.format_message()}"
        ) from exc


def _spell(where: str, key: str, value: OptionValue, option: click.Parameter) -> list[str]:
    """Return an option as on the command line; true is a flag, a list repeats the option."""
    flag = f"-{key}" if len(key) == 1 else f"--{key}"
    is_flag = isinstance(option, click.Option) and option.is_flag
    if is_flag or isinstance(value, bool):
        if not (is_flag and isinstance(value, bool)):
            kind = "true or false" if is_flag else "a value"
            raise ConfigError(f"{where}: `{key}` needs {kind}, not {value!r}.")
        return [flag] if value else []
    values = value if isinstance(value, tuple) else (value,)
    return [word for one in values for word in (flag, str(one))]


def cell_folder(study: ReadStudy, cell: StudyCell) -> StorePath:
    """Return the folder of a cell's run."""
    return store_path(study.file.out) / cell.folder


def read_coverage(run: StorePath, judge: str | None) -> Coverage:
    """Return which units of a stored run have a score; none if it was never scored."""
    scores = _read_scores(run)
    return NOTHING if scores is None else cover(read_manifest(run).spec, scores, judge)


def _read_scores(run: StorePath) -> RunScores | WorkflowScores | None:
    if not (run / SCORES).is_file():
        return None
    workflow = read_manifest(run).spec.mode == "workflow"
    return read_workflow_scores(run) if workflow else read_scores(run)


def read_spent_so_far(study: ReadStudy, log: StudyLog | None) -> StudySpent:
    """Return what all runs have cost, and the hours of all commands."""
    costs, calls = CostSum(), 0
    for cell in study.file.cells:
        run = cell_folder(study, cell)
        costs.add(_read_run_cost(run))
        costs.add(_read_judged_cost(run))
        scores = _read_scores(run)
        calls += 0 if scores is None else scores.usage.model_calls
    cost = costs.sum()
    return StudySpent(
        hours=log.hours if log else 0.0,
        cost_usd=cost.known or 0.0,
        unpriced=cost.unknown,
        calls=calls,
    )


def _read_run_cost(run: StorePath) -> Cost:
    return read_spent(progress_folder(run)) if (run / MANIFEST).is_file() else Cost()


def _read_judged_cost(run: StorePath) -> Cost:
    if not (run / MANIFEST).is_file() or read_manifest(run).spec.mode != "workflow":
        return Cost()
    return sum_costs(map(read_cost, read_verdicts(run).values()))


def run_study(study: ReadStudy, options: Options, *, amend: bool) -> bool:
    """Run what is left of a study; whether all of it is done."""
    planned, out = plan_cells(study), store_path(study.file.out)
    log = read_log(out)
    if log is not None and not amend:
        refuse_changed(out, study, log)
    _refuse_foreign(out, log, study)
    for cell, own in planned.runs.items():
        _refuse_foreign(cell_folder(study, cell), log, study)
        find_run(cell_folder(study, cell), own.run.manifest)
    busy = f"working on the study in {out}"
    with (
        lock_folder(out, what=busy),
        _StudyPlayer(study, planned, options, out) as player,
    ):
        stopped = player.run(amend=amend)
    left = player.count_left()
    units = format_count(player.units, "unit")
    if stopped is not None:
        begun = (
            f"; `gta study report {study.path}` answers from the complete blocks"
            if player.log
            else ""
        )
        say(f"Stopped: {stopped}. {left} of {units} remain{begun}.")
    elif left:
        say(
            f"{left} of {units} have no score; `gta study run {study.path}` tries them again, and "
            f"`gta study report {study.path}` says why."
        )
    else:
        say(f"All {units} are done: `gta study report {study.path}`.")
    return not left


def _refuse_foreign(run: StorePath, log: StudyLog | None, study: ReadStudy) -> None:
    """Raise if a folder has a run that is not of this study."""
    if not (run / MANIFEST).is_file():
        return
    own, known = read_manifest(run).study, {study.digest, *(log.digests if log else ())}
    if not own or not known.issuperset(own):
        raise RunError(
            f"{run} has a run that is not of this study. Choose another `out` in {study.path}."
        )


class _StudyPlayer:
    """Runs the parts of a study; opens the backend and asks the models before the first one."""

    def __init__(
        self, study: ReadStudy, planned: PlannedCells, options: Options, out: StorePath
    ) -> None:
        self.study = study
        self.planned = planned
        self.options = options
        self.out = out
        self.began = datetime.now(UTC)
        self.written = self.began
        self.log = read_log(out)
        self.stack = ExitStack()
        self.backend: Backend | None = None
        self.rounds = list_rounds(study.file.cells, planned.blocks)
        self.covered = {cell: self._read_coverage(cell) for cell in study.file.cells}
        self.costs: dict[StudyCell, UnitCost] = {
            cell: find_unit_cost(study.file, cell) for cell in study.file.cells
        }

    def __enter__(self) -> "_StudyPlayer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stack.close()
        if self.backend is not None:
            self._touch(at_once=True)

    @property
    def units(self) -> int:
        """The number of units of the whole study."""
        return (
            sum(len(self.planned.runs[cell].run.manifest.spec.tasks) for cell in self.covered)
            * self.study.file.epochs
        )

    def count_left(self) -> int:
        """Count the units without a score."""
        left = 0
        for cell, own in self.covered.items():
            # A run may have more units than the file asks for now.
            tasks = self.planned.runs[cell].run.manifest.spec.tasks
            left += len(list_units(tasks, self.study.file.epochs) - own.scored)
        return left

    def _read_coverage(self, cell: StudyCell) -> Coverage:
        return read_coverage(cell_folder(self.study, cell), self.planned.runs[cell].judge)

    def run(self, *, amend: bool) -> str | None:
        """Run all rounds; describe the limit that stopped them."""
        if amend and self.log is not None:
            now, scored = datetime.now(UTC), sum(len(one.scored) for one in self.covered.values())
            self.log = amend_study(self.out, self.study, self.log, when=now, scored=scored)
        return run_rounds(self.rounds, self._is_done, self._find_limit, self._play)

    def _find_next(self, cell: StudyCell) -> tuple[str, ...]:
        """Return the tasks of the first block of a cell that has units left; else its last one."""
        parts = [part for parts in self.rounds for part in parts if part.cell == cell]
        return next((part for part in parts if not self._is_done(part)), parts[-1]).tasks

    def _is_done(self, part: RoundPart) -> bool:
        return list_units(part.tasks, self.study.file.epochs) <= self.covered[part.cell].scored

    def _find_limit(self, parts: Sequence[RoundPart]) -> str | None:
        """Say why a round does not begin: a limit is reached, or would be before its end."""
        file, spent = self.study.file, read_spent_so_far(self.study, self._now())
        if (reached := spent.find_reached(file.budget)) is not None:
            return self._advise(reached)
        reached = add_expected(file, parts, self.costs, spent).find_exceeded(file.budget)
        if reached is None:
            return None
        short = f"{reached.removesuffix(' is spent')} does not suffice for the next block"
        return self._advise(short)

    def _play(self, part: RoundPart) -> str | None:
        """Run and score one block of a cell; describe the limit that stopped it."""
        own, folder = self.planned.runs[part.cell], cell_folder(self.study, part.cell)
        backend = self.backend or self._begin()
        manifest = own.run.manifest.with_spec(tasks=part.tasks)
        stopped: list[str] = []
        with unit_bar(part.cell.folder) as listener:

            def listen(progress: RunProgress) -> None:
                if progress.stopped is not None:
                    stopped.append(progress.stopped)
                self._touch()
                # The bar would advise to continue with `gta run`.
                listener(progress.model_copy(update={"stopped": None}))

            resources = self._limited(own, paid=_read_run_cost(folder).known or 0.0)
            execute(manifest, resources, folder, listen, backend=backend)
        judged = own.score(part.tasks, backend, self._limit(own, paid=0.0))
        self.covered[part.cell] = self._read_coverage(part.cell)
        self._touch(at_once=True)
        if stopped:
            # The run was given what was left, an amount that the user has never seen.
            spent = read_spent_so_far(self.study, self._now())
            return self._advise(spent.find_reached(self.study.file.budget) or stopped[0])
        if judged:
            return self._advise("a limit of the budget ended the judging")
        return self._find_outage(part)

    def _advise(self, reached: str) -> str:
        return f"{reached}; to continue, raise [budget] and add --amend to this command"

    def _find_outage(self, part: RoundPart) -> str | None:
        """Say that no unit of a part got a score, as when a server is down; None if one did.

        Going on would try all other blocks in vain.
        """
        units = list_units(part.tasks, self.study.file.epochs)
        if units & self.covered[part.cell].scored:
            return None
        return (
            f"none of {format_count(len(units), 'unit')} of {part.cell.folder} got a score; fix "
            f"the cause, which `gta report {cell_folder(self.study, part.cell)}` names, and run "
            "this command again"
        )

    def _begin(self) -> Backend:
        """Ask the models and judges once, then write the log and open the backend."""
        for dataset in self.study.file.datasets:
            cells = [cell for cell in self.planned.runs if cell.dataset == dataset]
            own = [self.planned.runs[cell] for cell in cells]
            ask = self.options["preflight"]
            # The first task of a harness is that of its next block, and its run grows by blocks.
            runs = [
                one.run._replace(
                    manifest=one.run.manifest.with_spec(tasks=self._find_next(cell)),
                    resources=self._limited(one, paid=0.0),
                )
                for cell, one in zip(cells, own, strict=True)
            ]
            check_start(runs, own[0].judging, ask=ask, watching=unit_bar, say=say)
        if self.log is None:
            self.log = begin_study(self.out, self.study, self.began)
        every = [one.run for one in self.planned.runs.values()]
        self.backend = self.stack.enter_context(open_run_backend(every, self.options))
        return self.backend

    def _now(self) -> StudyLog | None:
        """Return the log with the time of this command until now, if it has run anything."""
        if self.log is None or self.backend is None:
            return self.log
        return self.log.at_work(self.began, datetime.now(UTC))

    def _touch(self, *, at_once: bool = False) -> None:
        """Write the time spent; a killed command loses what came after its last unit."""
        now = datetime.now(UTC)
        if at_once or (now - self.written).total_seconds() >= _PACE:
            self.written = now
            log = self._now()
            assert log is not None
            write_log(self.out, log)

    def _limited(self, own: PartwiseRun, *, paid: float) -> Resources:
        return replace(own.run.resources, settings=self._limit(own, paid=paid))

    def _limit(self, own: PartwiseRun, *, paid: float) -> Settings:
        """Return the settings with what is left of the hours and dollars of the study.

        Running counts what the run has `paid` before; judging starts from zero.
        """
        budget, settings = self.study.file.budget, own.run.resources.settings
        spent = read_spent_so_far(self.study, self._now())
        changes: dict[str, float] = {}
        if budget.hours is not None:
            changes["hours"] = max(1e-6, budget.hours - spent.hours)
        if budget.cost_usd is not None:
            changes["cost_usd"] = max(0.0, budget.cost_usd - spent.cost_usd) + paid
        limits = settings.budget.model_copy(update=changes)
        return settings.model_copy(update={"budget": limits})


def read_result(study: ReadStudy) -> StudyResult:
    """Read all runs of a study, and answer its questions."""
    out = store_path(study.file.out)
    log = read_log(out)
    if log is None:
        raise RunError(f"{out} has no study yet: begin with `gta study run {study.path}`.")
    refuse_changed(out, study, log)
    with say_nothing():  # what is missing here was said before the runs
        planned = plan_cells(study)
    runs = {}
    for cell in planned.runs:
        folder = cell_folder(study, cell)
        _refuse_foreign(folder, log, study)
        if (folder / SCORES).is_file():
            runs[cell] = read_compared(folder)
    spent = read_spent_so_far(study, log)
    judges = {cell.dataset: own.judge for cell, own in planned.runs.items()}
    return report_study(study, log, spent, planned.blocks, runs, judges)
