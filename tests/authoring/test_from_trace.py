"""Twenty traces become twenty drafts, and no wrong work passes one that became ready."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gta_bench.authoring.drafts import FIELDS, DraftFile, try_draft_file
from gta_bench.authoring.lint import lint
from gta_bench.authoring.readiness import read_readiness
from gta_bench.cli import app
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.folders import load_task
from gta_bench.errors import NotOnTape, ToolError
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.records.pilot import Pilot
from gta_bench.redaction import Redactor
from gta_bench.runs.directory import read_workflow_scores
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape
from tests.authoring import trace_cases as cases
from tests.authoring.trace_cases import PNG, SINGLE, Expected
from tests.content.conftest import jail
from tests.tasks.workflow_runs import judged_run

__all__ = ["jail"]
USUAL = {"tree", "gold", "wrong", "category", "license"}
LIMITS = Thresholds(leaf=7.0, root=7.0)


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="session")
def our_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_run(tmp_path_factory.mktemp("traced"))


def make_draft(file: Path, out: Path, *options: str) -> dict[str, Any]:
    done = gta("task", "from-trace", file, "--out", out, "--json", *options)
    assert done.exit_code == 0, (done.output, done.exception)
    (found,) = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def check_draft(folder: Path, expected: Expected) -> None:
    """A draft loads, marks every field, and is not ready, whatever its author waives."""
    task = load_task(folder)
    if expected.request is not None:
        assert task.request.startswith(expected.request)
    draft = try_draft_file(folder)
    assert isinstance(draft, DraftFile) and set(draft.fields) == set(FIELDS)
    assert {name for name, _ in draft.select("missing")} == USUAL | {*expected.missing}
    found = [one for one in lint([folder]).findings if one.check == "T41"]
    assert any(one.severity == "error" and "this is a draft" in one.message for one in found)
    assert read_readiness(folder, LIMITS).state == "draft"


@pytest.mark.parametrize("name", SINGLE)
def test_a_trace_becomes_a_draft(name: str, tmp_path: Path) -> None:
    write, expected = SINGLE[name]
    found = make_draft(write(tmp_path / f"{name}.json"), tmp_path / "tasks")
    assert (found["calls"], found["taped"]) == (expected.calls, expected.taped)
    assert found["folder"] == str(tmp_path / "tasks" / name)
    check_draft(tmp_path / "tasks" / name, expected)
    inside = {file.name for file in tmp_path.iterdir()}
    assert inside <= {"tasks", f"{name}.json", f"{name}.eval"}  # nothing elsewhere


@pytest.mark.parametrize("form", ["log", "json", "atif", "spans"])
def test_units_of_our_own_become_drafts(form: str, our_run: Path, tmp_path: Path) -> None:
    """Two tasks each, from the log, the log as JSON, and both exports: 8 traces, 21 in all."""
    tasks = tmp_path / "tasks"
    if form == "log":
        files = [next((our_run / "logs").glob("*.eval"))]
    elif form == "json":
        files = [cases.write_json_log(our_run, tmp_path / "json")]
    elif form == "atif":
        assert gta("export", "atif", our_run, "--out", tmp_path / "atif").exit_code == 0
        files = sorted((tmp_path / "atif").iterdir())
    else:
        files = [cases.write_own_spans(our_run, tmp_path / "spans.json")]
    for file in files:
        done = gta("task", "from-trace", file, "--out", tasks, "--all")
        assert done.exit_code == 0, (done.output, done.exception)
    folders = sorted(tasks.iterdir())
    assert len(folders) == 2
    # The reply is a file, which no trace contains. Only our logs say what was delivered.
    expected = Expected(1, 0, ("tape",), "Write a page about animals.")
    for folder in folders:
        check_draft(folder, expected)
        task = load_task(folder)
        assert task.tools == ("HtmlFileGenerator",)
        delivered = '"page.html" = "html"' in (folder / "task.toml").read_text()
        assert delivered == (form in ("log", "json"))


def replay(folder: Path, *calls: tuple[str, Mapping[str, Any]]) -> list[str]:
    """What the tape of a draft answers."""

    async def ask() -> list[str]:
        found = []
        with closing(Tape.open(folder / "tape")) as tape:
            tools = TapedTools(tape, TapeUnit("workflow", "x", 1), "replay", Redactor({}))
            workspace = Workspace.create(folder.parent / "space", {})
            for name, arguments in calls:
                try:
                    result = await tools.call(workspace, name, arguments)
                    found.append(result.parts[0].content)
                except ToolError as exc:
                    found.append(f"error: {exc}")
                except NotOnTape:
                    found.append("not on the tape")
        return found

    return asyncio.run(ask())


def draft(name: str, tmp_path: Path, *options: str) -> Path:
    write, _ = SINGLE[name]
    return Path(
        make_draft(write(tmp_path / f"{name}.json"), tmp_path / "tasks", *options)["folder"]
    )


def test_a_tape_answers_as_the_tools_did_and_invents_nothing(tmp_path: Path) -> None:
    stock = "trace__stock"
    cut = draft("sdk-cut", tmp_path)
    assert replay(cut, (stock, {"store": 7}), (stock, {"store": 8}), (stock, {})) == [
        "12 crates",
        "not on the tape",
        "error: No store.",
    ]
    retried = draft("inspect-events", tmp_path, "--server", "shop")
    assert replay(retried, *[("shop__stock", {"store": 7})] * 2) == [
        "error: The stock server did not answer.",
        "12 crates",
    ]
    parallel = draft("shuffled", tmp_path)
    calls = ({"size": "Größe L", "store": 8}, {"store": 7}, {"store": 9})
    assert replay(parallel, *((stock, one) for one in calls)) == [
        '{"crates": 0}',
        "12 crates",
        "not on the tape",
    ]
    named = draft("foreign-atif", tmp_path)
    assert load_task(named).tools == ("stores__stock",)
    assert replay(named, ("stores__stock", {"store": 8})) == ["none"]


def test_pictures_in_a_trace_are_inputs_under_names_of_ours(tmp_path: Path) -> None:
    for name in ("structured", "inspect-messages"):
        (file,) = (draft(name, tmp_path) / "inputs").iterdir()
        assert (file.name, file.read_bytes()) == ("image-1.png", PNG)
    assert not (draft("picture-atif", tmp_path) / "inputs").exists()


def test_the_answer_and_the_target_are_notes_and_never_gold(tmp_path: Path) -> None:
    folder = draft("inspect-events", tmp_path)
    notes = (folder / "notes.md").read_text()
    assert "## Expected answer\n\n```text\n12\n```" in notes
    assert "shortened reply of stock" in notes
    assert not (folder / "gold").exists()


def test_calls_of_our_own_tools_are_replayed_unless_they_depend_on_files(tmp_path: Path) -> None:
    """A tape finds a call of our tools by the content of its files, which this trace lacks."""
    calls = [
        {"function_name": "Calculator", "arguments": {"expression": "7*2"}},
        {"function_name": "OCR", "arguments": {"image": "inputs/menu.jpg"}},
    ]
    named = [{**call, "tool_call_id": f"c{number}"} for number, call in enumerate(calls)]
    results = [{"source_call_id": f"c{number}", "content": "14"} for number in range(2)]
    step = {"source": "agent", "message": "", "tool_calls": named}
    user = {"source": "user", "message": "What do two of the beers cost?"}
    found = cases.trajectory(user, {**step, "observation": {"results": results}})
    extra = {"dataset": "atomic", "task": "1", "epoch": 1}
    file = cases.write_lines(tmp_path / "own.json", [{**found, "extra": extra}])
    made = make_draft(file, tmp_path / "tasks")
    assert (made["calls"], made["taped"], made["fields"]["tape"]) == (2, 1, "missing")
    assert load_task(Path(made["folder"])).tools == ("Calculator", "OCR")
    notes = (Path(made["folder"]) / "notes.md").read_text()
    assert '2. (not on the tape) OCR {"image": "inputs/menu.jpg"}: 14' in notes
    assert replay(
        Path(made["folder"]),
        ("Calculator", {"expression": "7*2"}),
        ("OCR", {"image": "inputs/menu.jpg"}),
    ) == ["14", "not on the tape"]


SECRETS = {
    "key": "sk-proj-Abc123Def456Ghi789",
    "password": "hunter2Passw0rd",
    "token": "Bearer abcDEF123456ghiJKL",
    "address": "https://joe:Pa55word99@db.example.org/x",
}


def test_secrets_are_nowhere_in_a_draft(tmp_path: Path) -> None:
    words = (
        f"Use the key {SECRETS['key']} (password: hunter3hunter3, secret is Winter2031!): how many?"
    )
    asked = cases.message("user", cases.text(words))
    given = {"password": SECRETS["password"], "url": SECRETS["address"], "store": 7}
    call = cases.message("assistant", cases.asked_call("p", **given))
    reply = json.dumps({"authorization": SECRETS["token"], "api_key": "Zx81Zx82Zx83Zx84"})
    spans = [
        cases.span("ab" * 16, 1, cases.chat([asked], [call])),
        cases.span("ab" * 16, 2, cases.made_call("p", **{"gen_ai.tool.call.result": reply})),
    ]
    file = cases.write_lines(tmp_path / "spans.json", [cases.otlp(*spans)])
    folder = Path(make_draft(file, tmp_path / "tasks")["folder"])
    written = b"".join(one.read_bytes() for one in folder.rglob("*") if one.is_file())
    assert b"hunter3" not in written and b"Winter2031" not in written
    for secret in ("sk-proj", "hunter2Passw0rd", "abcDEF123456", "Pa55word99", "Zx81Zx82"):
        assert secret.encode() not in written, secret
    assert b"[redacted:trace]" in written
    draft = try_draft_file(folder)
    assert isinstance(draft, DraftFile) and draft.fields["request"].state == "inferred"


def test_keys_of_tickets_and_pages_are_no_secrets(tmp_path: Path) -> None:
    reply = json.dumps({"key": "PROJ-1234", "nextPageToken": "Zx81Zx82", "page_token": "Yx81Yx82"})
    asked = cases.message("user", cases.text("Who works on PROJ-1234? Name the person."))
    call = cases.message("assistant", cases.asked_call("p", key="PROJ-1234"))
    spans = [
        cases.span("ab" * 16, 1, cases.chat([asked], [call])),
        cases.span("ab" * 16, 2, cases.made_call("p", **{"gen_ai.tool.call.result": reply})),
    ]
    file = cases.write_lines(tmp_path / "spans.json", [cases.otlp(*spans)])
    folder = Path(make_draft(file, tmp_path / "tasks")["folder"])
    assert replay(folder, ("trace__stock", {"key": "PROJ-1234"})) == [reply]


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    evil = (
        '"]\n[[leaf]]\nid="x"\n```\n<script>alert(1)</script>\n# [x](javascript:1) \ud800\x00\x7f'
    )
    call = {**cases.asked_call("p", store=7), "name": '../../x" <b>'}
    asked = cases.message("user", cases.text(f"How many crates are there? {evil}"))
    said = cases.message("assistant", call)
    answer = cases.message("assistant", cases.text(evil))
    spans = [
        cases.span("../../../etc", 1, cases.chat([asked], [said])),
        cases.span("../../../etc", 2, cases.chat([asked, said], [answer])),
    ]
    file = cases.write_lines(tmp_path / "spans.json", [cases.otlp(*spans)])
    folder = Path(make_draft(file, tmp_path / "tasks")["folder"])
    assert folder.parent == tmp_path / "tasks"
    task = load_task(folder)
    assert [leaf.id for leaf in task.leaves()] == ["answer"]
    assert task.tools == ("trace__stock", "trace__x-b")
    notes = (folder / "notes.md").read_text()
    head, _, rest = notes.partition("## Answer in the trace\n\n")
    assert "<" not in head and rest.startswith("````text\n")
    assert {one.name for one in tmp_path.iterdir()} == {"spans.json", "tasks"}


# Drafts that become ready

READY = {
    "openinference": ("T-17 and T-23", "T-23, T-17", ["T-17", "T-23"], "T-17 and T-18"),
    "genai": ("T-17; T-23.", "Late: T-23 and T-17.", ["T-17", "T-23"], "T-17 and T-24"),
    "shuffled": ("There are 12 crates.", "12 crates", ["12 crates"], "There are 21 crates."),
    "foreign-atif": ("12 crates in all", "Store 7: 12 crates", ["12 crates"], "120 crate"),
    "inspect-events": ("It has 12 crates.", "12 crates.", ["12 crates"], "11 crates"),
}
PAGE = "animals"
LEAF = """
[[leaf]]
id = "answer"
says = "The work has the values that the tools returned."
checks = [{{ is = "{kind}", all = {wanted} }}]
"""


def complete(
    folder: Path, first: str, second: str, wanted: list[str], wrong: str, *, file: str = ""
) -> None:
    """Write what is missing, as an author does; the work is an answer, or a file."""
    toml = (folder / "task.toml").read_text().partition("\n[[leaf]]")[0]
    about = 'category = "Information Retrieval & Knowledge QA"\nlicense = "CC-BY-4.0"\n'
    kind = f'text.contains", file = "{file}' if file else "answer.contains"
    leaf = LEAF.format(wanted=json.dumps(wanted), kind=kind)
    head, tools, rest = toml.partition("tools = ")
    (folder / "task.toml").write_text(f"{head}{about}{tools}{rest}{leaf}")
    works = {"gold/a": first, "gold/b": second, "wrong/off": wrong, "cheat/empty-talk": "Done."}
    for path, work in works.items():
        (folder / path).mkdir(parents=True)
        (folder / path / (file or "final.txt")).write_text(work)
    (folder / "wrong/off/wrong.toml").write_text('breaks = ["answer"]\nfrom = "a"\n')


def set_states(folder: Path, *but: str) -> None:
    """Mark everything as written except for these fields."""
    parts = (folder / "draft.toml").read_text().split("[fields.")
    for place, part in enumerate(parts[1:], 1):
        if not part.startswith(tuple(f"{name}]" for name in but)):
            for state in ("missing", "inferred"):
                part = part.replace(f'state = "{state}"', 'state = "written"')
            parts[place] = part
    (folder / "draft.toml").write_text("[fields.".join(parts))


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, our_run: Path, jail: object) -> Path:
    """Six drafts that their author completed; one asks for a file."""
    root = tmp_path_factory.mktemp("ready")
    for name, proofs in READY.items():
        complete(draft(name, root), *proofs)
        set_states(root / "tasks" / name)
    log = next((our_run / "logs").glob("*.eval"))
    folder = Path(make_draft(log, root / "tasks", "--trace", "1.1", "--id", PAGE)["folder"])
    pages = ("<p>quokka, wombat</p>", "<ul><li>wombat<li>quokka</ul>")
    complete(folder, *pages, ["quokka", "wombat"], "<p>quokka</p>", file="page.html")
    (folder / "request.md").write_text("Write page.html about the animals that are named.\n")
    set_states(folder)
    return root / "tasks"


def list_wrong_work(tasks: Path) -> dict[str, dict[str, str]]:
    """For each task, an empty work, what another task wants, a changed value, its own request."""
    golds = {name: (tasks / name / "gold/a/final.txt").read_text() for name in READY}
    golds[PAGE] = (tasks / PAGE / "gold/a/page.html").read_text()
    others = {"openinference": "shuffled", "genai": PAGE}
    return {
        name: {
            "empty": " ",
            "other": golds[others.get(name, "genai")],
            "changed": gold.replace("7", "8").replace("12", "13").replace("wombat", "bat"),
            "echo": (tasks / name / "request.md").read_text(),
        }
        for name, gold in golds.items()
    }


def file_of(name: str) -> str:
    return "page.html" if name == PAGE else "final.txt"


@pytest.mark.parametrize("name", [*READY, PAGE])
def test_a_completed_draft_is_ready_once_the_pilot_passes(
    name: str, ready: Path, tmp_path: Path
) -> None:
    """And no work that is wrong passes a leaf."""
    folder, works = ready / name, list_wrong_work(ready)[name]
    assert read_readiness(folder, LIMITS).state == "draft"
    for kind in ("other", "changed", "echo"):
        (folder / "cheat" / kind).mkdir()
        (folder / "cheat" / kind / file_of(name)).write_text(works[kind])
    done = gta("task", "pilot", folder, "--no-judge", "--out", tmp_path / "pilot")
    assert (done.exit_code, done.stderr) == (0, f"{name}: ready.\n"), done.output
    assert read_readiness(folder, LIMITS).state == "ready"
    trials = Pilot.model_validate_json((folder / "pilot.json").read_bytes()).trials
    for work, leaves in trials.items():
        assert leaves["answer"].scores == ((10.0,) if work.startswith("gold/") else (0.0,))


@pytest.mark.parametrize("kind", ["empty", "other", "changed", "echo"])
def test_wrong_work_never_passes_a_task_that_became_ready(
    kind: str, ready: Path, tmp_path: Path
) -> None:
    for name, works in list_wrong_work(ready).items():
        (tmp_path / "done" / name).mkdir(parents=True)
        (tmp_path / "done" / name / file_of(name)).write_text(works[kind])
    run = tmp_path / "run"
    options = ("--data", ready, "--out", run, "--harness", "Hand")
    assert gta("import", "folder", tmp_path / "done", *options).exit_code == 0
    done = gta("score", run)
    assert done.exit_code == 0, (done.output, done.exception)
    table = read_workflow_scores(run).table("check")
    assert table is not None
    assert {task.task: task.root for task in table.tasks} == dict.fromkeys([*READY, PAGE], 0.0)


@pytest.mark.parametrize("name", ["tree", "gold", "license"])
def test_a_pilot_does_not_pass_while_a_field_is_missing(
    name: str, tmp_path: Path, jail: object
) -> None:
    """Whatever else is right: the golds, the wrong work, the checks."""
    folder = draft("openinference", tmp_path)
    complete(folder, *READY["openinference"])
    set_states(folder, name)
    done = gta("task", "pilot", folder, "--no-judge", "--out", tmp_path / "pilot")
    assert done.exit_code == 1
    assert f"{folder.name}: draft (1 error of `gta task lint`" in done.stderr
    toml = (folder / "task.toml").read_text()
    waiver = f'allow = ["T41: not now"]\n{toml.partition(chr(10))[2]}'
    (folder / "task.toml").write_text(waiver)
    assert "T41 cannot be waived" in "".join(one.message for one in lint([folder]).findings)


def test_a_skeleton_does_not_pass_because_its_fields_say_written(
    tmp_path: Path, jail: object
) -> None:
    folder = draft("openinference", tmp_path)
    set_states(folder)
    said = [one.message for one in lint([folder]).findings if one.check == "T41"]
    assert [one.partition(":")[0] for one in said if "question" in one] == [
        "the leaf is a question to the author"
    ]
    assert sum('is "written", but the task has none' in one for one in said) == 4
    done = gta("task", "pilot", folder, "--no-judge", "--out", tmp_path / "pilot")
    assert done.exit_code == 1 and f"{folder.name}: draft" in done.stderr
    (folder / "draft.toml").write_text('format = 1\n[fields.tree]\nstate = "observed"\n')
    assert any(one.field == "source" for one in lint([folder]).findings if one.check == "T41")
    (folder / "draft.toml").unlink()
    assert any("question" in one.message for one in lint([folder]).findings if one.check == "T41")


def test_a_run_says_that_tasks_are_drafts(tmp_path: Path) -> None:
    draft("openinference", tmp_path)
    options = ("--data", tmp_path / "tasks", "--agent", "silent", "--estimate")
    tape = ("--tape", tmp_path / "tasks/openinference/tape", "--out", tmp_path / "run")
    done = gta("run", "workflow", *options, *tape)
    assert "not ready: 1 of 1 task (1 draft)." in done.stderr, (done.output, done.exception)
