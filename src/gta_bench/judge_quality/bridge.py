"""A bridge set: some finished units of a run, without verdicts, for judges to be compared on."""

from gta_bench.errors import RunError
from gta_bench.metrics.labels import label_order
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import open_run, read_manifest
from gta_bench.runs.imported import write_imported
from gta_bench.runs.store import StorePath
from gta_bench.tasks.judging import judgeable_units

NOTE = "A bridge set: the same works before every judge."


def make_bridge(run: StorePath, out: StorePath, *, count: int | None, seed: int) -> int:
    """Copy units, chosen at random, with their files as a run of their own; how many leaves."""
    first = [unit for unit in judgeable_units(run).values() if unit.epoch == 1]
    units = label_order(first, seed=seed)[:count]
    if not units:
        raise RunError(f"{run} has no finished unit to copy.")
    tasks = tuple(unit.task.id for unit in units)
    stored = read_manifest(run).with_spec(tasks=tasks, epochs=1)
    manifest = stored.model_copy(update={"notes": (NOTE,), "growth": ()})
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out} is not empty; name another --out.")
    open_run(out, manifest)
    files, store = ArtefactStore(run / ARTEFACTS), ArtefactStore(out / ARTEFACTS)
    for unit in units:
        for file in (*unit.deliverables, *unit.inputs):
            store.keep(files.read(file.digest))
    write_imported(out, manifest, units)
    return sum(len(list(unit.task.leaves())) for unit in units)
