"""The plan and the answers of a study as tables and sentences, for the terminal and Markdown."""

import math
from collections.abc import Iterator, Sequence

from gta_bench.decisions.study_report import describe_amendments
from gta_bench.errors import format_count
from gta_bench.records.study import StudyAnswer, StudyPlan, StudyResult
from gta_bench.reports.tables import Table, escape_markdown, markdown


def plan_tables(plan: StudyPlan) -> list[tuple[str, Table]]:
    """Return the runs with what they take, and the questions with what they can show."""
    cells = [
        (one.dataset, one.system, f"{one.units:,}", *_amounts(one.hours, one.cost_usd, one.calls))
        for one in plan.cells
    ]
    sums = [
        None if None in column else sum(value or 0.0 for value in column)
        for column in zip(
            *((one.hours, one.cost_usd, one.calls) for one in plan.cells), strict=True
        )
    ]
    cells.append(("all", "", f"{plan.units:,}", *_amounts(*sums)))
    questions = tuple(
        (
            one.question,
            one.metric,
            f"{one.tasks} of {one.n_tasks}",
            _points(one.detectable),
            _points(one.detectable_all),
            one.assumed,
        )
        for one in plan.questions
    )
    heading = ("question", "metric", "tasks", "shows", "with all", "variance from")
    return [
        ("Runs", Table(("dataset", "system", "units", "hours", "cost", "calls"), tuple(cells))),
        ("Smallest difference shown with 80 % power, in points", Table(heading, questions)),
    ]


def _amounts(hours: float | None, cost: float | None, calls: float | None) -> tuple[str, str, str]:
    return (
        "?" if hours is None else f"{hours:.2f}",
        "?" if cost is None else f"${cost:.2f}",
        "?" if calls is None else f"{calls:,.0f}",
    )


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def describe_plan(plan: StudyPlan) -> Iterator[str]:
    """Yield what the budget affords."""
    for dataset, (some, every) in plan.blocks.items():
        whole = "all of them" if some == every else f"{some} of them"
        afforded = f"the budget affords {'at most ' if plan.unknown else ''}{whole}"
        if plan.unknown and some == every:
            afforded = "how many of them the budget affords is not known"
        yield f"{dataset}: {format_count(every, 'block')}; {afforded}."
    yield from plan.remarks


def result_tables(result: StudyResult) -> list[tuple[str, Table, tuple[int, ...]]]:
    """Return every table with its title and the columns that are words."""
    return [
        ("Answers, in points", _answer_table(result.answers), (0, 1, 2, 3, 9)),
        ("What the standard error of each answer is from", _error_table(result.answers), (0,)),
        ("Variance of one score, by source", _component_table(result), (0, 1, 2, 5)),
        (
            "Systems: means in complete blocks, replies of the whole run",
            _system_table(result),
            (0, 1, 2, 5, 6, 7),
        ),
    ]


def _answer_table(answers: Sequence[StudyAnswer]) -> Table:
    heading = (
        *("question", "metric", "first", "second", "values", "difference", "95 % interval"),
        *("tasks", "p (Holm)", "answer", "could show"),
    )
    return Table(
        heading,
        tuple(
            (
                one.question,
                one.metric,
                *one.sides,
                f"{one.values[0]:.2f} and {one.values[1]:.2f}",
                f"{one.difference.estimate:+.2f}",
                f"{one.difference.low:+.2f} to {one.difference.high:+.2f}",
                f"{one.n}/{one.n_tasks}",
                f"{one.p_holm:.4f}",
                state_answer(one),
                f"{one.detectable:.2f}",
            )
            for one in answers
        ),
    )


def state_answer(one: StudyAnswer) -> str:
    """Return the answer in words."""
    if one.answer == "not decided":
        return "not decided"
    if one.answer == "same":
        return f"they differ by less than {one.margin:g}"
    more = f" by more than {one.margin:g}" if one.margin else ""
    return f"{one.answer} is higher{more}"


def _error_table(answers: Sequence[StudyAnswer]) -> Table:
    def percent(share: float | None) -> str:
        return "not separated" if share is None else f"{100 * share:.0f} %"

    return Table(
        ("question", "standard error", "tasks", "runs", "judge"),
        tuple(
            (
                one.question,
                f"{one.error.standard_error:.2f}",
                percent(one.error.tasks),
                percent(one.error.runs),
                percent(one.error.judge),
            )
            for one in answers
        ),
    )


def _component_table(result: StudyResult) -> Table:
    rows = []
    for own in result.components:
        metric = own.metric if own.judge is None else f"{own.metric}, {own.judge}"
        for part in own.parts:
            found = part.variance
            rows.append(
                (
                    own.dataset,
                    metric,
                    part.source + (" and run" if part.with_runs else ""),
                    f"{found.estimate:.1f}",
                    f"{100 * part.share:.0f} %",
                    f"{found.low:.1f} to {found.high:.1f}"
                    if math.isfinite(found.high)
                    else "unknown",
                    f"{own.n}/{own.n_tasks}",
                )
            )
    heading = ("dataset", "metric", "source", "variance", "share", "95 % interval", "tasks")
    return Table(heading, tuple(rows))


def _system_table(result: StudyResult) -> Table:
    rows = tuple(
        (
            one.dataset,
            one.system,
            one.metric,
            "-" if one.value is None else f"{one.value:.2f}",
            f"{one.n}/{one.n_units}",
            "; ".join(f"{cause}: {count}" for cause, count in one.unscored.items()) or "-",
            "-" if one.malformed is None else str(one.malformed),
            ", ".join(f"{kind} {count}" for kind, count in one.stops.items()) or "-",
        )
        for one in result.systems
    )
    heading = ("dataset", "system", "metric", "mean", "scored", "unscored", "malformed", "stops")
    return Table(heading, rows)


def describe_result(result: StudyResult) -> Iterator[str]:
    """Yield what the answers are based on."""
    for dataset, (some, every) in result.blocks.items():
        yield f"{dataset}: {some} of {format_count(every, 'block')} complete."
    if result.outside:
        yield (
            f"{format_count(result.outside, 'unit')} with a score in blocks that are not complete "
            "are not used."
        )
    spent = result.spent
    cost = f"${spent.cost_usd:.2f}"
    if spent.unpriced:
        cost = (
            f"more than {cost}, at a price that is not known" if spent.cost_usd else "cost unknown"
        )
    yield f"Spent: {spent.hours:.2f} hours, {cost}, {spent.calls:,} model calls."
    first = f", first {result.versions[0].digest}" if len(result.versions) > 1 else ""
    yield f"File: sha256 {result.versions[-1].digest}{first}."
    yield from describe_amendments(result)
    yield from result.remarks


def format_study_markdown(result: StudyResult) -> str:
    """Return the whole report as Markdown."""
    parts = [f"# {escape_markdown(result.name)}"]
    parts += [f"## {title}\n\n{markdown(own)}" for title, own, _ in result_tables(result)]
    parts.append("\n".join(f"- {escape_markdown(one)}" for one in describe_result(result)))
    return "\n\n".join(parts) + "\n"
