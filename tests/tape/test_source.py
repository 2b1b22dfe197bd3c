from pathlib import Path

import pytest
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import NotOnTape, ToolError, ToolUnavailable
from gta_bench.tape.storage import TAPE, Tape
from tests.builders import PNG
from tests.tape.builders import Scripted, call, counting, recording, space, taped


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "tape"


@pytest.fixture
def menu(tmp_path: Path) -> Workspace:
    return space(tmp_path / "space", menu=PNG)


def text(source: object, workspace: Workspace, **arguments: str | int | bool | None) -> str:
    return call(source, workspace, **arguments).text


def test_a_replay_gives_what_was_recorded_with_its_versions(folder: Path, menu: Workspace) -> None:
    live = counting()
    said = call(taped(recording(folder), "record", live), menu, image="inputs/menu.png")
    again = call(taped(Tape.open(folder), "replay"), menu, image="inputs/menu.png")
    assert again == said.model_copy(update={"taped": "replayed"})
    assert (again.tool_version, again.backend, again.seconds) == ("1", "eye 1", 0.5)
    assert live.calls == 1


def test_equal_calls_of_a_task_get_their_replies_in_order_and_then_the_last(
    folder: Path, menu: Workspace
) -> None:
    recorder = taped(recording(folder), "record", counting())
    assert [text(recorder, menu, image="inputs/menu.png") for _ in range(2)] == [
        "reply 1",
        "reply 2",
    ]
    player = taped(Tape.open(folder), "replay")
    played = [text(player, menu, image="inputs/menu.png") for _ in range(4)]
    assert played == ["reply 1", "reply 2", "reply 2", "reply 2"]


def test_epochs_have_replies_of_their_own_and_an_unknown_one_gets_the_first(
    folder: Path, menu: Workspace
) -> None:
    tape, live = recording(folder), counting()
    for epoch in (1, 2):
        call(taped(tape, "record", live, epoch=epoch), menu, image="inputs/menu.png")
    played = [
        text(taped(tape, "replay", epoch=epoch), menu, image="inputs/menu.png")
        for epoch in (2, 1, 7)
    ]
    assert played == ["reply 2", "reply 1", "reply 1"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"image": "inputs/menu.png", "k": 10},
        {"image": "inputs/menu.png", "note": None},
        {"image": "./inputs/menu.png"},
        {"image": "menu.png"},
        {"image": '"inputs\\menu.png"'},
    ],
)
def test_two_spellings_of_a_call_are_the_same_call(
    folder: Path, menu: Workspace, arguments: dict[str, str | int | None]
) -> None:
    call(taped(recording(folder), "record", counting()), menu, image="inputs/menu.png")
    assert text(taped(Tape.open(folder), "replay"), menu, **arguments) == "reply 1"


@pytest.mark.parametrize("changed", [{"k": 11}, {"k": True}, {"note": "x"}, {"k": "10"}])
def test_a_changed_argument_is_refused_and_the_nearest_recorded_call_is_kept_from_the_agent(
    folder: Path, menu: Workspace, changed: dict[str, str | int]
) -> None:
    recorder = taped(recording(folder), "record", counting())
    call(recorder, menu, image="inputs/menu.png")
    call(recorder, menu, image="inputs/other.png", note="far away")
    with pytest.raises(NotOnTape) as caught:
        call(taped(Tape.open(folder), "replay"), menu, image="inputs/menu.png", **changed)
    assert 'Look(image="inputs/menu.png", ' in str(caught.value)
    assert caught.value.nearest == 'Look(image="inputs/menu.png") in task 1'
    assert "Nearest" not in str(caught.value)


def test_other_content_of_a_file_is_another_call(folder: Path, tmp_path: Path) -> None:
    first, second = space(tmp_path / "a", menu=PNG), space(tmp_path / "b", menu=PNG + b"!")
    call(taped(recording(folder), "record", counting()), first, image="inputs/menu.png")
    with pytest.raises(NotOnTape) as caught:
        call(taped(Tape.open(folder), "replay"), second, image="inputs/menu.png")
    assert caught.value.nearest.endswith("with other content of inputs/menu.png")


def test_a_file_inside_a_text_or_a_list_counts_too(folder: Path, tmp_path: Path) -> None:
    first, second = space(tmp_path / "a", menu=PNG), space(tmp_path / "b", menu=PNG + b"!")
    notes: list[JsonValue] = [
        "![](inputs/menu.png)",
        ["inputs/menu.png"],
        {"file": "inputs/menu.png", "n": 1},
    ]
    for note in notes:
        call(taped(recording(folder), "record", counting()), first, note=note)
        assert call(taped(Tape.open(folder), "replay"), first, note=note).parts
        with pytest.raises(NotOnTape):
            call(taped(Tape.open(folder), "replay"), second, note=note)


def test_the_whole_tape_answers_where_all_its_replies_agree(folder: Path, menu: Workspace) -> None:
    tape = recording(folder)
    for task in ("1", "2"):
        same = Scripted(lambda *_: "the same")
        call(taped(tape, "record", same, task=task), menu, image="inputs/menu.png")
        other = Scripted(lambda *_, task=task: f"said in {task}")
        call(taped(tape, "record", other, task=task), menu, note="which?")
    player = taped(Tape.open(folder), "replay", task="3")
    assert text(player, menu, image="inputs/menu.png") == "the same"
    with pytest.raises(NotOnTape):
        call(player, menu, note="which?")
    assert text(taped(Tape.open(folder), "replay", task="2"), menu, note="which?") == "said in 2"


def test_files_are_written_again_under_the_names_they_had(folder: Path, tmp_path: Path) -> None:
    def draw(workspace: Workspace, _: object) -> str:
        return workspace.write("plot.png", PNG).path

    first, second = space(tmp_path / "a"), space(tmp_path / "b")
    recorder = taped(recording(folder), "record", Scripted(draw))
    said = [text(recorder, first, note="draw") for _ in range(2)]
    player = taped(Tape.open(folder), "replay")
    assert [text(player, second, note="draw") for _ in range(2)] == said
    assert second.outputs() == first.outputs()
    assert [file.path for file in second.outputs().files] == [
        "outputs/plot-2.png",
        "outputs/plot.png",
    ]


def test_a_name_that_is_taken_in_the_replay_is_replaced_in_the_reply(
    folder: Path, tmp_path: Path
) -> None:
    def report(workspace: Workspace, _: object) -> str:
        return f"It is in {workspace.write('plot.png', PNG).path}."

    first, second = space(tmp_path / "a"), space(tmp_path / "b")
    call(taped(recording(folder), "record", Scripted(report)), first, note="draw")
    second.write("plot.png", b"another")
    played = text(taped(Tape.open(folder), "replay"), second, note="draw")
    assert played == "It is in outputs/plot-2.png."
    assert second.read("outputs/plot.png") == b"another"


def test_a_file_that_was_replaced_is_replaced_again(folder: Path, tmp_path: Path) -> None:
    def rewrite(workspace: Workspace, given: object) -> str:
        content = str(given).encode()
        return workspace.write("log.txt", content, overwrite=True).path

    first, second = space(tmp_path / "a"), space(tmp_path / "b")
    for mode, workspace in (("record", first), ("replay", second)):
        live = Scripted(rewrite) if mode == "record" else None
        tape = recording(folder) if mode == "record" else Tape.open(folder)
        source = taped(tape, mode, live)  # type: ignore[arg-type]
        for note in ("one", "two"):
            call(source, workspace, note=note)
    assert second.outputs() == first.outputs()
    assert len(second.outputs().files) == 1


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (ToolError("the lens is dirty"), ToolError),
        (ToolUnavailable("no key.", fix="export KEY=…"), ToolUnavailable),
    ],
)
def test_a_failure_is_recorded_and_raised_again(
    folder: Path, menu: Workspace, problem: Exception, kind: type[Exception]
) -> None:
    def fail(*_: object) -> str:
        raise problem

    with pytest.raises(kind):
        call(taped(recording(folder), "record", Scripted(fail)), menu, note="x")
    with pytest.raises(kind) as caught:
        call(taped(Tape.open(folder), "replay"), menu, note="x")
    assert str(caught.value) == str(problem)


def test_a_bug_of_a_tool_is_not_recorded(folder: Path, menu: Workspace) -> None:
    def crash(*_: object) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        call(taped(recording(folder), "record", Scripted(crash)), menu, note="x")
    assert len(Tape.open(folder)) == 0


def test_replay_else_live_asks_the_tool_for_the_rest_and_keeps_nothing(
    folder: Path, menu: Workspace
) -> None:
    call(taped(recording(folder), "record", counting()), menu, note="known")
    before, live = (folder / TAPE).read_bytes(), Scripted(lambda *_: "live")
    source = taped(Tape.open(folder), "replay-else-live", live)
    assert text(source, menu, note="known") == "reply 1"
    assert text(source, menu, note="new") == "live"
    assert live.calls == 1
    assert (folder / TAPE).read_bytes() == before


def test_a_unit_that_is_recorded_again_gets_what_it_got_and_nothing_is_doubled(
    folder: Path, menu: Workspace
) -> None:
    live = counting()
    first = taped(recording(folder), "record", live)
    said = [text(first, menu, note=note) for note in ("a", "b", "a")]
    before = (folder / TAPE).read_bytes()
    second = taped(recording(folder), "record", live)
    assert [text(second, menu, note=note) for note in ("a", "b", "a")] == said
    assert (folder / TAPE).read_bytes() == before
    assert text(second, menu, note="a") == "reply 4"


def test_the_specs_of_a_replay_are_those_of_the_tape(folder: Path) -> None:
    recording(folder)
    assert list(taped(Tape.open(folder), "replay").specs()) == ["Look"]


def test_a_call_of_an_unknown_tool_has_no_nearest(folder: Path, menu: Workspace) -> None:
    recording(folder)
    with pytest.raises(NotOnTape) as caught:
        call(taped(Tape.open(folder), "replay"), menu, note="x")
    assert caught.value.nearest == "none of Look"
