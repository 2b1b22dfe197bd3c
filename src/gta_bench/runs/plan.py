"""The plan of a run that is evaluated in shards, and where their logs lie."""

from pydantic import ValidationError

from gta_bench.errors import RunError
from gta_bench.records.plan import ShardPlan, plan_digest
from gta_bench.runs.directory import log_folder, write_record
from gta_bench.runs.store import StorePath

PLAN = "plan.json"
SHARDS = ".shards"


def read_plan(run: StorePath) -> ShardPlan | None:
    """The run's plan; None where it was never cut into shards."""
    file = run / PLAN
    if not file.is_file():
        return None
    try:
        plan = ShardPlan.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        raise _damaged(run) from exc
    if plan.digest != plan_digest(plan.shards, plan.epochs):
        raise _damaged(run)
    return plan


def write_plan(run: StorePath, plan: ShardPlan) -> None:
    """Keep the plan for every command that continues the run."""
    write_record(run / PLAN, plan)


def shards_folder(run: StorePath, plan: ShardPlan) -> StorePath:
    """Where the shards of a plan lie: beside the log that they become, as Inspect wants it."""
    return log_folder(run) / f"{plan.log}{SHARDS}"


def merged_log(run: StorePath, plan: ShardPlan) -> StorePath:
    """The log that the shards of a plan become."""
    return log_folder(run) / f"{plan.log}.eval"


def _damaged(run: StorePath) -> RunError:
    return RunError(
        f"{run / PLAN} is damaged. No log was touched: remove the file and give the same command "
        "again; what is finished is not run again."
    )
