"""PDF: pandoc writes typst, typst draws pages; both in one jail, on one clock."""

import sys
from typing import Final

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import ProgramResult
from gta_bench.confine.walls import Places
from gta_bench.tools.documents.fonts import FAMILIES, Script
from gta_bench.tools.documents.markdown import Manuscript
from gta_bench.tools.documents.pandoc import LIMITS, pandoc_command, refuse_failure

MADE: Final = "made.pdf"

# Runs in the jail, trusted. The folder of the pictures is typst's root: it reads nothing else.
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

STYLE: Final = """\
#set document(title: none)
#set page(paper: "a4", margin: 2cm, numbering: "1")
#set text(font: ("Libertinus Serif", "Noto Serif CJK {cjk}", "Noto Color Emoji",
  "DejaVu Sans Mono"), size: 11pt, lang: "{language}")
#set smartquote(enabled: false)
#set par(justify: false, leading: 0.75em)
#set list(indent: 0.6em)
#set enum(indent: 0.6em)
#set table(stroke: 0.5pt + luma(140), inset: 6pt,
  fill: (_, row) => if row == 0 {{ rgb("#e7ecf5") }})
#show table.cell.where(y: 0): strong
#show figure.where(kind: table): set block(breakable: true)
#show heading: set text(fill: rgb("#1f3864"))
#show heading: set block(above: 1.4em, below: 0.8em)
#show link: set text(fill: rgb("#0563c1"))
#show raw: set text(font: ("DejaVu Sans Mono", "Noto Sans Mono CJK {cjk}", "Noto Color Emoji"))
#show raw.where(block: true): block.with(fill: luma(242), inset: 8pt, radius: 2pt, width: 100%)
#show quote.where(block: true): it => block(
  stroke: (left: 2pt + luma(190)), inset: (left: 10pt, y: 4pt), text(fill: luma(60), it.body))
#let horizontalrule = line(length: 100%, stroke: 0.5pt + luma(140))
"""


def style(script: Script | None) -> bytes:
    """The looks, with the glyph forms of the text's language."""
    cjk = FAMILIES[script or "zh"].noto
    return STYLE.format(cjk=cjk, language=script or "en").encode()


async def make_pdf(jail: Jail, manuscript: Manuscript, script: Script | None) -> ProgramResult:
    """Both programs, one after the other."""
    inputs = {**manuscript.inputs(embed=False), "style.typ": style(script)}
    pandoc = pandoc_command(
        ["-f", manuscript.reader, "-t", "typst", "--wrap=none", "-L", "../inputs/filter.lua"]
    )

    def argv(places: Places) -> list[str]:
        return [sys.executable, "-I", "-c", DRIVER, places.inputs, MADE, *pandoc]

    done = await jail.run_program(argv, inputs=inputs, stdin=manuscript.text, limits=LIMITS)
    refuse_failure(done, "typst")
    return done
