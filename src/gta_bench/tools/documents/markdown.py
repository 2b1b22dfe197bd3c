"""Markdown with pictures as a Word document or PDF file, made by pandoc and typst.

pandoc reads, changes and writes the text in one process. `filter.lua` is the step in between,
which knows the pictures by number and by the path in the text. Paths are searched for in the text
beforehand. If the search misses one, the filter reports it and the document is made again.
"""

import io
import json
import re
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal
from urllib.parse import quote, unquote

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import ProgramResult
from gta_bench.confine.names import quote_foreign
from gta_bench.confine.walls import Places
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.documents.fonts import FAMILIES, Script, find_main_script
from gta_bench.tools.documents.pandoc import (
    LIMITS,
    READER,
    pandoc_command,
    read_resource,
    refuse_failure,
    run_pandoc,
)
from gta_bench.tools.documents.pictures import DecodedPicture, read_pictures
from gta_bench.tools.documents.source import (
    OPEN,
    PLACEHOLDER,
    check_size,
    mark_placeholders,
    prepare_markdown,
)

# The reference document: pandoc takes the styles and the page size of Word documents from it.
REFERENCE_PARTS: Final = {
    "[Content_Types].xml": "content_types.xml",
    "_rels/.rels": "package_rels.xml",
    "word/document.xml": "document.xml",
    "word/_rels/document.xml.rels": "document_rels.xml",
    "word/styles.xml": "styles.xml",
}
HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
FIXED_TIME: Final = (1980, 1, 1, 0, 0, 0)

MOST_BYTES: Final = 200_000
MOST_PICTURES: Final = 100
WIDEST_INCHES: Final = 6.0
TALLEST_INCHES: Final = 7.5
# Every repetition is bounded, so that hostile text cannot make a search slow.
TARGET: Final = re.compile(
    r"!\[[^\[\]\n]{0,500}\]\(\s{0,8}(?:<([^<>\n]{1,1024})>|([^\s()]{1,1024}))"
    r"|<img\b[^<>]{0,500}?\ssrc\s{0,8}=\s{0,8}[\"']([^\"'\n]{1,1024})[\"']",
    re.IGNORECASE,
)
FORMAT_TAG: Final = re.compile(rb"<(?:b|strong|i|em|u|ins|s|del|strike|sub|sup)\b", re.IGNORECASE)
# Trusted code in the jail. The root of typst is the folder of the pictures: it reads nothing else.
DRIVER: Final = """
import pathlib, subprocess, sys
inputs, made, *pandoc = sys.argv[1:]
written = subprocess.run(pandoc, stdin=0, stdout=subprocess.PIPE)
if written.returncode != 0:
    sys.exit(written.returncode)
import typst
style = pathlib.Path(inputs, "style.typ").read_bytes()
try:
    typst.compile(style + written.stdout, output=made, root=inputs)
except typst.TypstError as error:
    sys.exit(f"typst: {error.message}")
"""


@cache
def build_reference_docx() -> bytes:
    """Build the reference document; the bytes are always the same."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in REFERENCE_PARTS.items():
            lines = read_resource(f"reference/{file}").decode().splitlines()
            text = HEAD + "".join(line.strip() for line in lines)
            archive.writestr(zipfile.ZipInfo(name, FIXED_TIME), text, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


@dataclass(frozen=True, slots=True)
class Manuscript:
    """A text and its pictures. The first `numbered` ones belong to `{{image_n}}`.

    `script` is the East Asian script of most of the text, None if it has none.
    """

    text: bytes
    reader: str
    pictures: tuple[DecodedPicture, ...]
    numbered: int
    targets: Mapping[str, int]
    script: Script | None

    def inputs(self, *, embed: bool) -> dict[str, bytes]:
        """Return the input files of pandoc; `embed` puts the pictures into the document."""
        names = [f"picture-{number}" for number in range(1, len(self.pictures) + 1)]
        images = [
            {
                "file": name + picture.suffix,
                "mime": picture.mime,
                "width": picture.inches[0],
                "height": picture.inches[1],
                "alt": picture.stem,
            }
            for name, picture in zip(names, self.pictures, strict=True)
        ]
        plan = {
            "images": images,
            "targets": dict(self.targets),
            "numbered": self.numbered,
            "append": list(range(1, self.numbered + 1)),
            "embed": embed,
            "marks": OPEN.encode() in self.text,
            "formats": FORMAT_TAG.search(self.text) is not None,
            "width": WIDEST_INCHES,
            "height": TALLEST_INCHES,
        }
        beside = {name + p.suffix: p.data for name, p in zip(names, self.pictures, strict=True)}
        lua = {name: read_resource(name) for name in ("filter.lua", "raw.lua")}
        return {**lua, "plan.json": json.dumps(plan).encode(), **beside}

    def with_targets(self, found: Mapping[str, DecodedPicture]) -> "Manuscript":
        """Return a copy that also knows these pictures by the paths in the text."""
        known = {picture.path: number for number, picture in enumerate(self.pictures, start=1)}
        pictures, targets = list(self.pictures), dict(self.targets)
        for target, picture in found.items():
            if picture.path not in known:
                pictures.append(picture)
                known[picture.path] = len(pictures)
            targets[target] = known[picture.path]
        if len(pictures) > MOST_PICTURES:
            raise ToolError(f"The text shows {len(pictures)} pictures; at most {MOST_PICTURES}.")
        return replace(self, pictures=tuple(pictures), targets=targets)


def read_manuscript(
    workspace: Workspace, content: str, image_paths: str, *, render_markdown: bool
) -> Manuscript:
    """Check the text and find its pictures. Raises ToolError if one of `image_paths` is missing."""
    check_size("content", content, MOST_BYTES)
    pictures = read_pictures(workspace, image_paths)
    text = mark_placeholders(content)
    source = prepare_markdown(text).encode() if render_markdown else _convert_plain(text)
    reader = READER if render_markdown else "json"
    script = find_main_script(content)
    manuscript = Manuscript(source, reader, pictures, len(pictures), {}, script)
    return manuscript.with_targets(_find_targets(workspace, text))


def _convert_plain(text: str) -> bytes:
    """Return pandoc's JSON of a text without markup: a blank line ends a paragraph."""
    paragraphs = [part for part in re.split(r"\n[ \t]*\n", text.expandtabs(4)) if part.strip()]
    blocks = [{"t": "Para", "c": _convert_lines(paragraph.strip("\n"))} for paragraph in paragraphs]
    return json.dumps({"pandoc-api-version": [1, 23, 1], "meta": {}, "blocks": blocks}).encode()


def _convert_lines(paragraph: str) -> list[dict[str, object]]:
    inlines: list[dict[str, object]] = []
    for number, line in enumerate(paragraph.split("\n")):
        if number:
            inlines.append({"t": "LineBreak"})
        indent = len(line) - len(line.lstrip())
        words = ("\u00a0" * indent + line.strip()).split(" ")
        for position, word in enumerate(words):
            inlines += [{"t": "Space"}] if position else []
            inlines += [{"t": "Str", "c": word}] if word else []
    return inlines


def _find_targets(workspace: Workspace, text: str) -> dict[str, DecodedPicture]:
    """Return the pictures that exist by the paths in the text, also as pandoc spells them."""
    named = dict.fromkeys(next(filter(None, match)) for match in TARGET.findall(text))
    found: dict[str, DecodedPicture] = {}
    for target in list(named)[:MOST_PICTURES]:
        try:
            picture = _read_target(workspace, target)
        except ToolError:  # raised later if the text really shows it, outside of a code block
            continue
        found[target] = found[quote(target, safe="/:?&=+,;@!$'()*~#%")] = picture
    return found


def _read_target(workspace: Workspace, target: str) -> DecodedPicture:
    try:
        return read_pictures(workspace, [target])[0]
    except ToolError:
        if unquote(target) == target:
            raise
        return read_pictures(workspace, [unquote(target)])[0]


def _require(workspace: Workspace, target: str, numbered: int) -> DecodedPicture:
    if PLACEHOLDER.fullmatch(target):
        raise ToolError(f"`{target}` has no picture: `image_paths` lists {numbered}.")
    if re.match(r"(?i)(https?|ftp|file|data):", target):
        raise ToolError(
            f"The picture {quote_foreign(target)} is not a file of this task, and nothing is "
            f"downloaded. "
            f"Files: {', '.join(f'`{path}`' for path in workspace.listing()[:20]) or 'none'}."
        )
    return _read_target(workspace, target)


async def make_document(
    jail: Jail, workspace: Workspace, manuscript: Manuscript, form: Literal["docx", "pdf"]
) -> bytes:
    """Make the document. Raises ToolError if the text names a picture that does not exist."""
    done = await _run(jail, manuscript, form)
    unknown = json.loads(done.files.get("missing.json", b"[]"))
    if unknown:
        found = {target: _require(workspace, target, manuscript.numbered) for target in unknown}
        done = await _run(jail, manuscript.with_targets(found), form)
    return done.files[f"made.{form}"]


async def _run(jail: Jail, manuscript: Manuscript, form: Literal["docx", "pdf"]) -> ProgramResult:
    arguments = ["-f", manuscript.reader, "-L", "../inputs/filter.lua"]
    if form == "docx":
        inputs = {**manuscript.inputs(embed=True), "reference.docx": build_reference_docx()}
        arguments += ["-t", "docx", "--reference-doc=../inputs/reference.docx", "-o", "made.docx"]
        return await run_pandoc(jail, arguments, text=manuscript.text, inputs=inputs)
    cjk = FAMILIES[manuscript.script or "zh"].noto
    names = f'#let cjk = "{cjk}"\n#let language = "{manuscript.script or "en"}"\n'
    style = names.encode() + read_resource("style.typ")
    inputs = {**manuscript.inputs(embed=False), "style.typ": style}
    pandoc = pandoc_command([*arguments, "-t", "typst", "--wrap=none"])

    def argv(places: Places) -> list[str]:
        return [sys.executable, "-I", "-c", DRIVER, places.inputs, "made.pdf", *pandoc]

    done = await jail.run_program(argv, inputs=inputs, stdin=manuscript.text, limits=LIMITS)
    refuse_failure(done, "typst")
    return done
