"""HtmlFileGenerator: a complete web page in one file, with its pictures."""

import base64
import re
from html import escape
from string import Template
from typing import Final

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.content.identify import find_form
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, file_part
from gta_bench.tools.documents.pandoc import read_resource
from gta_bench.tools.documents.source import clean_text, split_fences
from gta_bench.tools.operation.shared import OutputDir

BACKEND: Final = "html"
MOST_BYTES: Final = 2_000_000
MOST_EMBEDDED: Final = 24 << 20

# Every repetition ends at the next tag, so that hostile text cannot make a search slow.
TAG: Final = re.compile(r"<[a-z][^<>]*>", re.IGNORECASE)
ROOT: Final = re.compile(r"<html\b[^<>]*>", re.IGNORECASE)
HEAD: Final = re.compile(r"<head\b[^<>]*>", re.IGNORECASE)
CHARSET: Final = re.compile(r"<meta\b[^<>]*\bcharset\b", re.IGNORECASE)
DOCTYPE: Final = re.compile(r"\s*<!doctype\b[^<>]*>", re.IGNORECASE)
PICTURE: Final = re.compile(
    r"""(<img\b[^<>]{0,1000}?\ssrc\s{0,8}=\s{0,8})(["'])([^"'<>]{1,1024})\2""", re.IGNORECASE
)
NOT_OURS: Final = re.compile(r"(?i)[a-z][a-z0-9+.-]*:|//|#")
SURELY_OURS: Final = re.compile(r"(?:\./|/)?(?:inputs|outputs)/[^/]+$")

BROWSER_FORMATS: Final = ("png", "jpeg", "gif", "webp")
META: Final = '<meta charset="utf-8">'


class HtmlInput(ToolInput):
    """Upstream's arguments."""

    filename: str = Field(
        description="Output HTML filename. If the .html suffix is missing, it will be "
        "automatically appended."
    )
    html_code: str = Field(
        description="HTML markup or fenced code block content to be written into the output file. "
        "Can be a full HTML document or partial body content. Pictures of the task in `img` tags "
        "(`inputs/a.png`, `outputs/plot.png`) are put into the file."
    )
    output_dir: OutputDir = None


class HtmlFileGenerator(Tool[HtmlInput]):
    """Writes the given markup, including scripts. Nothing is run or downloaded here."""

    name = "HtmlFileGenerator"
    category = "operation"
    description = (
        "Generates an HTML file from provided markup. Supports fenced code blocks (```html ... "
        "```) or raw HTML content. If no <html> root tag is present, the tool wraps the content "
        "into a minimal HTML5 skeleton with UTF-8 meta and default styling."
    )
    version = "1"
    input_type = HtmlInput
    outputs = (Parameter(type="file", description="The generated HTML file.", filetype="html"),)

    def check(self) -> Availability:
        return Available(BACKEND)

    async def apply(self, workspace: Workspace, given: HtmlInput) -> Made:
        data = await self.equipment.in_thread(_build_page, workspace, given)
        output = workspace.write(given.filename, data, suffix=".html")
        return Made((file_part("file", output),), backend=BACKEND)


def _build_page(workspace: Workspace, given: HtmlInput) -> bytes:
    size = len(given.html_code.encode("utf-8", "replace"))
    if size > MOST_BYTES:
        raise ToolError(f"`html_code` has {size} bytes; at most {MOST_BYTES} are allowed.")
    markup = strip_fences(clean_text(given.html_code)).strip()
    if not markup:
        raise ToolError("`html_code` is empty: there is nothing to write.")
    return complete_page(_embed_pictures(workspace, markup), title=given.filename).encode()


def strip_fences(text: str) -> str:
    """Return the markup in a code fence, if there is one and no markup before it.

    Text before and after the fence is chatter of the model and is left out. If several fences are
    marked `html`, they are joined.
    """
    split = list(split_fences(text))
    fences = [piece for piece in split if piece.language is not None]
    if not fences or (split[0].language is None and TAG.search(split[0].text)):
        return text  # a page that itself contains fences
    marked = [fence.inner for fence in fences if fence.language in ("html", "htm", "xhtml")]
    return "\n".join(marked) if marked else fences[0].inner


def complete_page(markup: str, *, title: str) -> str:
    """Add document type, character set and root element if they are missing."""
    root = ROOT.search(markup)
    if root is None:
        return _wrap_body(markup, title)
    if CHARSET.search(markup) is None:
        head = HEAD.search(markup)
        index = head.end() if head else root.end()
        meta = META if head else f"<head>{META}</head>"
        markup = f"{markup[:index]}\n{meta}{markup[index:]}"
    has_kind = DOCTYPE.search(markup[: root.start()])
    return markup if has_kind else f"<!DOCTYPE html>\n{markup}"


def _wrap_body(markup: str, title: str) -> str:
    """Put the content of a body into our skeleton, which has its own document type."""
    kind = DOCTYPE.match(markup)
    body = markup[kind.end() :] if kind else markup
    name = title.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".html")
    skeleton = Template(read_resource("skeleton.html").decode())
    return skeleton.substitute(title=escape(clean_text(name)), body=body.strip())


def _embed_pictures(workspace: Workspace, markup: str) -> str:
    """Embed the pictures of the task, because the page would not find them by path."""
    room = MOST_EMBEDDED

    def embed(found: re.Match[str]) -> str:
        nonlocal room
        source = found[3]
        if NOT_OURS.match(source):
            return found[0]
        try:
            data = workspace.read(workspace.resolve_images([source])[0], most_bytes=room)
        except ToolError:
            if SURELY_OURS.match(source):
                raise
            return found[0]
        room -= len(data)
        form = find_form(data)
        mime = f"image/{form if form in BROWSER_FORMATS else 'png'}"
        return f"{found[1]}{found[2]}data:{mime};base64,{base64.b64encode(data).decode()}{found[2]}"

    return PICTURE.sub(embed, markup)
