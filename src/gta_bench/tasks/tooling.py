"""The tools of a run, opened: whose they are, a tape in front of them, controls over them."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import OWN_TOOLS, RunManifest, RunSpec
from gta_bench.runs.directory import write_manifest
from gta_bench.runs.store import StorePath
from gta_bench.serving.choice import LOCAL
from gta_bench.tape.controls import Controls, parse_controls
from gta_bench.tape.corruption import OtherReplies
from gta_bench.tape.storage import Tape, recorded_use
from gta_bench.tasks.context import OpenTooling, Taping
from gta_bench.tasks.run_tools import check_tools


@contextmanager
def open_tooling(
    spec: RunSpec, folder: StorePath | None, references: Iterable[AtomicTask] = ()
) -> Iterator[OpenTooling]:
    """What samples get their tools through; the tape in `folder` is closed at the end.

    `references` are the dialogues whose replies corruption may put in the place of others.
    """
    # A system with tools of its own calls none of ours, and none is opened before one is called.
    server = LOCAL if spec.tools == OWN_TOOLS else spec.tools
    asyncio.run(check_tools(server))
    controls = None
    if spec.controls:
        wanted = parse_controls(spec.controls)
        controls = Controls(wanted, spec.control_seed, OtherReplies(references))
    if spec.tape is None or folder is None:
        yield OpenTooling(server, controls=controls)
        return
    if spec.tape.mode == "record":
        tape = Tape.record(folder, dataset=spec.dataset, origin="live")
    else:
        tape = Tape.open(folder)
    try:
        yield OpenTooling(server, Taping(tape, spec.tape.mode, spec.dataset), controls)
    finally:
        tape.close()


def note_recording(folder: StorePath | None, out: StorePath, manifest: RunManifest) -> None:
    """A tape that was recorded is another one now: the manifest has its new digest."""
    tape = manifest.spec.tape
    if folder is not None and tape is not None and tape.mode == "record":
        write_manifest(out, manifest.with_spec(tape=recorded_use(folder)))
