"""Bundles by the command line, as submitters and those who keep a board use them."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from click.testing import Result
from inspect_ai.log import read_eval_log, write_eval_log

from gta_bench.records.leaderboard import CANARY
from tests.cli.test_run import gta
from tests.leaderboard.bundles import (
    changed,
    gold_run,
    replaced,
    rewrite,
    workflow_data,
    workflow_run,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


@pytest.fixture(scope="module")
def run(folder: Path, atomic_dir: Path) -> Path:
    return gold_run(atomic_dir, folder / "gold")


@pytest.fixture(scope="module")
def bundle(folder: Path, run: Path, atomic_dir: Path) -> Path:
    out = folder / "gold.zip"
    result = submit(run, out, atomic_dir, folder / "key.pem")
    assert result.exit_code == 0, result.output
    assert "Created a signing key" in result.stderr
    assert "/atomic/openai-some-model-toolcalling" in result.stderr
    return out


def submit(run: Path, out: Path, data: Path, key: Path) -> Result:
    return gta("leaderboard", "submit", run, "--out", out, "--data", data, "--key", key)


def refused(bundle: Path, data: Path) -> list[str]:
    """`check: message` of everything that the check finds."""
    result = gta("leaderboard", "check", bundle, "--data", data, "--json")
    assert result.exit_code == 1, result.output
    return [f"{one['check']}: {one['message']}" for one in json.loads(result.stdout)]


def test_a_bundle_is_accepted_and_says_who_signed_it(bundle: Path, atomic_dir: Path) -> None:
    result = gta("leaderboard", "check", bundle, "--data", atomic_dir)
    assert result.exit_code == 0, result.output
    assert (
        "scores follow from its logs (self-reported, imported, other similarity)." in result.stderr
    )
    assert "signed by " in result.stderr
    with zipfile.ZipFile(bundle) as archive:
        entry = json.loads(archive.read("entry.json"))
        assert CANARY in archive.read("bundle.json").decode()
    assert entry["scores"]["ans_acc_i"]["value"] > 95
    assert entry["status"] == "self-reported"
    assert entry["marks"] == ["imported", "other similarity"]


def test_the_key_is_private_and_used_again(
    bundle: Path, run: Path, folder: Path, atomic_dir: Path
) -> None:
    key = folder / "key.pem"
    assert key.stat().st_mode & 0o077 == 0
    again = submit(run, folder / "again.zip", atomic_dir, key)
    assert "A new key" not in again.stderr
    assert (folder / "again.zip").read_bytes() == bundle.read_bytes()
    assert "already exists" in str(
        gta("leaderboard", "submit", run, "--out", bundle, "--key", key).exception
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (replaced("runs/1/scores.json", "229", "230"), "digest: runs/1/scores.json was changed"),
        (
            replaced("bundle.json", "canary 5", "canary 6"),
            "signature: the signature does not match",
        ),
        (lambda root: (root / "runs/1/run.json").unlink(), "digest: runs/1/run.json is missing"),
        (
            lambda root: (root / "runs/1/verdicts.jsonl").write_text("", encoding="utf-8"),
            "digest: runs/1/verdicts.jsonl was added",
        ),
        (
            lambda root: (root / "setup.py").write_text("", encoding="utf-8"),
            "archive: 'setup.py' does not belong in a bundle",
        ),
        (lambda root: (root / "signature.json").unlink(), "archive: signature.json is missing"),
        (
            lambda root: rewrite(root / "signature.json", signature="0"),
            "archive: Signature cannot be read: signature",
        ),
    ],
)
def test_a_tampered_bundle_is_refused(
    bundle: Path, atomic_dir: Path, tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    found = refused(changed(bundle, tmp_path / "x.zip", change), atomic_dir)
    assert len(found) == 1
    assert found[0].startswith(said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            replaced("entry.json", '"ans_acc":', '"c_sr": {"value": 1}, "ans_acc":'),
            "scores: C-SR does not come from these runs",
        ),
        (
            lambda root: rewrite(root / "entry.json", scores={"ans_acc": {"value": 99.5}}),
            "scores: AnsAcc is 99.50 in the entry and",
        ),
        (
            lambda root: rewrite(root / "entry.json", by_task={"0": 1.0}),
            "scores: `by_task` of the entry does not follow from the logs",
        ),
        (lambda root: rewrite(root / "entry.json", judge="me"), "entry: `judge` of the entry"),
        (lambda root: rewrite(root / "entry.json", model="m"), "entry: `model` of the entry"),
        (
            replaced("runs/1/scores.json", '"p_f1": 100.0', '"p_f1": 90.0'),
            "scores: scores.json of run 1 does not follow from its logs",
        ),
        (
            replaced("runs/1/scores.json", '"exact-or-half"', '"mine"'),
            "entry: its similarity 'mine' is not one of",
        ),
        (
            replaced("runs/1/logs/*.json", '"whitelist"', '"other"'),
            "entry: The log ",
        ),
        (
            replaced("runs/1/logs/*.json", "What is the", "What is a"),
            "tasks: task ",
        ),
        (
            lambda root: rewrite(root / "runs/1/run.json", dataset_digest="0" * 64),
            "dataset: it used dataset 0000000000000000, the one here is",
        ),
        (
            lambda root: rewrite(root / "runs/1/run.json", tasks=["0"]),
            "entry: run 1 has 1 task; the board has 229",
        ),
    ],
)
def test_what_does_not_follow_from_the_logs_is_refused_whoever_signed_it(
    bundle: Path, atomic_dir: Path, tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    found = refused(changed(bundle, tmp_path / "x.zip", change, signed=True), atomic_dir)
    assert any(one.startswith(said) for one in found), found


def test_a_system_that_says_the_canary_is_refused(
    bundle: Path, atomic_dir: Path, tmp_path: Path
) -> None:
    known = replaced("runs/1/logs/*.json", "1919.96", f"1919.96 ({CANARY})")
    found = refused(changed(bundle, tmp_path / "x.zip", known, signed=True), atomic_dir)
    assert "canary: task 1: the system wrote the canary, so it was trained on GTA" in found


def test_a_bundle_without_a_run_is_refused(bundle: Path, atomic_dir: Path, tmp_path: Path) -> None:
    empty = changed(bundle, tmp_path / "x.zip", lambda root: rmtree(root / "runs"), signed=True)
    assert refused(empty, atomic_dir) == ["entry: it has no run"]


def test_a_member_that_is_not_what_its_checksum_says_is_refused(
    bundle: Path, atomic_dir: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "x.zip"
    with zipfile.ZipFile(broken, "w") as archive:
        archive.writestr("entry.json", b"unmistakable")
    broken.write_bytes(broken.read_bytes().replace(b"unmistakable", b"unmistakeble", 1))
    assert refused(broken, atomic_dir) == ["archive: 'entry.json' is broken"]


def test_a_bundle_of_another_dataset_is_refused(
    bundle: Path, folder: Path, atomic_dir: Path
) -> None:
    other = folder / "other"
    other.mkdir()
    for file in atomic_dir.iterdir():
        if file.name != "toolmeta.json":
            (other / file.name).symlink_to(file)
    text = (atomic_dir / "toolmeta.json").read_text(encoding="utf-8")
    (other / "toolmeta.json").write_text(text + " ", encoding="utf-8")
    assert [one[:8] for one in refused(bundle, other)] == ["dataset:"]


def test_a_bundle_that_unpacks_to_far_more_is_refused_unread(
    tmp_path: Path, atomic_dir: Path
) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("runs/1/logs/a.json", bytes(64 << 20))
    assert refused(bomb, atomic_dir) == [
        "archive: The archive unpacks to more than 200 times its size"
    ]


def test_a_step_run_and_an_end_to_end_run_make_one_entry(
    folder: Path, run: Path, atomic_dir: Path
) -> None:
    step = gold_run(atomic_dir, folder / "step", mode="step")
    alone = gta("leaderboard", "submit", step, "--out", folder / "y.zip", "--key", folder / "k")
    assert "which needs an end-to-end run" in str(alone.exception)
    twice = gta("leaderboard", "submit", run, run, "--out", folder / "y.zip")
    assert "Two runs of the same mode" in str(twice.exception)
    out = folder / "both.zip"
    options: list[str | Path] = ["--data", atomic_dir, "--key", folder / "key.pem"]
    gta("leaderboard", "submit", step, run, "--out", out, *options)
    with zipfile.ZipFile(out) as archive:
        scores = json.loads(archive.read("entry.json"))["scores"]
    assert scores["inst_acc"] == {"value": 100.0, "decimals": 2, "k": 770, "n": 770}
    assert "ans_acc" in scores
    assert gta("leaderboard", "check", out, "--data", atomic_dir).exit_code == 0


def test_a_workflow_run_is_checked_by_its_verdicts(folder: Path) -> None:
    data = workflow_data(folder / "workflow-data")
    run = workflow_run(data, folder / "workflow")
    out = folder / "workflow.zip"
    options: list[str | Path] = [
        "--data",
        data,
        "--key",
        folder / "key.pem",
        "--system",
        "My system",
        "--group",
        "harness",
    ]
    assert "no judge 'k'" in str(
        gta("leaderboard", "submit", run, "--out", out, "--judge", "k").exception
    )
    made = gta("leaderboard", "submit", run, "--out", out, *options)
    assert made.exit_code == 0, made.output
    assert gta("leaderboard", "check", out, "--data", data).exit_code == 0
    with zipfile.ZipFile(out) as archive:
        entry = json.loads(archive.read("entry.json"))
        artefacts = json.loads(archive.read("bundle.json"))["artefacts"]
    assert entry["id"].endswith("/workflow/my-system")
    assert entry["scores"]["root_sr"] == {"value": 89.39, "decimals": 2, "k": 118, "n": 132}
    assert entry["scores"]["leaf_sr"]["n"] == 1156
    assert (len(artefacts), artefacts[3]["path"]) == (132, "3/outputs/a.pdf")
    better = changed(
        out,
        folder / "better.zip",
        replaced("runs/1/verdicts.jsonl", '"value":2.0', '"value":9.0'),
        signed=True,
    )
    found = refused(better, data)
    assert "scores: Root SR is 89.39 in the entry and 100.00 in the logs" in found
    assert "scores: scores.json of run 1 does not follow from its logs" in found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epochs": 2}, "has 2 epochs; an entry has one"),
        ({"controls": ("no-tools",)}, "ran under controls (no-tools)"),
        ({"tasks": ("0", "1")}, "has 2 tasks; the board has 229"),
        ({"system": {"model": "none/none", "agent": "gold"}}, "is a run of 'gold', which tests"),
        ({"system": {"model": "none/none", "agent": "silent"}}, "is a run of 'silent'"),
        ({"system": {"model": "none/none", "agent": "boast-only"}}, "is a run of 'boast-only'"),
        (
            {"feedback": {"round": 2, "level": "reason", "judge": "j"}},
            "is round 2 of feedback, in which the system knows",
        ),
    ],
)
def test_a_run_that_cannot_be_ranked_is_not_submitted(
    tmp_path: Path, run: Path, changes: dict[str, object], said: str
) -> None:
    for name in ("run.json", "scores.json"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    rewrite(tmp_path / "run.json", **changes)
    result = gta("leaderboard", "submit", tmp_path, "--out", tmp_path / "x.zip")
    assert said in str(result.exception)


def test_an_incomplete_run_is_not_submitted(tmp_path: Path, run: Path) -> None:
    for name in ("run.json", "scores.json"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    rewrite(tmp_path / "scores.json", n=228)
    result = gta("leaderboard", "submit", tmp_path, "--out", tmp_path / "x.zip")
    assert "a score for 228 of 229 units" in str(result.exception)


def test_what_the_check_would_refuse_is_not_made(
    tmp_path: Path, run: Path, atomic_dir: Path
) -> None:
    """A run of an earlier version became a bundle, and only its check said no."""
    old, out = copytree(run, tmp_path / "old"), tmp_path / "x.zip"
    (log,) = (old / "logs").glob("*.eval")
    whole = read_eval_log(str(log))
    whole.eval.metadata = {}
    write_eval_log(whole, str(log))
    said = str(submit(old, out, atomic_dir, tmp_path / "k").exception)
    assert "would reject it: logs: a log does not state what was run" in said
    assert said.endswith("Run or import it again with this version, into a new folder.")
    other = copytree(run, tmp_path / "other")
    rewrite(other / "run.json", dataset_digest="0" * 64)
    said = str(submit(other, out, atomic_dir, tmp_path / "k").exception)
    assert said.endswith("Name the dataset of the run with --data.")
    assert not out.exists()


def test_runs_of_two_systems_are_no_entry(tmp_path: Path, run: Path) -> None:
    for name in ("run.json", "scores.json"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    rewrite(tmp_path / "run.json", system={"model": "other/m", "agent": "toolcalling"})
    result = gta("leaderboard", "submit", run, tmp_path, "--out", tmp_path / "x.zip")
    assert "different systems" in str(result.exception)
    rewrite(
        tmp_path / "run.json",
        system={"model": "openai/some-model", "agent": "toolcalling"},
        dataset_digest="1",
    )
    result = gta("leaderboard", "submit", run, tmp_path, "--out", tmp_path / "x.zip")
    assert "different datasets" in str(result.exception)


def test_a_secret_in_a_log_is_not_handed_out(
    tmp_path: Path, run: Path, atomic_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "gta_bench/atomic_end-to-end")  # stands in every log
    out = tmp_path / "x.zip"
    result = submit(run, out, atomic_dir, tmp_path / "k.pem")
    assert "contains the value of SOME_API_KEY, so no bundle was made" in str(result.exception)
    assert not out.exists()


@pytest.mark.parametrize(
    "text", ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"]
)
def test_a_file_that_is_no_key_is_refused(
    tmp_path: Path, run: Path, atomic_dir: Path, text: str
) -> None:
    key = tmp_path / "key.pem"
    key.write_text(text, encoding="utf-8")
    result = submit(run, tmp_path / "x.zip", atomic_dir, key)
    assert "is not a PEM private key" in str(result.exception)
    assert key.read_text(encoding="utf-8") == text
