"""`gta study`: two models with two agents on a few tasks, planned, run, stopped and reported."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from gta_bench.errors import GtaError
from gta_bench.runs.directory import read_manifest, read_scores
from tests.builders import atomic_task, call, parameter, reply, tool, write_atomic
from tests.chat_server import ChatServer, chat_server
from tests.cli.test_run import gta
from tests.needs import needs

TASKS, EPOCHS, BLOCK = 6, 2, 3
UNITS = 4 * TASKS * EPOCHS
CELLS = [f"step/{model}/{agent}" for model in ("small", "large") for agent in ("react", "tools")]
FILE = f"""\
name = "model or loop"
out = "runs/study"
seed = 3
epochs = {EPOCHS}
block = {BLOCK}

[options]
similarity = "exact-or-half"
max_connections = 1

[datasets.step]
run = "atomic"
mode = "step"
data = "data"

[models.small]
model = "small"
[models.large]
model = "large"
temperature = 0.5

[agents.react]
agent = "react"
[agents.tools]
agent = "toolcalling"

[budget]
hours = 2

[assume]
seconds = 3
calls = {{ small = 2, large = 4 }}
sd = {{ task_system = 20, run = 10 }}

[[questions]]
name = "size"
ask = "Does the larger model take more turns of the right kind?"
models = ["large", "small"]
metric = "inst_acc"

[[questions]]
name = "loop"
agents = ["tools", "react"]
metric = "inst_acc"
margin = 60

[[questions]]
name = "pair"
systems = ["large+tools", "small+tools"]
metric = "tool_acc"

[[questions]]
name = "both"
kind = "interaction"
models = ["large", "small"]
agents = ["tools", "react"]
metric = "inst_acc"
"""

SMALL = """\
name = "ends"
out = "runs/ends"
options = { similarity = "exact-or-half" }
datasets.step = { run = "atomic", mode = "step", data = "data" }
models.none = {}
agents = { gold = { agent = "gold" }, silent = { agent = "silent" } }
budget.hours = 1
questions = [{ name = "ends", agents = ["gold", "silent"], metric = "inst_acc" }]
"""


def answer(request: dict[str, Any]) -> str | dict[str, Any]:
    """The large model calls the tool first, except for one task; the small one never does."""
    text = json.dumps(request["messages"])
    number = int(re.findall(r"beer (\d+)", text)[-1])
    later = any(message["role"] == "assistant" for message in request["messages"])
    if request["model"] == "small" or number == 5 or later:
        return "It costs 7."
    if "tools" not in request:
        return 'Thought: read\nAction: OCR\nAction Input: {"image": "inputs/image_1.jpg"}'
    call = {"name": "OCR", "arguments": '{"image": "inputs/image_1.jpg"}'}
    calls = [{"id": "call-1", "type": "function", "function": call}]
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    return {"message": message, "finish_reason": "tool_calls"}


@pytest.fixture
def server(loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCRIPTED_KEY", "none")
    rest = atomic_task()["dialogs"][1:]
    tasks = {
        str(number): atomic_task(
            dialogs=[{"role": "user", "content": f"What does beer {number} cost?"}, *rest]
        )
        for number in range(TASKS)
    }
    write_atomic(tmp_path / "data", tasks)
    Path("study.toml").write_text(FILE, encoding="utf-8")
    with chat_server(answer) as server:
        lines = ["[budget]", "max_retries = 0"]
        for name in ("small", "large"):
            lines += [f"[models.{name}]", f'model = "openai-api/local/{name}"']
            lines += [f'base_url = "{server.url}"', 'key_env = "SCRIPTED_KEY"']
            lines += ["input_price = 100000.0", "output_price = 0.0"]
        Path("gta.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        yield server


def study(verb: str, *options: str | Path) -> Result:
    return gta("study", verb, "study.toml", *options)


def refuse(verb: str, *options: str | Path) -> str:
    """The one line with which a command ends that cannot begin."""
    error = study(verb, *options).exception
    assert isinstance(error, GtaError), error
    assert error.exit_code == 2
    (line,) = str(error).splitlines()
    return line


def edit(before: str, after: str) -> None:
    text = Path("study.toml").read_text(encoding="utf-8")
    assert before in text
    Path("study.toml").write_text(text.replace(before, after, 1), encoding="utf-8")


def report() -> dict[str, Any]:
    result = study("report", "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout, parse_constant=refuse_constant)
    return found


def refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def count_scored() -> dict[str, int]:
    runs = {cell: Path("runs/study") / cell for cell in CELLS}
    return {
        cell: read_scores(run).n if (run / "scores.json").is_file() else 0
        for cell, run in runs.items()
    }


def test_a_plan_prints_units_hours_and_what_each_question_can_show(server: ChatServer) -> None:
    result = study("plan")
    assert result.exit_code == 0, result.output
    assert re.search(r"step +large\+tools +12 +0\.01 +\? +48", result.stdout)
    assert re.search(r"all +48 +0\.04 +\? +144", result.stdout)
    assert re.search(r"size +InstAcc +6 of 6 +\d+\.\d\d +\d+\.\d\d +\[assume\.sd\]", result.stdout)
    assert "step: 2 blocks; the budget affords all of them." in result.stdout
    edit("hours = 2", "hours = 2\ncost_usd = 3")
    unknown = study("plan").stdout
    assert "step: 2 blocks; how many of them the budget affords is not known." in unknown
    assert "How many units `cost_usd` of [budget] affords is not known: give `cost_usd`" in unknown
    edit("hours = 2\ncost_usd = 3", "hours = 2")
    edit("hours = 2", "calls = 100")
    found = json.loads(study("plan", "--json").stdout)
    assert found["blocks"] == {"step": [1, 2]}
    shown = {one["question"]: one for one in found["questions"]}
    assert shown["size"]["tasks"] == 3
    # Fewer tasks show less; a mean over agents shows more than one pair; an interaction is worst.
    assert shown["size"]["detectable"] > shown["size"]["detectable_all"]
    assert shown["size"]["detectable_all"] < shown["pair"]["detectable_all"]
    assert shown["pair"]["detectable_all"] < shown["both"]["detectable_all"]
    assert not Path("runs").exists() and not server.asked


def test_two_agents_without_a_model_are_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomic(tmp_path / "data", {str(number): atomic_task() for number in range(3)})
    Path("study.toml").write_text(SMALL, encoding="utf-8")
    result = study("run")
    assert result.exit_code == 0, result.output
    assert "All 6 units are done" in result.stderr
    assert study("run").exit_code == 0
    result = study("report", "--markdown", "report.md")
    assert re.search(r"gold +InstAcc +100\.00 +3/3", result.stdout)
    assert re.search(r"ends +InstAcc +gold +silent +100\.00 and 0\.00 +\+100\.00", result.stdout)
    assert (
        "task x agent and run" in result.stdout and "step: 1 of 1 block complete" in result.stdout
    )
    assert Path("report.md").read_text(encoding="utf-8").startswith("# ends\n")


def test_fewer_epochs_than_were_run_leave_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The units that the file no longer asks for were subtracted: "-6 of 6 units remain"."""
    monkeypatch.chdir(tmp_path)
    write_atomic(tmp_path / "data", {str(number): atomic_task() for number in range(2)})
    Path("study.toml").write_text("epochs = 2\n" + SMALL, encoding="utf-8")
    assert study("run").exit_code == 0
    edit("epochs = 2", "epochs = 1")
    result = study("run", "--amend")
    assert result.exit_code == 0, result.output
    assert "All 4 units are done" in result.stderr
    assert [one["scored"] for one in report()["versions"]] == [0, 8]


@pytest.mark.slow
@needs("bwrap")
def test_the_run_of_a_harness_grows_by_blocks_like_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first task of a harness opened its run with all tasks: it had 5 of 60, others 4 of 4."""
    monkeypatch.chdir(tmp_path)
    write_atomic(tmp_path / "data", {str(number): atomic_task() for number in range(3)})
    Path("study.toml").write_text(
        SMALL.replace('mode = "step"', 'mode = "end-to-end"')
        .replace('{ agent = "gold" }', """{ harness = "sh -c 'sleep 8; echo 7'" }""")
        .replace("inst_acc", "ans_acc")
        .replace("budget.hours = 1", f"budget.hours = {60 / 3600}\nblock = 1\nassume.seconds = 27"),
        encoding="utf-8",
    )
    result = study("run")
    assert "does not suffice for the next block" in result.stderr
    runs = [Path("runs/ends/step/none") / agent for agent in ("gold", "silent")]
    first, second = (read_manifest(run).spec.tasks for run in runs)
    assert len(first) == 1 and first == second
    assert [read_scores(run).n_units for run in runs] == [1, 1]


def test_a_report_does_not_repeat_what_is_missing_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SERPER_API_KEY", raising=False)
    search = tool("GoogleSearch")
    task = atomic_task(tools=[search], dialogs=[atomic_task()["dialogs"][0]])
    write_atomic(tmp_path / "data", {"0": task}, {"GoogleSearch": search})
    ends = SMALL.replace('mode = "step"', 'mode = "end-to-end"').replace("inst_acc", "ans_acc")
    Path("study.toml").write_text(ends, encoding="utf-8")
    result = study("run")
    assert result.stderr.count("Not available here: GoogleSearch") == 1, result.output
    result = study("report")
    assert (result.exit_code, result.stderr) == (0, ""), result.output


def test_a_setting_in_which_runs_differ_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every run had a line, with all prompts; a tape that grew from run to run was a difference."""
    monkeypatch.chdir(tmp_path)
    calculator = tool("Calculator", parameter("expression"))
    dialogs = atomic_task()["dialogs"]
    dialogs[1:3] = call("Calculator", {"expression": "3 + 4"}), reply("Calculator", "7")
    task = atomic_task(tools=[calculator], dialogs=dialogs)
    write_atomic(tmp_path / "data", {"0": task, "1": task}, {"Calculator": calculator})
    # One silent agent runs before the call that changes the tape, the other one after it.
    agents = (
        'silent = { agent = "silent" }, gold = { agent = "gold", max-turns = 3 }, '
        'again = { agent = "silent", max-turns = 3 }'
    )
    file = SMALL
    for old, new in (
        ('"exact-or-half" }', '"exact-or-half", tape = "tape", tape-mode = "record" }'),
        ('mode = "step"', 'mode = "end-to-end"'),
        ("inst_acc", "ans_acc"),
        ('gold = { agent = "gold" }, silent = { agent = "silent" }', agents),
    ):
        assert old in file
        file = file.replace(old, new)
    Path("study.toml").write_text(file, encoding="utf-8")
    result = study("run")
    assert result.exit_code == 0, result.output
    one, gold, two = (f"runs/ends/step/none/{name}" for name in ("silent", "gold", "again"))
    assert len({str(read_manifest(Path(run)).spec.tape) for run in (one, gold, two)}) == 2
    assert report()["remarks"] == [f"{one} against {gold}, {two}: max_turns: 10 and 3"]


def test_an_interval_that_no_task_tells_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Systems that do the same in all tasks had a component of "0.0 to 0.0", two tasks "to inf"."""
    monkeypatch.chdir(tmp_path)
    write_atomic(tmp_path / "data", {str(number): atomic_task() for number in range(4)})
    Path("study.toml").write_text(SMALL, encoding="utf-8")
    assert study("run").exit_code == 0
    assert re.search(r"task x agent and run +0\.0 +0 % +unknown", study("report").stdout)


def test_what_is_not_finite_is_null_and_what_is_lacking_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomic(tmp_path / "data", {"0": atomic_task()})
    Path("study.toml").write_text(SMALL, encoding="utf-8")
    assert study("run").exit_code == 0
    found = report()
    assert found["answers"][0]["error"]["standard_error"] is None
    assert "by every system in every epoch (1 of 1 task)." in found["remarks"][0]


@pytest.mark.slow
def test_dollars_need_prices_and_without_them_the_cost_is_unknown(server: ChatServer) -> None:
    """A model without a price cost "$0.00", and a budget in dollars never ended its study."""
    text = Path("gta.toml").read_text(encoding="utf-8")
    head, _, large = text.partition("[models.large]")
    kept = "\n".join(line for line in large.splitlines() if "_price" not in line)
    Path("gta.toml").write_text(f"{head}[models.large]{kept}\n", encoding="utf-8")
    edit("hours = 2", "cost_usd = 500")
    assert "the price of openai-api/local/large is unknown" in refuse("run")
    assert server.asked == 0
    edit("cost_usd = 500", "calls = 500")
    assert study("run").exit_code == 0
    said = study("report").stdout
    assert re.search(r"Spent: [\d.]+ hours, more than \$[\d.]+, at a price that is not known", said)
    assert report()["spent"]["unpriced"] is True


@pytest.mark.slow
def test_a_study_is_run_answered_and_nothing_is_done_twice(server: ChatServer) -> None:
    result = study("run")
    assert result.exit_code == 0, result.output
    assert f"All {UNITS} units are done" in result.stderr
    digest = sha256(Path("study.toml").read_bytes()).hexdigest()
    for cell in CELLS:
        manifest = read_manifest(Path("runs/study") / cell)
        assert manifest.study == (digest,)
        assert (len(manifest.spec.tasks), len(manifest.growth)) == (TASKS, 1)
    asked = server.asked
    assert study("run").exit_code == 0
    assert server.asked == asked
    found = report()
    assert found["blocks"] == {"step": [2, 2]}
    assert found["outside"] == 0
    assert found["spent"]["calls"] == asked
    answers = {one["question"]: one for one in found["answers"]}
    assert answers["size"]["difference"]["estimate"] == pytest.approx(250 / 6)
    assert answers["pair"]["values"] == pytest.approx([500 / 6, 0])
    assert answers["size"]["p_value"] < 0.05 < answers["both"]["p_value"]
    for one in answers.values():
        assert (one["answer"] == "not decided") == (one["p_holm"] >= 0.05)
    assert answers["loop"]["difference"]["estimate"] == 0
    assert answers["size"]["error"] == {
        **{"tasks": 1, "runs": 0, "judge": 0},
        "standard_error": answers["size"]["error"]["standard_error"],
    }
    (inst, tool) = found["components"]
    parts = {one["source"]: one["variance"]["estimate"] for one in inst["parts"]}
    for source in ("run", "agent", "task x agent", "task x model x agent"):
        assert parts[source] == pytest.approx(0, abs=1e-9)
    assert parts["model"] > parts["task x model"] > 0
    assert (inst["n"], tool["n"]) == (TASKS, TASKS)
    assert all(one["n"] == one["n_units"] == 12 for one in found["systems"])
    # The runs are ordinary ones.
    compared = gta("compare", "runs/study/step/small/tools", "runs/study/step/large/tools")
    assert compared.exit_code == 0, compared.output
    page = study("report", "--markdown", "report.md")
    assert "large+tools" in page.stdout and "not decided" in page.stdout
    assert Path("report.md").read_text(encoding="utf-8").startswith("# model or loop\n")


@pytest.mark.slow
def test_an_interrupt_leaves_a_balanced_design_that_the_same_command_finishes(
    server: ChatServer,
) -> None:
    def interrupt(request: dict[str, Any]) -> str | dict[str, Any]:
        if server.asked == 50:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        return answer(request)

    server.reply = interrupt
    result = study("run")
    assert result.exit_code != 0
    stopped = report()
    assert stopped["blocks"] == {"step": [1, 2]}
    assert {one["n_units"] for one in stopped["systems"]} == {BLOCK * EPOCHS}
    assert max(count_scored().values()) - min(count_scored().values()) <= BLOCK * EPOCHS
    assert study("run").exit_code == 0
    assert set(count_scored().values()) == {TASKS * EPOCHS}
    # Only calls of units that the interrupt cut off are made again.
    assert server.asked <= 2 * UNITS + 4
    log = json.loads(Path("runs/study/study.json").read_bytes())
    assert len(log["sessions"]) == 2 and len(log["versions"]) == 1


@pytest.mark.slow
def test_a_killed_study_continues_and_its_time_is_not_lost(server: ChatServer) -> None:
    server.delay = 0.15
    command = [sys.executable, "-m", "gta_bench", "study", "run", "study.toml"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while server.asked < 45:
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    log = json.loads(Path("runs/study/study.json").read_bytes())
    (session,) = log["sessions"]
    assert session["until"] > session["began"]
    server.delay = 0.0
    assert study("run").exit_code == 0
    assert set(count_scored().values()) == {TASKS * EPOCHS}
    assert server.asked <= 2 * UNITS + 10
    assert report()["spent"]["hours"] > 0


@pytest.mark.slow
def test_a_budget_ends_at_a_block_and_a_larger_one_is_an_amendment(server: ChatServer) -> None:
    edit("hours = 2", "calls = 60")
    edit("calls = { small = 2, large = 4 }", "calls = 2")
    result = study("run")
    assert result.exit_code == 1
    assert "does not suffice for the next block; to continue, raise [budget]" in result.stderr
    assert f"24 of {UNITS} units remain" in result.stderr
    assert set(count_scored().values()) == {BLOCK * EPOCHS}
    edit("calls = 60", "calls = 600")
    edit("margin = 60", "margin = 50")
    for verb in ("run", "report"):
        line = refuse(verb)
        assert "has changed since the study in runs/study began" in line
        assert "(budget.calls (60, now 600), questions)" in line
        assert "--amend" in line and "runs/study/study.toml" in line
    assert study("run", "--amend").exit_code == 0
    found = report()
    assert [one["scored"] for one in found["versions"]] == [0, 24]
    assert found["versions"][1]["changed"] == ["budget.calls (60, now 600)", "questions"]
    said = study("report").stdout
    assert "when 24 units had a score: budget.calls (60, now 600), questions." in said
    assert len(read_manifest(Path("runs/study") / CELLS[0]).study) == 2


@pytest.mark.slow
def test_dollars_that_end_within_a_block_leave_it_out_of_the_answers(server: ChatServer) -> None:
    # Every call costs a dollar, every unit two.
    edit("hours = 2", "cost_usd = 50")
    result = study("run")
    assert result.exit_code == 1
    assert "to continue, raise [budget]" in result.stderr
    found = report()
    assert found["blocks"] == {"step": [1, 2]}
    assert found["outside"] > 0
    assert 50 <= found["spent"]["cost_usd"] <= 52


@pytest.mark.slow
def test_a_server_that_is_down_does_not_use_up_the_blocks(server: ChatServer) -> None:
    server.forever = "500"
    result = study("run")
    assert result.exit_code == 1
    assert "none of 6 units of step/small/react got a score" in result.stderr
    assert server.asked <= 2 * BLOCK * EPOCHS
    assert "no complete block yet" in refuse("report")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("epochs = 2", "epoch = 2", "unknown key `epoch`; did you mean 'epochs'?"),
        ("epochs = 2", "epochs = 0", "`epochs`: input should be greater than or equal to 1"),
        ("hours = 2", "minutes = 2", "unknown key `budget.minutes`"),
        ("[budget]\nhours = 2", "", "`budget` is missing"),
        ("hours = 2", "", "[budget] has no limit; add `hours`, `cost_usd` or `calls`"),
        ('run = "atomic"', "", '[datasets.step] needs `run = "atomic"`'),
        ('model = "small"', 'model = "nobody"', "nobody"),
        ('agent = "react"', 'agent = "reakt"', "Unknown agent 'reakt'"),
        ("temperature = 0.5", "temprature = 1", "[models.large]: `gta run atomic` has no option"),
        ("temperature = 0.5", "temperature = true", "[models.large]: `temperature` needs a value"),
        ("temperature = 0.5", "temperature = -1", "step/large/react, as options of `gta run"),
        ("temperature = 0.5", "epochs = 3", "leave `epochs` out; use `epochs` of the study"),
        ('"large+tools"', '"huge+tools"', "question 'pair': no system 'huge+tools'"),
        ('models = ["large", "small"]', 'models = ["large", "large"]', "both sides are the same"),
        ('models = ["large", "small"]', "", "a difference has exactly one of"),
        ('kind = "interaction"', 'kind = "mean"', "`questions.3.kind`: input should be"),
        ('name = "loop"', 'name = "size"', "two questions have the same name"),
        ('metric = "tool_acc"', 'metric = "ans_acc"', "Unknown metric 'ans_acc'"),
        ("small = 2", "tiny = 2", "[assume] `calls`: the study has no 'tiny'"),
        ("seed = 3", "seed = ", "is not valid TOML"),
        ("margin = 60", 'dataset = "x"', "no dataset 'x'; the study has: step"),
        ("margin = 60", "margin = 100", "loop: a `margin` of 100 is not below 100 points"),
        ("margin = 60", 'judge = "x"', "loop: leave `judge` out or correct it; step is scored by"),
        ("epochs = 2", "epochs = true", "`epochs`: input should be a valid integer, got True"),
        ("hours = 2", 'hours = "2"', "`budget.hours`: input should be a valid number"),
        ("[datasets.step]", '[datasets."study.json"]', "the name of a file of the study"),
    ],
)
def test_mistakes_in_the_file_are_one_line_before_anything_is_asked(
    server: ChatServer, before: str, after: str, said: str
) -> None:
    edit(before, after)
    assert said in refuse("plan")
    assert said in refuse("run")
    assert not server.asked and not Path("runs").exists()


@pytest.mark.slow
def test_a_pilot_replaces_what_the_file_does_not_assume(server: ChatServer) -> None:
    assert study("run").exit_code == 0
    runs = [f"runs/study/step/{name}/tools" for name in ("small", "large")]
    text = Path("study.toml").read_text(encoding="utf-8")
    start, end = text.index("[assume]"), text.index("[[questions]]")
    assume = f"[assume]\npilot = {json.dumps(runs)}\n"
    Path("study.toml").write_text(text[:start] + assume + text[end:], encoding="utf-8")
    found = json.loads(study("plan", "--json").stdout)
    assert {one["assumed"] for one in found["questions"]} == {"pilot of 2 runs"}
    assert found["cells"][0]["calls"] == 12 * 2
    assert found["cells"][0]["cost_usd"] == 12 * 2


def test_a_folder_with_another_run_is_not_touched(server: ChatServer) -> None:
    options = ("--mode", "step", "--data", "data", "--similarity", "exact-or-half")
    run = ("atomic", *options, "--model", "small", "--agent", "react", "--epochs", "2")
    out = Path("runs/study") / CELLS[0]
    assert gta("run", *run, "--limit", "1", "--out", out).exit_code == 0
    assert "has a run that is not of this study" in refuse("run")
    assert "has no study yet" in refuse("report")
    edit('out = "runs/study"', f'out = "{out}"')
    assert f"{out} has a run that is not of this study" in refuse("run")
