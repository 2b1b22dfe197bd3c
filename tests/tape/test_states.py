"""States of tool servers on a tape: whose they are, and when a replay has them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.records.tape import TapeMode
from gta_bench.records.tool_servers import ServerState, StateSnapshot
from gta_bench.records.tools import ServedTool, ToolSpec
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.tape.source import ANSWERED, OTHER_CALLS, TapedTools
from gta_bench.tape.storage import Tape
from tests.tape.builders import LOOK, Scripted, call, recording, space, taped

SCHEMA: Mapping[str, JsonValue] = {"type": "object"}


class Served(Scripted):
    """The same tool, of the server `shop`."""

    def __init__(self, schema: Mapping[str, JsonValue] = SCHEMA) -> None:
        super().__init__(lambda *_: "done")
        self.schema = schema

    def specs(self) -> Mapping[str, ToolSpec]:
        served = ServedTool(server="shop", input_schema=dict(self.schema))
        return {"Look": LOOK.model_copy(update={"served": served})}


class Stage:
    """A tape, and units that make calls with it."""

    def __init__(self, folder: Path) -> None:
        self.store = ArtefactStore(folder / "artefacts")
        self.space: Workspace = space(folder / "space")
        self.folder = folder / "tape"

    def state(self, text: str, server: str = "shop") -> ServerState:
        first, last = (self.store.keep_file("db", one.encode()) for one in ("empty", text))
        return ServerState(
            server=server, before=StateSnapshot(files=(first,)), after=StateSnapshot(files=(last,))
        )

    def calls(self, source: TapedTools, notes: Sequence[str]) -> None:
        for note in notes:
            call(source, self.space, note=note)

    def record(self, notes: Sequence[str], text: str | None, epoch: int = 1) -> None:
        tape = recording(self.folder)
        live = Served()
        tape.offer(live.specs().values())
        source = taped(tape, "record", live, epoch=epoch)
        self.calls(source, notes)
        states = {} if text is None else {"shop": self.state(text)}
        assert source.settle_states(states, self.store) == states
        tape.close()

    def replay(
        self,
        notes: Sequence[str],
        mode: TapeMode = "replay",
        *,
        live: Served | None = None,
        task: str = "1",
        epoch: int = 1,
    ) -> dict[str, ServerState]:
        tape = Tape.open(self.folder)
        source = taped(tape, mode, live, task=task, epoch=epoch)
        self.calls(source, notes)
        state = {} if live is None else {"shop": self.state("live")}
        found = source.settle_states(state, self.store)
        tape.close()
        return found

    def text(self, states: Mapping[str, ServerState]) -> str:
        (state,) = states.values()
        return state.unknown or self.store.read(state.after.files[0].digest).decode()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_replay_has_the_state_after_exactly_the_recorded_calls(stage: Stage) -> None:
    stage.record(["a", "b"], "ab")
    assert stage.text(stage.replay(["a", "b"])) == "ab"
    assert stage.text(stage.replay([])) == "empty"
    for others in (["a"], ["b", "a"], ["a", "b", "b"]):
        assert stage.text(stage.replay(others)) == OTHER_CALLS
    assert stage.replay([], task="2") == {}


def test_a_missed_call_makes_the_state_unknown(stage: Stage) -> None:
    stage.record(["a"], "a")
    tape = Tape.open(stage.folder)
    source = taped(tape, "replay")
    with pytest.raises(Exception, match="gave no reply"):
        call(source, stage.space, note="z")
    assert stage.text(source.settle_states({}, stage.store)) == OTHER_CALLS
    tape.close()


def test_every_sequence_of_calls_has_its_state_and_the_own_epoch_comes_first(stage: Stage) -> None:
    stage.record(["a"], "first")
    stage.record(["a", "b"], "longer")
    stage.record(["a"], "second", epoch=2)
    found = [stage.text(stage.replay(["a"], epoch=epoch)) for epoch in (1, 2, 3)]
    assert found == ["first", "second", "second"]
    assert stage.text(stage.replay(["a", "b"])) == "longer"


def test_files_of_a_state_are_on_the_tape(stage: Stage, tmp_path: Path) -> None:
    stage.record(["a"], "a")
    stage.store = ArtefactStore(tmp_path / "elsewhere")
    assert stage.text(stage.replay(["a"])) == "a"


@pytest.mark.parametrize(
    ("recorded", "notes", "expected"),
    [
        ("a", ["a"], "a"),  # all of them answered by the tape
        ("a", ["x"], "live"),  # none of them
        ("a", [], "live"),
        ("a", ["a", "x"], OTHER_CALLS),
        (None, ["a"], ANSWERED),
        (None, ["x"], "live"),
    ],
)
def test_calls_that_the_tape_answers_do_not_change_a_live_server(
    stage: Stage, recorded: str | None, notes: list[str], expected: str
) -> None:
    stage.record(["a"], recorded)
    found = stage.replay(notes, "replay-else-live", live=Served())
    assert stage.text(found) == expected


def test_a_server_with_other_tools_has_no_recorded_state(stage: Stage) -> None:
    stage.record(["a"], "a")
    tape = recording(stage.folder)
    tape.offer(Served({"type": "object", "properties": {}}).specs().values())
    tape.close()
    assert stage.text(stage.replay([])) == OTHER_CALLS
