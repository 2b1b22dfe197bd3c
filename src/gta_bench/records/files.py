"""Files of a task: inputs under the paths that agents see, and deliverables of a system."""

from typing import Annotated

from pydantic import Field

from gta_bench.records.base import Record

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Deliverable(Record):
    """A file of a unit: its original path, and the digest and size of the stored content."""

    path: str
    digest: Digest
    size: int


PortablePath = Annotated[str, Field(pattern=r"^(inputs|outputs)/[^/\\\x00]+$")]


class Attachment(Record):
    """An input file of a task.

    `path` is what agents see (`inputs/menu.jpg`); `source` is the path in the dataset's folder.
    The dataset's `type` is not reliable and is not used to read the file.
    """

    path: PortablePath
    source: str
    type: str | None = None
    url: str | None = None
