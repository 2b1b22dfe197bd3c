"""What the judge is shown of a system's answer and files, and what it is told it is not shown."""

import hashlib
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from gta_bench.records.base import Record
from gta_bench.records.files import Digest

# Above this, providers scale pictures down themselves, after charging for the bytes.
LONGEST_SIDE = 1568
SideLength = Annotated[int, Field(ge=1, le=LONGEST_SIDE)]


class Picture(Record):
    """A page, frame or picture as a PNG or JPEG of the evidence store."""

    digest: Digest
    media_type: Literal["image/png", "image/jpeg"]
    label: str
    width: SideLength
    height: SideLength


class Probe(Record):
    """A fact that was measured without a model: pages, rows, formula errors, seconds, loudness."""

    name: str
    value: JsonValue


class FileEvidence(Record):
    """One file as the judge sees it.

    `claims` is the kind its name promises and `kind` what its bytes are. `cut` says what is shown
    in part, `unshown` what could not be shown and why; `findings` what a reader should know of it,
    such as a name that lies.
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
    """Everything shown for one unit: the answer, its deliverables and the task's own files.

    `renderer` names the programs and versions that made it.
    """

    answer: str
    deliverables: tuple[FileEvidence, ...] = ()
    inputs: tuple[FileEvidence, ...] = ()
    renderer: str = ""

    @property
    def digest(self) -> str:
        """Equal for equal evidence, whatever road the files came by."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
