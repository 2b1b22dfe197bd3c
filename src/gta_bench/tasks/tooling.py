"""What a run asks of its tools: whose they are, a tape before them, controls over them."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import DatasetName, RunManifest
from gta_bench.records.tape import TapeMode
from gta_bench.runs.directory import write_manifest
from gta_bench.runs.store import StorePath
from gta_bench.serving.choice import LOCAL
from gta_bench.tape.controls import Controls, parse_controls
from gta_bench.tape.corruption import OtherReplies
from gta_bench.tape.storage import Tape, recorded_use, tape_use
from gta_bench.tasks.context import OpenTooling, Taping
from gta_bench.tasks.run_tools import check_tools


@dataclass(frozen=True)
class Tooling:
    """The tools of a run as its command names them."""

    server: str = LOCAL
    tape: StorePath | None = None
    tape_mode: TapeMode = "replay"
    controls: tuple[str, ...] = ()
    control_seed: int = 0

    @property
    def plain(self) -> bool:
        """Whether they are this machine's tools as they are."""
        return self == Tooling(control_seed=self.control_seed)

    def planned(self) -> dict[str, Any]:
        """The manifest's fields about tools; refuses what cannot be."""
        parse_controls(self.controls)
        return {
            "tools": self.server,
            "tape": None if self.tape is None else tape_use(self.tape, self.tape_mode),
            "controls": self.controls,
            "control_seed": self.control_seed,
        }


PLAIN = Tooling()


@contextmanager
def open_tooling(
    tooling: Tooling, dataset: DatasetName, references: Iterable[AtomicTask] = ()
) -> Iterator[OpenTooling]:
    """What samples get their tools through; the tape is closed at the end.

    `references` are the dialogues whose replies corruption may put in the place of others.
    """
    asyncio.run(check_tools(tooling.server))
    controls = None
    if tooling.controls:
        wanted = parse_controls(tooling.controls)
        controls = Controls(wanted, tooling.control_seed, OtherReplies(references))
    if tooling.tape is None:
        yield OpenTooling(tooling.server, controls=controls)
        return
    if tooling.tape_mode == "record":
        tape = Tape.record(tooling.tape, dataset=dataset, origin="live")
    else:
        tape = Tape.open(tooling.tape)
    try:
        yield OpenTooling(tooling.server, Taping(tape, tooling.tape_mode, dataset), controls)
    finally:
        tape.close()


def note_recording(tooling: Tooling, out: StorePath, manifest: RunManifest) -> None:
    """A tape that was recorded is another one now: the manifest has its new digest."""
    if tooling.tape is not None and tooling.tape_mode == "record":
        write_manifest(out, manifest.model_copy(update={"tape": recorded_use(tooling.tape)}))
