import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from gta_bench.errors import InjectedFault, ToolError, UsageError
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import ToolSpec
from gta_bench.tape.controls import (
    NOTHING,
    Control,
    Controls,
    OtherReplies,
    corrupt_text,
    parse_controls,
)
from tests.agents.builders import TASK
from tests.tape.builders import Scripted, call, space

NONE = OtherReplies(())


def controls(*texts: str, seed: int = 0, others: OtherReplies = NONE) -> Controls:
    return Controls(parse_controls(texts), seed, others)


def test_controls_are_read_from_the_command_line() -> None:
    texts = ("corrupt-replies", "faults=0.2", "distractors=10")
    assert parse_controls(texts) == (
        Control("corrupt-replies"),
        Control("faults", 0.2),
        Control("distractors", 10),
    )


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            ["chaos"],
            "Known controls: no-tools, corrupt-replies, faults=RATE (above 0, at most 1)",
        ),
        (["faults"], "'faults' is unknown"),
        (["faults=2"], "'faults=2' is unknown"),
        (["faults=0"], "'faults=0' is unknown"),
        (["faults=many"], "'faults=many' is unknown"),
        (["distractors=0"], "is unknown"),
        (["distractors=1.5"], "is unknown"),
        (["no-tools=1"], "is unknown"),
        (["faults=0.1", "faults=0.2"], "the same control twice"),
        (["no-tools", "faults=0.1"], "cannot be combined"),
    ],
)
def test_a_wrong_control_is_refused_with_one_line(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        parse_controls(texts)


def test_without_tools_nothing_is_offered_and_no_call_succeeds(tmp_path: Path) -> None:
    live = Scripted(lambda *_: "true")
    chosen = controls("no-tools")
    source = chosen.wrap(live, task="1", epoch=1)
    assert source.specs() == {}
    assert chosen.offer([*live.specs().values()], {}, task="1", epoch=1) == []
    with pytest.raises(ToolError, match="There are no tools"):
        call(source, space(tmp_path / "s"), note="x")
    assert live.calls == 0


def outcomes(tmp_path: Path, seed: int, task: str = "1", epoch: int = 1) -> list[str]:
    """The outcomes of 40 calls under faults."""
    source = controls("faults=0.3", seed=seed).wrap(
        Scripted(lambda *_: "true"), task=task, epoch=epoch
    )
    said = []
    for number in range(40):
        try:
            said.append(call(source, space(tmp_path / "s"), note=str(number)).text)
        except InjectedFault as exc:
            said.append(str(exc))
    return said


def test_faults_come_at_their_rate_and_the_same_seed_gives_the_same_ones(tmp_path: Path) -> None:
    first = outcomes(tmp_path, 1)
    assert first == outcomes(tmp_path, 1)
    assert 5 <= first.count("Look did not answer in time. Try again.") <= 20
    for other in (
        outcomes(tmp_path, 2),
        outcomes(tmp_path, 1, task="2"),
        outcomes(tmp_path, 1, epoch=2),
    ):
        assert other != first


def test_the_first_of_equal_calls_is_spoiled_and_its_repetition_is_true(tmp_path: Path) -> None:
    source = controls("corrupt-replies").wrap(Scripted(lambda *_: "42"), task="1", epoch=1)
    workspace = space(tmp_path / "s")
    results = [call(source, workspace, note=note) for note in ("a", "a", "b", "a")]
    assert [result.control for result in results] == ["corrupted", None, "corrupted", None]
    assert [result.text for result in results][1::2] == ["42", "42"]
    assert re.fullmatch(r"[1-9]\d", results[0].text)
    assert results[0].text != "42"
    assert list(source.specs()) == ["Look"]


def test_files_and_failures_are_not_spoiled(tmp_path: Path) -> None:
    def fail(*_: object) -> str:
        raise ToolError("dirty lens")

    workspace = space(tmp_path / "s")
    source = controls("corrupt-replies").wrap(
        Scripted(lambda *_: "outputs/a.png"), task="1", epoch=1
    )
    result = call(source, workspace, note="x")
    assert (result.control, result.parts) == (
        None,
        (ReplyPart(type="image", content="outputs/a.png"),),
    )
    with pytest.raises(ToolError, match="dirty lens"):
        call(
            controls("corrupt-replies").wrap(Scripted(fail), task="1", epoch=1), workspace, note="x"
        )


@pytest.mark.parametrize("text", ["42", "-3.50", "[1, 2]", "(0, 10, 20, 30)", "7 €"])
def test_other_numbers_have_the_form_of_the_true_ones(text: str) -> None:
    for seed in range(50):
        wrong = corrupt_text(text, Random(seed), ["another text"])
        assert wrong != text
        assert re.sub(r"\d", "0", wrong) == re.sub(r"\d", "0", text)


def test_words_become_the_tools_reply_in_another_task() -> None:
    assert corrupt_text("a red car", Random(1), ["a red car ", "a blue car"]) == "a blue car"
    assert corrupt_text("car 54", Random(1), []).startswith("car ")
    assert corrupt_text("car", Random(1), ["car"]) == NOTHING


def test_replies_of_other_tasks_are_taken_from_the_reference(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    others = OtherReplies([TASK])
    assert others.texts("OCR", besides="1") == ("(0, 0, 9, 9) Bière 7",)
    assert others.texts("OCR", besides=TASK.id) == ()
    assert others.texts("DrawBox", besides="1") == (), "an image is no text"
    whole = OtherReplies(atomic_tasks.values())
    assert len(whole.texts("OCR", besides="none")) == 131


def test_distractors_are_mixed_with_the_tasks_tools_and_depend_on_the_seed() -> None:
    known = {f"T{number}": ToolSpec(name=f"T{number}") for number in range(12)}
    own = [known["T3"], known["T4"]]
    first = controls("distractors=10").offer(own, known, task="1", epoch=1)
    assert {tool.name for tool in first} == set(known)
    assert first == controls("distractors=10").offer(own, known, task="1", epoch=1)
    assert first != controls("distractors=10", seed=1).offer(own, known, task="1", epoch=1)
    with pytest.raises(UsageError, match="only 10 tools can be added"):
        controls("distractors=11").offer(own, known, task="1", epoch=1)


def test_controls_can_be_combined(tmp_path: Path) -> None:
    both = controls("corrupt-replies", "faults=1.0")
    source = both.wrap(Scripted(lambda *_: "42"), task="1", epoch=1)
    assert list(source.specs()) == ["Look"]
    with pytest.raises(InjectedFault):
        asyncio.run(source.call(space(tmp_path / "s"), "Look", {}))
    assert both.offer([ToolSpec(name="T")], {}, task="1", epoch=1) == [ToolSpec(name="T")]
