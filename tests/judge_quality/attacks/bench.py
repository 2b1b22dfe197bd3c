"""Runs the corpus against a judge without the engine: evidence, calls, outcomes."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from inspect_ai.model import get_model

from gta_bench.judge_quality.attack_run import AttackSummary, summarize
from gta_bench.judge_quality.attacks.corpus import Attack, with_twins, write_corpus
from gta_bench.judging.evidence_store import EvidenceStore
from gta_bench.judging.judge import Judge, StopAsking, judge_unit
from gta_bench.judging.options import JudgeOptions, judge_name
from gta_bench.judging.run_evidence import make_evidence
from gta_bench.judging.scripted import scripted
from gta_bench.records.evidence import Evidence
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictKey, VerdictRow
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.tasks.judging import find_judgeable_units
from gta_bench.tools.contract import Equipment

__all__ = ["Bench", "scripted"]

Verdicts = dict[VerdictKey, VerdictRow]


class Bench:
    """A corpus with its evidence, made once."""

    def __init__(self, folder: Path, chosen: Sequence[Attack], equipment: Equipment) -> None:
        self.chosen = chosen
        self._judged: dict[tuple[str, JudgeOptions], Verdicts] = {}
        self.missing = write_corpus(folder, chosen)
        self.units: Mapping[str, WorkflowUnit] = find_judgeable_units(folder)
        self.store = EvidenceStore(folder / "evidence")
        self._files = ArtefactStore(folder / ARTEFACTS)
        self.evidence: dict[str, Evidence] = asyncio.run(self._made(equipment))

    async def _made(self, equipment: Equipment) -> dict[str, Evidence]:
        """All files in one go, so that they share LibreOffice's starts."""
        everything = [file for unit in self.units.values() for file in unit.deliverables]
        await make_evidence(
            "", everything, (), files=self._files, store=self.store, equipment=equipment
        )
        return {
            name: await make_evidence(
                unit.answer,
                unit.deliverables,
                (),
                files=self._files,
                store=self.store,
                equipment=equipment,
            )
            for name, unit in self.units.items()
        }

    def shown(self, attack: Attack) -> Evidence:
        return self.evidence[attack.id]

    def judged(self, judge: str, options: JudgeOptions) -> Verdicts:
        """The verdicts of a scripted judge on all works, asked for once."""
        if (judge, options) not in self._judged:
            name = judge_name(f"scripted/{judge}", options)
            one = Judge(get_model(f"scripted/{judge}", memoize=False), name, options)
            self._judged[judge, options] = asyncio.run(self.ask(one, with_twins(self.chosen)))
        return self._judged[judge, options]

    async def ask(
        self, judge: Judge, works: Sequence[Attack], stop: StopAsking = lambda: None
    ) -> Verdicts:
        """The verdicts of any judge on these works."""

        async def keep(rows: Sequence[VerdictRow]) -> None:
            pass

        found: Verdicts = {}
        for attack in works:
            rows = await judge_unit(
                self.units[attack.id].task,
                self.evidence[attack.id],
                judge,
                pictures=self.store.picture,
                keep=keep,
                stop=stop,
            )
            found.update({row.key: row for row in rows})
        return found

    def attacked(self, judge: str, options: JudgeOptions, bare: JudgeOptions) -> AttackSummary:
        """The summary of the attacks; drift is measured against the judge under `bare`."""
        names = [judge_name(f"scripted/{judge}", chosen) for chosen in (options, bare)]
        verdicts = self.judged(judge, options) | self.judged(judge, bare)
        return summarize(names[0], self.chosen, verdicts, bare=names[1])
