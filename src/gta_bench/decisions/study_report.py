"""The answers of a study, from its complete blocks: questions, components, error budget, facts."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gta_bench.decisions.gate import choose_metric, read_outcomes
from gta_bench.decisions.study_file import ReadStudy, find_contrast, name_sides
from gta_bench.decisions.study_run import Blocks, Coverage, count_complete, cover, list_units
from gta_bench.errors import RunError, format_count
from gta_bench.metrics import table
from gta_bench.metrics.comparability import find_cautions, find_refusals
from gta_bench.records.checks import CHECK
from gta_bench.records.comparison import ALPHA, ComparedRun
from gta_bench.records.scores import RunScores
from gta_bench.records.study import (
    ErrorBudget,
    StudyAnswer,
    StudyCell,
    StudyComponents,
    StudyFile,
    StudyLog,
    StudyQuestion,
    StudyResult,
    StudySpent,
    SystemFacts,
)
from gta_bench.statistics.components import estimate_components
from gta_bench.statistics.contrasts import (
    Contrast,
    contrast_interval,
    decide_margin,
    find_detectable,
    split_error,
)
from gta_bench.statistics.proportions import holm

_Array = npt.NDArray[np.float64]
_TWO_RECORDINGS = re.compile(r"tape: record \w+ and record \w+")


class _Measured(NamedTuple):
    """One metric of all systems on one dataset, in its complete blocks.

    `scores` are shares by task, model, agent and epoch, NaN where one is missing.
    """

    metric: str
    judge: str | None
    scores: _Array

    @property
    def scale(self) -> float:
        """How many points a share of 1 is."""
        row = table.metric(self.metric)
        return row.top * row.factor


def report_study(
    study: ReadStudy,
    log: StudyLog,
    spent: StudySpent,
    blocks: Mapping[str, Blocks],
    runs: Mapping[StudyCell, ComparedRun],
    judges: Mapping[str, str | None],
) -> StudyResult:
    """Answer the questions; `runs` are the cells that have scores, `judges` those of datasets."""
    file = study.file
    covered = {
        cell: cover(run.manifest.spec, run.scores, judges[cell.dataset])
        for cell, run in runs.items()
    }
    complete: dict[str, tuple[int, int]] = {}
    used: dict[str, tuple[str, ...]] = {}
    for dataset, own in blocks.items():
        cells = [cell for cell in file.cells if cell.dataset == dataset]
        whole = all(cell in runs for cell in cells)
        done = [covered[cell] for cell in cells if cell in runs]
        number = count_complete(own, done, epochs=file.epochs) if whole else 0
        complete[dataset] = number, len(own)
        used[dataset] = tuple(task for block in own[:number] for task in block)
    if not any(used.values()):
        raise RunError(
            f"{file.out} has no complete block yet: continue with `gta study run {study.path}`."
        )
    cautions = []
    for dataset in used:
        same = [runs[cell] for cell in file.cells if cell.dataset == dataset and cell in runs]
        cautions += _list_cautions(same)
    measured = _measure(file, runs, used, judges)
    answers, remarks = _answer(file, measured)
    components = _list_components(file, measured)
    return StudyResult(
        name=file.name,
        versions=log.versions,
        spent=spent,
        blocks=complete,
        outside=_count_outside(file, covered, used),
        answers=tuple(answers),
        components=tuple(components),
        systems=tuple(
            _list_facts(file, cell, runs[cell], covered[cell], used[cell.dataset], measured)
            for cell in file.cells
            if cell in runs
        ),
        remarks=tuple(dict.fromkeys([*remarks, *_list_lacking(components), *cautions])),
    )


def _list_lacking(components: Sequence[StudyComponents]) -> list[str]:
    """Say which variances have no parts, and why."""
    return [
        f"{one.dataset}, {one.metric}: variance is not divided, which needs two tasks with a score "
        f"by every system in every epoch ({one.n} of {format_count(one.n_tasks, 'task')})."
        for one in components
        if not one.parts
    ]


def _count_outside(
    study: StudyFile, covered: Mapping[StudyCell, Coverage], used: Mapping[str, tuple[str, ...]]
) -> int:
    return sum(
        len(one.scored - list_units(used[cell.dataset], study.epochs))
        for cell, one in covered.items()
    )


def _list_cautions(runs: Sequence[ComparedRun]) -> list[str]:
    """Return how the runs of a dataset differ beyond their systems; raise if too much.

    A tape grows while its runs are recorded, so that no two of them have seen the same one.
    """
    found: dict[str, list[str]] = {}
    for other in runs[1:]:
        if reasons := find_refusals(runs[0], other):
            raise RunError(
                f"{runs[0].name} and {other.name} do not measure the same: {'; '.join(reasons)}."
            )
        for one in find_cautions(runs[0], other):
            if not _TWO_RECORDINGS.fullmatch(one):
                found.setdefault(one, []).append(other.name)
    return [f"{runs[0].name} against {', '.join(names)}: {one}" for one, names in found.items()]


def _measure(
    study: StudyFile,
    runs: Mapping[StudyCell, ComparedRun],
    used: Mapping[str, tuple[str, ...]],
    judges: Mapping[str, str | None],
) -> dict[tuple[str, str | None, str | None], _Measured]:
    """Return the scores for every dataset, metric and judge that a question is about."""
    found: dict[tuple[str, str | None, str | None], _Measured] = {}
    for question in study.questions:
        dataset = study.dataset_of(question)
        key = dataset, question.metric, question.judge
        if key in found or not used[dataset]:
            continue
        tables = []
        for system in study.systems:
            judge = question.judge or judges[dataset]
            outcomes = read_outcomes(runs[StudyCell(dataset, system)], question.metric, judge)
            tables.append({own.task: own.values for own in outcomes.tasks})
        # The denominator of these metrics is fixed by the task, so a task that has nothing to
        # measure has nothing in any run.
        tasks = [task for task in used[dataset] if all(own[task] != () for own in tables)]
        values = [[own[task][: study.epochs] for own in tables] for task in tasks]
        shape = len(tasks), len(study.models), len(study.agents), study.epochs
        scores = np.asarray(values, dtype=np.float64).reshape(shape)
        found[key] = _Measured(outcomes.metric, outcomes.judge, scores)
    return found


def _answer(
    study: StudyFile, measured: Mapping[tuple[str, str | None, str | None], _Measured]
) -> tuple[list[StudyAnswer], list[str]]:
    """Answer all questions, corrected for how many there are."""
    answers, remarks = [], []
    for question in study.questions:
        key = study.dataset_of(question), question.metric, question.judge
        own = measured.get(key)
        found = None if own is None else _answer_one(study, question, own)
        if found is None:
            remarks.append(f"{question.name}: no task has a score on both sides yet.")
        else:
            answers.append(found)
    # Questions without data count as well: they were asked.
    p_values = [one.p_value for one in answers] + [1.0] * len(remarks)
    corrected = holm(p_values)[: len(answers)]
    return [
        one.model_copy(update={"p_holm": p, "answer": one.answer if p < ALPHA else "not decided"})
        for one, p in zip(answers, corrected, strict=True)
    ], remarks


def _answer_one(
    study: StudyFile, question: StudyQuestion, measured: _Measured
) -> StudyAnswer | None:
    contrast = find_contrast(study, question)
    row, scores, scale = table.metric(measured.metric), measured.scores, measured.scale
    sides = [_side(scores, own) for own in (contrast.first, contrast.second)]
    known = ~np.isnan(sides[0] + sides[1])
    n = int(known.sum())
    if not n:
        return None
    first, second = (side[known].tolist() for side in sides)
    margin = question.margin / scale / contrast.factor
    tests = [decide_margin(first, second, margin=margin)]
    if n < len(scores):
        for low, high in ((0.0, 1.0), (1.0, 0.0)):
            filled = (
                _side(scores, own, fill).tolist()
                for own, fill in ((contrast.first, low), (contrast.second, high))
            )
            tests.append(decide_margin(*filled, margin=margin))
    agree = len({test.side for test in tests}) == 1 and tests[0].side is not None
    difference = contrast_interval(first, second, factor=contrast.factor)
    weights = contrast.weights(len(study.models), len(study.agents))
    return StudyAnswer(
        question=question.name,
        ask=question.ask,
        metric=row.label,
        sides=name_sides(question),
        values=_find_values(scores, contrast, known, scale),
        difference=difference.scaled(scale),
        margin=question.margin,
        p_value=max(test.p_value for test in tests) if agree else 1.0,
        p_holm=1.0,
        answer=(agree and tests[0].side) or "not decided",
        n=n,
        n_tasks=len(scores),
        detectable=scale
        * find_detectable(first, second, factor=contrast.factor, tests=len(study.questions)),
        error=_split(measured, known, weights),
    )


def _side(scores: _Array, places: Sequence[tuple[int, int]], fill: float | None = None) -> _Array:
    """Return the mean of these systems and all epochs by task; NaN if one is missing."""
    own = np.stack([scores[:, model, agent] for model, agent in places], axis=1)
    if fill is not None:
        own = np.where(np.isnan(own), fill, own)
    found: _Array = own.mean(axis=(1, 2))
    return found


def _find_values(
    scores: _Array, contrast: Contrast, known: npt.NDArray[np.bool_], scale: float
) -> tuple[float, float]:
    """Return the means of both sides; of an interaction, the differences with both agents."""
    if contrast.factor == 1:
        one, two = (_side(scores[known], own) for own in (contrast.first, contrast.second))
        return scale * float(one.mean()), scale * float(two.mean())
    (here, other_there), (other_here, there) = contrast.first, contrast.second
    pairs = ((here, other_here), (there, other_there))
    gaps = [
        float((_side(scores[known], [one]) - _side(scores[known], [two])).mean())
        for one, two in pairs
    ]
    return scale * gaps[0], scale * gaps[1]


def _split(measured: _Measured, known: npt.NDArray[np.bool_], weights: _Array) -> ErrorBudget:
    """Return the parts of the error, of which each one needs repeats to be seen."""
    involved = np.where(weights[None, :, :, None] != 0, measured.scores, 0.0)[known]
    error = split_error(involved, weights)
    judged = measured.judge is not None and measured.judge != CHECK
    runs = error.runs
    return ErrorBudget(
        standard_error=measured.scale * error.standard_error,
        tasks=1 - (runs or 0.0),
        runs=runs,
        judge=None if judged else 0.0,
    )


def _list_components(
    study: StudyFile, measured: Mapping[tuple[str, str | None, str | None], _Measured]
) -> list[StudyComponents]:
    found = []
    for (dataset, _, _), own in measured.items():
        whole = own.scores[~np.isnan(own.scores).any(axis=(1, 2, 3))]
        parts = estimate_components(whole, most=0.25) if len(whole) > 1 else ()  # of shares
        one = StudyComponents(
            dataset=dataset,
            metric=table.metric(own.metric).label,
            judge=own.judge,
            n=len(whole),
            n_tasks=len(own.scores),
            parts=tuple(
                part.model_copy(update={"variance": part.variance.scaled(own.scale**2)})
                for part in parts
            ),
        )
        if one not in found:
            found.append(one)
    return found


def _list_facts(
    study: StudyFile,
    cell: StudyCell,
    run: ComparedRun,
    covered: Coverage,
    tasks: Sequence[str],
    measured: Mapping[tuple[str, str | None, str | None], _Measured],
) -> SystemFacts:
    """Return the facts of a run, by the first metric that is asked about its dataset."""
    units = list_units(tasks, study.epochs)
    scores = run.scores
    place = [*study.models].index(cell.system.model), [*study.agents].index(cell.system.agent)
    own = next((one for (dataset, _, _), one in measured.items() if dataset == cell.dataset), None)
    values = np.full(1, np.nan) if own is None else own.scores[:, place[0], place[1]]
    known = bool((~np.isnan(values)).any())
    metric = choose_metric(run.manifest.spec.mode, None if own is None else own.metric)
    causes = Counter(
        one.cause.splitlines()[0][:80] for one in scores.unscored if (one.task, one.epoch) in units
    )
    return SystemFacts(
        dataset=cell.dataset,
        system=cell.system.name,
        folder=run.name,
        metric=metric.label,
        value=_mean_over_tasks(values) * own.scale if own is not None and known else None,
        n=len(units & covered.scored),
        n_units=len(units),
        unscored=dict(causes.most_common()),
        malformed=scores.strict.malformed if isinstance(scores, RunScores) else None,
        stops={str(kind): count for kind, count in scores.stops.items()},
    )


def _mean_over_tasks(values: _Array) -> float:
    """Return the mean over the tasks that have a score, each one that of its epochs."""
    scored = values[~np.isnan(values).all(axis=1)]
    return float(np.nanmean(scored, axis=1).mean())


def describe_amendments(result: StudyResult) -> list[str]:
    """Return a sentence for every change of the file after the study began."""
    return [
        f"The file was changed on {one.when:%Y-%m-%d %H:%M} UTC, when "
        f"{format_count(one.scored, 'unit')} had a score: "
        f"{', '.join(one.changed) or 'comments or spaces'}. Answers that this concerns are "
        "exploratory: those to a changed question, or with other datasets, epochs or systems."
        for one in result.versions[1:]
    ]
