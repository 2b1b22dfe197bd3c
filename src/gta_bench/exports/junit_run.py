"""Export the scores of a run as JUnit XML: a test case for each task, and one for each leaf."""

from collections.abc import Iterator
from dataclasses import replace

from gta_bench.exports.junit import JUnitCase, format_junit
from gta_bench.exports.unit_scores import OneScore, UnitScores, choose_judge
from gta_bench.metrics import table
from gta_bench.records.attempts import UnitKey
from gta_bench.runs.directory import log_folder
from gta_bench.runs.logs import find_kept_units, unit_keys
from gta_bench.runs.store import StorePath


def export_junit(run: StorePath, judge: str | None = None) -> bytes:
    """Return the file; `judge` is needed only if several judges scored the run.

    A task or leaf that did not pass is a failure, one without a score an error, and a task with
    nothing to measure is skipped.
    """
    scores = UnitScores(run, judge)
    judge = choose_judge(scores, "JUnit XML")
    spec = scores.manifest.spec
    seconds = {key: one.seconds or 0.0 for key, one in find_kept_units(log_folder(run)).items()}
    cases = [
        case
        for key in unit_keys(spec.tasks, spec.epochs)
        for case in _make_cases(scores, key, seconds.get(key, 0.0))
    ]
    about = {
        "run": str(run),
        "system": spec.describe(),
        "metric": _label(scores.of(unit_keys(spec.tasks, 1)[0])[0]) if spec.tasks else "",
        **({} if judge is None else {"judge": judge}),
    }
    when = scores.manifest.created
    return format_junit(f"gta {spec.dataset}", cases, when=when, properties=about)


def _make_cases(scores: UnitScores, key: UnitKey, seconds: float) -> Iterator[JUnitCase]:
    """Yield the case of a task, then those of its leaves; names are unique over epochs."""
    task, epoch = key
    spec = scores.manifest.spec
    suffix = f"#{epoch}" if spec.epochs > 1 else ""
    main, *others = scores.of(key)
    look = f"gta view {scores.run} --task {task}" + (f" --epoch {epoch}" if epoch > 1 else "")
    suite = f"gta {spec.dataset}"
    yield _make_case(main, suite, f"{task}{suffix}", f"{main.reason}\n{look}".strip(), seconds)
    for one in others:
        if one.leaf is not None:
            yield _make_case(one, f"{suite} {task}", f"{one.leaf}{suffix}", one.reason, 0.0)


def _make_case(one: OneScore, suite: str, name: str, text: str, seconds: float) -> JUnitCase:
    shown = {} if one.value is None else {"score": f"{one.value:g}", "max_score": f"{one.top:g}"}
    case = JUnitCase(classname=suite, name=name, text=text, properties=shown, seconds=seconds)
    if one.cause is not None:
        said = f"No score: {one.cause}."
        return replace(case, outcome="error", kind=one.cause, message=said)
    if one.value is None:
        said = f"The task has nothing to measure by {_label(one)}."
        return replace(case, outcome="skipped", kind="not measured", message=said)
    if not one.passed:
        said = f"{_label(one)} {one.value:.4g} of {one.top:g}."
        return replace(case, outcome="failure", kind="failed", message=said)
    return case


def _label(one: OneScore) -> str:
    return "Leaf score" if one.leaf is not None else table.label(one.name)
