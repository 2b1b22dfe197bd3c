"""`gta gate`: whether a system got worse, as an exit code."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import click

from gta_bench.cli.options import FOLDER, NEW_FILE, Positive, json_option
from gta_bench.cli.output import say, write_json, write_table
from gta_bench.errors import UsageError, format_count, join_first
from gta_bench.packages import require_packages
from gta_bench.records.gate import GateFlip, GatePlan, GateResult, RunOutcomes
from gta_bench.redaction import current_redactor
from gta_bench.runs.directory import read_gate_plan, read_record
from gta_bench.runs.store import RemotePath, StorePath, store_path, write_bytes_atomically


class _Margin(Positive):
    """A finite number of points, 0 included."""

    name = "points"

    def __init__(self) -> None:
        click.FloatRange.__init__(self, min=0)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="BASE NEW [-- RUN]")
@click.option("--metric", help="Metric by name, such as root_sr.  [default: the primary one]")
@click.option(
    "--margin",
    type=_Margin(),
    show_default="a tenth of the metric's scale",
    help="Largest drop, in points of the metric, that is acceptable.",
)
@click.option("--judge", help="Judge whose scores count, if several judges scored the runs.")
@click.option(
    "--sequential",
    is_flag=True,
    help="Test after every task, in random order, and stop when decided: valid however often you "
    "look, but weaker once all tasks are done.",
)
@click.option(
    "--seed",
    show_default="from both runs",
    help="Seed of that random order; choose it before NEW runs.",
)
@click.option(
    "--run",
    "running",
    is_flag=True,
    help="First run NEW, only as far as --sequential needs. After `--`, say what to run, as for "
    "`gta run`, but without --out. The same command again continues.",
)
@click.option(
    "--common",
    is_flag=True,
    help="Decide over the tasks that both have, if NEW lacks some of BASE or they have changed. "
    "Without it, that is refused: such tasks may be those that fail.",
)
@json_option
@click.option("--junit", type=NEW_FILE, help="Also write JUnit XML to this file.")
@click.option("--markdown", "page", type=NEW_FILE, help="Also write Markdown to this file.")
@click.option(
    "--report",
    type=NEW_FILE,
    help="Also write NEW's report page with the flipped tasks to this file, and link to it.",
)
@click.option(
    "--write-baseline",
    "baseline",
    type=NEW_FILE,
    help="Only write the outcomes of a single RUN to this file, which then serves as BASE.",
)
@click.pass_context
def gate(
    context: click.Context,
    runs: tuple[str, ...],
    metric: str | None,
    margin: float | None,
    judge: str | None,
    sequential: bool,
    seed: str | None,
    running: bool,
    common: bool,
    as_json: bool,
    junit: Path | None,
    page: Path | None,
    report: Path | None,
    baseline: Path | None,
) -> None:
    """Decide whether NEW is worse than BASE in one metric, as a mean over BASE's tasks.

    BASE is a run, or a file that --write-baseline has written. Not worse: a drop of the margin or
    more is ruled out. Worse: it is not, and there is a drop. Each of the two is wrong in at most
    5 % of the cases. First lists the tasks and leaves that changed.

    With --run, NEW need not exist: its tasks are run in random order until it is decided.

    \b
    Exit codes: 0 not worse, 10 worse, 11 undecided; 2 wrong arguments or runs that cannot be
    compared, 3 not enough tasks scored or another problem of the environment, 1 a bug.
    """
    require_packages("gta gate", "scipy", extra="report")
    if baseline is not None:
        if len(runs) != 1:
            raise UsageError("A baseline is of one run: gta gate --write-baseline FILE RUN.")
        _write_baseline(baseline, _read_base(store_path(runs[0]), metric, judge))
        return
    _check(runs, sequential=sequential, seed=seed, running=running)
    base, new = _read_base(store_path(runs[0]), metric, judge), store_path(runs[1])
    if running:
        from gta_bench.cli.gate_run import run_and_decide

        read = partial(_read, new, base.metric, base.judge, base)
        found = run_and_decide(runs[2:], new, base, read, margin=margin, seed=seed)
    else:
        options = _Test(margin, sequential, seed, common)
        found = _decide(base, new, options)
    locate = _Locator(new, report)
    locate.write_report(found)
    _write_files(found, locate, junit=junit, page=page)
    _write(found, locate, as_json=as_json)
    context.exit(found.exit_code)


def _check(runs: tuple[str, ...], *, sequential: bool, seed: str | None, running: bool) -> None:
    """Raise UsageError for options that do not fit together."""
    if len(runs) < 2 or (len(runs) > 2 and not running):
        raise UsageError("The gate needs two runs, the earlier one first: gta gate BASE NEW.")
    if running and not sequential:
        raise UsageError(
            "--run stops when the test is decided, which only --sequential can be before the end: "
            "add that, or use `gta run`."
        )
    if seed is not None and not sequential:
        raise UsageError("--seed is for --sequential: leave it out, or add that.")


class _Test(NamedTuple):
    margin: float | None
    sequential: bool
    seed: str | None
    common: bool


def _decide(base: RunOutcomes, run: StorePath, test: _Test) -> GateResult:
    """Decide about a stored run; one that a gate began is decided by the plan of that gate."""
    from gta_bench.decisions.gate import decide_gate
    from gta_bench.decisions.gate_run import decide_planned, refuse_other_question

    new, plan = _read(run, base.metric, base.judge, base), read_gate_plan(run)
    if plan is not None and test.sequential:
        refuse_other_question(plan, base, new.name, margin=test.margin, seed=test.seed)
        return decide_planned(base, new, plan)
    if plan is not None and not _has_all(new, plan):
        raise UsageError(
            f"{run} was run only as far as a sequential gate needed, so that a test of all tasks "
            "at once would be biased: add --sequential, or finish the run with `gta run`."
        )
    found = decide_gate(base, new, margin=test.margin, sequential=test.sequential, seed=test.seed)
    known = {own.task for own in base.tasks}
    lacking = [task for task in found.left_out if task in known]
    if lacking and not test.common:
        raise UsageError(
            f"{format_count(len(lacking), 'task')} of {base.name} cannot be compared, because "
            f"{new.name} was not given them or they have changed: {join_first(lacking)}. Run them, "
            "or decide over the tasks that both have with --common."
        )
    return found


def _has_all(run: RunOutcomes, plan: GatePlan) -> bool:
    """Whether all tasks of the plan of a gate have a score."""
    return {own.task for own in run.tasks if None not in own.values}.issuperset(plan.tasks)


def _read_base(run: StorePath, metric: str | None, judge: str | None) -> RunOutcomes:
    """Read BASE, which must not be a run that a gate has stopped early."""
    found = _read(run, metric, judge)
    plan = None if isinstance(run, Path) and run.is_file() else read_gate_plan(run)
    if plan is not None and not _has_all(found, plan):
        raise UsageError(
            f"{run} was run only as far as a sequential gate needed, so that its outcomes are "
            "biased and lack tasks: finish it with `gta run` before it becomes a baseline."
        )
    return found


def _read(
    run: StorePath, metric: str | None, judge: str | None, base: RunOutcomes | None = None
) -> RunOutcomes:
    """Read a run or a baseline; if `base` is given, what it is compared with."""
    # Reading logs needs the evaluation engine, and the statistical tests need scipy.
    from gta_bench.decisions.gate import read_outcomes, refuse_other_kind
    from gta_bench.runs.scoring import read_compared

    if isinstance(run, Path) and run.is_file():
        hint = "Write it again: gta gate --write-baseline FILE RUN."
        found = read_record(run, RunOutcomes, hint).model_copy(update={"name": str(run)})
        for name, wanted in (("metric", metric), ("judge", judge)):
            own = getattr(found, name)
            if wanted is not None and wanted != own:
                raise UsageError(f"{run} is a baseline of the {name} {own!r}, not of {wanted!r}.")
        return found
    if not isinstance(run, RemotePath):
        FOLDER.convert(str(run), None, click.get_current_context())
    compared = read_compared(run)
    if base is not None:
        refuse_other_kind(base, compared)
    return read_outcomes(compared, metric, judge)


def _write_baseline(file: Path, run: RunOutcomes) -> None:
    from gta_bench.decisions.gate import format_baseline

    lacking = [one.task for one in run.tasks if None in one.values]
    data = current_redactor().json(format_baseline(run).encode())
    write_bytes_atomically(file, data)
    say(f"{file}: {run.metric} of {format_count(len(run.tasks), 'task')}, {len(data):,} bytes.")
    if lacking:
        say(
            f"{format_count(len(lacking), 'task')} without a score in some repeat. Finish the run, "
            "then write the baseline again."
        )


class _Locator:
    """Says where to look at a flip: on the report page if one is written, else by a command."""

    def __init__(self, run: StorePath, report: Path | None) -> None:
        self.run = run
        self.report = report

    def __call__(self, flip: GateFlip) -> str:
        """Return a link in Markdown's form, or a command."""
        if self.report is None:
            epoch = f" --epoch {flip.epoch}" if flip.epoch > 1 else ""
            return f"gta view {self.run} --task {flip.task}{epoch}"
        from gta_bench.web.material import anchor

        return f"{quote(self.report.name)}#{anchor(1, flip.task, flip.epoch)}"

    def write_report(self, gate: GateResult) -> None:
        """Write the page, with traces and deliverables of the tasks that changed."""
        if self.report is not None:
            from gta_bench.web.reading import write_report_page

            wanted = list(dict.fromkeys(one.task for one in gate.flips))
            write_report_page([self.run], self.report, wanted=wanted)


def _write_files(
    gate: GateResult, locate: _Locator, *, junit: Path | None, page: Path | None
) -> None:
    from gta_bench.decisions.gate_tables import format_gate_junit, format_gate_markdown

    redact = current_redactor().data
    if junit is not None:
        when = datetime.now(UTC)
        write_bytes_atomically(junit, redact(format_gate_junit(gate, locate, when=when)))
    if page is not None:
        write_bytes_atomically(page, redact(format_gate_markdown(gate, locate).encode()))


def _write(gate: GateResult, locate: _Locator, *, as_json: bool) -> None:
    """Print the flips, then the decision, so that it is the end of a log."""
    from gta_bench.decisions.gate_tables import (
        FLIPS_SHOWN,
        flip_table,
        group_flips,
        list_remarks,
        state_decision,
    )

    sentence = state_decision(gate)
    if as_json:
        found = gate.model_dump(mode="json")
        write_json({"conclusion": sentence, "exit_code": gate.exit_code, **found})
        return
    for title, flips in group_flips(gate):
        click.echo(title)
        write_table(flip_table(flips[:FLIPS_SHOWN], locate), (0, 1, 4, 5))
        if len(flips) > FLIPS_SHOWN:
            more = format_count(len(flips) - FLIPS_SHOWN, "more row")
            say(f"And {more}; use --markdown or --json to see all.")
        click.echo()
    for remark in list_remarks(gate):
        say(remark)
    click.echo(sentence)
