"""Logs of shards without an evaluation: one real sample, copied under other ids and epochs."""

import json
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZipFile

from inspect_ai._util.json import to_json_safe
from inspect_ai._util.zipfile import zipfile_compress_kwargs
from inspect_ai.log import EvalSampleSummary, read_eval_log

from gta_bench.records.plan import make_plan
from gta_bench.running.system_run import execute
from gta_bench.runs.directory import log_folder, read_manifest, write_manifest
from gta_bench.runs.logs import list_logs
from gta_bench.runs.merge import shards_folder, write_plan
from tests.builders import atomic_task, write_atomic
from tests.planning import planned


def write_sharded_run(root: Path, *, tasks: int, epochs: int) -> Path:
    """A run of so many tasks and epochs, all finished, in the shards of a plan for 8 places."""
    out = root / "run"
    data = write_atomic(root / "data", {"0": atomic_task()})
    execute(*planned(data, "step", agent="gold"), out, lambda _: None)
    (log,) = list_logs(log_folder(out))
    names = tuple(str(number) for number in range(tasks))
    manifest = read_manifest(out).with_spec(tasks=names, epochs=epochs)
    write_manifest(out, manifest)
    created = datetime.now(UTC)
    stamp = f"{created:%Y-%m-%dT%H-%M-%S}-00-00"
    shards = make_plan(names, epochs=epochs, places=8, log=f"{stamp}_step_x", created=created)
    write_plan(out, shards)
    for number, shard in enumerate(shards.shards):
        folder = shards_folder(out, shards) / shard.name
        assert isinstance(folder, Path)
        folder.mkdir(parents=True)
        _write(Path(log), folder / f"{stamp}_step_{number}.eval", shard.tasks, epochs)
    Path(log).unlink()
    return out


def _write(source: Path, target: Path, tasks: tuple[str, ...], epochs: int) -> None:
    header = read_eval_log(str(source), header_only=True)
    with ZipFile(source) as zipped:
        sample = json.loads(zipped.read("samples/0_epoch_1.json"))
        (summary,) = json.loads(zipped.read("summaries.json"))
    found = []
    with ZipFile(target, "w", **zipfile_compress_kwargs) as written:
        for task in tasks:
            for epoch in range(1, epochs + 1):
                changes = {"id": task, "epoch": epoch}
                record = {**sample, **changes}
                record["metadata"] = {
                    **sample["metadata"],
                    "gta_task": {**sample["metadata"]["gta_task"], "id": task},
                }
                written.writestr(f"samples/{task}_epoch_{epoch}.json", json.dumps(record).encode())
                found.append(EvalSampleSummary.model_validate({**summary, **changes}))
        written.writestr("summaries.json", to_json_safe(found))
        header.eval.dataset.sample_ids = list(tasks)
        start = {"version": header.version, "eval": header.eval, "plan": header.plan}
        written.writestr("_journal/start.json", to_json_safe(start))
        written.writestr("header.json", to_json_safe(header))
