import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from gta_bench.datasets.checks import verify
from gta_bench.datasets.digest import dataset_digest, task_digests
from gta_bench.datasets.folders import load_task, task_schema
from gta_bench.datasets.workflow import is_workflow, load_workflow
from gta_bench.errors import DatasetError
from gta_bench.records.checks import PythonCheck, TableSame, TableValue
from gta_bench.records.files import Attachment
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from tests.authored import REQUEST, TASK, write_task


def test_a_task_folder_becomes_the_record_of_a_workflow_task(tmp_path: Path) -> None:
    write_task(tmp_path)
    dataset = load_workflow(tmp_path)
    task = dataset.tasks["q3-sales"]
    assert (task.request, task.tools) == (REQUEST.rstrip("\n"), ())
    assert task.category == "Data Analysis & Quantitative Reasoning"
    assert task.attachments == (
        Attachment(path="inputs/sales.csv", source="q3-sales/inputs/sales.csv"),
    )
    assert [(node.id, node.weight) for node in task.checkpoints] == [("book", 3), ("text", 1)]
    sums, order, advice = task.leaves()
    assert (sums.by, order.by, advice.by) == ("check", "check-then-judge", "judge")
    assert isinstance(sums.checks[0], TableValue) and sums.checks[0].equals == 48210.55
    assert list(advice.levels) == ["0", "5", "10"] and advice.needs == ("sums",)
    assert advice.question == (
        "The answer names the weakest region and by how much it trails.\n"
        "0 points: neither\n5 points: region only\n10 points: region and amount"
    )
    assert sums.question == sums.requirements
    assert WorkflowTask.model_validate_json(task.model_dump_json()) == task
    assert verify(dataset).findings == ()
    assert is_workflow(tmp_path) and not is_workflow(tmp_path / "nowhere")


def test_a_leaf_of_the_released_layout_is_written_as_before() -> None:
    leaf = Checkpoint(id="a", requirements="It is there.")
    assert leaf.model_dump() == {
        "id": "a", "requirements": "It is there.", "weight": 1.0, "children": (),
    }  # fmt: skip


def test_tasks_are_in_natural_order_and_other_folders_are_named(tmp_path: Path) -> None:
    for name in ("t10", "t2", "a"):
        write_task(tmp_path, name=name)
    (tmp_path / "pictures").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "README.md").write_text("mine")
    dataset = load_workflow(tmp_path)
    assert list(dataset.tasks) == ["a", "t2", "t10"]
    assert [(one.check, one.file) for one in dataset.findings] == [("not-a-task", "pictures")]


def test_tools_of_the_dataset_are_read(tmp_path: Path) -> None:
    write_task(tmp_path, TASK.replace('license = "CC-BY-4.0"', 'tools = ["Calculator"]'))
    tool = {"name": "Calculator", "description": "d", "inputs": [], "outputs": []}
    (tmp_path / "toolmeta.json").write_text(json.dumps([tool]))
    dataset = load_workflow(tmp_path)
    assert tuple(dataset.tools) == dataset.tasks["q3-sales"].tools == ("Calculator",)


LEAF = '[[leaf]]\nid = "a"\nsays = "x"\n'
HEAD = 'format = 1\nid = "q3-sales"\n'


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("format = ", "q3-sales/task.toml: is not valid TOML: Invalid value (at"),
        (HEAD + 'catgory = "x"', "'catgory': unknown key; did you mean 'category'? Known keys"),
        (HEAD.replace("1", "2"), "field 'format': input should be 1, got 2."),
        ('format = 1\n', "field 'id': the key is missing."),
        ('format = 1\nid = "other"\n', "'id': the id 'other' is not the folder's name 'q3-sales'."),
        (HEAD + LEAF + 'wieght = 2', "field 'leaf.a.wieght': unknown key; did you mean 'weight'?"),
        (HEAD + LEAF + 'weight = "2"', "'leaf.a.weight': input should be a valid number, got '2'."),
        (HEAD + LEAF + LEAF, "field 'a': 2 groups or leaves have this id; ids must differ."),
        (HEAD + LEAF + 'needs = ["b"]', "field 'a.needs': there is no leaf 'b'."),
        (HEAD + LEAF + 'by = "check"', "field 'leaf.a': `by` is 'check', but there are no checks."),
        (HEAD + LEAF + 'credit = "share"', "`credit` is 'share', but there are no checks."),
        (HEAD + LEAF + 'levels = { best = "x" }', "'leaf.a.levels.best': a score is a number"),
        (HEAD + LEAF + 'checks = [{ file = "x" }]', "a check needs `is`, which names its kind."),
        (
            HEAD + LEAF + 'checks = [{ is = "file.exist", file = "x" }]',
            "field 'leaf.a.checks.0': unknown check 'file.exist'; did you mean 'file.exists'?",
        ),
        (
            HEAD + LEAF + 'checks = [{ is = "file.exists", xfile = "x", file = "x" }]',
            "'leaf.a.checks.0.xfile': unknown key; did you mean 'file'? Known keys here: file, is.",
        ),
        (
            HEAD + LEAF + 'checks = [{ is = "doc.size", file = "x", pages = { mni = 1 } }]',
            "field 'leaf.a.checks.0.pages.mni': unknown key; did you mean 'min'?",
        ),
        (
            HEAD + LEAF + 'checks = [{ is = "python", rnu = "x" }]',
            "Known keys here: is, run.",
        ),
        (
            HEAD + LEAF + 'checks = [{ is = "table.same", reference_ = "x" }]',
            "did you mean 'reference'? Known keys here: file, is, key, reference, sheet, within.",
        ),
        (
            HEAD + LEAF + 'checks = [{ is = "table.value", file = "x", row = "r", column = "c", '
            'equals = 1 }]\ncredit = "linear"',
            '`credit = "linear"` needs `zero_at` in table.value.',
        ),
        (HEAD + '[[group]]\nid = "g"\n', "field 'group.g': the group has no leaf; add"),
        (HEAD + 'order = ["b"]\n' + LEAF, "field 'order': must name every leaf and group"),
        (
            HEAD + '[[group]]\nid = "g"\norder = ["b"]\n[[group.leaf]]\nid = "a"\n',
            "field 'g.order': must name every leaf and group",
        ),
        (HEAD + '[inputs."no.csv"]\nurl = "x"', "'inputs.no.csv': there is no file inputs/no.csv."),
        (HEAD + '[inputs."no.csv"]\nulr = "x"', "did you mean 'url'?"),
        (
            HEAD + LEAF + 'checks = [{ is = "json.path", file = "x", path = "$..id" }]',
            "field 'leaf.a.checks.0.path': '$..id' is not a path: write it as $.name[0]",
        ),
        (
            HEAD + LEAF + 'checks = [{ is = "python", run = "checks/no.py:f" }]',
            "field 'a.run': there is no file q3-sales/checks/no.py.",
        ),
        (
            HEAD + LEAF + 'checks = [{ is = "python", run = "checks/ok.py:slove" }]',
            "q3-sales/checks/ok.py: has no function 'slove'; did you mean 'solve'?",
        ),
        (
            HEAD + LEAF + 'checks = [{ is = "python", run = "checks/bad.py:f" }]',
            "q3-sales/checks/bad.py: is not valid Python in line 1",
        ),
        (
            HEAD + LEAF + 'checks = [{ is = "python", run = "checks/null.py:f" }]',
            "q3-sales/checks/null.py: is not valid Python",
        ),
        (
            HEAD + LEAF + 'checks = [{ is = "python", run = "checks/long.py:f" }]',
            "field 'a.run': checks/long.py has more than 1,048,576 characters.",
        ),
        (
            HEAD + LEAF
            + 'checks = [{ is = "table.same", file = "x", reference = "../x.csv", key = ["a"] }]',
            "'../x.csv' is not the path of a CSV file in the task folder.",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_file_and_key(tmp_path: Path, toml: str, message: str) -> None:
    files = {
        "checks/ok.py": b"def solve(work): return 10\n",
        "checks/bad.py": b"def f(:\n",
        "checks/null.py": b"def f(): \0\n",
        "checks/long.py": b"#" * (1 << 20) + b"\n",
    }
    folder = write_task(tmp_path, toml, files=files)
    with pytest.raises(DatasetError) as caught:
        load_task(folder)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert str(caught.value).startswith("q3-sales/")


def test_files_that_checks_name_are_part_of_the_record(tmp_path: Path) -> None:
    checks = (
        'checks = [{ is = "python", run = "checks/ok.py:solve" }, '
        '{ is = "table.same", file = "x.csv", reference = "gold/a/x.csv", key = ["a"] }]'
    )
    files = {"checks/ok.py": b"def solve(work): return 10\n", "gold/a/x.csv": b"a,b\n1,2\n"}
    folder = write_task(tmp_path, HEAD + LEAF + checks, files=files)
    (leaf,) = load_task(folder).leaves()
    python, same = leaf.checks
    assert isinstance(python, PythonCheck) and python.source == "def solve(work): return 10\n"
    assert isinstance(same, TableSame) and same.rows == "a,b\n1,2\n"


def test_a_date_and_a_deep_tree_are_read(tmp_path: Path) -> None:
    toml = HEAD + (
        'order = ["deep", "top"]\n[[leaf]]\nid = "top"\n[[group]]\nid = "deep"\n'
        '[[group.group]]\nid = "deeper"\n[[group.group.leaf]]\nid = "a"\nchecks = ['
        '{ is = "table.value", file = "x", row = "r", column = "c", equals = 2026-01-31, '
        'zero_at = 1 }]\ncredit = "linear"\n'
    )
    task = load_task(write_task(tmp_path, toml))
    assert [node.id for node in task.checkpoints] == ["deep", "top"]
    (check,) = next(task.leaves()).checks
    assert isinstance(check, TableValue) and check.equals == "2026-01-31"


def test_a_linked_task_folder_is_refused(tmp_path: Path) -> None:
    write_task(tmp_path / "away")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/q3-sales").symlink_to(tmp_path / "away/q3-sales")
    with pytest.raises(DatasetError) as caught:
        load_workflow(tmp_path / "tasks")
    expected = "q3-sales: is a link; put the task folder itself into the dataset."
    assert str(caught.value) == expected


def test_files_must_be_text_there_and_in_the_folder(tmp_path: Path) -> None:
    problems = {
        "absent": "absent/request.md: cannot be read: No such file or directory.",
        "empty": "empty/request.md: is empty; write what the system is asked to do.",
        "binary": "binary/request.md: is not UTF-8 text (byte 0); save it as UTF-8.",
        "linked": "linked/request.md: is a link; put the file itself into the task folder.",
        "away": "away/inputs: is a link; put the file itself into the task folder.",
        "nested": "nested/inputs/more: is a folder; inputs are files directly in inputs/.",
    }
    for name in problems:
        write_task(tmp_path, name=name, files={}, request=None)
    for name in ("away", "nested"):
        (tmp_path / name / "request.md").write_text("Do it.")
    (tmp_path / "empty" / "request.md").write_text(" \n")
    (tmp_path / "binary" / "request.md").write_bytes(b"\xff\xfe")
    (tmp_path / "linked" / "request.md").symlink_to(tmp_path / "empty" / "request.md")
    (tmp_path / "away" / "inputs").symlink_to(tmp_path)
    (tmp_path / "nested" / "inputs" / "more").mkdir(parents=True)
    for name, problem in problems.items():
        with pytest.raises(DatasetError) as caught:
            load_task(tmp_path / name)
        assert str(caught.value) == problem


def test_one_task_is_not_a_dataset(tmp_path: Path) -> None:
    folder = write_task(tmp_path)
    with pytest.raises(DatasetError, match=r"Use the folder above it: --data .* --tasks q3-sales"):
        load_workflow(folder)


def test_a_released_tree_with_the_keys_of_the_record_is_refused(tmp_path: Path) -> None:
    """It became a single leaf, and `gta data verify` called the key harmless."""
    tree = [{"id": "cp1", "children": [{"id": "a", "requirements": "x"}]}]
    entry = {"dialogs": [{"role": "user", "content": "Do it."}], "sub_tasks": tree}
    (tmp_path / "end.json").write_text(json.dumps({"1": entry}))
    with pytest.raises(DatasetError, match="calls the key `sub_tasks`, not `children`"):
        load_workflow(tmp_path)


def test_digests_change_with_what_they_cover_and_with_nothing_else(tmp_path: Path) -> None:
    folder = write_task(tmp_path)

    def digests() -> dict[str, object]:
        dataset = load_workflow(tmp_path)
        found = task_digests(dataset, "q3-sales")
        return {"asks": found.asks, **found.leaf, "weighs": found.weighs,
                "dataset": dataset_digest(dataset)}  # fmt: skip

    def changed(before: dict[str, object]) -> set[str]:
        return {name for name, one in digests().items() if one != before[name]}

    first = digests()
    (folder / "task.toml").write_text(f"# a comment\n{TASK}")
    (folder / "notes.md").write_text("mine")
    assert changed(first) == set()
    (folder / "task.toml").write_text(TASK.replace("31877.20", "31877.25"))
    assert changed(first) == {"sums", "dataset"}
    (folder / "task.toml").write_text(TASK.replace("region only", "the region"))
    assert changed(first) == {"advice", "dataset"}
    (folder / "task.toml").write_text(TASK.replace("weight = 2", "weight = 1"))
    assert changed(first) == {"weighs", "dataset"}
    (folder / "task.toml").write_text(TASK)
    (folder / "inputs" / "sales.csv").write_bytes(b"Region,Amount\n")
    assert changed(first) == {"asks", "dataset"}


def test_the_schema_is_that_of_the_file() -> None:
    import tomllib

    validator = Draft202012Validator(task_schema())
    validator.check_schema(task_schema())
    assert list(validator.iter_errors(tomllib.loads(TASK))) == []
    assert list(validator.iter_errors(tomllib.loads(TASK.replace("says", "says_"))))


def test_a_task_file_that_is_not_text_is_an_error(tmp_path: Path) -> None:
    folder = write_task(tmp_path)
    (folder / "task.toml").write_bytes(b'id = "\xff"')
    with pytest.raises(DatasetError, match=r"task.toml: is not UTF-8 text \(byte 6\)"):
        load_task(folder)
