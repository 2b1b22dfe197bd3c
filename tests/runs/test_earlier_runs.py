"""Runs of the first versions, which kept units under plain keys, are read and continued.

`earlier/` has an unfinished run of each dataset as version 0.1.0 wrote it, and its units as that
version read them. These files are never written again.
"""

import json
import shutil
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log_sample

import gta_bench
from gta_bench.agents import prompts as agent_prompts
from gta_bench.records.scores import RunScores, StrictEndToEndScores
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.runs.directory import log_folder, read_manifest, write_manifest
from gta_bench.runs.logs import find_kept_units, read_finished, read_units
from gta_bench.runs.samples import UnitStore, read_unit_data
from gta_bench.settings import ScoringSettings, Settings
from gta_bench.tools import prompts as tool_prompts
from tests.tasks.test_atomic import reckoner
from tests.tasks.workflow_runs import one_page, scripted

EARLIER = Path(__file__).parent / "earlier"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of both runs, seen from where their commands were given."""
    shutil.copytree(EARLIER, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for name in ("atomic", "workflow"):
        # Other prompts would make it another run.
        run = tmp_path / name / "run"
        digests = {f"agents/{key}": value for key, value in agent_prompts.digests().items()}
        digests |= {f"tools/{key}": value for key, value in tool_prompts.digests().items()}
        write_manifest(run, read_manifest(run).model_copy(update={"prompts": digests}))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "tasks", "kind"),
    [("atomic", ("0", "1"), AtomicUnit), ("workflow", ("1", "2"), WorkflowUnit)],
)
def test_units_are_read_as_the_earlier_version_read_them(
    folder: Path,
    name: str,
    tasks: tuple[str, ...],
    kind: type[AtomicUnit] | type[WorkflowUnit],
) -> None:
    logs = log_folder(folder / name / "run")
    found = [
        unit.model_dump(mode="json")
        for unit in (
            read_units(logs, tasks, 1, AtomicUnit).units
            if kind is AtomicUnit
            else read_units(logs, tasks, 1, WorkflowUnit).units
        )
    ]
    wanted = json.loads((folder / name / "units.json").read_text())
    for one, before in zip(found, wanted, strict=True):
        # Fields that came later have their defaults.
        filled = kind.model_validate(before).model_dump(mode="json")
        assert {key: one[key] for key in before} == {key: filled[key] for key in before}


def test_an_unfinished_atomic_run_is_continued(folder: Path) -> None:
    run, model = Path("atomic/run"), scripted(reckoner)
    settings = Settings(scoring=ScoringSettings(similarity="exact-or-half"))
    before = next(iter(find_kept_units(log_folder(folder / run)).values())).log
    scores = gta_bench.run("atomic", run, model=model, data="atomic/data", settings=settings)
    assert isinstance(scores, RunScores) and isinstance(scores.strict, StrictEndToEndScores)
    assert (scores.n, scores.n_units, scores.strict.ans_acc) == (2, 2, 100)
    units = read_units(log_folder(run), ("0", "1"), 1, AtomicUnit).units
    assert [len(unit.trace or ()) for unit in units] == [3, 3]
    old, new = (unit.digests for unit in units)
    assert old is not None and new is not None
    assert (old.inputs, old.asks) == (None, None) and new.asks is not None
    assert (old.request, old.tools, old.leaf) == (new.request, new.tools, new.leaf)
    (log,) = {kept.log for kept in find_kept_units(log_folder(run)).values()} - {before}
    forms = [{*read_eval_log_sample(log, task).store} for task in ("0", "1")]
    assert "gta_steps" in forms[0] and "UnitStore:steps" in forms[1]


def test_an_unfinished_workflow_run_is_continued(folder: Path) -> None:
    run, model = Path("workflow/run"), scripted(one_page("quokka"))
    gta_bench.run("workflow", run, model=model, data="workflow/data")
    units = read_units(log_folder(run), ("1", "2"), 1, WorkflowUnit).units
    assert [unit.failure for unit in units] == [None, None]
    assert [unit.answer for unit in units] == ["Done.", "Done."]
    assert units[0].deliverables == units[1].deliverables
    old, new = (unit.digests for unit in units)
    assert old is not None and new is not None
    assert (old.tools, old.asks) == (None, None) and new.asks is not None
    assert (old.inputs, old.leaf, old.weighs) == (new.inputs, new.leaf, new.weighs)
    finished = read_finished(log_folder(run))
    # Earlier versions kept turns.
    assert finished["1", 1].messages == () and finished["1", 1].turns
    assert [one["role"] for one in finished["2", 1].messages][:2] == ["user", "assistant"]


def test_a_sample_of_this_version_is_read_as_inspect_reads_it(folder: Path) -> None:
    model = scripted(one_page("quokka"))
    gta_bench.run("workflow", "new", model=model, data="workflow/data", tasks="1")
    (kept,) = find_kept_units(log_folder(folder / "new")).values()
    sample = read_eval_log_sample(kept.log, "1")
    ours, theirs = read_unit_data(sample.store.items()), sample.store_as(UnitStore)
    assert ours.deliverables and ours.steps
    assert dict(ours) == {name: getattr(theirs, name) for name in type(ours).model_fields}
