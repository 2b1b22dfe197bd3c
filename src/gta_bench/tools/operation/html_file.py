"""HtmlFileGenerator: a page that a browser shows as it is meant, whole in one file."""

import base64
import re
from html import escape
from typing import Final

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, file_part
from gta_bench.tools.documents.fences import pieces
from gta_bench.tools.documents.needs import clean_text
from gta_bench.tools.operation.fields import OutputDir

BACKEND: Final = "html"
MOST_BYTES: Final = 2_000_000
MOST_EMBEDDED: Final = 24 << 20

# Every repetition ends at the next tag: a hostile text must not take longer than its length.
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

SIGNATURES: Final = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)
META: Final = '<meta charset="utf-8">'
SKELETON: Final = """<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font-family: system-ui, "Noto Sans", "Microsoft YaHei", "PingFang SC", "Noto Sans CJK SC",
  sans-serif; line-height: 1.6; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
img {{ max-width: 100%; }}
table {{ border-collapse: collapse; }}
th, td {{ border: 1px solid #999; padding: 0.3rem 0.6rem; }}
pre {{ background: #f2f2f2; padding: 0.6rem; overflow-x: auto; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


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
    """Writes what it is given; scripts stay. Nothing is run or fetched here."""

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
        """Needs nothing but Python."""
        return Available(BACKEND)

    async def apply(self, workspace: Workspace, given: HtmlInput) -> Made:
        """Complete the page and write it."""
        data = await self.equipment.in_thread(_page, workspace, given)
        output = workspace.write(given.filename, data, suffix=".html")
        return Made((file_part("file", output),), backend=BACKEND)


def _page(workspace: Workspace, given: HtmlInput) -> bytes:
    size = len(given.html_code.encode("utf-8", "replace"))
    if size > MOST_BYTES:
        raise ToolError(f"`html_code` has {size} bytes; at most {MOST_BYTES}.")
    markup = unfenced(clean_text(given.html_code)).strip()
    if not markup:
        raise ToolError("`html_code` is empty: there is nothing to write.")
    return completed(_with_pictures(workspace, markup), title=given.filename).encode()


def unfenced(text: str) -> str:
    """The markup in a code fence, where the answer has one outside of any markup of its own.

    Words before and after the fence are a model's talk and are left out; of several fences the
    ones marked `html` count, joined.
    """
    split = list(pieces(text))
    fences = [piece for piece in split if piece.language is not None]
    if not fences or (split[0].language is None and TAG.search(split[0].text)):
        return text  # a page of its own, perhaps about Markdown
    marked = [fence.inner for fence in fences if fence.language in ("html", "htm", "xhtml")]
    return "\n".join(marked) if marked else fences[0].inner


def completed(markup: str, *, title: str) -> str:
    """A page with document type, character set and root; what is there stays as it is."""
    root = ROOT.search(markup)
    if root is None:
        return _wrapped(markup, title)
    if CHARSET.search(markup) is None:
        head = HEAD.search(markup)
        place = head.end() if head else root.end()
        meta = META if head else f"<head>{META}</head>"
        markup = f"{markup[:place]}\n{meta}{markup[place:]}"
    has_kind = DOCTYPE.search(markup[: root.start()])
    return markup if has_kind else f"<!DOCTYPE html>\n{markup}"


def _wrapped(markup: str, title: str) -> str:
    """Around a body's content; the document type is the skeleton's."""
    kind = DOCTYPE.match(markup)
    body = markup[kind.end() :] if kind else markup
    name = title.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".html")
    return SKELETON.format(title=escape(clean_text(name)), body=body.strip())


def _with_pictures(workspace: Workspace, markup: str) -> str:
    """Pictures of the task inside the page: beside it they would not be found."""
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
        mime = next((kind for start, kind in SIGNATURES if data.startswith(start)), "image/png")
        return f"{found[1]}{found[2]}data:{mime};base64,{base64.b64encode(data).decode()}{found[2]}"

    return PICTURE.sub(embed, markup)
