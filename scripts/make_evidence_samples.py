"""Make the small files that `gta doctor` shows itself, one of each kind.

They are stored, not rebuilt: two versions of a program write different bytes.
Needs LibreOffice, ffmpeg and the development packages: python scripts/make_evidence_samples.py
"""

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from typing import Any

import openpyxl
import pypandoc
from PIL import Image, ImageDraw, ImageFont
from pptx import Presentation

from gta_bench.judging.known_good import FOLDER, WORD

TEXTS = {
    "check.csv": f"name,value\n{WORD},1\n",
    "check.md": f"# {WORD}\n\nText.\n",
    "check.html": f"<!doctype html><title>{WORD}</title><p>{WORD}</p>",
    "check.json": f'{{"word": "{WORD}"}}\n',
    "check.js": f'console.log("{WORD}");\n',
    "check.eml": f"From: a@example.org\nSubject: {WORD}\nContent-Type: text/plain\n\nText.\n",
    "check.ipynb": '{"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["'
    f'{WORD}"]}}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}',
    "check.txt": f"{WORD}\n",
    "check.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="60">'
    f'<text x="10" y="40" font-size="24">{WORD}</text></svg>',
}
PICTURES = {"png": "PNG", "jpg": "JPEG", "gif": "GIF", "webp": "WEBP", "bmp": "BMP",
            "tiff": "TIFF", "avif": "AVIF"}  # fmt: skip
SOUNDS = ("wav", "mp3", "flac", "ogg", "m4a")
FILMS = ("mp4", "mov", "webm", "mkv", "avi")


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in TEXTS.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    _pictures()
    _media()
    _documents()
    with zipfile.ZipFile(FOLDER / "check.zip", "w") as archive:
        archive.write(FOLDER / "check.txt", "inner.txt")
    with tarfile.open(FOLDER / "check.tgz", "w:gz") as packed:
        packed.add(FOLDER / "check.txt", "inner.txt")
    sizes = {file.name: file.stat().st_size for file in sorted(FOLDER.glob("check.*"))}
    sys.stdout.write(f"{len(sizes)} files, {sum(sizes.values()):,} bytes\n")


def _pictures() -> None:
    picture = Image.new("L", (160, 40), 255)
    font = ImageFont.load_default(size=24)
    ImageDraw.Draw(picture).text((8, 4), WORD, fill=0, font=font)
    for suffix, form in PICTURES.items():
        picture.convert("RGB").save(FOLDER / f"check.{suffix}", form)


def _media() -> None:
    tone = ["-f", "lavfi", "-i", "sine=d=0.3:r=16000"]
    film = ["-f", "lavfi", "-i", "testsrc=d=0.3:r=10:s=64x48"]
    for suffix in SOUNDS:
        _ffmpeg(*tone, "-ac", "1", f"check.{suffix}")
    for suffix in FILMS:
        _ffmpeg(*film, "-pix_fmt", "yuv420p", f"check.{suffix}")


def _ffmpeg(*arguments: str) -> None:
    argv = ["ffmpeg", "-y", "-loglevel", "error", "-bitexact", *arguments]
    subprocess.run(argv, cwd=FOLDER, check=True)


def _documents() -> None:
    text = f"# Heading\n\n{WORD} in a paragraph.\n"
    for suffix in ("docx", "epub"):
        pypandoc.convert_text(
            text, suffix, "markdown", outputfile=FOLDER / f"check.{suffix}",
            extra_args=["--metadata", f"title={WORD}"],
        )  # fmt: skip
    book = openpyxl.Workbook()
    book.worksheets[0].append([WORD, 1, "=B1+1"])
    book.save(FOLDER / "check.xlsx")
    _deck().save(str(FOLDER / "check.pptx"))
    for source, target in [
        ("docx", "odt"), ("docx", "rtf"), ("docx", "doc"), ("docx", "pdf"), ("xlsx", "ods"),
        ("pptx", "odp"),
    ]:  # fmt: skip
        with tempfile.TemporaryDirectory() as profile:
            argv = ["soffice", f"-env:UserInstallation=file://{profile}", "--headless"]
            argv += ["--convert-to", target, f"check.{source}"]
            subprocess.run(argv, cwd=FOLDER, check=True, stdout=subprocess.DEVNULL)


def _deck() -> Any:
    """A deck without the eleven layouts that nothing here uses."""
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = WORD
    for layout in list(deck.slide_layouts):
        if not layout.used_by_slides:
            deck.slide_layouts.remove(layout)
    for key, relation in list(deck.part.package._rels.items()):
        if relation.target_part.partname.endswith("thumbnail.jpeg"):
            deck.part.package._rels.pop(key)
    return deck


if __name__ == "__main__":
    main()
