"""`judges.json` of a run: which judges were asked, and when."""

from pydantic import ValidationError

from gta_bench.errors import RunError
from gta_bench.records.judges import JudgeEntry, JudgeRegistry
from gta_bench.runs.directory import write_record
from gta_bench.runs.store import StorePath

JUDGES = "judges.json"


def read_judges(run: StorePath) -> JudgeRegistry:
    """The judges of a run; empty where none was asked, or before there was a registry."""
    file = run / JUDGES
    if not file.is_file():
        return JudgeRegistry()
    try:
        return JudgeRegistry.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        raise RunError(f"{file}: {exc.error_count()} fields cannot be read.") from exc


def record_judge(run: StorePath, entry: JudgeEntry) -> None:
    """Keep that this judge was asked."""
    write_record(run / JUDGES, read_judges(run).with_entry(entry))
