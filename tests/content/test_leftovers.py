"""Every text of a package, and what of it a reader did not show."""

import io
import zipfile

import pytest

from gta_bench.content.leftovers import PackagePart, find_leftovers, read_package_parts
from tests.content import samples


def texts(name: str, source: str) -> tuple[str, ...]:
    data = samples.zipped({name: source})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return next((part.texts for part in read_package_parts(archive)), ())


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        (
            "word/document.xml",
            "<w:p><w:r><w:t>Mari</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>gold</w:t></w:r></w:p>",
            ("Marigold",),
        ),
        ("word/a.xml", '<wp:docPr id="1" name="Picture 1" descr="a &amp; b"/>', ("a & b",)),
        ("word/a.xml", "<w:p><w:r><w:t>a</w:t><w:br/><w:t>b</w:t></w:r></w:p>", ("a b",)),
        ("word/a.xml", "<wp:posOffset>33</wp:posOffset><w:instrText>PAGE</w:instrText>", ()),
        ("xl/drawings/drawing1.xml", "<xdr:col>3</xdr:col><xdr:rowOff>14</xdr:rowOff>", ()),
        ("word/charts/chart1.xml", "<c:v>North</c:v><c:v>2.5</c:v><c:f>A1</c:f>", ("North", "2.5")),
        ("xl/worksheets/sheet1.xml", "<sheetData><v>1</v></sheetData><o>head</o>", ("head",)),
        (
            "ppt/slideLayouts/slideLayout1.xml",
            "<p:sp><p:ph/><a:t>Click to edit</a:t></p:sp><p:sp><a:p><a:t>Logo</a:t></a:p></p:sp>",
            ("Logo",),
        ),
        (
            "word/_rels/document.xml.rels",
            '<Relationship Target="https://a.invalid/" TargetMode="External"/>'
            '<Relationship Target="styles.xml"/>',
            ("https://a.invalid/",),
        ),
        (
            "word/document.xml",
            "<w:p><w:t>before</w:t><w:pict><w:p><w:t>box</w:t></w:p></w:pict><w:t>after</w:t></w:p>",
            ("before", "box", "after"),
        ),
        (
            "word/document.xml",
            "<w:p><w:t>Energy is </w:t><m:oMath><m:r><m:t>\U0001d438=</m:t></m:r><m:sSup>"
            "<m:e><m:r><m:t>\U0001d45a\U0001d450</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath>"
            "<w:t> of mass.</w:t></w:p>",
            ("Energy is", "mc", "of mass."),
        ),
        (
            "ppt/slides/slide1.xml",
            "<a:p><a:t>So </a:t><m:oMath><m:r><m:t>\U0001d438=m</m:t></m:r></m:oMath></a:p>",
            ("So \U0001d438=m",),
        ),
        ("ppt/presentation.xml", '<p14:section name="Part one" id="{1}"/>', ("Part one",)),
        ("ppt/slides/slide1.xml", '<a:hlinkClick r:id="r1" tooltip="go on"/>', ("go on",)),
        ("xl/workbook.xml", '<sheet name="Chart of it" sheetId="2" r:id="r2"/>', ("Chart of it",)),
        (
            "xl/pivotCache/pivotCacheDefinition1.xml",
            '<cacheField name="Region"><sharedItems><s v="North"/></sharedItems></cacheField>',
            ("Region", "North"),
        ),
        ("docProps/core.xml", "<dc:title>read elsewhere</dc:title>", ()),
        ("word/media/image1.png", "<w:t>no part</w:t>", ()),
    ],
)  # fmt: skip
def test_texts_of_a_part(name: str, source: str, expected: tuple[str, ...]) -> None:
    assert texts(name, source) == expected


def test_numbers_of_charts_are_as_old_as_the_formulas() -> None:
    chart = "<c:title><a:t>Sums</a:t></c:title><c:numCache><c:pt><c:v>7</c:v></c:pt></c:numCache>"
    for asked, expected in (("1", ("Sums",)), ("0", ("Sums", "7"))):
        book = f'<workbook><calcPr calcId="1" fullCalcOnLoad="{asked}"/></workbook>'
        data = samples.zipped({"xl/workbook.xml": book, "xl/charts/chart1.xml": chart})
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert list(read_package_parts(archive)) == [
                PackagePart("xl/charts/chart1.xml", expected)
            ]


def test_what_a_reader_has_not_shown_is_left_over_under_its_part() -> None:
    parts = [
        PackagePart("word/document.xml", ("Shown text.", "Box in it")),
        PackagePart("word/header1.xml", ("shown", "Box in it")),
    ]
    assert list(find_leftovers(parts, "# shown TEXT")) == [
        PackagePart("word/document.xml", ("Box in it",))
    ]
    whole = list(find_leftovers(parts, "# shown TEXT", whole=("word/header",)))
    assert whole[1] == PackagePart("word/header1.xml", ("shown",)), (
        "nobody reads it, so all of it is left over"
    )


SHOWN = """# Mari**gold** and [a link](https://a.invalid/page) here[^1]

The plan is approved. It is not late.

1.5 and -7 and snake\\_case, an <span class="insertion" author="B">added</span> word,
<span class="comment-start" id="0" author="A">a remark</span>a sentence with a remark.

One line,\\
broken.

| one<br>two | rate |
|----|----|
| is | wrong |
"""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("The plan is not approved.", True),
        ("plan approved late", True),
        ("rate is wrong", True),
        ("nothing", True),
        ("art", True),
        ("15", True),
        ("7", True),
        ("the PLAN is\xa0approved", False),
        ("Marigold", True),
        ("gold and a link here", False),
        ("https://a.invalid/page", False),
        ("1.5 and -7 and snake_case, an added word, a sentence with a remark.", False),
        ("a remark", False),
        ("one two", False),
        ("One line, broken.", False),
        ("____", False),
        ("The plan is approved. It is not late. 1.5 and -7 and snake_case", False),
    ],
)
def test_a_text_is_shown_only_if_its_words_follow_each_other(text: str, left: bool) -> None:
    """Words that stood anywhere hid a text box that says the contrary."""
    parts = [PackagePart("word/document.xml", (text,))]
    assert list(find_leftovers(parts, SHOWN)) == (parts if left else [])


def test_texts_are_found_in_any_order() -> None:
    lines = [f"line number {number}" for number in range(50)]
    parts = [PackagePart("a.xml", (*reversed(lines), *lines[::7], "number 51"))]
    assert list(find_leftovers(parts, "\n".join(lines))) == [PackagePart("a.xml", ("number 51",))]


def test_many_texts_in_a_long_one_come_to_an_end() -> None:
    many = tuple(f"line {number} b" for number in range(20_000))
    shown = "\n".join(f"line {number}" for number in range(20_000))
    assert list(find_leftovers([PackagePart("a.xml", many)], shown)) == [PackagePart("a.xml", many)]
    repeated = "ab" * 500_000
    assert list(find_leftovers([PackagePart("a.xml", ("ab",))], repeated)) == [
        PackagePart("a.xml", ("ab",))
    ]


def test_a_hostile_part_takes_no_longer_than_its_length() -> None:
    layout = "ppt/slideLayouts/slideLayout1.xml"
    assert texts(layout, "<p:sp>" * 300_000) == ()
    assert texts("word/document.xml", "<" * 2_000_000) == ()
    assert len(texts("word/document.xml", "<w:t>a</w:p>" * 200_000)) == 1


def test_a_paragraph_with_a_formula_is_not_listed_again() -> None:
    """It stood in the text as pandoc reads it, and once more as the letters of its source."""
    letters, number = (f"<m:r><m:t>{one}</m:t></m:r>" for one in ("\u03b1\U0001d463", "12"))
    formula = f"<m:f><m:num>{letters}</m:num><m:den>{number}</m:den></m:f>"
    source = f"<w:p><w:t>With </w:t><m:oMath>{formula}</m:oMath><w:t> it is done.</w:t></w:p>"
    part = PackagePart("word/document.xml", texts("word/document.xml", source))
    assert list(find_leftovers([part], r"With $\frac{\alpha v}{12}$ it is done.")) == []
    (lost,) = find_leftovers([part], "With it is done.")
    assert lost.texts == ("12",)
