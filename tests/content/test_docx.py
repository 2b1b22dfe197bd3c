import asyncio

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.content.docx import DocxContent, read_docx
from gta_bench.content.needs import find_pandoc
from gta_bench.errors import ToolError
from tests.content import samples

MARKDOWN = r"""# Title 标题

Plain text with **bold**, *italic*, `a < b && c`, and $E = mc^2$.

1.  one
    - nested
    - more
2.  two

- [x] done
- [ ] open

| left | right |
|:-----|------:|
| a    |     1 |
| 中   |    22 |

> a quote

``` python
if a < b: print("<b>&amp;")
```

$$\int_0^1 x\,dx = \frac{1}{2}$$

A note.[^1]

[^1]: The note's text.
"""


def read(data: bytes, jail: Jail) -> DocxContent:
    return asyncio.run(read_docx(data, jail))


def made_by_pandoc(markdown: str, jail: Jail) -> bytes:
    argv = [str(find_pandoc()), "-f", "gfm", "-t", "docx", "-o", "a.docx"]
    return asyncio.run(jail.run_program(argv, stdin=markdown.encode())).files["a.docx"]


def test_headings_lists_tables_formulas_code_and_notes_come_back(jail: Jail) -> None:
    text = read(made_by_pandoc(MARKDOWN, jail), jail).as_text()
    for line in [
        "# Title 标题",
        "**bold**, *italic*, `a < b && c`",
        "$E = mc^{2}$",
        "    - nested",
        "- [x] done",
        "| left | right |",
        "| 中   |    22 |",
        "> a quote",
        'if a < b: print("<b>&amp;")',
        r"$$\int_{0}^{1}x\, dx = \frac{1}{2}$$",
        "[^1]: The note",
    ]:
        assert line in text, line


def test_a_second_reading_of_what_was_read_changes_nothing(jail: Jail) -> None:
    once = read(made_by_pandoc(MARKDOWN, jail), jail).markdown
    assert read(made_by_pandoc(once, jail), jail).markdown == once


def test_tables_are_not_lost(jail: Jail) -> None:
    body = samples.paragraph("before") + samples.word_table([["a", "b"], ["1", "2"]])
    text = read(samples.docx(body + samples.paragraph("after")), jail).markdown
    assert text.index("before") < text.index("| a   | b   |") < text.index("after")


def test_a_long_paragraph_stays_one_line(jail: Jail) -> None:
    text = read(samples.docx(samples.paragraph("word " * 200)), jail).markdown
    assert len(text.strip().splitlines()) == 1


def test_pictures_and_charts_are_counted(jail: Jail) -> None:
    more: dict[str, str | bytes] = {
        "word/media/image1.png": samples.image(2, 2),
        "word/charts/chart1.xml": "<c/>",
    }
    content = read(samples.docx(samples.paragraph("x"), more), jail)
    assert (content.pictures, content.charts) == (1, 1)


def test_an_empty_document_is_an_empty_text(jail: Jail) -> None:
    assert read(samples.docx(""), jail).markdown.strip() == ""


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"just text", "not docx; it is text"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old", "encrypted, or an Office file"),
        (samples.workbook(), "not docx; it is xlsx"),
        (samples.docx("")[:-40], "zip archive|broken"),
        (samples.docx("<w:p>"), "cannot be read"),
    ],
)
def test_what_is_no_document_is_refused_with_the_reason(data: bytes, said: str, jail: Jail) -> None:
    with pytest.raises(ToolError, match=said):
        read(data, jail)
