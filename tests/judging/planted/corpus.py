"""One file of each kind and producer, with words planted in every location."""

import asyncio
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pypandoc

from gta_bench.confine.jail import Jail
from gta_bench.content.libreoffice import convert_all
from tests.judging.planted import flat_files, office_files, other_files
from tests.judging.planted.planting import Bed, Field, holds

# The sources that LibreOffice saves in its own formats and in those of Office.
SAVED: dict[str, tuple[str, Callable[[Bed], bytes]]] = {
    "libreoffice.docx": ("fodt", flat_files.text),
    "libreoffice.odt": ("fodt", flat_files.text),
    "libreoffice.rtf": ("fodt", flat_files.text),
    "libreoffice.pdf": ("fodt", lambda words: flat_files.text(words, printed=True)),
    "libreoffice.xlsx": ("fods", flat_files.sheet),
    "libreoffice.ods": ("fods", flat_files.sheet),
    "libreoffice.pptx": ("fodp", flat_files.slides),
    "libreoffice.odp": ("fodp", flat_files.slides),
}
BY_PANDOC = ("docx", "odt", "rtf", "epub", "html", "ipynb")
TEXTS = ("table.csv", "chinese.csv", "data.json", "code.py", "style.css", "notes.txt")
CONVERTERS = ("libreoffice.", "pandoc.")
PICTURES = ("a.png", "a.jpg", "a.gif", "a.svg", "a.webp", "a.bmp", "a.tiff", "a.avif")


def corpus(folder: Path, jail: Jail) -> tuple[Field, dict[str, bytes]]:
    """The files by name, and what was planted in them."""
    field = Field()
    made: dict[str, bytes] = {}

    def add(name: str, make: Callable[[Bed], bytes]) -> None:
        made[name] = make(field.bed(name))

    add("hand.docx", office_files.word_by_hand)
    add("python-pptx.pptx", office_files.deck_by_python_pptx)
    add("openpyxl.xlsx", office_files.workbook_by_openpyxl)
    add("xlsxwriter.xlsx", office_files.workbook_by_xlsxwriter)
    add("typst.pdf", other_files.pdf_by_typst)
    add("pypdf.pdf", other_files.pdf_by_pypdf)
    add("layers.pdf", other_files.pdf_with_layers)
    add("scan.pdf", other_files.scan)
    add("chromium.pdf", lambda words: _printed(words, folder))
    add("page.html", other_files.page)
    add("notes.md", other_files.markdown)
    add("film.mp4", lambda words: other_files.film(words, folder))
    add("speech.mp3", lambda words: other_files.speech(words, folder))
    add("archive.zip", other_files.archive)
    add("packed.tar.gz", other_files.tarball)
    add("mail.eml", other_files.mail)
    add("notebook.ipynb", other_files.notebook)
    made |= other_files.texts({name: field.bed(name) for name in TEXTS})
    made |= other_files.pictures({name: field.bed(name) for name in PICTURES})
    for suffix in BY_PANDOC:
        name = f"pandoc.{suffix}"
        made[name] = _by_pandoc(flat_files.markdown(field.bed(name)), suffix)
    made["pandoc.pptx"] = _by_pandoc(flat_files.deck(field.bed("pandoc.pptx")), "pptx")
    made |= asyncio.run(_saved(field, jail))
    for plant in list(field.plants):
        converted = plant.file.startswith(CONVERTERS)
        if converted and not plant.file.endswith("pdf") and not holds(made[plant.file], plant.word):
            field.plants.remove(plant)  # the converter left it out
    return field, made


async def _saved(field: Field, jail: Jail) -> dict[str, bytes]:
    async def save(name: str) -> bytes:
        source, make = SAVED[name]
        given = {f"a.{source}": make(field.bed(name))}
        target = name.rpartition(".")[2]
        return (await convert_all(jail, given, to=target, seconds=60.0))[f"a.{source}"]

    names = list(SAVED)
    return dict(zip(names, await asyncio.gather(*map(save, names)), strict=True))


def _by_pandoc(source: str, suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"a.{suffix}"
        pypandoc.convert_text(
            source, suffix, "markdown", outputfile=file, extra_args=["--standalone"]
        )
        return file.read_bytes()


def _printed(words: Bed, folder: Path) -> bytes:
    """A page as Chromium prints it."""
    page = folder / "print.html"
    page.write_text(
        f"<title>{words('title')}</title><h1>{words('heading')}</h1><p>{words('paragraph')}</p>"
        f'<a href="https://{words("link target").lower()}.invalid/">{words("link text")}</a>',
        encoding="utf-8",
    )
    printed = folder / "print.pdf"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
    argv = ["chromium", *flags, f"--print-to-pdf={printed}", page.as_uri()]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    return printed.read_bytes()
