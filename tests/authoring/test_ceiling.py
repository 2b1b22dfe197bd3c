"""Works of task folders go to the judge without their checks; the folder says what is true."""

import io
import json
import zipfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from gta_bench.agents.models import ChosenModel
from gta_bench.authoring.ceiling import find_kinds, measure_ceiling, remove_checks
from gta_bench.authoring.proofs import find_tasks, read_authored
from gta_bench.errors import RunError, UsageError
from gta_bench.judge_quality.ceiling import ceiling_remarks
from gta_bench.judging.options import JudgeOptions
from gta_bench.judging.own import JudgeFunction, make_own_judge
from gta_bench.judging.showing import catalog
from gta_bench.records.ceiling import Ceiling
from gta_bench.records.evidence import Evidence
from gta_bench.records.workflow import Checkpoint
from gta_bench.running.judge_run import JudgedBy, Judging
from gta_bench.settings import ModelSettings, Settings
from tests.authored import write_task
from tests.authoring.folders import FILES, TASK
from tests.content.conftest import jail

__all__ = ["jail"]
pytestmark = pytest.mark.usefixtures("jail")


def judge_sales(request: str, leaf: Checkpoint, evidence: Evidence) -> float:
    """A judge without errors on the tasks of tests/authoring/folders.py."""
    (file,) = evidence.deliverables
    holds = {
        "sums": "31977" not in file.text,
        "order": file.text.index("North") < file.text.index("South"),
        "advice": "South is weakest" in evidence.answer,
    }
    return 10.0 * holds[leaf.id]


def never_read_csv(request: str, leaf: Checkpoint, evidence: Evidence) -> tuple[float, str]:
    """The same judge, but it sees no table."""
    if leaf.id != "advice":
        return 0.0, "The file is not shown."
    return judge_sales(request, leaf, evidence), ""


def find_quoted(request: str, leaf: Checkpoint, evidence: Evidence) -> float:
    """A judge that looks for the quoted text of a requirement in the files."""
    quoted = (leaf.requirements or "").split('"')[1]
    return 10.0 * any(quoted in file.text for file in evidence.deliverables)


def measure(root: Path, judge: JudgeFunction, *, repeats: int = 1) -> tuple[Ceiling, JudgedBy]:
    """Measure the ceiling of a function on all tasks in `root`/tasks, in `root`/run."""
    model = make_own_judge(judge)
    chosen = ChosenModel(str(model), ModelSettings(model=str(model)))
    judging = Judging((chosen,), JudgeOptions(), repeats, Settings())
    tasks = [read_authored(folder) for folder in find_tasks((root / "tasks",))]
    said: list[JudgedBy] = []
    found = measure_ceiling(
        tasks, root / "run", judging, lambda _: nullcontext(lambda _: None), said.append, [model]
    )
    return found, said[0]


def write_sales(root: Path, count: int = 1) -> None:
    for number in range(count):
        write_task(root / "tasks", TASK, name=f"sales-{number}", files=FILES)


def test_a_judge_without_errors_has_no_limit_and_is_asked_once(tmp_path: Path) -> None:
    write_sales(tmp_path, 2)
    found, asked = measure(tmp_path, judge_sales, repeats=2)
    works, leaves = 4, 3
    assert asked.wanted == asked.scored == 2 * works * leaves * 2
    assert (found.works, found.unknown, found.unscored) == (8, 2, 0), "advice needs the sums"
    assert (found.overall.tasks, found.overall.broken, found.overall.intact) == (2, 6, 16)
    assert found.overall.sensitivity is not None and found.overall.specificity is not None
    assert found.overall.sensitivity.estimate == found.overall.specificity.estimate == 1
    assert [(one.by, one.name) for one in found.groups] == [
        *(("all", "all"), ("file", "answer"), ("file", "csv"), ("leaf", "answer")),
        *(("leaf", "table"), ("file and leaf", "answer, answer"), ("file and leaf", "csv, table")),
    ]
    assert found.gold.leaf_sr is not None and found.gold.leaf_sr.estimate == 100
    assert found.gold.root_score is not None and found.gold.root_score.estimate == 10
    assert found.suspects == () and len(found.rows) == 2
    stored = json.loads((tmp_path / "run/ceiling.json").read_text())
    assert Ceiling.model_validate(stored) == found
    # The same command asks nothing again; another task asks for its own works only.
    again, asked = measure(tmp_path, judge_sales, repeats=2)
    assert asked.wanted == 0 and again.groups == found.groups
    write_task(tmp_path / "tasks", TASK, name="sales-9", files=FILES)
    more, asked = measure(tmp_path, judge_sales, repeats=2)
    assert asked.wanted == works * leaves * 2 and more.overall.tasks == 3


def test_what_a_judge_cannot_see_is_named_by_its_kind_of_file(tmp_path: Path) -> None:
    write_sales(tmp_path, 2)
    found, _ = measure(tmp_path, never_read_csv)
    groups = {one.name: one for one in found.groups}
    assert groups["csv"].specificity is not None and groups["csv"].specificity.estimate == 0
    assert groups["csv"].sensitivity is not None and groups["csv"].sensitivity.estimate == 1
    assert groups["answer"].specificity is not None and groups["answer"].specificity.estimate == 1
    assert [(one.task, one.leaf, one.kinds) for one in found.suspects] == [
        (f"sales-{number}", leaf, ("csv",)) for number in range(2) for leaf in ("sums", "order")
    ]
    assert found.suspects[0].reason == "The file is not shown."
    remarks = list(ceiling_remarks(found))
    assert any("4 leaves fail in every right work, by file: csv 4." in one for one in remarks)
    assert any("Left out: 2 leaves of wrong works" in one for one in remarks)


def test_a_judge_that_breaks_down_leaves_leaves_unscored(tmp_path: Path) -> None:
    write_sales(tmp_path)
    found, asked = measure(tmp_path, fail_on_advice)
    assert asked.scored < asked.wanted
    assert found.unscored == 3 and found.gold.root_score is None and found.gold.root_sr is None
    assert any("Left out: 3 leaves without a score" in one for one in ceiling_remarks(found))
    assert "answer" not in {one.name for one in found.groups}


def fail_on_advice(request: str, leaf: Checkpoint, evidence: Evidence) -> float:
    if leaf.id == "advice":
        raise RuntimeError("no idea")
    return judge_sales(request, leaf, evidence)


def test_tasks_without_gold_and_other_folders_are_refused(tmp_path: Path) -> None:
    bare = {path: data for path, data in FILES.items() if path.startswith("inputs")}
    write_task(tmp_path / "tasks", TASK, files=bare)
    with pytest.raises(UsageError, match="None of the tasks has right work in gold/"):
        measure(tmp_path, judge_sales)
    write_sales(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/mine.txt").write_text("x")
    with pytest.raises(RunError, match="is not empty and is not a ceiling"):
        measure(tmp_path, judge_sales)


def test_a_judge_decides_every_leaf_and_checks_say_what_it_is_about(tmp_path: Path) -> None:
    write_sales(tmp_path)
    task = read_authored(tmp_path / "tasks/sales-0").task
    assert all(leaf.checks and leaf.by == "check" for leaf in task.leaves())
    plain = remove_checks(task)
    assert not any(leaf.checks or leaf.by != "judge" for leaf in plain.leaves())
    assert [leaf.id for leaf in plain.leaves()] == [leaf.id for leaf in task.leaves()]
    kinds = [find_kinds(leaf, ("md", "png")) for leaf in task.leaves()]
    assert kinds == [("answer",), ("csv",), ("csv",)]
    assert [find_kinds(leaf, ("md", "png")) for leaf in plain.leaves()] == [("md", "png")] * 3


ARCHIVE = """\
format = 1
id = "q3-sales"
[deliverables]
"all.zip" = "zip"
[[leaf]]
id = "names"
says = 'The archive has "plan.txt".'
checks = [{ is = "zip.members", file = "all.zip", all = ["plan.txt"] }]
[[leaf]]
id = "plan"
says = 'The plan begins with "Harbor first".'
checks = [{ is = "zip.members", file = "all.zip", all = ["plan.txt"] }]
"""


def pack(name: str, text: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, text)
    return stream.getvalue()


def test_members_of_archives_that_are_only_named_make_zip_a_suspect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence once listed the members of a zip file without their content."""
    files = {
        "inputs/a.txt": b"Pack a plan.",
        "gold/one/all.zip": pack("plan.txt", "Harbor first, then the town."),
        "wrong/other/all.zip": pack("plan.txt", "The town first."),
        "wrong/other/wrong.toml": b'breaks = ["plan"]',
    }
    write_task(tmp_path / "good/tasks", ARCHIVE, files=files)
    found, _ = measure(tmp_path / "good", find_quoted)
    assert found.suspects == ()

    async def name_only(*_: object) -> None:
        """Show no member."""

    monkeypatch.setattr(catalog, "_show_members", name_only)
    write_task(tmp_path / "bad/tasks", ARCHIVE, files=files)
    found, _ = measure(tmp_path / "bad", find_quoted)
    assert [(one.leaf, one.kinds) for one in found.suspects] == [("plan", ("zip",))]
    assert any("by file: zip 1." in one for one in ceiling_remarks(found))
