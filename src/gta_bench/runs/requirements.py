"""`requirements.json` of a run: how another version of its dataset replaces what its logs say."""

from collections.abc import Mapping
from typing import Final

from gta_bench.records.base import Record
from gta_bench.records.workflow import Checkpoint
from gta_bench.runs.directory import read_record, write_record
from gta_bench.runs.store import StorePath

REQUIREMENTS: Final = "requirements.json"


class EditedTrees(Record):
    """`requirements.json`: the trees by task, and the dataset that they came from.

    `superseded` are the samples in the logs that were asked something else than this dataset asks,
    or whose task it does not have; they stay in the logs but do not count. `removed` are tasks of
    the run that this dataset does not have.
    """

    dataset_digest: str = ""
    trees: Mapping[str, tuple[Checkpoint, ...]] = {}
    superseded: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def read_edited(run: StorePath) -> EditedTrees:
    """Read the edited trees; empty if the run has the dataset that it began with."""
    file = run / REQUIREMENTS
    if not file.is_file():
        return EditedTrees()
    return read_record(file, EditedTrees, "Run `gta score` with --data again.")


def write_edited(run: StorePath, edited: EditedTrees) -> None:
    """Write the edited trees."""
    write_record(run / REQUIREMENTS, edited)
