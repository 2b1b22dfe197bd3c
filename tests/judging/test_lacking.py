"""If the machine lacks something, leaves stay unscored with the cause and never get a low score."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.confine.jail import Jail
from gta_bench.content import libreoffice
from gta_bench.content.kinds import KIND_OF_SUFFIX, KINDS
from gta_bench.errors import EvidenceFailed
from gta_bench.judging.known_good import check_kinds, failures_here, sample
from gta_bench.tools import packages
from gta_bench.tools.contract import Equipment
from tests.content import samples
from tests.judging.layered import layered_python
from tests.judging.shown import Desk
from tests.needs import needs
from tests.tools.media_files import make_stereo

pytestmark = needs("bwrap")

DOCUMENT = samples.docx(samples.paragraph("All is well."))
LACKING = [
    ("openpyxl", "a.xlsx", samples.calculated_workbook(), "No module named 'openpyxl'"),
    ("pypdfium2", "a.pdf", samples.pdf([samples.words("Page")]), "No module named 'pypdfium2'"),
    ("pypandoc", "a.docx", DOCUMENT, "pandoc could not be started"),
    ("soffice", "b.docx", DOCUMENT, "LibreOffice is not installed"),
]


@contextmanager
def without(part: str, folder: Path, equipment: Equipment) -> Iterator[Equipment]:
    """The same machine without a package or program; the host's Python has them all."""
    if part == "soffice":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(libreoffice, "find_libreoffice", lambda: None)
            yield equipment
        return
    assert equipment.jail is not None
    with Jail("bubblewrap", slots=2, python=layered_python(folder, without=part)) as jail:
        yield replace(equipment, jail=jail)


@pytest.mark.slow
@needs("soffice")
@pytest.mark.parametrize(("part", "name", "data", "cause"), LACKING)
def test_a_file_that_this_machine_cannot_show_is_no_evidence(
    part: str, name: str, data: bytes, cause: str, tmp_path: Path, equipment: Equipment
) -> None:
    """The judge got `[First bytes] 50 4b 03 04…` of a workbook: 6.12 instead of 9.12."""
    desk = Desk(tmp_path, equipment)
    with without(part, tmp_path / "python", equipment) as poorer:
        poor = Desk(tmp_path, poorer)
        with pytest.raises(EvidenceFailed) as raised:
            poor.show({name: data, "notes.txt": b"text"})
        kind = KIND_OF_SUFFIX[name[1:]]
        kinds = asyncio.run(check_kinds(poorer, [kind, "text"]))
    assert re.match(rf'"{name}", .*{cause}', str(raised.value)), str(raised.value)
    assert [file.path for file in desk.store.files()] == ["notes.txt"], "nothing of it is kept"
    assert kinds["text"] == []
    assert any(cause in failure.problem.reason for failure in kinds[kind])
    back = desk.show({name: data, "notes.txt": b"text"})[name]
    assert (back.unshown, bool(back.text)) == ((), True), "the package is back"


def test_a_broken_file_is_reported_and_judged(desk: Desk) -> None:
    """The bundled picture can be shown, so it is the file that cannot."""
    shown = desk.show_one("a.png", samples.image(9, 9)[:40])
    assert shown.unshown[0].startswith("the picture: ")


def test_a_reader_that_cannot_even_read_a_good_file_is_to_blame(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LibreOffice without its presentations "could not read" every deck."""
    broken = samples.image(9, 9)[:40]
    file = tmp_path / "check.png"
    file.write_bytes(broken)
    monkeypatch.setattr("gta_bench.judging.known_good.FOLDER", tmp_path)
    assert desk.equipment.jail is not None
    with Jail(desk.equipment.jail.kind) as jail:
        poorer = replace(desk.equipment, jail=jail)
        with pytest.raises(EvidenceFailed, match="A good png file cannot be shown here"):
            Desk(tmp_path, poorer).show_one("a.png", broken)
        assert asyncio.run(failures_here("png", poorer))
        file.write_bytes(samples.image(9, 9))
        assert Desk(tmp_path, poorer).show_one("a.png", broken).unshown


def test_there_is_a_good_file_of_every_kind() -> None:
    assert {kind for kind in KINDS if sample(kind) is None} == {"unknown"}


@needs("ffmpeg")
def test_sound_without_its_package_says_how_to_install_it(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`gta tools fetch` alone was named, and installs no package."""
    monkeypatch.setattr(packages, "missing_packages", lambda *names: ["onnxruntime"])
    with pytest.raises(EvidenceFailed) as raised:
        desk.show_one("a.wav", make_stereo(tmp_path / "a.wav", seconds=0.1).read_bytes())
    said = str(raised.value)
    assert "onnxruntime is not installed. pip install 'gta-bench[media]' && gta tools fetch" in said
    assert "endpoint" not in said, "a judge's evidence asks no endpoint"


@pytest.mark.slow
@needs("soffice", "chromium", "ffmpeg")
def test_doctor_names_the_kinds_that_cannot_be_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, equipment: Equipment
) -> None:
    monkeypatch.chdir(tmp_path)
    python = layered_python(tmp_path / "python", without="openpyxl")
    monkeypatch.setattr("gta_bench.confine.walls.Python.current", lambda: python)
    result = CliRunner().invoke(app, ["doctor", "--json"])
    found = {one["name"]: one for one in json.loads(result.stdout)}
    assert result.exit_code == 3
    assert found["evidence xlsx, ods"]["state"] == "broken"
    assert "needs a package that the jail does not have" in found["evidence xlsx, ods"]["detail"]
    assert "into one environment" in found["evidence xlsx, ods"]["fix"]
    assert "docx, pptx, pdf, csv" in found["evidence"]["detail"]
