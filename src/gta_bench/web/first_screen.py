"""The first screen of a run: finding, headline, limits, published neighbors, outcomes, costs."""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple, cast

from gta_bench.datasets.pinned import RELEASED_DIGESTS
from gta_bench.errors import format_count
from gta_bench.leaderboard.entries import read_published_entries
from gta_bench.leaderboard.tables import find_interval
from gta_bench.metrics import table
from gta_bench.records.attempts import UnitKey
from gta_bench.records.cost import make_cost, sum_costs
from gta_bench.records.leaderboard import Entry, MetricName
from gta_bench.records.workflow_scores import JudgeScores
from gta_bench.reports.certainty import RunMetrics, collect_metrics
from gta_bench.reports.estimates import Estimate, estimates, make_workflow_parts
from gta_bench.reports.findings import (
    CAUSES,
    Contender,
    OutcomeCounts,
    RunFinding,
    atomic_outcomes,
    leaf_outcomes,
    state_comparison,
    state_finding,
)
from gta_bench.reports.summary import (
    RELEASED_TASKS,
    SCRIPTED_AGENTS,
    is_scripted,
    system_name,
)
from gta_bench.reports.tables import dollars
from gta_bench.web.boards import COLUMNS, TITLES
from gta_bench.web.components import (
    Badge,
    CauseCard,
    Figure,
    IntervalPlot,
    PlotPoint,
    StackBar,
    list_badges,
    plot_intervals,
    stack_counts,
)
from gta_bench.web.material import AtomicRun, JudgedRun, RunMaterial, run_mode

CAUSES_SHOWN: Final = 3
NEIGHBORS: Final = 6
UNKNOWN: Final = "not recorded"
LinkUnit = Callable[[UnitKey], str]


class Headline(NamedTuple):
    """The scores of a run by which it is judged first: all estimates, and the finding of them."""

    judge: str
    scores: dict[str, Estimate]
    finding: RunFinding

    @property
    def primary(self) -> Estimate | None:
        """The primary metric."""
        return self.finding.headline


class Neighbors(NamedTuple):
    """Published systems beside a run, and what to keep in mind."""

    plot: IntervalPlot
    about: str
    note: str


class FirstScreen(NamedTuple):
    """What is seen of a run without scrolling."""

    kind: str
    title: str
    sentence: str
    badges: tuple[Badge, ...]
    label: str
    value: str
    unit: str
    interval: str
    big: IntervalPlot | None
    figures: tuple[Figure, ...]
    neighbors: Neighbors | None
    no_neighbors: str
    outcomes: StackBar | None
    outcomes_title: str
    causes: tuple[CauseCard, ...]
    more_causes: str
    judges: IntervalPlot | None


def find_headlines(run: RunMaterial) -> list[Headline]:
    """Return the headline of a run, for Workflow by every judge; one without a judge has none."""
    summary, spec = run.summary, run.summary.manifest.spec
    if isinstance(run, AtomicRun):
        scores = run.summary.scores
        (metrics,) = collect_metrics([summary])
        found = {one.metric: one for one in metrics.estimates()}
        finding = RunFinding(
            run_mode(run),
            found.get(table.primary(scores.mode).name),
            scores.n,
            scores.n_units,
            atomic_outcomes(scores, epochs=spec.epochs),
        )
        return [Headline("", found, finding)]
    workflow = run.summary.scores
    if not workflow.judges:
        parts = make_workflow_parts((), workflow, run.units)
        found = estimates(parts, spec.tasks, epochs=spec.epochs)
        return [
            Headline("", found, RunFinding("workflow", None, workflow.n, workflow.n_units, None))
        ]
    return [_judged_headline(run, judge) for judge in workflow.judges]


def _judged_headline(run: JudgedRun, judge: JudgeScores) -> Headline:
    workflow, spec = run.summary.scores, run.summary.manifest.spec
    parts = make_workflow_parts(judge.tasks, workflow, run.units)
    found = estimates(parts, spec.tasks, epochs=spec.epochs)
    finding = RunFinding(
        "workflow",
        found.get(table.ROOT_SR.name),
        judge.strict.n,
        judge.strict.n_units,
        leaf_outcomes(judge),
        judge.strict.n_leaves - judge.strict.leaves,
    )
    return Headline(judge.judge, found, finding)


def view_first_screen(number: int, run: RunMaterial, headlines: Sequence[Headline]) -> FirstScreen:
    """Return the first screen by the first judge; the others are rows below."""
    first = headlines[0]
    mode, manifest = run_mode(run), run.summary.manifest
    one = first.primary
    row = table.primary(mode)
    badges = tuple(_list_own_badges(run, first))
    began = "imported" if manifest.imported_from else "run"
    by = f" · judged by {first.judge}" if first.judge else ""
    outcomes = first.finding.outcomes
    neighbors, reason = _view_neighbors(run, first, badges)
    return FirstScreen(
        kind=f"{TITLES[mode]} · {began} {manifest.created:%Y-%m-%d}{by}",
        title=system_name(manifest),
        sentence=state_finding(first.finding),
        badges=badges,
        label=f"{row.label}, strict: {row.meaning}",
        value="\N{EN DASH}" if one is None else f"{one.value:.1f}",
        unit="" if one is None else "%",
        interval=_state_interval(first, len(manifest.spec.tasks)),
        big=None if one is None else plot_intervals([_own_point("", one)]),
        figures=tuple(_list_figures(run, first)),
        neighbors=neighbors,
        no_neighbors=reason,
        outcomes=None
        if outcomes is None
        else stack_counts(outcomes.counts(), f"Of {outcomes.text}"),
        outcomes_title="" if outcomes is None else f"What became of {outcomes.text}",
        causes=() if outcomes is None else tuple(_list_causes(number, outcomes)),
        more_causes=_count_causes(outcomes),
        judges=_view_judges(headlines) if len(headlines) > 1 else None,
    )


def _state_interval(headline: Headline, tasks: int) -> str:
    """Return the interval of the primary metric, and how many tasks it is about."""
    one, finding = headline.primary, headline.finding
    whole = format_count(tasks, "task")
    if one is None:
        return f"n 0 of {whole}"
    scored = f"n {one.n:,} of {whole}"
    if finding.n < finding.n_units:
        kind = "judged" if finding.mode == "workflow" else "scored"
        return f"95 % interval of the {format_count(one.n, f'{kind} task')} {_span(one)} · {scored}"
    if one.n < tasks and one.metric == table.ANS_ACC.name:
        scored += ", those with a reference answer"
    return f"95 % interval {_span(one)} · {scored}"


def _own_point(name: str, one: Estimate) -> PlotPoint:
    return PlotPoint(
        name, one.value, one.low, one.high, one.text, _span(one), mark="own", current=bool(name)
    )


def _span(one: Estimate) -> str:
    return f"{one.low:.1f} to {one.high:.1f}"


def _list_own_badges(run: RunMaterial, headline: Headline) -> Iterator[Badge]:
    finding = headline.finding
    texts = (
        run.summary.badges
        if isinstance(run, AtomicRun)
        else run.summary.badges(headline.judge or None)
    )
    return list_badges(texts, n=finding.n, n_units=finding.n_units, missing=finding.missing)


def _list_figures(run: RunMaterial, headline: Headline) -> Iterator[Figure]:
    """Yield the other metrics of the mode, with n if it is not the headline's; cost and time."""
    n = None if headline.primary is None else headline.primary.n
    for name in COLUMNS[run_mode(run)][1:4]:
        if name in headline.scores:
            one = headline.scores[name]
            digits = 2 if table.metric(name).scale == "points" else 1
            span = f"{one.low:.{digits}f} to {one.high:.{digits}f}"
            scored = "" if one.n == n else f" · n {one.n:,}"
            yield Figure(table.label(name), f"{one.value:.{digits}f}", f"{span}{scored}")
    yield from _list_costs(run, headline)


def _list_costs(run: RunMaterial, headline: Headline) -> Iterator[Figure]:
    usage, n = run.summary.scores.usage, run.summary.scores.n or 1
    cost = usage.cost_usd
    judged = next(
        (
            judge.usage.cost_usd
            for judge in ([] if isinstance(run, AtomicRun) else run.summary.scores.judges)
            if judge.judge == headline.judge
        ),
        None,
    )
    if cost is None:
        yield Figure("Cost", UNKNOWN, known=False)
    else:
        total = sum_costs(map(make_cost, (cost, judged))).total if judged is not None else cost
        judging = f", {dollars(judged)} of it judging" if judged else ""
        yield Figure("Cost", f"${total or 0:,.2f}", f"{dollars(cost / n)} a task{judging}")
    if not usage.seconds:
        yield Figure("Time", UNKNOWN, known=False)
        return
    yield Figure("Time", _duration(usage.seconds), f"{usage.seconds / n:,.1f} s a task")


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def _list_causes(number: int, outcomes: OutcomeCounts) -> Iterator[CauseCard]:
    for one in outcomes.causes[:CAUSES_SHOWN]:
        share = 100 * one.failures / outcomes.failed
        about = f"{format_count(one.tasks, 'task')} · {share:.0f} % of failures"
        yield CauseCard(one.cause, one.failures, about, CAUSES[one.cause], f"#run-{number}-tasks")


def _count_causes(outcomes: OutcomeCounts | None) -> str:
    if outcomes is None or not outcomes.causes:
        return "no failures" if outcomes is not None else ""
    return f"{format_count(outcomes.failed, 'failure')}, each with its first cause"


def _view_judges(headlines: Sequence[Headline]) -> IntervalPlot:
    """Return the primary metric by every judge that gave one."""
    return plot_intervals(
        [
            _own_point(one.judge, one.primary)._replace(current=False, small=_span(one.primary))
            for one in headlines
            if one.primary is not None
        ]
    )


@cache
def _published() -> tuple[Entry, ...]:
    return read_published_entries()


def _view_neighbors(
    run: RunMaterial, headline: Headline, badges: Sequence[Badge]
) -> tuple[Neighbors | None, str]:
    """Return published systems near this run, or why there are none."""
    manifest, own = run.summary.manifest, headline.primary
    complete = headline.finding.n == headline.finding.n_units
    dataset = manifest.spec.dataset
    released = RELEASED_TASKS[dataset]
    if reason := _find_obstacle(run):
        return None, f"{reason}, so no published result is comparable."
    if own is None:
        return None, "There is no score yet to compare."
    metric = cast(MetricName, own.metric)
    known = [one for one in _published() if one.board == dataset and metric in one.scores]
    newest = max(one.release for one in known)
    rows = [one for one in known if one.release == newest]
    chosen = _choose(rows, metric, own, manifest.spec.system.model)
    points = [_own_point("This run", own), *(_entry_point(one, metric) for one in chosen)]
    if complete and len(manifest.spec.tasks) == released:
        spans = [found for one in rows if (found := find_interval(one, metric)) is not None]
        common = sum(100 * one.low <= own.high and own.low <= 100 * one.high for one in spans)
        note = (
            f"The interval of this run overlaps those of {common} of "
            f"{format_count(len(rows), 'published system')}."
        )
        if any(one.kind in ("warn", "none") for one in badges):
            note += " The badges say why this places the run and does not rank it."
    else:
        note = (
            f"Not all {released} tasks have a score here, so this places the run and does not "
            "rank it."
        )
    about = (
        f"{table.label(metric)}. Filled: this run, strict. Hollow: published {newest} on all "
        f"{released} tasks, scored as published."
    )
    return Neighbors(plot_intervals(points), about, note), ""


def _find_obstacle(run: RunMaterial) -> str:
    """Say why published results were measured differently; empty if nothing is known.

    Released tasks are numbered, there are not more of them, and their digest is compared if it is
    known.
    """
    manifest = run.summary.manifest
    spec, released = manifest.spec, RELEASED_TASKS[manifest.spec.dataset]
    size = manifest.dataset_tasks or len(spec.tasks)
    numbered = all(task.isdecimal() for task in spec.tasks)
    if size > released or not numbered or manifest.edited_from is not None:
        return "These tasks are not the released ones"
    if manifest.dataset_digest != RELEASED_DIGESTS.get(spec.dataset, manifest.dataset_digest):
        return f"The dataset {manifest.dataset_digest[:12]} is not the released one"
    return _find_condition(run)


def _find_condition(run: RunMaterial) -> str:
    """Say what in a run on the released tasks is unlike published runs; empty if nothing is."""
    spec = run.summary.manifest.spec
    if spec.system.agent in SCRIPTED_AGENTS:
        return f"The agent {spec.system.agent} is scripted and asks no model"
    if is_scripted(spec.system.model):
        return f"The model {spec.system.model} is scripted"
    if spec.tape is not None and spec.tape.origin == "reference":
        return "The tool replies come from the reference"
    if spec.controls:
        return f"The run is under controls ({', '.join(spec.controls)})"
    if isinstance(run, AtomicRun) and run_mode(run) == "end-to-end":
        scores = run.summary.scores
        if not scores.comparable:
            return f"Answers were compared by {scores.similarity}, not by the published similarity"
    return ""


def _entry_point(entry: Entry, metric: MetricName) -> PlotPoint:
    score, found = entry.scores[metric], find_interval(entry, metric)
    low, high = (score.value, score.value) if found is None else (100 * found.low, 100 * found.high)
    small = "" if found is None else f"{low:.1f} to {high:.1f}"
    text = f"{score.value:.{score.decimals}f}"
    return PlotPoint(entry.system, score.value, low, high, text, small)


def _choose(rows: Sequence[Entry], metric: MetricName, own: Estimate, model: str) -> list[Entry]:
    """Return the same model, the best system and the nearest ones, best first."""
    ranked = sorted(rows, key=lambda one: -one.scores[metric].value)
    name = _bare(model)
    same = [one for one in ranked if name and name in (_bare(one.system), _bare(one.model or ""))]
    near = sorted(ranked, key=lambda one: abs(one.scores[metric].value - own.value))
    chosen = list(dict.fromkeys(one.id for one in [*same[:1], *ranked[:1], *near]))[:NEIGHBORS]
    return [one for one in ranked if one.id in chosen]


def _bare(name: str) -> str:
    """Return a model's name without provider and punctuation."""
    return re.sub(r"[^a-z0-9]", "", name.rpartition("/")[2].lower())


class SideBySide(NamedTuple):
    """Runs of one mode side by side; `unscored` are the number and name of those without score."""

    title: str
    metric: str
    sentence: str
    plot: IntervalPlot | None
    unscored: tuple[tuple[int, str], ...]


def view_comparison(
    title: str, runs: Sequence[tuple[int, RunMaterial]], headlines: Sequence[Sequence[Headline]]
) -> SideBySide:
    """Compare the headlines of runs of one mode, by the first judge of each."""
    points = []
    metric = table.primary(run_mode(runs[0][1])).label
    contenders = list_contenders(runs, headlines)
    for (number, run), found in zip(runs, headlines, strict=True):
        one = found[0].primary
        if one is not None:
            own = _own_point(f"{number} ({run.summary.name})", one)
            note, href = system_name(run.summary.manifest), f"#run-{number}"
            points.append(own._replace(note=note, href=href, current=False))
    unscored = tuple(
        (number, run.summary.name)
        for (number, run), found in zip(runs, headlines, strict=True)
        if found[0].primary is None
    )
    if not contenders:
        return SideBySide(title, metric, "No run has a score yet.", None, unscored)
    sentence = state_comparison(contenders) if len(contenders) > 1 else ""
    return SideBySide(title, metric, sentence, plot_intervals(points), unscored)


def list_contenders(
    runs: Sequence[tuple[int, RunMaterial]], headlines: Sequence[Sequence[Headline]]
) -> list[Contender]:
    """Return the runs that have a headline, by the first judge of each."""
    return [
        Contender(
            f"Run {number} ({run.summary.name})",
            _metrics(run, one.judge),
            primary,
            _terms(run, one),
        )
        for (number, run), (one, *_) in zip(runs, headlines, strict=True)
        if (primary := one.primary) is not None
    ]


def _metrics(run: RunMaterial, judge: str) -> RunMetrics:
    return next(one for one in collect_metrics([run.summary]) if one.judge == judge)


def _terms(run: RunMaterial, one: Headline) -> dict[str, Hashable]:
    """Return what two runs must share for a comparison, by what differs otherwise."""
    manifest, scores = run.summary.manifest, run.summary.scores
    common: dict[str, Hashable] = {
        "another dataset": manifest.dataset_digest,
        "another version of the scoring": scores.scoring_version,
    }
    if isinstance(run, AtomicRun):
        return {**common, "another text similarity": run.summary.scores.similarity}
    workflow = run.summary.scores
    thresholds = workflow.leaf_threshold, workflow.root_threshold
    return {**common, "another judge": one.judge, "other thresholds": thresholds}
