"""Bundles that somebody forged or broke, each refused.

The boards are as small here as the datasets: three tasks of GTA-Atomic, two of GTA-Workflow.
"""

import json
import shutil
import struct
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from inspect_ai.model import ModelOutput

from gta_bench.cli import bundles
from gta_bench.errors import GtaError
from gta_bench.judging import prompts
from gta_bench.records.judges import JudgeRegistry
from gta_bench.records.leaderboard import BundleCheck
from gta_bench.runs.verdicts import read_judges
from tests.leaderboard.bundles import (
    JUDGE,
    changed,
    rewrite,
)
from tests.leaderboard.submitting import NAME, Made, check, found, pack

pytestmark = pytest.mark.usefixtures("small_boards")
Change = Callable[[Path], None]


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
    made: Mapping[str, Made], tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run.json` was believed: any run could be listed as one of any model and agent."""
    base, change = RELABELLED[name]
    run = shutil.copytree(made[base].run, tmp_path / "run")
    change(run)
    with pytest.raises(GtaError):
        pack(run, made[base].data, tmp_path)
    assert not list(tmp_path.glob("*.zip"))
    # Whoever forges does not look first.
    monkeypatch.setattr(bundles, "check_contents", lambda *_, **__: ())
    try:
        bundle = pack(run, made[base].data, tmp_path)
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


def used(log: dict[str, Any]) -> dict[str, Any]:
    usage: dict[str, Any] = log["samples"][0]["model_usage"]
    return usage


def said_elsewhere(log: dict[str, Any], text: str) -> None:
    """An answer that stands in the sample's output and before its first call."""
    sample = log["samples"][0]
    store(log, "steps", [{"step": "answer", "content": text}])
    sample["output"] = ModelOutput.from_content(NAME, text).model_dump(mode="json")
    events(log)[0]["input"].append({"role": "assistant", "content": text})


def second_draw(root: Path, error: str | None = None) -> None:
    """The log once more, as if its units had been run again."""
    (file,) = root.glob("runs/1/logs/*.json")
    log = json.loads(file.read_text(encoding="utf-8"))
    for sample in log["samples"]:
        sample["uuid"] = f"{sample['uuid']}-again"
        if error is not None:
            sample["error"] = {"message": error, "traceback": "", "traceback_ansi": ""}
    _write(file.with_name("2026-01-01T00-00-00-00-00_atomic_again.json"), json.dumps(log))


def rename_judge(root: Path, *files: str, prompts: str | None = None, digest: bool = False) -> None:
    """The verdicts as those of another judge, or of other prompts; with `digest` a recorded one."""
    run, name = root / "runs/1", OTHER_JUDGE if files else JUDGE
    for file in files:
        _replace(run / file, f'"{JUDGE}"', f'"{OTHER_JUDGE}"')
    if files:
        rewrite(root / "entry.json", judge=OTHER_JUDGE)
        # What the judge's provider said stays.
        _replace(run / "verdicts.jsonl", f'"model":"{OTHER_JUDGE}"', f'"model":"{JUDGE}"')
    if digest:
        (entry,) = read_judges(run).judges
        said = {"name": name, "model": name, "prompts": prompts or entry.prompts}
        if prompts is not None:
            _replace(run / "verdicts.jsonl", entry.prompts, prompts)
        other = entry.model_copy(update=said)
        other = other.model_copy(update={"digest": other.compute_digest()})
        _write(run / "judges.json", JudgeRegistry(judges=(other,)).model_dump_json())


def called(tool: str, image: str) -> dict[str, Any]:
    return {"step": "call", "name": tool, "arguments": {"image": image}}


ANSWERED = {"step": "answer", "content": "7"}
OTHER_JUDGE = "openai/gpt-5"
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
    "log: a call that the model did not make": (
        "atomic",
        logs_say(lambda log: store(log, "steps", [called("OCR", "inputs/menu.jpg"), ANSWERED])),
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
    "log: usage of another model": (
        "atomic",
        logs_say(lambda log: used(log).update({"openai/gpt-5": used(log).pop(NAME)})),
        {"logs"},
    ),
    "log: less usage than its calls": (
        "atomic",
        logs_say(lambda log: used(log)[NAME].update(input_tokens=1)),
        {"logs"},
    ),
    "log: cheaper than its calls": (
        "atomic",
        logs_say(lambda log: events(log)[0]["output"]["usage"].update(total_cost=0.5)),
        {"logs"},
    ),
    "log: fewer calls than its usage": (
        "atomic",
        logs_say(lambda log: events(log)[0]["output"].pop("usage")),
        {"logs"},
    ),
    "log: no call at all": (
        "atomic",
        logs_say(lambda log: log["samples"][0].update(events=[], model_usage={})),
        {"logs"},
    ),
    "log: usage of its own": (
        "atomic",
        logs_say(lambda log: store(log, "usage", {"model_calls": 1, "cost_usd": 0.01})),
        {"logs"},
    ),
    "log: the model that answered": (
        "atomic",
        logs_say(lambda log: events(log)[0]["output"].update(model="gpt-5")),
        {"entry"},
    ),
    "log: an answer that no call gave": (
        "atomic",
        logs_say(lambda log: said_elsewhere(log, "It is free")),
        {"logs"},
    ),
    "attempts: a sample of no attempt": (
        "atomic",
        logs_say(lambda log: log["samples"][0].update(uuid="another")),
        {"attempts"},
    ),
    "attempts: a sample of another attempt": (
        "atomic",
        logs_say(lambda log: log["samples"][0].update(uuid=log["samples"][1]["uuid"])),
        {"attempts"},
    ),
    "attempts: two finished samples": ("atomic", lambda root: second_draw(root), {"attempts"}),
    "attempts: a failed sample that nobody tried": (
        "atomic",
        lambda root: second_draw(root, error="RuntimeError('no')"),
        {"attempts"},
    ),
    "attempts: finished twice": (
        "atomic",
        lambda root: _append(root / "runs/1/attempts.jsonl", '"end":"finished"', "other"),
        {"attempts"},
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
    "verdicts: of another judge": (
        "workflow",
        lambda root: rename_judge(root, "verdicts.jsonl", "scores.json"),
        {"judge"},
    ),
    "verdicts: of another judge, in judges.json too": (
        "workflow",
        lambda root: rename_judge(root, "verdicts.jsonl", "scores.json", "judges.json"),
        {"judge"},
    ),
    "verdicts: of another judge, which is said to have its digest": (
        "workflow",
        lambda root: rename_judge(root, "verdicts.jsonl", "scores.json", digest=True),
        {"entry"},
    ),
    "verdicts: nobody's": (
        "workflow",
        lambda root: (root / "runs/1/judges.json").unlink(),
        {"judge"},
    ),
    "verdicts: other prompts": (
        "workflow",
        lambda root: _replace(root / "runs/1/verdicts.jsonl", prompts.digest(), "0" * 64),
        {"judge"},
    ),
    "verdicts: prompts that nobody has": (
        "workflow",
        lambda root: rename_judge(root, prompts="0" * 64, digest=True),
        {"judge"},
    ),
    "thresholds": (
        "workflow",
        lambda root: _replace(root / "runs/1/scores.json", '"leaf_sr": 100.0', '"leaf_sr": 50.0'),
        {"scores"},
    ),
    "a hidden sign in the name": (
        "atomic",
        lambda root: rewrite(root / "entry.json", system="m\u202e"),
        {"archive"},
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


def test_a_run_of_a_later_month_is_refused(made: Mapping[str, Made], tmp_path: Path) -> None:
    """Its logs agree with it: the clock of whoever made them is all that they show."""
    month = datetime(2026, 1, 31, tzinfo=UTC)
    checked = check(made["atomic"].bundle, made["atomic"].data, tmp_path / "open", now=month)
    (finding,) = checked.findings
    assert finding.check == "entry"
    assert finding.message.endswith("is in the future; this month is 2026-01")


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


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text, text[:500]
    file.write_text(text.replace(old, new), encoding="utf-8")


def _append(file: Path, part: str, attempt: str) -> None:
    """The first line with that part once more, as one of another attempt."""
    line = next(line for line in file.read_text(encoding="utf-8").splitlines() if part in line)
    with file.open("a", encoding="utf-8") as opened:
        opened.write(json.dumps({**json.loads(line), "attempt": attempt}) + "\n")


def _keep_lines(file: Path, part: str) -> None:
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if part in line]
    assert 0 < len(kept) < len(lines)
    file.write_text("".join(kept), encoding="utf-8")
