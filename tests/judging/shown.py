"""Makes evidence of files, and returns what the judge is shown."""

import asyncio
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from gta_bench.judging.evidence_store import EvidenceStore
from gta_bench.judging.run_evidence import make_evidence
from gta_bench.judging.showing.draft import EvidenceLimits
from gta_bench.records.evidence import Evidence, FileEvidence
from gta_bench.records.files import Deliverable
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.tools.contract import Equipment


class Desk:
    """A run's files and a store of evidence, in a folder."""

    def __init__(self, folder: Path, equipment: Equipment) -> None:
        self.files = ArtefactStore(folder / "artefacts")
        self.store = EvidenceStore(folder / "evidence")
        self.equipment = equipment

    def keep(self, contents: Mapping[str, bytes]) -> list[Deliverable]:
        return [
            Deliverable(path=path, digest=self.files.keep(data), size=len(data))
            for path, data in contents.items()
        ]

    async def make(
        self, contents: Mapping[str, bytes], limits: EvidenceLimits | None = None
    ) -> Evidence:
        return await make_evidence(
            "Done.",
            self.keep(contents),
            [],
            files=self.files,
            store=self.store,
            equipment=self.equipment,
            limits=limits,
        )

    def show(
        self, contents: Mapping[str, bytes], limits: EvidenceLimits | None = None
    ) -> dict[str, FileEvidence]:
        """Each file's evidence by its path."""
        made = asyncio.run(self.make(contents, limits))
        return {file.path: file for file in made.deliverables}

    def show_one(
        self, path: str, data: bytes, limits: EvidenceLimits | None = None
    ) -> FileEvidence:
        return self.show({path: data}, limits)[path]

    def picture(self, file: FileEvidence, number: int = 0) -> Image.Image:
        picture = file.pictures[number]
        image = Image.open(io.BytesIO(self.store.picture(picture.digest)))
        assert image.size == (picture.width, picture.height)
        assert Image.MIME[image.format or ""] == picture.media_type
        return image.convert("RGB")


def facts(file: FileEvidence) -> dict[str, Any]:
    return {probe.name: probe.value for probe in file.probes}
