"""What users get wrong, and the one line that each mistake is met by: what happened, what to do.

Every command is run as it stands, in a folder with the things that `scene` puts there.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from socket import socket

import pytest

from gta_bench import api
from gta_bench.cli import main
from gta_bench.confine.inside import landlock
from gta_bench.demo import ATOMIC, WORKFLOW
from gta_bench.settings import ScoringSettings, Settings

SETTINGS = Settings(scoring=ScoringSettings(similarity="exact-or-half"))
STEP = f"run atomic --mode step --data {ATOMIC} --out new"
SETTINGS_FILE = """[data]
github = "http://127.0.0.1:9"
[scoring]
similarity = "exact-or-half"
[models.mine]
model = "openai/x"
key_env = "GTA_TEST_KEY_A"
"""
LOOP = f"run atomic --mode end-to-end --agent gold --data {ATOMIC} --out new"
DELIVER = f"run workflow --agent silent --data {WORKFLOW} --out new"

# What was typed, the exit code, what is said of what happened, what is said of what to do.
MISTAKES = [
    # the command line
    ("dat", 2, "No such command 'dat'", "did you mean 'data'?"),
    ("run atomik", 2, "No such command 'atomik'", "did you mean 'atomic'?"),
    ("report nowhere", 2, "Directory 'nowhere' does not exist", "`gta report --help`"),
    ("--config gone.toml doctor", 2, "'gone.toml' does not exist", "`gta --help`"),
    (f"{STEP} --agent gold --epoch 3", 2, "No such option '--epoch'", "'--epochs'"),
    ("demo", 2, "gta-demo already exists", "choose another folder with --out"),
    # data
    ("run atomic --mode step --agent gold --out new", 3, "no such file", "`gta data fetch atomic`"),
    ("run workflow --agent silent --out new", 3, "no such file", "`gta data fetch workflow`"),
    ("data stats atomic --data half", 3, "is not valid JSON", "cut off: get the file again"),
    ("data fetch atomic", 3, "Connection refused", "The same command continues"),
    (f"{STEP} --agent gold --tasks nope", 2, "'nope'", "Its ids: receipt, homework"),
    (f"{STEP} --agent gold --tasks 9:12", 2, "selects no task", "the dataset has 5"),
    (f"{STEP} --agent gold --tasks a:b", 2, "is not a range", "Write it as 0:10"),
    # models and keys
    (STEP, 2, "'toolcalling' needs a model", "--model provider/model"),
    (f"{STEP} --model gpt-5", 2, "Unknown model 'gpt-5'", "such as openai/gpt-5"),
    (f"{STEP} --model nobody/x", 2, "nobody", "Use a provider of Inspect"),
    (f"{STEP} --model openai/gpt-5", 3, "OPENAI_API_KEY", "export OPENAI_API_KEY=…"),
    (f"{STEP} --model mine", 3, "GTA_TEST_KEY_A is not set", "export GTA_TEST_KEY_A=…"),
    (f"{STEP} --agent gold --model openai/x", 2, "does not use a model", "leave --model out"),
    (f"{STEP} --agent planner", 2, "Unknown agent 'planner'", "Known agents: toolcalling"),
    (f"{STEP} --agent gold --similarity w2v", 2, "Unknown similarity", "wordllama"),
    # judges
    (f"{DELIVER} --judge gpt-5", 2, "Unknown model 'gpt-5'", "such as openai/gpt-5"),
    (f"{DELIVER} --judge openai/gpt-5", 3, "OPENAI_API_KEY", "export OPENAI_API_KEY=…"),
    (f"{DELIVER} --harness my-agent-{{task}}", 2, "unknown placeholder {task}", "{task_file} and"),
    ("score gold --judge openai/x", 2, "GTA-Atomic has no judge", "leave it out"),
    # settings
    ("--config key.toml config show", 2, "unknown key `judge.repeat`", "mean 'repeats'?"),
    ("--config type.toml config show", 2, "got 'many' (str)", "`judge.repeats`"),
    ("--config torn.toml config show", 2, "is not valid TOML", "Expected ']'"),
    # run folders
    (f"{STEP} --agent gold --out full", 2, "is not empty and is not a run", "another --out"),
    (
        f"run atomic --mode step --data {ATOMIC} --agent silent --out gold",
        2,
        "another setting (agent: gold there, silent here)",
        "another --out",
    ),
    (f"{STEP} --agent gold --out file", 3, "Not a directory", "choose another path"),
    (f"{STEP} --agent gold --out /proc/gta", 3, "/proc/gta", "Check the path"),
    ("report full", 2, "full is not a run", "`gta run` or `gta import`"),
    ("compare gold", 2, "needs at least two runs", "gta compare RUN RUN"),
    ("report gold --html /dev/full", 3, "No space left on device", "Free some disk space"),
    ("view gold --task nope", 2, "has no task 'nope'", "Its tasks: receipt"),
    ("results export gold --out full", 2, "full is not empty", "another --out"),
    ("report .", 2, "is not a run", "`gta run` or `gta import`"),
    ("measure gold builtins:len", 2, "'builtins:len' failed on task receipt", "has no len()"),
    ("run atomic --agent gold --out new", 2, "Missing option '--mode'", "step, end-to-end"),
    ("score gold --cascade 1", 2, "--cascade needs two judges", "--judge WEAK --judge STRONG"),
    ("judge calibrate gold", 2, "is a run of GTA-Atomic", "no leaves to label"),
    (f"{LOOP} --control faults=9", 2, "has an invalid amount", "faults=RATE (above 0"),
    ("tools serve --stdio --token-env X", 2, "--stdio needs no token", "leave --token-env"),
    ("view gold --task receipt --epoch 3", 2, "gold has 1 epoch", "choose an --epoch"),
    ("measure gold nothing", 2, "Unknown metric 'nothing'", "`pkg.mod:function`"),
    # tools
    ("tools call Calculatr --arg x=1", 2, "Unknown tool 'Calculatr'", "did you mean 'Calculator'?"),
    (
        "tools call Calculator --arg exp=1",
        1,
        "missing argument 'expression'",
        "the parameters are expression",
    ),
    ("tools call Calculator --arg exp", 2, "--arg 'exp'", "NAME=VALUE"),
    ("tools call GoogleSearch --arg query=x", 3, "key of serper", "export SERPER_API_KEY=…"),
    ("tools fetch gpt", 2, "Unknown weights 'gpt'", "Known weights: ssd-mobilenet-v3"),
    ("tools serve --port TAKEN", 3, "Address already in use", "choose another port with --port"),
    ("tools serve --host 0.0.0.0", 2, "Other machines can reach", "--token-env"),
    (f"{LOOP} --tools http://127.0.0.1:9", 3, "GTA_TOOLS_TOKEN is not set", "`gta tools serve`"),
    (f"{LOOP} --tape gone.tape", 2, "gone.tape is not a tape", "`gta tape from-reference`"),
    # other people's files
    (
        f"score --predictions notes.txt --dataset atomic --mode step --data {ATOMIC}",
        3,
        "notes.txt",
        "another kind of file",
    ),
    (f"import pack notes.txt --data {WORKFLOW} --out new", 3, "notes.txt", "another kind of file"),
    (f"import folder full --data {WORKFLOW} --out new", 3, "no folder with the name", "final.txt"),
    ("leaderboard check notes.txt", 2, "is not a leaderboard entry", "schema is docs/reference"),
    ("leaderboard submit gold --out new.zip", 2, "5 tasks; the board has 229", "Run all of them"),
    (f"{DELIVER} --harness true", 2, "--agent and a harness exclude", "leave one"),
    (f"{DELIVER} --harness nobody", 2, "program 'nobody' not found", "install it"),
]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, half a dataset, and files that are something else."""
    folder = tmp_path_factory.mktemp("mistakes")
    api.run("atomic", folder / "gold", agent="gold", mode="step", data=ATOMIC, settings=SETTINGS)
    shutil.copytree(ATOMIC, folder / "half")
    whole = (ATOMIC / "dataset.json").read_text(encoding="utf-8")
    files = {
        "half/dataset.json": whole[: len(whole) // 2],
        "full/notes.txt": "Not empty.",
        "file": "No folder.",
        "notes.txt": "Some notes.",
        "key.toml": "[judge]\nrepeat = 1\n",
        "type.toml": '[judge]\nrepeats = "many"\n',
        "torn.toml": "[judge",
        "gta.toml": SETTINGS_FILE,
        "gta-demo/keep.txt": "Do not touch.",
        "runs/notes.txt": "No export.",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def said(
    scene: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], loopback: None
) -> Iterator["Said"]:
    monkeypatch.chdir(scene)
    for key in ("OPENAI_API_KEY", "GTA_TEST_KEY_A", "SERPER_API_KEY", "GTA_TOOLS_TOKEN"):
        monkeypatch.delenv(key, raising=False)
    yield Said(monkeypatch, capsys)
    shutil.rmtree(scene / "new", ignore_errors=True)


class Said:
    """Runs a command line in this process; gives its exit code and what it said to people."""

    def __init__(self, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.patch = patch
        self.capsys = capsys

    def __call__(self, words: str) -> tuple[int, list[str]]:
        self.patch.setattr(sys, "argv", ["gta", *words.split()])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        return end.value.code, self.capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("typed", "code", "happened", "fix"),
    MISTAKES,
    ids=[f"{number}-{mistake[0].split()[0]}" for number, mistake in enumerate(MISTAKES)],
)
def test_a_mistake_is_met_by_one_line(
    said: Said, typed: str, code: int, happened: str, fix: str
) -> None:
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended, lines = said(typed.replace("TAKEN", str(taken.getsockname()[1])))
    assert len(lines) == 1, lines
    assert lines[0].startswith("gta: ")
    assert happened in lines[0] and fix in lines[0], lines[0]
    assert ended == code


def test_there_are_more_than_25() -> None:
    assert len({typed for typed, *_ in MISTAKES}) == len(MISTAKES) >= 25


def test_a_machine_without_a_jail_says_what_to_install(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    code, lines = said("tools call Solver --arg command=x")
    assert code == 3
    assert "bubblewrap is not installed" in lines[-1] and "apt install bubblewrap" in lines[-1]


def test_an_image_that_was_not_downloaded_leaves_the_task_unscored(said: Said, scene: Path) -> None:
    shutil.copytree(ATOMIC, scene / "new" / "data")
    shutil.rmtree(scene / "new" / "data" / "image")
    code, lines = said("data verify atomic --data new/data")
    assert code == 1
    code, lines = said(
        "run atomic --mode end-to-end --agent gold --tasks receipt --data new/data --out new/run"
    )
    assert code == 1
    assert any("receipt.png" in line for line in lines), lines
