"""The floor of judges: systems that do nothing, on the tasks of a run, judged like any other."""

from collections.abc import Sequence

from gta_bench.judge_quality.attacks.nulls import NULLS, write_null
from gta_bench.metrics.table import JUDGED
from gta_bench.records.judges import Floor, Floors
from gta_bench.running.judge_run import Judging, Watching, judge_run
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import null_folder, read_floors, read_manifest, write_floors
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.store import StorePath
from gta_bench.tasks.judging import judgeable_units


def measure_floor(run: StorePath, judging: Judging, watching: Watching) -> Floors:
    """Judge every null system on the run's tasks, and keep the floor beside the run's scores."""
    manifest = read_manifest(run)
    units = [unit for unit in judgeable_units(run).values() if unit.epoch == 1]
    files = ArtefactStore(run / ARTEFACTS)
    found: list[Floor] = []
    for system in NULLS:
        folder = null_folder(run, system)
        write_null(folder, system, units, files, manifest)
        names = [one.judge for one in judge_run(folder, judging, watching)]
        found += _floors(folder, system, names, judging)
    judges = {floor.judge for floor in found}
    kept = [floor for floor in read_floors(run).rows if floor.judge not in judges]
    floors = Floors(rows=(*kept, *found))
    write_floors(run, floors)
    return floors


def _floors(folder: StorePath, system: str, judges: Sequence[str], judging: Judging) -> list[Floor]:
    scores = score_workflow_run(folder, judging.settings)
    tables = [table for table in scores.judges if table.judge in judges]
    return [
        Floor(
            judge=table.judge,
            system=system,
            **table.strict.model_dump(include={*JUDGED, "n", "n_units"}),
        )
        for table in tables
    ]
