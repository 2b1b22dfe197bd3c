"""The evidence that a judge sees: a system's answer and files, and what could not be shown."""

import hashlib
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from gta_bench.records.base import Record
from gta_bench.records.files import Digest

# Providers scale down larger pictures themselves, after charging for the bytes.
LONGEST_SIDE = 1568
SideLength = Annotated[int, Field(ge=1, le=LONGEST_SIDE)]


class Picture(Record):
    """A page, frame or picture as a PNG or JPEG in the evidence store."""

    digest: Digest
    media_type: Literal["image/png", "image/jpeg"]
    label: str
    width: SideLength
    height: SideLength


class Probe(Record):
    """A fact measured without a model: pages, rows, formula errors, seconds, loudness."""

    name: str
    value: JsonValue


class FileEvidence(Record):
    """One file as the judge sees it.

    `claims` is the kind by its name and `kind` the kind by its bytes. `cut` lists what is shown in
    part, `unshown` what could not be shown and why; `findings` lists what else a reader should
    know, such as a misleading name.
    """

    path: str
    digest: Digest
    size: int
    claims: str
    kind: str
    text: str = ""
    pictures: tuple[Picture, ...] = ()
    probes: tuple[Probe, ...] = ()
    cut: tuple[str, ...] = ()
    unshown: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


class Evidence(Record):
    """The evidence of one unit: the answer, its deliverables and the task's own files.

    `renderer` names the programs and versions that rendered it.
    """

    answer: str
    deliverables: tuple[FileEvidence, ...] = ()
    inputs: tuple[FileEvidence, ...] = ()
    renderer: str = ""

    @property
    def digest(self) -> str:
        """The same for the same evidence, however the files were delivered."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
