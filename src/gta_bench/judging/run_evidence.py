"""The evidence of a run's units, made once for all judges."""

import asyncio
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Protocol

from gta_bench.errors import GtaError
from gta_bench.judging.evidence import make_evidence
from gta_bench.judging.evidence_store import EVIDENCE, EvidenceStore
from gta_bench.records.evidence import Evidence
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.store import StorePath
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.equipment import equipped


class EvidenceSource(Protocol):
    """Where a judge's evidence comes from."""

    async def evidence(self, unit: WorkflowUnit) -> Evidence:
        """What is shown of a unit; a GtaError where it cannot be made."""

    def picture(self, digest: str) -> bytes:
        """A picture of the evidence."""


class RunEvidence:
    """Evidence from the files that a run keeps; what was rendered is kept beside them."""

    def __init__(self, run: StorePath, settings: Settings) -> None:
        self._files = ArtefactStore(run / ARTEFACTS)
        self._store = EvidenceStore(run / EVIDENCE)
        self._settings = settings
        self._equipment: Equipment | None = None

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        """Programs stay open inside the block, for many units."""
        async with equipped(self._settings) as self._equipment:
            try:
                yield
            finally:
                self._equipment = None

    async def evidence(self, unit: WorkflowUnit) -> Evidence:
        """What is shown of a unit; files that were rendered before are not rendered again."""
        if self._equipment is None:
            async with self.ready():
                return await self.evidence(unit)
        return await make_evidence(
            unit.answer,
            unit.deliverables,
            unit.inputs,
            files=self._files,
            store=self._store,
            equipment=self._equipment,
        )

    def picture(self, digest: str) -> bytes:
        """A picture of the evidence."""
        return self._store.picture(digest)


class MadeEvidence:
    """Evidence that was made before anybody is asked; a failure is kept and raised again."""

    def __init__(self, source: EvidenceSource) -> None:
        self._source = source
        self._made: dict[tuple[str, int], Evidence | GtaError] = {}

    async def make(self, units: Collection[WorkflowUnit]) -> None:
        """Make the evidence of all units, as many at once as there are cores."""
        places = asyncio.Semaphore(os.cpu_count() or 1)

        async def one(unit: WorkflowUnit) -> None:
            async with places:
                try:
                    made: Evidence | GtaError = await self._source.evidence(unit)
                except GtaError as exc:
                    made = exc
                self._made[_key(unit)] = made

        async with asyncio.TaskGroup() as group:
            for unit in units:
                group.create_task(one(unit))

    def made(self, unit: WorkflowUnit) -> Evidence | None:
        """A unit's evidence; None where it could not be made."""
        found = self._made[_key(unit)]
        return found if isinstance(found, Evidence) else None

    async def evidence(self, unit: WorkflowUnit) -> Evidence:
        """A unit's evidence, as judges ask for it."""
        found = self._made[_key(unit)]
        if isinstance(found, GtaError):
            raise found
        return found

    def picture(self, digest: str) -> bytes:
        """A picture of the evidence."""
        return self._source.picture(digest)


def _key(unit: WorkflowUnit) -> tuple[str, int]:
    return (unit.task.id, unit.epoch)
