"""Tasks as Harbor's folders: read back, and scored by their own verifier."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import RunError
from gta_bench.exports.harbor import export_harbor
from gta_bench.exports.wheels import find_origin, write_wheel
from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.writing import Order, forge_tasks
from gta_bench.tools.catalog import load_tool, tool_names
from tests.authored import HEAD, write_task
from tests.authoring.folders import write_authored
from tests.builders import JPEG, atomic_task, tool, write_atomic
from tests.chat_server import chat_server
from tests.conftest import REPOSITORY
from tests.judging.builders import names, verdict
from tests.tasks.workflow_runs import WORDS, write_dataset

COUNT = 20


def first(dataset: Dataset) -> list[str]:
    """The first tasks that can be exported."""
    tasks = dataset.tasks.items()
    able = (name for name, task in tasks if getattr(task, "answer", "judged") is not None)
    return list(islice(able, COUNT))


@pytest.mark.parametrize("name", ["atomic", "workflow"])
def test_twenty_tasks_are_read_back_as_they_were(name: str, data_dir: Path, tmp_path: Path) -> None:
    root = data_dir / f"gta_{name}"
    dataset: Dataset = load_atomic(root) if name == "atomic" else load_workflow(root)
    chosen = first(dataset)
    made = export_harbor(dataset, chosen, tmp_path / "out")
    assert (len(made.folders), made.left_out) == (COUNT, ())
    assert len(made.missing) == {"atomic": 0, "workflow": 2}[name]
    for task, folder in zip(chosen, made.folders, strict=True):
        data = folder / "tests" / "data"
        again: Dataset = load_atomic(data) if name == "atomic" else load_workflow(data)
        assert dict(again.tasks) == {task: dataset.tasks[task]}
        assert again.tools == dataset.tools
        for item in dataset.tasks[task].attachments:
            if item.source in made.missing:
                continue
            content = (dataset.root / item.source).read_bytes()
            assert (folder / "environment" / item.path).read_bytes() == content
            assert f"/workspace/{item.path}" in (folder / "instruction.md").read_text("utf-8")
        config = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
        assert config["task"]["name"] == f"gta-bench/{name}-{task}"
        (server,) = config["environment"]["mcp_servers"]
        assert (server["command"], server["args"][:3]) == ("gta", ["tools", "serve", "--stdio"])
        assert ("env" in config["verifier"]) == (name == "workflow")
        assert config["verifier"]["environment_mode"] == "separate"
        assert config["artifacts"] == ["/workspace/outputs", "/workspace/final.txt"]


def test_nothing_that_gives_the_answer_away_is_shown_to_the_agent(tmp_path: Path) -> None:
    dataset = load_atomic(write_atomic(tmp_path / "data"))
    (folder,) = export_harbor(dataset, ["0"], tmp_path / "out").folders
    shown = [folder / "instruction.md", *(folder / "environment").rglob("*")]
    texts = [file.read_bytes() for file in shown if file.is_file()]
    assert JPEG in texts
    assert not any(b"It costs 7" in text or b"seven" in text for text in texts)


def test_image_tasks_are_left_out_and_folders_are_not_overwritten(tmp_path: Path) -> None:
    tasks = {"0": atomic_task(), "1": atomic_task(gt_answer=None)}
    data = write_atomic(tmp_path / "data", tasks)
    out = tmp_path / "out"
    command = ["export", "harbor", "--dataset", "atomic", "--data", str(data), "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "Exported 1 task to" in result.output and "are scored by their calls: 1" in result.output
    assert sorted(folder.name for folder in out.iterdir()) == ["atomic-0"]
    with pytest.raises(RunError, match="another --out"):
        export_harbor(load_atomic(data), ["0"], out)


def test_without_toolmeta_nothing_is_written_and_the_command_that_makes_it_is_named(
    tmp_path: Path,
) -> None:
    """The export stopped in the middle of its first task and left half a folder."""
    data, out = write_atomic(tmp_path / "data"), tmp_path / "out"
    (data / "toolmeta.json").unlink()
    with pytest.raises(RunError, match="gta tools list --toolmeta > ") as refused:
        export_harbor(load_atomic(data), ["0"], out)
    assert not out.exists()
    result = CliRunner().invoke(app, ["tools", "list", "--toolmeta"])
    (data / "toolmeta.json").write_text(result.stdout, encoding="utf-8")
    assert f"{data}/toolmeta.json" in str(refused.value)
    dataset = load_atomic(data)
    assert not dataset.findings and set(dataset.tools) == set(tool_names())
    assert dataset.tools["OCR"] == load_tool("OCR").spec()
    assert export_harbor(dataset, ["0"], out).folders


def test_what_cannot_be_exported_is_refused_before_the_first_folder(tmp_path: Path) -> None:
    odd = atomic_task(tools=[tool("OCR"), tool("Teleport")])
    dataset = load_atomic(write_atomic(tmp_path / "data", {"0": atomic_task(), "1": odd}))
    with pytest.raises(RunError, match="Task 1 offers 'Teleport', which is not installed"):
        export_harbor(dataset, ["0", "1"], tmp_path / "out")
    (tmp_path / "out" / "atomic-1").mkdir(parents=True)
    again = load_atomic(write_atomic(tmp_path / "more", {"0": atomic_task(), "1": atomic_task()}))
    with pytest.raises(RunError, match="atomic-1 already exists"):
        export_harbor(again, ["0", "1"], tmp_path / "out")
    assert [folder.name for folder in (tmp_path / "out").iterdir()] == ["atomic-1"]


def test_the_image_has_the_packages_of_own_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container without them served no such tool."""
    package = tmp_path / "packages" / "acme_tools-1.2.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.2\n")
    (package / "entry_points.txt").write_text("[gta_bench.tools]\nTeleport = acme:Teleport\n")
    monkeypatch.syspath_prepend(str(package.parent))
    own = atomic_task(tools=[tool("OCR"), tool("Teleport")])
    dataset = load_atomic(write_atomic(tmp_path / "data", {"0": atomic_task(), "1": own}))
    plain, image = (
        (folder / "environment" / "Dockerfile").read_text(encoding="utf-8")
        for folder in export_harbor(dataset, ["0", "1"], tmp_path / "out").folders
    )
    assert "acme" not in plain
    assert ' "acme-tools==1.2"\n' in image
    assert image.index("gta-bench[") < image.index("acme-tools") < image.index("COPY inputs")


TOOL = """\
from gta_bench.tools.contract import Tool

class Teleport(Tool): ...
"""


def install_acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, editable: bool) -> None:
    """A package with a tool, as pip leaves it: from a folder, or as a link to one."""
    place = tmp_path / "site"
    about = "Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.2\n"
    files = {
        "acme_tools-1.2.dist-info/METADATA": about,
        "acme_tools-1.2.dist-info/WHEEL": "Tag: py2-none-any\nTag: py3-none-any\n",
        "acme_tools-1.2.dist-info/entry_points.txt": "[gta_bench.tools]\nTeleport = acme:Teleport",
        "acme_tools-1.2.dist-info/direct_url.json": json.dumps(
            {"url": "file:///acme", "dir_info": {"editable": editable}}
        ),
        "acme_tools-1.2.dist-info/INSTALLER": "pip",
        "acme.py": TOOL,
    }
    listed = "".join(f"{name},,\n" for name in (*files, "../../bin/acme"))
    for name, text in {**files, "acme_tools-1.2.dist-info/RECORD": listed}.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))


def test_code_of_own_tools_that_no_index_has_is_in_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image named the package, and nobody could build it without its wheel."""
    install_acme(tmp_path, monkeypatch, editable=False)
    task = atomic_task(tools=[tool("Teleport")])
    dataset = load_atomic(write_atomic(tmp_path / "data", {"0": task}))
    made = export_harbor(dataset, ["0"], tmp_path / "out")
    assert "acme-tools" not in made.unbundled
    (wheel,) = (made.folders[0] / "environment" / "wheels").glob("*.whl")
    assert wheel.name == "acme_tools-1.2-py2.py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("acme.py").decode() == TOOL
        assert not any("direct_url" in name or "bin/" in name for name in archive.namelist())
    assert wheel.read_bytes() == write_wheel("acme-tools", tmp_path / "again").read_bytes()


def test_a_package_of_a_checkout_needs_its_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_acme(tmp_path, monkeypatch, editable=True)
    assert find_origin("acme-tools") == "editable"
    task = atomic_task(tools=[tool("Teleport")])
    dataset = load_atomic(write_atomic(tmp_path / "data", {"0": task}))
    assert "acme-tools" in export_harbor(dataset, ["0"], tmp_path / "without").unbundled
    wheel = tmp_path / "Acme.Tools-1.2-py3-none-any.whl"
    wheel.write_bytes(b"built")
    made = export_harbor(dataset, ["0"], tmp_path / "with", [wheel])
    assert "acme-tools" not in made.unbundled
    copied = made.folders[0] / "environment" / "wheels" / wheel.name
    assert copied.read_bytes() == b"built"


def test_an_own_task_is_exported_with_its_checks_for_the_verifier_alone(tmp_path: Path) -> None:
    folder = write_authored(tmp_path / "tasks")
    dataset = load_workflow(folder.parent)
    made = export_harbor(dataset, [folder.name], tmp_path / "out")
    (out,) = made.folders
    again = load_workflow(out / "tests" / "data")
    assert dict(again.tasks) == dict(dataset.tasks)
    config = tomllib.loads((out / "task.toml").read_text(encoding="utf-8"))
    assert "env" not in config["verifier"] and not made.judged, "no leaf needs a judge"
    assert "--judge" not in (out / "tests" / "test.sh").read_text(encoding="utf-8")
    # The agent gets the instruction and the image.
    shown = [out / "instruction.md", *(out / "environment").rglob("*")]
    texts = b"".join(file.read_bytes() for file in shown if file.is_file())
    assert b"South,31877.20" in texts, "the input"
    assert b"weakest" not in texts.replace((folder / "request.md").read_bytes().strip(), b"")
    assert {file.name for file in (out / "tests" / "data").rglob("*.*")} == {
        "task.toml",
        "request.md",
        "sales.csv",
    }, "neither golds nor wrong works"
    assert (out / "solution" / "outputs" / "summary.csv").is_file()


def test_forged_tasks_bring_the_code_and_tables_that_their_checks_name(tmp_path: Path) -> None:
    families = [FAMILIES["clean"], FAMILIES["schedule"]]
    forge_tasks(families, Order("public", "harbor", 1), 2, tmp_path / "tasks")
    dataset = load_workflow(tmp_path / "tasks")
    made = export_harbor(dataset, list(dataset.tasks), tmp_path / "out")
    for name, folder in zip(dataset.tasks, made.folders, strict=True):
        again = load_workflow(folder / "tests" / "data")
        assert dict(again.tasks) == {name: dataset.tasks[name]}
        assert (folder / "solution" / "solve.sh").is_file()
        assert not [*(folder / "environment").rglob("*.py")]
    command = ["export", "harbor", "--dataset", "workflow", "--data", str(tmp_path / "tasks")]
    said = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "more")])
    assert said.exit_code == 0, said.output
    assert "Anyone can forge the tasks of the namespace public again" in said.output


STATEFUL = """\
[[leaf]]
id = "stored"
says = "The ticket is stored."
checks = [{ is = "state.file", server = "tickets", path = "db.json" }]
"""
JUDGED = """\
[[leaf]]
id = "polite"
says = "The answer is polite."
"""


def test_what_a_verifier_cannot_decide_alone_is_named(tmp_path: Path) -> None:
    head = 'format = 1\nid = "{}"\n'
    write_task(tmp_path / "tasks", head.format("state") + STATEFUL, name="state")
    write_task(tmp_path / "tasks", head.format("judged") + JUDGED, name="judged")
    command = ["export", "harbor", "--dataset", "workflow", "--data", str(tmp_path / "tasks")]
    said = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert said.exit_code == 0, said.output
    assert "Left out, because checks look at the state of a tool server: state\n" in said.output
    assert "leaves that need a judge, so set GTA_JUDGE for `harbor run`: judged\n" in said.output
    (folder,) = (tmp_path / "out").iterdir()
    config = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
    assert config["verifier"]["env"]["GTA_JUDGE"] == "${GTA_JUDGE}", "Harbor refuses to start"
    assert not (folder / "solution").exists()


def verified(folder: Path, workspace: Path, **environment: str) -> dict[str, Any] | str:
    """What the task's own verifier says of a workspace: the reward, or why there is none."""
    programs = workspace.parent / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "gta").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gta_bench.cli "$@"\n')
    (programs / "gta").chmod(0o755)
    logs = workspace.parent / f"{workspace.name}-logs"
    result = subprocess.run(
        ["sh", str(folder / "tests" / "test.sh")],
        env={
            **os.environ,
            **environment,
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            # The verifier changes its folder.
            "PYTHONPATH": str(REPOSITORY / "src"),
            "GTA_WORKSPACE": str(workspace),
            "GTA_LOGS": str(logs),
        },
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    reward = logs / "reward.json"
    if not reward.exists():
        return result.stderr
    found: dict[str, Any] = json.loads(reward.read_text(encoding="utf-8"))
    return found


def workspace(folder: Path, final: str | None, files: Mapping[str, str] | None = None) -> Path:
    (folder / "outputs").mkdir(parents=True)
    if final is not None:
        (folder / "final.txt").write_text(final, encoding="utf-8")
    for name, text in (files or {}).items():
        (folder / "outputs" / name).write_text(text, encoding="utf-8")
    return folder


def scored(*command: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["score", *command, "--json"], catch_exceptions=False)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.slow
def test_the_verifier_gives_an_answer_what_gta_score_gives(tmp_path: Path) -> None:
    data = write_atomic(tmp_path / "data")
    (folder,) = export_harbor(load_atomic(data), ["0"], tmp_path / "out").folders
    solved = workspace(tmp_path / "solved", None)
    solve = ["sh", str(folder / "solution" / "solve.sh")]
    subprocess.run(solve, env={**os.environ, "GTA_WORKSPACE": str(solved)}, check=True)
    wrong = workspace(tmp_path / "wrong", "It costs 8.")
    cheat = workspace(tmp_path / "cheat", None)
    (cheat / "final.txt").symlink_to(folder / "tests" / "data" / "dataset.json")
    rewards = [verified(folder, place) for place in (solved, wrong, cheat)]
    assert rewards == [{"reward": 1.0}, {"reward": 0.0}, {"reward": 0.0}]
    delivered = tmp_path / "delivered" / "0"
    delivered.mkdir(parents=True)
    (delivered / "final.txt").write_bytes((solved / "final.txt").read_bytes())
    options = ["--dataset", "atomic", "--data", str(data), "--out", str(tmp_path / "run")]
    CliRunner().invoke(app, ["import", "folder", str(delivered.parent), *options])
    assert scored(str(tmp_path / "run"))["metrics"]["ans_acc"] == 100.0


@pytest.mark.measure
def test_the_verifier_gives_a_delivery_the_judges_root(loopback: None, tmp_path: Path) -> None:
    def judge(request: dict[str, Any]) -> str:
        """Gives 8 to a leaf whose animal stands in the evidence, else 1."""
        (leaf,) = names(request)
        found = WORDS[leaf.partition("~")[0]] in json.dumps(request["messages"])
        return json.dumps(verdict(leaf, 8 if found else 1))

    dataset = load_workflow(write_dataset(tmp_path / "data"))
    (folder,) = export_harbor(dataset, ["1"], tmp_path / "out").folders
    note = {"note.txt": "quokka wombat numbat"}
    solved = workspace(tmp_path / "solved", "Here it is.", note)
    empty = workspace(tmp_path / "empty", None)
    with chat_server(judge) as server:
        given = {
            "GTA_JUDGE": "openai-api/judge/m",
            "JUDGE_API_KEY": "none",
            "JUDGE_BASE_URL": server.url,
        }
        rewards = [verified(folder, place, **given) for place in (solved, empty)]
    leaves = {leaf.id for leaf in dataset.tasks["1"].leaves()}
    for given_, wanted in zip(rewards, (0.8, 0.0), strict=True):
        assert isinstance(given_, dict)
        assert given_ == {
            "reward": pytest.approx(wanted),
            **{f"leaf/{name}": pytest.approx(wanted) for name in leaves},
        }
    with chat_server(lambda request: "nine") as server:
        given["JUDGE_BASE_URL"] = server.url
        unscored = verified(folder, workspace(tmp_path / "again", "Here."), **given)
    assert isinstance(unscored, str) and "no score" in unscored, "unscored is not zero"


@pytest.mark.slow
def test_the_verifier_of_an_own_task_gives_every_leaf_by_its_checks(tmp_path: Path) -> None:
    task = write_authored(tmp_path / "tasks")
    dataset = load_workflow(task.parent)
    (folder,) = export_harbor(dataset, [task.name], tmp_path / "out").folders
    rewards = {}
    for name in ("gold/wide", "wrong/swapped"):
        place = workspace(tmp_path / name.replace("/", "-"), None)
        shutil.copytree(task / name, place / "outputs", dirs_exist_ok=True)
        (place / "outputs" / "final.txt").rename(place / "final.txt")
        # What the verifier must not take for its own.
        (place / "gta.toml").write_text("nonsense", encoding="utf-8")
        (place / "json.py").write_text("raise SystemExit('hijacked')", encoding="utf-8")
        (place / "outputs" / "table.csv").symlink_to(task / "gold" / "plain" / "summary.csv")
        rewards[name] = verified(folder, place)
    rewards["empty"] = verified(folder, workspace(tmp_path / "empty", None))
    leaves = {leaf.id for leaf in dataset.tasks[task.name].leaves()}
    full = {"reward": 1.0, **{f"leaf/{name}": 1.0 for name in leaves}}
    assert rewards["gold/wide"] == full
    assert rewards["empty"] == dict.fromkeys(full, 0.0)
    found = rewards["wrong/swapped"]
    assert isinstance(found, dict), found
    assert {leaf for leaf in leaves if found[f"leaf/{leaf}"] == 0} == {"order", "advice"}
    details = (tmp_path / "wrong-swapped-logs" / "reward-details.json").read_text("utf-8")
    about = json.loads(details)["reward"]
    mean = sum(one["weight"] * one["value"] for one in about["criteria"])
    assert found["reward"] == pytest.approx(mean) and 0 < mean < 1
    assert all(one["reasoning"] for one in about["criteria"])


@pytest.mark.slow
def test_a_check_that_cannot_be_decided_gives_no_reward(tmp_path: Path) -> None:
    """A 0 would be the agent's."""
    toml = HEAD.partition("[[group]]")[0] + (
        '[[leaf]]\nid = "own"\nsays = "It is."\n'
        'checks = [{ is = "python", run = "checks/own.py:decide" }]\n'
    )
    code = b"def decide(work):\n    raise RuntimeError('broken')\n"
    task = write_task(tmp_path / "tasks", toml, files={"checks/own.py": code})
    (folder,) = export_harbor(load_workflow(task.parent), [task.name], tmp_path / "out").folders
    said = verified(folder, workspace(tmp_path / "work", "Done."))
    assert isinstance(said, str) and "No reward: " in said and "check_failed" in said
