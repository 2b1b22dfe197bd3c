"""The ceiling of a judge on Office files, rendered as for any system."""

import io
from hashlib import sha256
from pathlib import Path
from typing import Any

import docx
import pytest

from gta_bench.authoring.proofs import find_tasks, read_authored
from gta_bench.confine.jail import Jail
from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.writing import Order, forge_tasks
from gta_bench.judge_quality.ceiling import ceiling_remarks
from gta_bench.judging.showing import documents
from gta_bench.records.evidence import Evidence
from gta_bench.records.workflow import Checkpoint
from tests.authored import write_task
from tests.authoring.test_ceiling import find_quoted, measure
from tests.content.conftest import jail
from tests.needs import needs

__all__ = ["jail"]
pytestmark = [needs("soffice"), pytest.mark.usefixtures("jail")]

# The broken leaves of every work, by its request, answer and files.
BROKEN: dict[tuple[str, str, frozenset[str]], tuple[str, ...]] = {}


def never_see_excel(request: str, leaf: Checkpoint, evidence: Evidence) -> float:
    """A judge without errors, except that it fails everything in a workbook."""
    names = frozenset(file.digest for file in evidence.deliverables)
    broken = BROKEN[request, evidence.answer, names]
    return 0.0 if leaf.id in broken or leaf.id != "best" else 10.0


@pytest.mark.measure
def test_a_judge_that_never_sees_excel_is_found_out_on_forged_tasks(tmp_path: Path) -> None:
    forge_tasks([FAMILIES["sales"]], Order("public", "28", 1), 2, tmp_path / "tasks")
    works = leaves = 0
    for folder in find_tasks((tmp_path / "tasks",)):
        authored = read_authored(folder)
        works += sum(not one.name.startswith("cheat") for one in authored.proofs)
        leaves = len([*authored.task.leaves()])
        for proof in authored.proofs:
            files = [(folder / proof.name / one.parts[-1]) for one in proof.delivery.files]
            names = frozenset(sha256(file.read_bytes()).hexdigest() for file in files)
            answer = folder / proof.name / "final.txt"
            said = answer.read_text().strip() if answer.exists() else ""
            BROKEN[authored.task.request, said, names] = proof.breaks
    found, asked = measure(tmp_path, never_see_excel)
    assert (found.works, asked.wanted, found.unscored) == (works, works * leaves, 0)
    rates = {
        one.name: (one.sensitivity and one.sensitivity.estimate, one.specificity)
        for one in found.groups
        if one.by == "file"
    }
    hits, intact = rates["xlsx"]
    assert hits == 1 and intact is not None and intact.estimate == 0
    hits, intact = rates["answer"]
    assert hits == 1 and intact is not None and intact.estimate == 1
    assert len(found.suspects) == 2 * (leaves - 1)
    assert {one.kinds for one in found.suspects} == {("xlsx",)}


TITLED = """\
format = 1
id = "q3-sales"
[deliverables]
"plan.docx" = "docx"
[[leaf]]
id = "title"
says = 'The title is "Harbor plan".'
checks = [{ is = "text.contains", file = "plan.docx", all = ["Harbor plan"] }]
[[leaf]]
id = "cost"
says = 'It names the cost, "400 boats".'
checks = [{ is = "text.contains", file = "plan.docx", all = ["400 boats"] }]
"""


def write_document(title: str, text: str) -> bytes:
    document = docx.Document()
    document.add_heading(title, 0)
    document.add_paragraph(text)
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


@pytest.mark.slow
def test_word_titles_that_the_reader_loses_make_docx_a_suspect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pandoc once ran without --standalone, and titles vanished from the text for the judge."""
    files = {
        "inputs/a.txt": b"Write a plan.",
        "gold/one/plan.docx": write_document("Harbor plan", "It costs 400 boats."),
        "wrong/title/plan.docx": write_document("Town plan", "It costs 400 boats."),
        "wrong/title/wrong.toml": b'breaks = ["title"]',
    }
    write_task(tmp_path / "good/tasks", TITLED, files=files)
    found, _ = measure(tmp_path / "good", find_quoted)
    assert found.suspects == ()
    run_program = Jail.run_program

    async def run_plain(self: Jail, argv: Any, **options: Any) -> Any:
        if isinstance(argv, list):
            argv = [one for one in argv if one != "--standalone"]
        return await run_program(self, argv, **options)

    monkeypatch.setattr(Jail, "run_program", run_plain)
    # Text that a reader loses is shown since then.
    monkeypatch.setattr(documents, "add_leftovers", lambda draft, parts: None)
    write_task(tmp_path / "bad/tasks", TITLED, files=files)
    found, _ = measure(tmp_path / "bad", find_quoted)
    assert [(one.leaf, one.kinds) for one in found.suspects] == [("title", ("docx",))]
    assert any("by file: docx 1." in one for one in ceiling_remarks(found))
