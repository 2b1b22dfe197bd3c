"""Input files of a task, under the portable path that agents see."""

from typing import Annotated

from pydantic import Field

from gta_bench.records.base import Record

PortablePath = Annotated[str, Field(pattern=r"^(inputs|outputs)/[^/\\\x00]+$")]


class Attachment(Record):
    """An input file of a task.

    `path` is what agents see (`inputs/menu.jpg`); `source` is where the file lies in the
    dataset's folder. The dataset's own `type` is not reliable and is kept only as a claim.
    """

    path: PortablePath
    source: str
    type: str | None = None
    url: str | None = None
