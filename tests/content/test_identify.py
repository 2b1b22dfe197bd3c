import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.content.identify import find_form, identify, require_form
from gta_bench.content.kinds import KIND_OF_FORM, KINDS
from gta_bench.errors import ToolError
from tests.content import samples

WAV = b"RIFF\x24\0\0\0WAVEfmt "
MP3 = b"ID3\x04\0\0\0\0\0\0"
MP4 = b"\0\0\0\x18ftypisom\0\0\0\0"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.docx", samples.docx(""), "docx"),
        ("a.xlsx", samples.workbook(), "xlsx"),
        ("a.pptx", samples.deck(), "pptx"),
        ("a.pdf", samples.pdf([""]), "pdf"),
        ("a.pdf", b"\n\n" + samples.pdf([""]), "pdf"),
        ("a.csv", b"a,b\n", "csv"),
        ("A.CSV", b"a,b\n", "csv"),
        ("a.tsv", b"a\tb\n", "csv"),
        ("a.md", b"# hi", "markdown"),
        ("a.html", b"<p>hi", "html"),
        ("a.json", b"{}", "json"),
        ("a.py", b"import os", "code"),
        ("a.txt", "你好".encode("gb18030"), "text"),
        ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "svg"),
        ("a.png", samples.image(2, 2), "png"),
        ("a.jpeg", samples.image(2, 2, "JPEG"), "jpeg"),
        ("a.bmp", samples.image(2, 2, "BMP"), "bmp"),
        ("a.tif", samples.image(2, 2, "TIFF"), "tiff"),
        ("a.webp", samples.image(2, 2, "WEBP"), "webp"),
        ("a.gif", samples.film(2), "gif"),
        ("a.wav", WAV, "wav"),
        ("a.mp3", MP3, "mp3"),
        ("a.m4a", MP4, "m4a"),
        ("a.mp4", MP4, "mp4"),
        ("a.mov", MP4, "mov"),
        ("a.webm", b"\x1a\x45\xdf\xa3\x9f", "webm"),
        ("a.zip", samples.zipped({"a": "1"}), "zip"),
        ("a.zip", b"PK\x05\x06" + bytes(18), "zip"),
        ("a.odt", samples.zipped({"mimetype": "application/vnd.oasis.opendocument.text"}), "odt"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "office-97"),
        ("a.rtf", rb"{\rtf1 hi}", "rtf"),
    ],
)
def test_a_file_that_is_what_its_name_says(name: str, data: bytes, kind: str) -> None:
    identity = identify(name, data)
    assert (identity.claims, identity.kind, identity.honest) == (kind, kind, True)


@pytest.mark.parametrize(
    ("name", "data", "claims", "kind"),
    [
        ("a.wav", MP3, "wav", "mp3"),
        ("report.docx", b"plain text", "docx", "text"),
        ("report.docx", b"<html><body>", "docx", "html"),
        ("report.docx", samples.workbook(), "docx", "xlsx"),
        ("report.docx", samples.zipped({"word/document.xml": "<w/>"}), "docx", "zip"),
        ("a.pdf", samples.image(2, 2), "pdf", "png"),
        ("picture.png", b"<?xml version='1.0'?>\n<!-- x --><svg/>", "png", "svg"),
        ("a.txt", b"\x7fELF\x02\x01\x01\0\0", "text", "unknown"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "xlsx", "office-97"),
        ("page", b"\xef\xbb\xbf \n<!DOCTYPE html><html>", None, "html"),
        ("noending", b"hello", None, "text"),
        ("a.webm", MP4, "webm", "mp4"),
        ("a.csv", b"", "csv", "unknown"),
        ("a.xyz", bytes(100), None, "unknown"),
    ],
)
def test_a_wrong_name_does_not_deceive(
    name: str, data: bytes, claims: str | None, kind: str
) -> None:
    identity = identify(name, data)
    assert (identity.claims, identity.kind, identity.honest) == (claims, kind, False)


def test_macro_and_template_variants_are_the_same_kinds() -> None:
    parts = samples.unzipped(samples.workbook())
    types = parts["[Content_Types].xml"].replace(
        b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
        b"application/vnd.ms-excel.sheet.macroEnabled.main+xml",
    )
    assert identify("a.xlsm", samples.zipped({**parts, "[Content_Types].xml": types})).honest


def test_the_real_files_of_the_workflow_dataset_are_what_they_claim(workflow_dir: Path) -> None:
    files = [file for file in (workflow_dir / "resources").rglob("*") if file.is_file()]
    kinds = {file.name: identify(file.name, file.read_bytes()).kind for file in files}
    assert len(files) >= 9
    assert all(identify(file.name, file.read_bytes()).honest for file in files)
    assert set(kinds.values()) <= {"png", "jpeg", "webp", "mp4"}
    assert kinds["90-2.mp4"] == "mp4"


def test_a_refusal_says_what_the_file_is() -> None:
    with pytest.raises(ToolError, match="not docx; it is pdf"):
        require_form(samples.pdf([""]), "docx")
    with pytest.raises(ToolError, match="encrypted, or an Office file of the time before 2007"):
        require_form(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "xlsx")


def test_every_kind_has_a_form_that_leads_back_to_a_kind() -> None:
    assert {facts.form for facts in KINDS.values()} == set(KIND_OF_FORM)
    assert len([s for facts in KINDS.values() for s in facts.suffixes]) == len(
        {s for facts in KINDS.values() for s in facts.suffixes}
    )


def test_an_archive_with_a_million_names_is_not_listed_to_find_its_kind() -> None:
    entry = b"PK\x01\x02" + bytes(42)
    directory = entry * 400_000
    size = len(directory).to_bytes(4, "little")
    end = b"PK\x05\x06" + bytes(8) + size + bytes(4) + bytes(2)
    start = time.process_time()
    assert find_form(b"PK\x03\x04" + directory + end) == "zip"
    assert time.process_time() - start < 1


def test_many_comments_before_the_root_cost_no_time() -> None:
    start = time.process_time()
    assert identify("a", b"<!-- a --><!-- b -->" * 100_000).kind == "text"
    assert time.process_time() - start < 2


@given(st.binary(max_size=400), st.sampled_from([b"", b"PK\x03\x04", b"%PDF-", b"<", b"\xff\xfe"]))
def test_any_bytes_have_a_kind(data: bytes, start: bytes) -> None:
    assert identify("a.docx", start + data).kind in KINDS
