"""`gta compare` on stored runs: real imported results, the reference and silence."""

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from gta_bench.decisions.comparison import compare
from gta_bench.decisions.comparison_tables import state_conclusion
from gta_bench.records.units import Usage
from gta_bench.records.verdicts import Scored, VerdictRow
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.scoring import read_compared
from gta_bench.runs.verdicts import VERDICTS, read_verdicts
from tests.builders import atomic_task, write_atomic
from tests.cli.test_run import gta

STORED = Path("predictions") / "workflow_gemini25pro_lagent_20"


@pytest.fixture(scope="module")
def atomic(atomic_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference and silence, step by step."""
    folder = tmp_path_factory.mktemp("atomic")
    for agent in ("gold", "silent"):
        options = ("--mode", "step", "--agent", agent, "--tasks", "0:12", "--data", atomic_dir)
        assert gta("run", "atomic", *options, "--out", folder / agent).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def workflow(data_dir: Path, workflow_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 20 stored results, and the same with every score that the judge gave lowered by two."""
    folder = tmp_path_factory.mktemp("workflow")
    options = ("--dataset", "workflow", "--data", workflow_dir, "--model", "gemini-2.5-pro")
    stored = data_dir / STORED
    assert gta("import", "opencompass", stored, *options, "--out", folder / "a").exit_code == 0
    for name, judge, less in (("b", "upstream", 2.0), ("c", "someone else", 0.0)):
        shutil.copytree(folder / "a", folder / name)
        write_verdicts(folder / name, judge=judge, less=less)
    for name in "abc":
        gta("score", folder / name)
    return folder


def write_verdicts(run: Path, *, judge: str, less: float) -> None:
    lines = []
    for line in (run / VERDICTS).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        row["key"]["judge"] = judge
        row["evidence"] = "e"
        if row["verdict"]["type"] == "scored":
            row["verdict"]["value"] = max(0.0, row["verdict"]["value"] - less)
        lines.append(VerdictRow.model_validate(row).model_dump_json())
    (run / VERDICTS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_the_reference_beside_silence(atomic: Path) -> None:
    result = gta("compare", atomic / "gold", atomic / "silent")
    assert result.exit_code == 0, result.output
    row = next(line for line in result.stdout.splitlines() if line.startswith("ArgAcc"))
    assert row.split()[:4] == ["ArgAcc", "100.00", "0.00", "+100.00"]
    assert row.split()[-4:] == ["12", "10", "yes", "-"]
    assert "A is ahead of B in ArgAcc: 100.0 against 0.0 on 12 tasks." in result.stdout
    assert "12 tasks paired" in result.stderr
    assert "score per dollar: the cost of one or both runs is unknown" in result.stderr


def test_workflow_runs_are_paired_by_the_units_that_both_have_a_root_of(workflow: Path) -> None:
    result = gta("compare", workflow / "a", workflow / "b", "--json")
    assert result.exit_code == 0, result.output
    [found] = json.loads(result.stdout)
    assert (found["tasks"], found["left_out"]) == (20, [])
    metrics = {one["metric"]: one for one in found["metrics"]}
    counts = {name: one["difference"]["n"] for name, one in metrics.items()}
    assert (counts["Root SR, upstream"], counts["Leaf SR, upstream"]) == (6, 20)
    assert found["conclusion"].startswith("Too few tasks to conclude anything: 6 tasks with a")
    root = metrics["Root score, upstream"]
    assert root["first"] == pytest.approx(4.82, abs=0.01)
    assert root["difference"]["estimate"] == pytest.approx(root["first"] - root["second"])
    assert root["difference"]["low"] < root["difference"]["estimate"] < root["difference"]["high"]
    assert root["difference"]["method"] == "tango"
    assert root["p_value"] < root["p_holm"] <= 1
    assert found["evidence"] == [
        {"judge": "upstream", "units": 0, "same": 0, "same_but_scored_otherwise": 0}
    ]
    assert {tool["tool"] for tool in found["tools"]} >= {"GoogleSearch", "Plot"}


def test_tasks_that_got_worse_are_listed_with_both_values(atomic: Path) -> None:
    result = gta("compare", atomic / "gold", atomic / "silent")
    lines = result.stdout.splitlines()
    place = lines.index("12 tasks worse in B than in A")
    assert lines[place + 1].split() == ["task", "metric", "A", "B", "B", "-", "A"]
    first = lines[place + 2].split()
    assert first[2:] == ["100.00", "0.00", "-100.00"]
    assert "And 28 more rows; use --markdown or --json to see all." in result.stderr
    assert "better in B" not in result.stdout
    back = gta("compare", atomic / "silent", atomic / "gold").stdout
    assert "12 tasks better in B than in A" in back and "worse in B" not in back


def test_leaves_that_succeed_in_one_run_only_are_listed(workflow: Path) -> None:
    result = gta("compare", workflow / "a", workflow / "b", "--json")
    [found] = json.loads(result.stdout)
    leaves = [one for one in found["flips"] if one["leaf"] is not None]
    assert leaves, "lowered by two, scores of 7 and 8 fall below the threshold"
    assert all(one["first"] in (7, 8) and one["second"] < 7 for one in leaves)
    rows = [
        row.verdict.value
        for row in read_verdicts(workflow / "a").values()
        if isinstance(row.verdict, Scored)
    ]
    assert len(leaves) == sum(7 <= value < 9 for value in rows)
    page = gta("compare", workflow / "a", workflow / "b", "--markdown").stdout
    one = leaves[0]
    row = f"| {one['task']} | {one['leaf']} | upstream | leaf score | {one['first']:.2f} |"
    assert row in page


def test_differing_judges_are_refused_with_the_reason(workflow: Path) -> None:
    result = gta("compare", workflow / "a", workflow / "c")
    assert result.exit_code != 0
    assert "the judges differ (upstream and someone else)" in str(result.exception)
    assert getattr(result.exception, "exit_code", None) == 2


def test_a_run_is_not_compared_with_itself_or_a_copy(atomic: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(atomic / "gold", copy)
    for other in (atomic / "gold", copy):
        result = gta("compare", atomic / "silent", atomic / "gold", other)
        assert result.exit_code == 0, "only the first is compared with the others"
        refused = gta("compare", atomic / "gold", other)
        assert getattr(refused.exception, "exit_code", None) == 2
        assert str(refused.exception) == (
            f"{atomic / 'gold'} and {other} cannot be compared: they are the same run, or copies "
            "of it; name two runs."
        )


def test_the_comparison_as_markdown_tells_what_else_differs(workflow: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(workflow / "b", other)
    manifest = json.loads((other / "run.json").read_text(encoding="utf-8"))
    manifest["network"] = "open"
    (other / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    result = gta("compare", workflow / "b", other, "--markdown")
    assert "| Root score, upstream |" in result.stdout
    assert "- not only the systems differ: network: none and open." in result.stdout
    assert "### Tool calls" in result.stdout
    assert "the same in 20 of 20 units; 0 of those have different scores" in result.stdout


def test_runs_without_a_common_score_of_the_main_metric_decide_nothing(workflow: Path) -> None:
    first, second = (read_compared(workflow / name) for name in "ab")
    assert isinstance(second.scores, WorkflowScores)
    judges = tuple(
        judge.model_copy(
            update={"tasks": tuple(one.model_copy(update={"root": None}) for one in judge.tasks)}
        )
        for judge in second.scores.judges
    )
    unscored = second.scores.model_copy(update={"judges": judges})
    [found] = compare([first, second.model_copy(update={"scores": unscored})])
    assert found.primary is None
    assert "no task has a score of the main metric in both" in state_conclusion(found)
    assert {one.metric for one in found.metrics} == {"Leaf SR, upstream", "Tool SR"}


def test_one_run_is_no_comparison(workflow: Path) -> None:
    assert "at least two runs" in str(gta("compare", workflow / "a").exception)


def test_what_units_took_is_compared_and_set_against_the_score(workflow: Path) -> None:
    run = read_compared(workflow / "a")
    sides = []
    for name, price in (("dear", 0.5), ("cheap", 0.1)):
        units = {
            key: unit.model_copy(
                update={"usage": Usage(seconds=place, input_tokens=9, cost_usd=price)}
            )
            for place, (key, unit) in enumerate(run.units.items(), start=1)
        }
        sides.append(run.model_copy(update={"name": name, "units": units}))
    [found] = compare(sides)
    took = {one.metric: one for one in found.took}
    assert took["dollars a task"].difference.estimate == pytest.approx(0.4)
    assert took["seconds a task"].difference.estimate == 0
    assert "model calls a task" not in took
    dear, cheap = found.per_dollar
    assert dear is not None
    assert cheap == pytest.approx(5 * dear)


@pytest.mark.parametrize(
    ("odd", "agent", "compared"),
    [
        (Usage(seconds=1), "toolcalling", True),
        (Usage(seconds=1, model_calls=1), "toolcalling", False),
        (Usage(seconds=1), "imported", False),
    ],
)
def test_a_unit_without_a_model_call_costs_nothing_and_one_without_a_price_hides_the_cost(
    workflow: Path, odd: Usage, agent: str, compared: bool
) -> None:
    """A foreign system that states no cost for a unit may have paid for it."""
    run = read_compared(workflow / "a")
    system = run.manifest.spec.system.model_copy(update={"agent": agent})
    manifest = run.manifest.with_spec(system=system)
    assert isinstance(run.scores, WorkflowScores)
    rooted = [(one.task, one.epoch) for one in run.scores.judges[0].tasks if one.root is not None]
    priced = Usage(seconds=1, model_calls=1, cost_usd=0.5)
    units = {
        key: unit.model_copy(update={"usage": odd if key == rooted[0] else priced})
        for key, unit in run.units.items()
    }
    side = run.model_copy(update={"units": units, "manifest": manifest})
    later = manifest.model_copy(update={"created": manifest.created + timedelta(hours=1)})
    [found] = compare([side, side.model_copy(update={"manifest": later})])
    assert ("dollars a task" in {one.metric for one in found.took}) is compared
    assert (found.per_dollar[0] is not None) is compared


def test_runs_with_other_epochs_are_paired_by_task(workflow: Path) -> None:
    run = read_compared(workflow / "a")
    twice = run.model_copy(update={"manifest": run.manifest.with_spec(epochs=2)})
    [found] = compare([run, twice])
    assert found.tasks == 20
    assert found.cautions == ("epochs: 1 and 2",)


def test_exported_runs_are_reported_like_the_runs_themselves(
    atomic: Path, workflow: Path, tmp_path: Path
) -> None:
    runs = (workflow / "a", atomic / "gold", atomic / "silent")
    result = gta("results", "export", *runs, "--out", tmp_path / "tables")
    assert result.exit_code == 0, result.output
    assert "3 runs, 44 samples, 229 verdicts" in result.stderr
    exported, direct = gta("report", tmp_path / "tables"), gta("report", *runs)
    # Tables of an export have no units: neither intervals nor causes.
    before, _, rest = direct.stdout.partition("\nHow sure")
    calls = rest[rest.index("\nTool calls") :].partition("\nWhat failed")[0]
    assert exported.stdout == before + calls
    kept = [line for line in direct.stderr.splitlines() if "no fault of the system" not in line]
    assert exported.stderr.splitlines() == kept


def test_what_was_not_recorded_is_not_compared_as_zero(workflow: Path) -> None:
    """Finished results without a word of their time."""
    run = read_compared(workflow / "a")
    sides = [
        run.model_copy(
            update={
                "name": name,
                "units": {
                    key: unit.model_copy(update={"usage": Usage(seconds=seconds)})
                    for key, unit in run.units.items()
                },
            }
        )
        for name, seconds in (("timed", 2.0), ("imported", 0.0))
    ]
    [found] = compare(sides)
    assert found.took == ()


def test_runs_over_two_versions_of_a_dataset_are_compared_on_what_did_not_change(
    tmp_path: Path,
) -> None:
    """A private dataset gained a task, and another one was corrected."""
    same = {str(number): atomic_task() for number in range(4)}
    corrected = atomic_task(gt_answer={"whitelist": [["8"]], "blacklist": None})
    before = write_atomic(tmp_path / "before", {**same, "4": atomic_task()})
    after = write_atomic(tmp_path / "after", {**same, "4": corrected, "5": atomic_task()})
    for agent, data in (("gold", before), ("silent", after)):
        options = ("--mode", "step", "--agent", agent, "--similarity", "exact-or-half")
        gta("run", "atomic", *options, "--data", data, "--out", tmp_path / agent)
    result = gta("compare", tmp_path / "gold", tmp_path / "silent")
    assert result.exit_code == 0, result.output
    assert "4 tasks paired" in result.stderr
    assert "1 task is left out (part of one run only): 5." in result.stderr
    told = "4 of 5 common tasks are the same in both versions of the dataset; 1 to run again (4)."
    assert told in result.stderr
    assert "not only the systems differ: dataset digests: " in result.stderr
    [found] = json.loads(gta("compare", tmp_path / "gold", tmp_path / "silent", "--json").stdout)
    assert (found["tasks"], found["left_out"], found["changed"]) == (4, ["5"], ["4"])
    assert {one["difference"]["n"] for one in found["metrics"]} == {4}
