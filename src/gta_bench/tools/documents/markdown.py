"""Text for a page: Markdown with `{{image_n}}`, ready for pandoc, and pictures found for it.

pandoc reads, changes and writes in one process: `filter.lua` is the step between, which knows
the pictures by number and by the path that the text names. The paths are looked for beforehand
in the text; where that misses one, the filter reports it and the document is made once more.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, unquote

from gta_bench.confine.limits import ProgramResult
from gta_bench.confine.names import shown
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.documents.pandoc import READER, lua_scripts
from gta_bench.tools.documents.pictures import DecodedPicture, read_pictures
from gta_bench.tools.documents.source import OPEN, PLACEHOLDER, check_size, marked, prepared

MOST_BYTES: Final = 200_000
MOST_PICTURES: Final = 100
WIDEST_INCHES: Final = 6.0
TALLEST_INCHES: Final = 7.5

# Every repetition has a bound: a hostile text must not take longer than its length.
TARGET: Final = re.compile(
    r"!\[[^\[\]\n]{0,500}\]\(\s{0,8}(?:<([^<>\n]{1,1024})>|([^\s()]{1,1024}))"
    r"|<img\b[^<>]{0,500}?\ssrc\s{0,8}=\s{0,8}[\"']([^\"'\n]{1,1024})[\"']",
    re.IGNORECASE,
)

FORMAT_TAG: Final = re.compile(rb"<(?:b|strong|i|em|u|ins|s|del|strike|sub|sup)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Manuscript:
    """A text and its pictures. The first `numbered` pictures are those of `{{image_n}}`."""

    text: bytes
    reader: str
    pictures: tuple[DecodedPicture, ...]
    numbered: int
    targets: Mapping[str, int]

    def inputs(self, *, embed: bool) -> dict[str, bytes]:
        """The files that pandoc finds beside it; `embed` puts pictures into the document."""
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
        lua = lua_scripts("filter.lua", "raw.lua")
        return {**lua, "plan.json": json.dumps(plan).encode(), **beside}

    def with_targets(self, found: Mapping[str, DecodedPicture]) -> "Manuscript":
        """Also knowing these pictures under the paths that the text names them by."""
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
    """Check the text and find its pictures; one of `image_paths` that is not there is an error."""
    check_size("content", content, MOST_BYTES)
    pictures = read_pictures(workspace, image_paths)
    text = marked(content)
    if render_markdown:
        manuscript = Manuscript(prepared(text).encode(), READER, pictures, len(pictures), {})
    else:
        manuscript = Manuscript(_as_written(text), "json", pictures, len(pictures), {})
    return manuscript.with_targets(_look_for(workspace, _targets(text)))


async def typeset(
    workspace: Workspace,
    manuscript: Manuscript,
    run: Callable[[Manuscript], Awaitable[ProgramResult]],
) -> ProgramResult:
    """Make the document; a picture that the text names and nobody has is a ToolError."""
    done = await run(manuscript)
    unknown = json.loads(done.files.get("missing.json", b"[]"))
    if not unknown:
        return done
    found = {target: _need(workspace, target, manuscript.numbered) for target in unknown}
    return await run(manuscript.with_targets(found))


def _as_written(text: str) -> bytes:
    """pandoc's own form of a text without markup: a blank line ends a paragraph."""
    paragraphs = [part for part in re.split(r"\n[ \t]*\n", text.expandtabs(4)) if part.strip()]
    blocks = [{"t": "Para", "c": _lines(paragraph.strip("\n"))} for paragraph in paragraphs]
    return json.dumps({"pandoc-api-version": [1, 23, 1], "meta": {}, "blocks": blocks}).encode()


def _lines(paragraph: str) -> list[dict[str, object]]:
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


def _targets(text: str) -> list[str]:
    found = dict.fromkeys(next(filter(None, match)) for match in TARGET.findall(text))
    return list(found)[:MOST_PICTURES]


def _look_for(workspace: Workspace, targets: Iterable[str]) -> dict[str, DecodedPicture]:
    """Those that are there, also under the spelling that pandoc makes of them."""
    found: dict[str, DecodedPicture] = {}
    for target in targets:
        try:
            picture = _find(workspace, target)
        except ToolError:  # told later if the text really shows it, and not in a code block
            continue
        found[target] = found[quote(target, safe="/:?&=+,;@!$'()*~#%")] = picture
    return found


def _find(workspace: Workspace, target: str) -> DecodedPicture:
    try:
        return read_pictures(workspace, [target])[0]
    except ToolError:
        if unquote(target) == target:
            raise
        return read_pictures(workspace, [unquote(target)])[0]


def _need(workspace: Workspace, target: str, numbered: int) -> DecodedPicture:
    if PLACEHOLDER.fullmatch(target):
        raise ToolError(f"`{target}` has no picture: `image_paths` names {numbered}.")
    if re.match(r"(?i)(https?|ftp|file|data):", target):
        raise ToolError(
            f"The picture {shown(target)} is not a file of this task; nothing is fetched. "
            f"Files: {', '.join(f'`{path}`' for path in workspace.listing()[:20]) or 'none'}."
        )
    return _find(workspace, target)
