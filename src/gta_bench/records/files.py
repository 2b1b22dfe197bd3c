"""Files of a task: inputs under the path that agents see, and what a system delivered."""

from typing import Annotated

from pydantic import Field

from gta_bench.records.base import Record

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Deliverable(Record):
    """A file of a unit: the path its maker gave it, and the content that the run keeps."""

    path: str
    digest: Digest
    size: int


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
