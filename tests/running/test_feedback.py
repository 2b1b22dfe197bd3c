import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from inspect_ai.model import ChatMessage, Model, ModelOutput

from gta_bench.errors import RunError
from gta_bench.records.run import FeedbackLevel
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.running.feedback import Judged, collect_feedback, run_rounds
from gta_bench.runs.artefacts import ARTEFACTS
from gta_bench.runs.directory import files_folder, read_manifest, round_folder
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import VERDICTS, append_verdicts, read_verdicts
from gta_bench.settings import Settings
from tests.tasks.test_atomic_step import said
from tests.tasks.workflow_runs import (
    JUDGE,
    SECRETS,
    WORDS,
    judge_by_words,
    scripted,
    shown,
    unwatched,
    wanted,
    write_dataset,
    write_page,
)

FAILED = re.compile(r"checkpoint (\d): failed")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("feedback") / "data")


class Mender:
    """Names the quokka; then mends as many of the failed checkpoints as it is allowed to."""

    def __init__(self, mends: int) -> None:
        self.mends = mends
        self.seen: list[str] = []

    def __call__(self, messages: list[ChatMessage]) -> ModelOutput:
        self.seen.append(shown(messages))
        if messages[-1].role == "tool":
            return said("Done.")
        failed = [int(number) for number in FAILED.findall(messages[-1].text)]
        if not failed:
            return write_page("quokka")
        chosen = [list(WORDS.values())[number - 1] for number in failed[: self.mends]]
        return write_page(" ".join(chosen), "more.html")


def leaves(judged: Judged) -> list[list[float | None]]:
    return [[leaf.value for leaf in task.leaves] for task in judged.scores.judges[0].tasks]


def play(
    data: Path, out: Path, model: Model, rounds: int, level: FeedbackLevel = "pass-fail"
) -> Sequence[tuple[StorePath, Judged]]:
    run = wanted(data)
    return list(
        run_rounds(*run, out, unwatched, judge_by_words, rounds=rounds, level=level, model=model)
    )


def test_a_system_that_mends_what_it_is_told_improves_by_exactly_those_leaves(
    data: Path, tmp_path: Path
) -> None:
    played = play(data, tmp_path / "run", scripted(Mender(mends=1)), rounds=2)
    assert [leaves(judged) for _, judged in played] == [
        [[10, 3, 3]] * 2,
        [[10, 10, 3]] * 2,
        [[10, 10, 10]] * 2,
    ]
    assert [judged.scores.judges[0].strict.root_sr for _, judged in played] == [0, 0, 100]


def test_replies_and_how_they_ended_are_counted_in_the_same_round(
    data: Path, tmp_path: Path
) -> None:
    """Ends of all rounds were counted beside the model calls of the last one."""
    mender = Mender(mends=1)

    def reply(messages: list[ChatMessage]) -> ModelOutput:
        done = messages[-1].role == "tool"
        return said("") if done else mender(messages)

    def first_empty(messages: list[ChatMessage]) -> ModelOutput:
        told = "the reply is empty" in messages[-1].text
        return said("Done.") if told else reply(messages)

    played = play(data, tmp_path / "run", scripted(first_empty), rounds=2)
    counts = [(one.scores.stops, one.scores.usage.model_calls) for _, one in played]
    assert counts == [({"empty": 2}, 6)] * 3


def test_each_round_is_an_ordinary_run_that_keeps_its_own_workspace(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    played = play(data, out, scripted(Mender(mends=2)), rounds=1)
    second = round_folder(out, 2)
    assert [folder for folder, _ in played] == [out, second]
    names = [
        sorted(file.name for file in (files_folder(one) / "1" / "outputs").iterdir())
        for one in (out, second)
    ]
    assert names == [["page.html"], ["more.html", "page.html"]]
    back = read_manifest(second).spec.feedback
    assert back is not None
    assert (back.round, back.level, back.judge) == (2, "pass-fail", JUDGE)
    assert (second / ARTEFACTS).resolve() == (out / ARTEFACTS).resolve()


@pytest.mark.parametrize("level", get_args(FeedbackLevel))
def test_the_requirement_is_shown_only_at_the_level_chosen(
    data: Path, tmp_path: Path, level: FeedbackLevel
) -> None:
    mender = Mender(mends=2)
    play(data, tmp_path / "run", scripted(mender), rounds=1, level=level)
    told = "\n".join(mender.seen)
    hidden = [*SECRETS.values(), "Animals", "was looked for", *SECRETS]
    leaked = [text for text in hidden if text in told]
    shown_at_reason = [SECRETS["cp1-2"], SECRETS["cp2"], "was looked for"]
    assert leaked == (shown_at_reason if level == "reason" else [])
    assert ("3 of 10" in told) == (level != "pass-fail")
    assert "checkpoint 2: failed" in told
    assert "reviewed against 3 checkpoints" in told


def test_a_unit_with_nothing_to_mend_is_carried_over_and_not_judged_again(
    data: Path, tmp_path: Path
) -> None:
    asked: list[str] = []

    def reply(messages: list[ChatMessage]) -> ModelOutput:
        asked.append(messages[-1].text)
        return said("Done.") if messages[-1].role == "tool" else write_page("quokka wombat numbat")

    out = tmp_path / "run"
    played = play(data, out, scripted(reply), rounds=1)
    assert not any("checkpoint" in text for text in asked)
    first, second = (judged.scores for _, judged in played)
    assert first.judges == second.judges
    assert read_verdicts(out) == read_verdicts(round_folder(out, 2))
    assert (files_folder(round_folder(out, 2)) / "2" / "outputs" / "page.html").is_file()


def test_the_same_command_again_continues_and_does_nothing_twice(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    first = play(data, out, scripted(Mender(mends=1)), rounds=1)
    mender = Mender(mends=1)
    again = play(data, out, scripted(mender), rounds=2)
    assert [judged.scores for _, judged in again[:2]] == [judged.scores for _, judged in first]
    assert leaves(again[2][1]) == [[10, 10, 10]] * 2
    assert all("checkpoint 3: failed" in text for text in mender.seen)


def test_a_round_with_units_that_have_no_score_is_the_last_one(data: Path, tmp_path: Path) -> None:
    def half(run: StorePath) -> Judged:
        """Forgets one verdict, and a judge that nobody waits for says one word."""
        judge_by_words(run)
        kept = (run / VERDICTS).read_bytes().decode().splitlines(keepends=True)
        other = kept[0].replace(JUDGE, "other")
        (run / VERDICTS).write_text("".join([*kept[1:], other]), encoding="utf-8")
        return Judged(JUDGE, score_workflow_run(run, Settings()))

    run = wanted(data)
    played = list(
        run_rounds(
            *run,
            tmp_path / "run",
            unwatched,
            half,
            rounds=3,
            level="score",
            model=scripted(Mender(mends=1)),
        )
    )
    assert len(played) == 1


def test_a_judge_that_nobody_waits_for_does_not_stop_the_rounds(data: Path, tmp_path: Path) -> None:
    def with_another(run: StorePath) -> Judged:
        judge_by_words(run)
        row = next(iter(read_verdicts(run).values()))
        other = row.model_copy(update={"key": row.key.model_copy(update={"judge": "other"})})
        append_verdicts(run, [other])
        return Judged(JUDGE, score_workflow_run(run, Settings()))

    run = wanted(data, tasks="1")
    played = run_rounds(
        *run,
        tmp_path / "run",
        unwatched,
        with_another,
        rounds=1,
        level="score",
        model=scripted(Mender(mends=1)),
    )
    assert [leaves(judged._replace(scores=only(judged))) for _, judged in played] == [
        [[10, 3, 3]],
        [[10, 10, 3]],
    ]


def only(judged: Judged) -> WorkflowScores:
    tables = tuple(table for table in judged.scores.judges if table.judge == JUDGE)
    return judged.scores.model_copy(update={"judges": tables})


def test_a_judge_without_verdicts_has_nothing_to_give_back(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    ((_, judged),) = play(data, out, scripted(Mender(mends=1)), rounds=0)
    with pytest.raises(RunError, match="no verdict of 'nobody'"):
        collect_feedback(out, judged._replace(judge="nobody"), "score")
    assert judged.scores.leaf_threshold == Settings().judge.leaf_threshold
