"""Files that a system produced, by name and by content."""

from typing import Annotated

from pydantic import Field

from gta_bench.records.base import Record

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Deliverable(Record):
    """A file of a unit: the path its maker gave it, and the content that the run keeps."""

    path: str
    digest: Digest
    size: int
