"""`gta leaderboard verify`: a part of a bundle repeated by somebody else."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model

import gta_bench
from gta_bench.cli.bundles import Wanted, make_bundle, verify_bundle
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError
from gta_bench.leaderboard import submission
from gta_bench.leaderboard.submission import EntryLabel
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.directory import open_run
from gta_bench.runs.imported import write_imported
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.settings import ModelSettings, Settings
from tests.builders import (
    atomic_task,
    call,
    checkpoint,
    parameter,
    reply,
    tool,
    workflow_task,
    write_atomic,
    write_workflow,
)
from tests.chat_server import chat_server
from tests.cli.test_run import gta
from tests.leaderboard.bundles import (
    JUDGE,
    SIMILARITY,
    give_verdicts,
    manifest,
    scripted_judge,
)

TASKS, LEAVES, ATOMIC = 120, 2, 36
# How often the judge passes a leaf, and how often it says the other thing when asked again.
PASSES, WAVERS = 0.4, 0.05
SETTINGS = Settings.model_validate({"scoring": {"similarity": SIMILARITY}})


@pytest.fixture(scope="module", autouse=True)
def small_boards() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(submission, "SIZES", {"atomic": ATOMIC, "workflow": TASKS})
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verifying")


@pytest.fixture(scope="module")
def data(folder: Path) -> Path:
    tasks = {
        str(number): workflow_task(
            dialogs=[{"role": "user", "content": f"Write report {number}."}],
            sub_tasks=[checkpoint(f"cp{number}-{leaf}") for leaf in range(LEAVES)],
        )
        for number in range(TASKS)
    }
    return write_workflow(folder / "data", tasks)


def judged(leaf: str, asked: int) -> float:
    """What the judge says of a leaf the first, second, … time."""
    truth = Random(f"truth {leaf}").random() < PASSES
    wavers = Random(f"{leaf} {asked}").random() < WAVERS
    return 9.0 if truth != wavers else 3.0


def bundle(
    folder: Path, data: Path, name: str, *, raised: float = 0.0, lowest: float = 0.0
) -> Path:
    """A run whose verdicts are the judge's, but for the share that somebody turned into passes.

    No score is below `lowest`.
    """
    run, dataset = folder / name, load_workflow(data)
    answer = (AnswerStep(content="Done."),)
    units = [WorkflowUnit(task=task, trace=answer) for task in dataset.tasks.values()]
    write_imported(run, open_run(run, manifest(dataset, "workflow", "workflow")), units)
    values = {}
    for unit in units:
        for leaf in unit.task.leaves():
            value = judged(leaf.id, 1)
            if Random(f"raise {leaf.id}").random() < raised / (1 - PASSES):
                value = 9.0
            values[unit.task.id, leaf.id] = max(value, lowest)
    give_verdicts(run, JUDGE, values)
    score_workflow_run(run, SETTINGS)
    out = folder / f"{name}.zip"
    make_bundle([run], out, folder / "key.pem", EntryLabel(), None, SETTINGS, str(data))
    return out


@pytest.fixture(scope="module")
def honest(folder: Path, data: Path) -> Path:
    return bundle(folder, data, "honest")


def rejudged(file: Path, data: Path, **changes: Any) -> Any:
    judge = scripted_judge(lambda shown, leaf: judged(leaf, 2))
    wanted = Wanted(rejudge=TASKS * LEAVES, data=str(data), judge_model=judge, **changes)
    return verify_bundle(file, wanted, SETTINGS, seed="drawn later")


def test_an_honest_bundle_is_rejudged(honest: Path, data: Path, tmp_path: Path) -> None:
    entry, found = rejudged(honest, data)
    (one,) = found.repetitions
    assert (one.test.n, one.test.tasks) == (TASKS * LEAVES, TASKS)
    assert 0.85 < one.test.agreement < 1
    assert one.test.power > 0.8
    assert (found.tier, entry.status) == ("re-judged", "re-judged")
    assert not found.disagrees
    # Its entry is known by the bundle that the board has.
    (board := tmp_path / "board").mkdir()
    shutil.copy(honest, board)
    (file := tmp_path / "entry.json").write_text(entry.model_dump_json(), encoding="utf-8")
    checked = gta("leaderboard", "check", file, "--board", board)
    assert "1 row checked" in checked.stderr and "without a bundle" not in checked.stderr


def test_a_bundle_with_ten_percent_better_verdicts_is_found(folder: Path, data: Path) -> None:
    entry, found = rejudged(bundle(folder, data, "better", raised=0.1), data)
    (one,) = found.repetitions
    assert one.test.better > one.test.worse + 10
    assert one.test.p_value < 0.05
    assert found.disagrees
    assert (found.tier, entry.status) == ("self-reported", "self-reported")


@pytest.mark.measure
def test_scores_that_were_raised_below_the_threshold_are_found(folder: Path, data: Path) -> None:
    """Nothing passes that did not, so what passed agrees."""
    entry, found = rejudged(bundle(folder, data, "raised", lowest=6.9), data)
    (one,) = found.repetitions
    assert abs(one.test.better - one.test.worse) < 10
    assert found.disagrees and entry.status == "self-reported"


def test_scores_that_do_not_come_back_support_nothing(honest: Path, data: Path) -> None:
    """Leaves without a second score were left out: a file that shows nothing hid its verdicts."""
    judge = scripted_judge(lambda shown, leaf: judged(leaf, 2) if leaf.endswith("-0") else -1.0)
    wanted = Wanted(rejudge=TASKS * LEAVES, data=str(data), judge_model=judge)
    _, found = verify_bundle(honest, wanted, SETTINGS, seed="drawn later")
    assert found.repetitions[0].test.n == TASKS * LEAVES
    assert found.disagrees and found.tier == "self-reported"


def test_the_seed_is_drawn_when_verifying(honest: Path, data: Path) -> None:
    judge = scripted_judge(lambda shown, leaf: judged(leaf, 2))
    wanted = Wanted(rejudge=2 * LEAVES, data=str(data), judge_model=judge)
    first, second = (verify_bundle(honest, wanted, SETTINGS)[1] for _ in range(2))
    assert first.seed != second.seed
    assert len(first.repetitions[0].drawn) == 2
    assert first.tier == "self-reported", "four leaves show nothing"
    assert not first.repetitions[0].test.supports


def answering(text: str, *, first: tuple[str, dict[str, Any]] | None = None) -> Model:
    """A model that says this, after a call if there is one to make `first`."""

    def reply(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        if first is None or messages[-1].role == "tool":
            output = ModelOutput.from_content("mockllm/model", text)
        else:
            output = ModelOutput.for_tool_call("mockllm/model", *first)
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    return get_model("mockllm/model", custom_outputs=reply, memoize=False)


def test_tasks_are_run_again(folder: Path) -> None:
    calculator, sum_up = tool("Calculator", parameter("expression")), {"expression": "3 + 4"}
    dialogs = atomic_task()["dialogs"]
    dialogs[1:3] = call("Calculator", sum_up), reply("Calculator", "7")
    task = atomic_task(tools=[calculator], dialogs=dialogs)
    tasks = {str(n): task for n in range(ATOMIC)}
    data = write_atomic(folder / "atomic", tasks, {"Calculator": calculator})
    run, out = folder / "atomic-run", folder / "atomic.zip"
    model = answering("7", first=("Calculator", sum_up))
    system: Any = {"model": model, "data": data, "settings": SETTINGS}
    tape: Any = {"mode": "end-to-end", "tape": folder / "tape"}
    gta_bench.run("atomic", run, **system, **tape, tape_mode="record")
    make_bundle([run], out, folder / "key.pem", EntryLabel(), None, SETTINGS)
    wanted = Wanted(rerun=ATOMIC, data=str(data), model=model)
    entry, found = verify_bundle(out, wanted, SETTINGS)
    assert (found.repetitions[0].test.n, found.repetitions[0].test.agreement) == (2 * ATOMIC, 1)
    assert entry.status == "reproduced"
    # Right answers without the calls had the tier, so that F1 of a board was anybody's.
    for text, first in (("7", None), ("None of it", ("Calculator", sum_up))):
        worse = Wanted(rerun=ATOMIC, data=str(data), model=answering(text, first=first))
        entry, found = verify_bundle(out, worse, SETTINGS)
        assert found.disagrees
        assert entry.status == "self-reported"
    gta_bench.run("atomic", folder / "taped-run", **system, **tape)
    taped = folder / "taped.zip"
    make_bundle([folder / "taped-run"], taped, folder / "key.pem", EntryLabel(), None, SETTINGS)
    with pytest.raises(UsageError, match="no tape to replay"):
        verify_bundle(taped, wanted, SETTINGS)


def test_steps_are_run_again_as_well(folder: Path) -> None:
    """A run step by step was not repeated, so its scores had the tier of the other run."""
    data = write_atomic(folder / "steps", {str(n): atomic_task() for n in range(ATOMIC)})
    gold = answering("It costs 7.", first=("OCR", {"image": "image/menu.jpg"}))
    runs = {"end-to-end": answering("7"), "step": gold}
    for mode, model in runs.items():
        options: Any = {"mode": mode, "data": data, "settings": SETTINGS}
        gta_bench.run("atomic", folder / f"of-{mode}", model=model, **options)
    out = folder / "both.zip"
    both = [folder / f"of-{mode}" for mode in runs]
    make_bundle(both, out, folder / "key.pem", EntryLabel(), None, SETTINGS)
    wanted = Wanted(rerun=ATOMIC, data=str(data), model=answering("7"))
    entry, found = verify_bundle(out, wanted, SETTINGS)
    assert [one.mode for one in found.repetitions] == ["end-to-end", "step"]
    assert [one.test.disagrees for one in found.repetitions] == [False, True]
    assert entry.status == "self-reported"


def test_a_model_is_run_again_at_the_address_of_gta_toml(
    folder: Path, loopback: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "none")
    data = write_atomic(folder / "served", {str(n): atomic_task() for n in range(ATOMIC)})
    run, out = folder / "served-run", folder / "served.zip"
    with chat_server(lambda _: "7") as server:
        own = ModelSettings.model_validate(
            {"model": "openai-api/local/own", "base_url": server.url, "key_env": "MY_KEY"}
        )
        settings = SETTINGS.model_copy(update={"models": {"mine": own}})
        gta_bench.run("atomic", run, model="mine", mode="end-to-end", data=data, settings=settings)
        make_bundle([run], out, folder / "key.pem", EntryLabel(), None, settings)
        wanted = Wanted(rerun=2, data=str(data))
        _, found = verify_bundle(out, wanted, settings)
        assert found.repetitions[0].test.agreement == 1
        two = settings.model_copy(update={"models": dict.fromkeys("ab", own)})
        with pytest.raises(UsageError, match=r"several names under .models. in gta.toml: a, b"):
            verify_bundle(out, wanted, two)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "Say what to repeat"),
        (["--rejudge", "9"], "Name the model of the entry's judge with --judge"),
        (["--rejudge", "9", "--judge", "mockllm/other"], "The entry's judge is 'mockllm/judge'"),
        (["--rerun", "2"], "Name the model of the entry's judge with --judge"),
    ],
)
def test_what_cannot_be_repeated_is_named(
    honest: Path, data: Path, options: list[str], said: str
) -> None:
    result = gta("leaderboard", "verify", honest, "--data", data, *options)
    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)
