"""The plan of a study: units, hours, cost, and the smallest difference a question can show."""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum, isinf
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from gta_bench.decisions.gate import choose_metric, read_outcomes
from gta_bench.decisions.study_file import ReadStudy, find_contrast
from gta_bench.decisions.study_run import Blocks, RoundPart, list_rounds
from gta_bench.errors import ConfigError, RunError, UsageError, join_first
from gta_bench.records.comparison import ComparedRun
from gta_bench.records.run import RunMode
from gta_bench.records.study import (
    AssumedSpread,
    PlannedCell,
    PlannedQuestion,
    StudyCell,
    StudyFile,
    StudyPlan,
    StudyQuestion,
    StudySpent,
)
from gta_bench.statistics.components import estimate_components
from gta_bench.statistics.contrasts import Spread, plan_contrast

_AMOUNTS: Final = ("seconds", "cost_usd", "calls")


class UnitCost(NamedTuple):
    """What one unit of a cell is expected to take; None if nothing is known."""

    seconds: float | None
    cost_usd: float | None
    calls: float | None


def find_unit_cost(
    study: StudyFile, cell: StudyCell, pilot: Sequence[ComparedRun] = ()
) -> UnitCost:
    """Return what the file assumes of a unit, else what the pilot runs took."""
    names = (cell.system.name, *cell.system, cell.dataset)
    found: list[float | None] = []
    for amount in _AMOUNTS:
        given = getattr(study.assume, amount)
        if isinstance(given, Mapping):
            given = next((given[name] for name in names if name in given), None)
        found.append(_mean_usage(pilot, amount) if given is None else given)
    return UnitCost(*found)


def _mean_usage(pilot: Sequence[ComparedRun], amount: str) -> float | None:
    """Return the mean over the units of all pilot runs; None if it is not known of any."""
    field = "model_calls" if amount == "calls" else amount
    values = [
        getattr(run.scores.usage, field) / run.scores.n
        for run in pilot
        if run.scores.n and getattr(run.scores.usage, field) is not None
    ]
    return fmean(values) if values else None


def check_assumed_names(study: StudyFile) -> None:
    """Raise UsageError for a name in [assume] that the study does not have."""
    systems = [one.name for one in study.systems]
    known = {*systems, *study.models, *study.agents, *study.datasets}
    for amount in _AMOUNTS:
        given = getattr(study.assume, amount)
        unknown = (
            [name for name in given if name not in known] if isinstance(given, Mapping) else ()
        )
        for name in unknown:
            raise UsageError(
                f"[assume] `{amount}`: the study has no {name!r}; use systems, models, agents or "
                f"datasets: {join_first(sorted(known))}."
            )


def check_questions(
    study: ReadStudy, modes: Mapping[str, RunMode], judges: Mapping[str, Sequence[str]]
) -> None:
    """Raise for a metric, judge or margin that no answer could have, before anything is sent."""
    for question in study.file.questions:
        dataset, where = study.file.dataset_of(question), f"{study.path}: {question.name}"
        try:
            row = choose_metric(modes[dataset], question.metric)
        except UsageError as exc:
            raise ConfigError(f"{where}: {exc}") from exc
        known = judges[dataset]
        if question.judge is not None and question.judge not in known:
            names = f"is scored by: {'; '.join(known)}" if known else "is scored by no judge"
            raise ConfigError(f"{where}: leave `judge` out or correct it; {dataset} {names}.")
        most = find_contrast(study.file, question).factor * row.top * row.factor
        if question.margin >= most:
            raise ConfigError(
                f"{where}: a `margin` of {question.margin:g} is not below {most:g} points, the "
                f"largest difference of {row.label}."
            )


def count_affordable(
    study: StudyFile,
    blocks: Mapping[str, Blocks],
    costs: Mapping[StudyCell, UnitCost],
    spent: StudySpent,
) -> dict[str, int]:
    """Return how many blocks of each dataset fit in the budget, which is checked by round.

    `spent` is what was spent before the first of these blocks. What is not known costs nothing.
    """
    total, found = spent, dict.fromkeys(blocks, 0)
    for parts in list_rounds(study.cells, blocks):
        total = add_expected(study, parts, costs, total)
        if total.find_exceeded(study.budget) is not None:
            break
        for dataset in {part.cell.dataset for part in parts}:
            found[dataset] += 1
    return found


def add_expected(
    study: StudyFile,
    parts: Sequence[RoundPart],
    costs: Mapping[StudyCell, UnitCost],
    spent: StudySpent,
) -> StudySpent:
    """Return what will have been spent after these parts."""
    units = [(costs[part.cell], len(part.tasks) * study.epochs) for part in parts]
    seconds = fsum(n * (one.seconds or 0.0) for one, n in units) / study.assume.at_once
    return StudySpent(
        hours=spent.hours + seconds / 3600,
        cost_usd=spent.cost_usd + fsum(n * (one.cost_usd or 0.0) for one, n in units),
        calls=spent.calls + round(fsum(n * (one.calls or 0.0) for one, n in units)),
    )


def plan_study(
    study: ReadStudy,
    blocks: Mapping[str, Blocks],
    modes: Mapping[str, RunMode],
    pilot: Sequence[ComparedRun] = (),
) -> StudyPlan:
    """Return the plan of a whole study, from its beginning."""
    file = study.file
    check_assumed_names(file)
    costs = {cell: find_unit_cost(file, cell, pilot) for cell in file.cells}
    afforded = count_affordable(file, blocks, costs, StudySpent())
    cells = []
    for cell in file.cells:
        units = file.epochs * sum(map(len, blocks[cell.dataset]))
        one = costs[cell]
        hours = None if one.seconds is None else units * one.seconds / 3600 / file.assume.at_once
        cells.append(
            PlannedCell(
                dataset=cell.dataset,
                system=cell.system.name,
                units=units,
                hours=hours,
                cost_usd=None if one.cost_usd is None else units * one.cost_usd,
                calls=None if one.calls is None else units * one.calls,
            )
        )
    return StudyPlan(
        name=file.name,
        digest=study.digest,
        units=sum(one.units for one in cells),
        blocks={name: (afforded[name], len(own)) for name, own in blocks.items()},
        cells=tuple(cells),
        questions=tuple(
            _plan_question(file, one, blocks, modes, afforded, pilot) for one in file.questions
        ),
        unknown=tuple(limit for limit, _, _ in _find_unknown(file, costs)),
        remarks=tuple(_list_remarks(file, costs)),
    )


def _plan_question(
    study: StudyFile,
    question: StudyQuestion,
    blocks: Mapping[str, Blocks],
    modes: Mapping[str, RunMode],
    afforded: Mapping[str, int],
    pilot: Sequence[ComparedRun],
) -> PlannedQuestion:
    dataset = study.dataset_of(question)
    row = choose_metric(modes[dataset], question.metric)
    spread, assumed = find_spread(study, modes[dataset], row.name, question.judge, pilot)
    contrast = find_contrast(study, question)
    weights = contrast.weights(len(study.models), len(study.agents))
    sizes = [sum(map(len, blocks[dataset][: afforded[dataset]])), sum(map(len, blocks[dataset]))]
    shown: list[float | None] = []
    for size in sizes:
        least = plan_contrast(
            weights, spread, tasks=size, runs=study.epochs, tests=len(study.questions)
        )
        most = contrast.factor
        shown.append(None if isinf(least) else min(least, most) * row.top * row.factor)
    return PlannedQuestion(
        question=question.name,
        ask=question.ask,
        metric=row.label,
        tasks=sizes[0],
        n_tasks=sizes[1],
        detectable=shown[0],
        detectable_all=shown[1],
        assumed=assumed,
    )


def find_spread(
    study: StudyFile,
    mode: RunMode,
    metric: str,
    judge: str | None,
    pilot: Sequence[ComparedRun],
) -> tuple[Spread, str]:
    """Return the assumed variances of shares, and what they are from."""
    own = study.assume.sd
    fitting = [run for run in pilot if run.manifest.spec.mode == mode]
    if own is None and fitting:
        return _read_pilot(fitting, metric, judge), f"pilot of {len(fitting)} runs"
    given = own or AssumedSpread()
    squares = [(value / 100) ** 2 for _, value in given]
    return Spread(*squares), "[assume.sd]" if own else "independent systems that pass half"


def _read_pilot(runs: Sequence[ComparedRun], metric: str, judge: str | None) -> Spread:
    """Estimate the variances from tasks that all pilot runs have scored in all epochs."""
    tables = [
        {own.task: own.values for own in read_outcomes(run, metric, judge).tasks if own.values}
        for run in runs
    ]
    epochs = min(run.manifest.spec.epochs for run in runs)
    rows = []
    for task in tables[0]:
        values = [table.get(task, (None,))[:epochs] for table in tables]
        if all(None not in own for own in values):
            rows.append([[own] for own in values])
    if len(rows) < 2 or len(runs) < 2:
        raise RunError(
            f"The pilot runs {join_first([run.name for run in runs])} have fewer than two tasks "
            "with a score in both: name other ones in [assume] `pilot`, or give [assume.sd]."
        )
    parts = {one.source: one for one in estimate_components(np.asarray(rows, dtype=np.float64))}
    by_system = parts["task x model"].variance.estimate
    if not parts["task x model"].with_runs:
        by_system *= len(runs) / (len(runs) - 1)
    run = parts["run"].variance.estimate if "run" in parts else 0.0
    return Spread(0.0, 0.0, by_system, run)


def _find_unknown(
    study: StudyFile, costs: Mapping[StudyCell, UnitCost]
) -> Iterator[tuple[str, str, list[str]]]:
    """Yield limits of the budget, the amount of a unit that is not known, and for which runs."""
    limits = {"hours": "seconds", "cost_usd": "cost_usd", "calls": "calls"}
    for limit, amount in limits.items():
        lacking = [cell.folder for cell, one in costs.items() if getattr(one, amount) is None]
        if lacking and getattr(study.budget, limit) is not None:
            yield limit, amount, lacking


def _list_remarks(study: StudyFile, costs: Mapping[StudyCell, UnitCost]) -> list[str]:
    """Say which limits of the budget cannot be planned with."""
    found = [
        f"How many units `{limit}` of [budget] affords is not known: give `{amount}` of "
        f"a unit in [assume], or a pilot. Lacking for {join_first(lacking, 3)}."
        for limit, amount, lacking in _find_unknown(study, costs)
    ]
    for question in study.questions:
        if question.margin:
            found.append(
                f"{question.name}: to be decided, the difference must be so many points above or "
                f"below the margin of {question.margin:g}."
            )
    return found
