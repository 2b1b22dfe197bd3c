"""The plan of a run that is evaluated in shards, and where their logs lie."""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from gta_bench.errors import RunError
from gta_bench.records.plan import ShardPlan, plan_digest
from gta_bench.runs.directory import log_folder, write_record
from gta_bench.runs.store import StorePath

PLAN = "plan.json"
LOCK = ".lock"
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


@contextmanager
def locked(folder: StorePath, *, patience: float = 0) -> Iterator[None]:
    """The folder for this process alone; a lock ends with its process, however that ends."""
    place = _place(folder)
    place.mkdir(parents=True, exist_ok=True)
    handle = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _take(handle, folder, time.monotonic() + patience)
        yield
    finally:
        os.close(handle)


def is_locked(folder: StorePath) -> bool:
    """Whether a process works on the folder now."""
    if not (_place(folder) / LOCK).is_file():
        return False
    try:
        with locked(folder):
            return False
    except RunError:
        return True


def _place(folder: StorePath) -> Path:
    """Where the lock lies. A store has none: it holds among the processes of this machine only."""
    if isinstance(folder, Path):
        return folder
    return Path(tempfile.gettempdir()) / f"gta-lock-{sha256(str(folder).encode()).hexdigest()[:16]}"


def _take(handle: int, folder: StorePath, end: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as exc:
            if time.monotonic() >= end:
                raise RunError(
                    f"Another command works on {folder} now; `gta status` says how far it is."
                ) from exc
            time.sleep(0.2)


def _damaged(run: StorePath) -> RunError:
    return RunError(
        f"{run / PLAN} is damaged. No log was touched: remove the file and give the same command "
        "again; what is finished is not run again."
    )
