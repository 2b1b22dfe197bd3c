"""Bundles that somebody forged or broke, each refused; honest ones of every kind, each accepted.

The boards are as small here as the datasets: three tasks of GTA-Atomic, two of GTA-Workflow.
"""

import json
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model

import gta_bench
from gta_bench.cli.bundles import make_bundle
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import GtaError
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.records.attempts import AttemptLine
from gta_bench.records.leaderboard import BundleCheck, Mark
from gta_bench.records.run import Limits, System
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import AtomicUnit
from gta_bench.reports.leaderboard import submission
from gta_bench.reports.leaderboard.submission import Label
from gta_bench.reports.leaderboard.verification import Checked, check_bundle
from gta_bench.runs.attempts import append_attempts
from gta_bench.runs.directory import open_run, write_scores
from gta_bench.runs.imported import write_imported
from gta_bench.settings import Settings
from gta_bench.similarity.catalog import load_similarity
from gta_bench.similarity.scoring import scored
from tests.builders import atomic_task, workflow_task, write_atomic, write_workflow
from tests.reports.leaderboard.bundles import SIMILARITY, changed, manifest, rewrite, scripted_judge

NAME = "mockllm/model"
Change = Callable[[Path], None]


class Made(NamedTuple):
    """An honest run, its dataset and its bundle."""

    run: Path
    data: Path
    bundle: Path


def model(text: str) -> Model:
    def reply(*_: Any) -> ModelOutput:
        output = ModelOutput.from_content(NAME, text)
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    return get_model(NAME, custom_outputs=reply, memoize=False)


@pytest.fixture(scope="module", autouse=True)
def small_boards() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(submission, "SIZES", {"atomic": 3, "workflow": 2})
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forgeries")


@pytest.fixture(scope="module")
def data(folder: Path) -> Mapping[str, Path]:
    return {
        "atomic": write_atomic(folder / "atomic", {str(n): atomic_task() for n in range(3)}),
        "workflow": write_workflow(
            folder / "workflow", {str(n): workflow_task() for n in range(2)}
        ),
    }


@pytest.fixture(scope="module")
def made(folder: Path, data: Mapping[str, Path]) -> Mapping[str, Made]:
    """Two real runs of a scripted model and one whose results were brought from elsewhere."""
    atomic, workflow = folder / "run-atomic", folder / "run-workflow"
    settings = Settings.model_validate({"scoring": {"similarity": SIMILARITY}})
    gta_bench.run("atomic", atomic, model=model("7"), data=data["atomic"], settings=settings)
    judge = scripted_judge(lambda shown, leaf: 8)
    gta_bench.run("workflow", workflow, model=model("Done."), data=data["workflow"])
    gta_bench.judge(workflow, judge)
    gta_bench.score(workflow)
    runs = {"atomic": atomic, "workflow": workflow, "imported": imported(data, folder / "brought")}
    return {
        name: Made(run, data["workflow" if name == "workflow" else "atomic"], pack(run, folder))
        for name, run in runs.items()
    }


def imported(data: Mapping[str, Path], run: Path, tried: int = 0, **changes: Any) -> Path:
    """Results as `gta import` leaves them, or with other facts in manifest and logs."""
    dataset = load_atomic(data["atomic"])
    units = [
        AtomicUnit(
            task=task,
            trace=(AnswerStep(content="7"),),
            digests=task_digests(dataset, name),
            attempts=tried or None,
        )
        for name, task in dataset.tasks.items()
    ]
    stated = manifest(dataset, "atomic", "end-to-end", **changes)
    write_imported(run, open_run(run, stated), units)
    when = datetime.now(UTC)
    for unit in units if tried else ():
        for number in range(tried):
            begun = AttemptLine(task=unit.task.id, epoch=1, attempt=str(number), when=when)
            end = "finished" if number == tried - 1 else "failed"
            append_attempts(run, [begun, begun.model_copy(update={"end": end})])
    write_scores(run, scored(units, "end-to-end", load_similarity(SIMILARITY)))
    return run


def pack(run: Path, folder: Path, name: str | None = None) -> Path:
    out = folder / f"{name or run.name}.zip"
    make_bundle([run], out, folder / "key.pem", Label(), None, Settings())
    return out


def check(bundle: Path, data: Path, folder: Path) -> Checked:
    folder.mkdir()
    dataset = load_workflow(data) if (data / "end.json").exists() else load_atomic(data)
    return check_bundle(bundle, folder, load=lambda _: dataset, thresholds=Thresholds(7, 7))


def found(checked: Checked) -> set[str]:
    return {one.check for one in checked.findings}


# What a forger does to the folder of a run before submitting it anew.


def manifest_says(**changes: Any) -> Change:
    return lambda run: rewrite(run / "run.json", **changes)


def system_says(**changes: Any) -> Change:
    def change(run: Path) -> None:
        kept = json.loads((run / "run.json").read_text())
        rewrite(run / "run.json", system={**kept["system"], **changes})

    return change


RELABELLED: dict[str, tuple[str, Change]] = {
    "another model": ("atomic", system_says(model="openai/gpt-5")),
    "another agent": ("atomic", system_says(agent="react")),
    "an agent of one's own": ("atomic", system_says(agent="pkg.mod:mine")),
    "a harness": ("atomic", system_says(agent="harness", harness="My harness")),
    "a product": ("atomic", system_says(agent="product", harness="My product")),
    "gold": ("atomic", system_says(agent="gold")),
    "silent": ("workflow", system_says(agent="silent")),
    "another temperature": ("atomic", system_says(temperature=0.0)),
    "images attached": ("atomic", system_says(images="attached")),
    "more turns": ("atomic", manifest_says(max_turns=50)),
    "tools of a server": ("atomic", manifest_says(tools="http://127.0.0.1:1")),
    "the network": ("workflow", manifest_says(network="tools")),
    "limits": ("atomic", manifest_says(limits={"seconds": 1})),
    "a control": ("atomic", manifest_says(controls=["no-tools"])),
    "a control's seed": ("atomic", manifest_says(control_seed=7)),
    "a round of feedback": (
        "workflow",
        manifest_says(feedback={"round": 2, "level": "score", "judge": "j"}),
    ),
    "other words": ("atomic", manifest_says(wording="published")),
    "step mode": ("atomic", manifest_says(mode="step")),
    "an older release": ("atomic", manifest_says(created="2025-01-01T00:00:00Z")),
    "a later release": (
        "atomic",
        manifest_says(created=(datetime.now(UTC) + timedelta(days=40)).isoformat()),
    ),
    "imported": ("atomic", manifest_says(imported_from="elsewhere")),
    "run here": ("imported", manifest_says(imported_from=None)),
    "another dataset": ("atomic", manifest_says(dataset_digest="0" * 64)),
    "edited requirements": ("workflow", manifest_says(edited_from="0" * 64)),
    "no attempts": ("atomic", lambda run: (run / "attempts.jsonl").unlink()),
    "attempts of one task": (
        "atomic",
        lambda run: _keep_lines(run / "attempts.jsonl", '"task":"0"'),
    ),
    "better verdicts": (
        "workflow",
        lambda run: _replace(run / "verdicts.jsonl", '"value":8.0', '"value":9.5'),
    ),
}


@pytest.mark.parametrize("name", RELABELLED)
def test_a_relabelled_run_that_is_submitted_anew_is_refused(
    made: Mapping[str, Made], tmp_path: Path, name: str
) -> None:
    """`run.json` was believed: any run could be listed as one of any model and agent."""
    base, change = RELABELLED[name]
    run = shutil.copytree(made[base].run, tmp_path / "run")
    change(run)
    try:
        bundle = pack(run, tmp_path)
    except GtaError:
        return
    checked = check(bundle, made[base].data, tmp_path / "open")
    assert found(checked) & {*get_args(BundleCheck)} - {"signature", "digest"}


# What a forger does to the files of a bundle before signing it.


def entry_says(**changes: Any) -> Change:
    return lambda root: rewrite(root / "entry.json", **changes)


def logs_say(change: Callable[[dict[str, Any]], object]) -> Change:
    def edit(root: Path) -> None:
        for file in sorted(root.glob("runs/*/logs/*.json")):
            log = json.loads(file.read_text(encoding="utf-8"))
            change(log)
            file.write_text(json.dumps(log), encoding="utf-8")

    return edit


def stated(log: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = log["eval"]["metadata"]["gta_run"]
    return said


def store(log: dict[str, Any], name: str, value: Any) -> None:
    log["samples"][0]["store"][f"UnitStore:{name}"] = value


def digests(log: dict[str, Any]) -> dict[str, str]:
    kept: dict[str, str] = log["samples"][0]["store"]["UnitStore:digests"]
    return kept


def events(log: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in log["samples"][0]["events"] if one["event"] == "model"]


CALL = {"tool": "OCR", "status": "done", "seconds": 1.0}
FORGED: dict[str, tuple[str, Change, set[str]]] = {
    "id": ("atomic", entry_says(id="2026-11/atomic/best"), {"entry"}),
    "release": ("atomic", entry_says(release="2024-01"), {"entry"}),
    "notes": ("atomic", entry_says(notes=["The best of all"]), {"entry"}),
    "no marks": ("atomic", entry_says(marks=[]), {"entry"}),
    "tier": ("atomic", entry_says(status="reproduced"), {"entry"}),
    "attempts": ("atomic", entry_says(attempts=1), {"entry"}),
    "model": ("atomic", entry_says(model="openai/gpt-5"), {"entry"}),
    "harness": ("atomic", entry_says(harness="mine"), {"entry"}),
    "judge": ("workflow", entry_says(judge="openai/gpt-5"), {"entry"}),
    "costs": ("atomic", entry_says(costs={"usd": 0.01}), {"entry"}),
    "source": ("atomic", entry_says(source="the authors"), {"entry"}),
    "board": ("atomic", entry_says(board="workflow"), {"entry"}),
    "dataset digest": ("atomic", entry_says(dataset_digest="0" * 64), {"dataset"}),
    "scores": ("atomic", entry_says(scores={"ans_acc": {"value": 99.5}}), {"scores"}),
    "log: model": (
        "atomic",
        logs_say(lambda log: log["eval"].update(model="openai/gpt-5")),
        {"logs"},
    ),
    "log: task": (
        "atomic",
        logs_say(lambda log: log["eval"].update(task="gta_bench/atomic_harness")),
        {"logs"},
    ),
    "log: agent": (
        "atomic",
        logs_say(lambda log: log["eval"]["task_args"].update(agent="react")),
        {"logs"},
    ),
    "log: another system": (
        "atomic",
        logs_say(lambda log: stated(log)["system"].update(model="openai/gpt-5")),
        {"logs"},
    ),
    "log: another network": (
        "workflow",
        logs_say(lambda log: stated(log).update(network="open")),
        {"logs"},
    ),
    "log: nothing stated": (
        "atomic",
        logs_say(lambda log: log["eval"].update(metadata=None)),
        {"logs"},
    ),
    "log: the model that was asked": (
        "atomic",
        logs_say(lambda log: events(log)[0].update(model="openai/gpt-5")),
        {"logs"},
    ),
    "log: a disturbed reply": (
        "atomic",
        logs_say(lambda log: store(log, "calls", [{**CALL, "control": "fault"}])),
        {"logs"},
    ),
    "log: a reply from a tape": (
        "atomic",
        logs_say(lambda log: store(log, "calls", [{**CALL, "taped": "replayed"}])),
        {"logs"},
    ),
    "log: a task less": ("atomic", logs_say(lambda log: log["samples"].pop()), {"entry"}),
    "log: a task more": (
        "atomic",
        logs_say(lambda log: log["samples"].append({**log["samples"][0], "id": "99"})),
        {"logs"},
    ),
    "log: another question": (
        "atomic",
        logs_say(
            lambda log: log["samples"][0]["metadata"]["gta_task"]["dialogue"][0].update(
                content="What is 1 + 1?"
            )
        ),
        {"tasks"},
    ),
    "log: another request": (
        "atomic",
        logs_say(lambda log: digests(log).update(request=digests(log)["request"][::-1])),
        {"tasks"},
    ),
    "log: another answer": (
        "atomic",
        logs_say(lambda log: store(log, "steps", [{"step": "answer", "content": "It is free"}])),
        {"scores", "logs"},
    ),
    "log: no JSON": (
        "atomic",
        lambda root: _write(next(root.glob("runs/1/logs/*.json")), "{"),
        {"archive", "entry"},
    ),
    "attempts: one never finished": (
        "atomic",
        lambda root: _replace(root / "runs/1/attempts.jsonl", '"end":"finished"', '"end":"ours"'),
        {"attempts"},
    ),
    "attempts: of a task that is not there": (
        "atomic",
        lambda root: _replace(root / "runs/1/attempts.jsonl", '"task":"0"', '"task":"7"'),
        {"attempts"},
    ),
    "attempts: no lines of them": (
        "atomic",
        lambda root: _write(root / "runs/1/attempts.jsonl", '{"a": 1}\n'),
        {"entry"},
    ),
    "attempts: of another run": (
        "imported",
        lambda root: _write(root / "runs/1/attempts.jsonl", ""),
        {"attempts"},
    ),
    "verdicts": (
        "workflow",
        lambda root: _replace(root / "runs/1/verdicts.jsonl", '"value":8.0', '"value":10.0'),
        {"scores"},
    ),
    "verdicts: fewer": (
        "workflow",
        lambda root: _keep_lines(root / "runs/1/verdicts.jsonl", '"task":"0"'),
        {"entry", "scores"},
    ),
    "thresholds": (
        "workflow",
        lambda root: _replace(root / "runs/1/scores.json", '"leaf_sr": 100.0', '"leaf_sr": 50.0'),
        {"scores"},
    ),
    "no run": ("atomic", lambda root: shutil.rmtree(root / "runs"), {"entry"}),
    "no manifest": ("atomic", lambda root: (root / "runs/1/run.json").unlink(), {"entry"}),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_bundle_is_refused_whoever_signed_it(
    made: Mapping[str, Made], tmp_path: Path, name: str
) -> None:
    base, change, wanted = FORGED[name]
    forged = changed(made[base].bundle, tmp_path / "x.zip", change, signed=True)
    checked = check(forged, made[base].data, tmp_path / "open")
    assert found(checked) & wanted, checked.findings


# What is done to the bytes of a bundle.


def located(bundle: Path) -> bytes:
    """A pointer at another list of files, which some readers follow, in a member's comment."""
    data = bundle.read_bytes()
    entry, end = data.rindex(b"PK\x01\x02"), data.rindex(b"PK\x05\x06")
    pointer = b"PK\x06\x07" + bytes(16)
    last = data[entry : entry + 32] + len(pointer).to_bytes(2, "little") + data[entry + 34 : end]
    size = int.from_bytes(data[end + 12 : end + 16], "little") + len(pointer)
    ending = data[end : end + 12] + size.to_bytes(4, "little") + data[end + 16 :]
    return data[:entry] + last + pointer + ending


def commented(bundle: Path) -> bytes:
    """A second archive, whole with its end record, in the comment of the first."""
    data = bundle.read_bytes()
    return data[:-2] + struct.pack("<H", len(data)) + data


def small_order(key: str) -> Callable[[Path], bytes]:
    def made(bundle: Path) -> bytes:
        def sign(root: Path) -> None:
            anything = "01" + "00" * 63  # the identity, and 0: holds for every message
            rewrite(root / "signature.json", public_key=key, signature=anything)

        return changed(bundle, bundle.parent / f"{key[:8]}{key[-2:]}.zip", sign).read_bytes()

    return made


BROKEN: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "an archive in the comment": (commented, "archive"),
    "a pointer at another list": (located, "archive"),
    "a comment": (lambda file: file.read_bytes()[:-2] + b"\x02\x00hi", "archive"),
    "something before it": (lambda file: b"#!/bin/sh\n" + file.read_bytes(), "archive"),
    "something after it": (lambda file: file.read_bytes() + b"more", "archive"),
    "half of it": (lambda file: file.read_bytes()[: file.stat().st_size // 2], "archive"),
    "nothing": (lambda file: b"", "archive"),
    "no archive": (lambda file: b"%PDF-1.7\n" * 9, "archive"),
    "the key 1": (small_order("01" + "00" * 31), "signature"),
    "the key 1, negative": (small_order("01" + "00" * 30 + "80"), "signature"),
    "the key 0": (small_order("00" * 32), "signature"),
    "the key -1": (small_order("ec" + "ff" * 30 + "7f"), "signature"),
    "a key of order 8": (
        small_order("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
        "signature",
    ),
    "the key p + 1": (small_order("ee" + "ff" * 30 + "ff"), "signature"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_archive_and_a_key_of_anybody_are_refused(
    made: Mapping[str, Made], tmp_path: Path, name: str
) -> None:
    change, wanted = BROKEN[name]
    shutil.copy(made["atomic"].bundle, tmp_path / "base.zip")
    (tmp_path / "x.zip").write_bytes(change(tmp_path / "base.zip"))
    checked = check(tmp_path / "x.zip", made["atomic"].data, tmp_path / "open")
    assert (checked.entry, found(checked)) == (None, {wanted})


def test_a_link_and_a_file_outside_are_refused(made: Mapping[str, Made], tmp_path: Path) -> None:
    for number, name in enumerate(("../outside.json", "runs/1/logs/../../../x.json", "/x.json")):
        out = tmp_path / f"{number}.zip"
        shutil.copy(made["atomic"].bundle, out)
        with zipfile.ZipFile(out, "a") as archive:
            archive.writestr(name, "{}")
        assert found(check(out, made["atomic"].data, tmp_path / str(number))) == {"archive"}


# What honest systems submit.

HARNESS = System(model="openai/m", agent="harness", harness="my-harness")
CELL = Limits(seconds=60, memory_bytes=1 << 30, processes=9)
HONEST: dict[str, tuple[dict[str, Any], int, tuple[Mark, ...]]] = {
    "results of a folder": ({}, 0, ("imported",)),
    "a scripted model": (
        {"system": System(model=NAME, agent="react")},
        0,
        ("imported", "scripted model"),
    ),
    "a harness in a cell": (
        {"system": HARNESS, "network": "tools", "limits": CELL},
        1,
        ("imported",),
    ),
    "a harness on the open network": (
        {"system": HARNESS, "network": "open", "limits": CELL},
        1,
        ("imported", "open network"),
    ),
    "a harness that was tried twice": (
        {"system": HARNESS, "network": "tools", "limits": CELL},
        2,
        ("imported", "retried"),
    ),
    "tools of its own": ({"tools": "own"}, 0, ("imported", "own tools")),
    "a tape": (
        {"tape": {"mode": "replay", "origin": "live", "digest": "d" * 64}},
        0,
        ("imported", "taped"),
    ),
    "a tape that is recorded": (
        {"tape": {"mode": "record", "origin": "live", "digest": "d" * 64}},
        0,
        ("imported", "taped"),
    ),
    "published words": (
        {"system": System(model="openai/m", agent="react-upstream"), "wording": "published"},
        0,
        ("imported",),
    ),
    "notes of its own": ({"notes": ("anything",)}, 0, ("imported",)),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_bundle_is_accepted_with_its_marks(
    data: Mapping[str, Path], tmp_path: Path, name: str
) -> None:
    changes, tried, marks = HONEST[name]
    run = imported(data, tmp_path / "run", tried, **changes)
    checked = check(pack(run, tmp_path), data["atomic"], tmp_path / "open")
    assert checked.findings == ()
    assert checked.entry is not None
    assert (checked.entry.status, checked.entry.marks) == ("self-reported", marks)
    assert checked.entry.attempts == (3 * tried or None)
    assert not any("anything" in note for note in checked.entry.notes)


@pytest.mark.parametrize("name", ["atomic", "workflow", "imported"])
def test_an_honest_run_is_accepted(made: Mapping[str, Made], tmp_path: Path, name: str) -> None:
    checked = check(made[name].bundle, made[name].data, tmp_path / "open")
    assert checked.findings == ()
    assert checked.entry is not None
    known = {
        "atomic": (("scripted model",), 3),
        "workflow": (("scripted model", "scripted judge"), 2),
        "imported": (("imported",), None),
    }
    assert (checked.entry.marks, checked.entry.attempts) == known[name]
    assert checked.entry.status == "self-reported"


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text, text[:500]
    file.write_text(text.replace(old, new), encoding="utf-8")


def _keep_lines(file: Path, part: str) -> None:
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if part in line]
    assert 0 < len(kept) < len(lines)
    file.write_text("".join(kept), encoding="utf-8")
