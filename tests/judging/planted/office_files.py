# ruff: noqa: E501 - lines of markup
"""Word, PowerPoint and Excel files with a word in every location that their programs have."""

import datetime
import io

import openpyxl
import xlsxwriter
from openpyxl.chart import BarChart
from openpyxl.chart import Reference as ChartData
from openpyxl.comments import Comment
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from PIL import Image, ImageDraw, ImageFont
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from tests.content import samples
from tests.judging.planted.planting import Bed

W = samples.WORD
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
WORD_SHAPE = "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
SPACES = (
    f'xmlns:w="{W}" xmlns:r="{OFFICE}" xmlns:a="{DRAWING}/main" xmlns:c="{DRAWING}/chart" '
    f'xmlns:wp="{DRAWING}/wordprocessingDrawing" xmlns:wps="{WORD_SHAPE}" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)
AUTHORS = "who made it and when"


def drawn(word: str, form: str = "PNG", **options: object) -> bytes:
    """A picture of a word, in three sizes, because OCR may misread one."""
    picture = Image.new("RGB", (480, 260), "white")
    for top, size in ((10, 40), (75, 56), (160, 72)):
        font = ImageFont.load_default(size=size)
        ImageDraw.Draw(picture).text((24, top), word, fill="black", font=font)
    stream = io.BytesIO()
    picture.save(stream, form, **options)
    return stream.getvalue()


def _run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def _styled(style: str, text: str) -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>{_run(text)}</w:p>'


def _shape(words: Bed) -> str:
    box = f"<w:txbxContent>{samples.paragraph(words('text box'))}</w:txbxContent>"
    about = (
        f'<wp:docPr id="7" name="Box" descr="{words("alt text")}" title="{words("alt title")}"/>'
    )
    size = '<wp:extent cx="2000000" cy="600000"/>'
    shape = f"<wps:wsp><wps:cNvSpPr/><wps:spPr/><wps:txbx>{box}</wps:txbx><wps:bodyPr/></wps:wsp>"
    graphic = f'<a:graphic><a:graphicData uri="{WORD_SHAPE}">{shape}</a:graphicData></a:graphic>'
    return (
        '<w:p><w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:inline>'
        f"{size}{about}{graphic}</wp:inline></w:drawing></mc:Choice></mc:AlternateContent></w:r></w:p>"
    )


def _body(words: Bed) -> str:
    change = 'w:id="1" w:author="{}" w:date="2026-01-01T00:00:00Z"'
    math = f"<m:oMath><m:r><m:t>{words('equation')}</m:t></m:r></m:oMath>"
    nested = samples.word_table([[words("table cell"), "b"]])
    split = words("word in two runs")
    return "".join(
        [
            _styled("Title", words("title")),
            _styled("Subtitle", words("subtitle")),
            _styled("Author", words("author line")),
            _styled("Abstract", words("abstract")),
            _styled("Heading1", words("heading")),
            samples.paragraph(words("paragraph")),
            f"<w:p>{_run(split[:4])}<w:r><w:rPr><w:b/></w:rPr><w:t>{split[4:]}</w:t></w:r></w:p>",
            nested,
            f'<w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>{_run("item")}</w:p>',
            "<w:p><w:r><w:t>a</w:t><w:footnoteReference w:id='2'/></w:r></w:p>",
            "<w:p><w:r><w:t>b</w:t><w:endnoteReference w:id='2'/></w:r></w:p>",
            f'<w:p><w:commentRangeStart w:id="0"/>{_run(words("commented text"))}'
            '<w:commentRangeEnd w:id="0"/><w:r><w:commentReference w:id="0"/></w:r></w:p>',
            f"<w:p><w:ins {change.format(words('author of a change'))}>"
            f"{_run(words('insertion'))}</w:ins></w:p>",
            f"<w:p><w:del {change.format('A')}><w:r><w:delText>{words('deletion')}</w:delText></w:r>"
            "</w:del></w:p>",
            f"<w:p>{math}</w:p>",
            f"<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>{words('hidden text')}</w:t></w:r></w:p>",
            f'<w:p><w:hyperlink r:id="rId9">{_run(words("link text"))}</w:hyperlink></w:p>',
            f"<w:sdt><w:sdtContent>{samples.paragraph(words('content control'))}</w:sdtContent></w:sdt>",
            f'<w:p><w:fldSimple w:instr="DATE">{_run(words("field result"))}</w:fldSimple></w:p>',
            _shape(words),
            '<w:sectPr><w:headerReference w:type="default" r:id="rId2"/>'
            '<w:headerReference w:type="first" r:id="rId3"/>'
            '<w:footerReference w:type="default" r:id="rId4"/></w:sectPr>',
        ]
    )


def _list(label: str) -> str:
    level = (
        f'<w:lvl w:ilvl="0"><w:numFmt w:val="upperRoman"/><w:lvlText w:val="{label} %1:"/></w:lvl>'
    )
    return (
        f'<w:abstractNum w:abstractNumId="1">{level}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>'
    )


def _root(tag: str, content: str) -> str:
    return f'<?xml version="1.0"?><w:{tag} {SPACES}>{content}</w:{tag}>'


def _note(tag: str, word: str) -> str:
    return _root(f"{tag}s", f'<w:{tag} w:id="2">{samples.paragraph(word)}</w:{tag}>')


def _chart(words: Bed) -> str:
    def cached(tag: str, value: str) -> str:
        return f'<c:{tag}><c:strRef><c:strCache><c:pt idx="0"><c:v>{value}</c:v></c:pt></c:strCache></c:strRef></c:{tag}>'

    title = f"<a:p><a:r><a:t>{words('chart title')}</a:t></a:r></a:p>"
    series = cached("tx", words("chart series")) + cached("cat", words("chart category"))
    return (
        f'<?xml version="1.0"?><c:chartSpace {SPACES}><c:chart><c:title><c:tx><c:rich>{title}'
        f"</c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser>{series}</c:ser></c:barChart>"
        "</c:plotArea></c:chart></c:chartSpace>"
    )


def _relations(*entries: tuple[str, str, str, str]) -> str:
    lines = "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{target}"{mode}/>'
        for name, kind, target, mode in entries
    )
    return f'<?xml version="1.0"?><Relationships xmlns="{PACKAGE}/relationships">{lines}</Relationships>'


def word_by_hand(words: Bed) -> bytes:
    """Every feature, as Word writes it."""
    mark = (
        f'<w:p><w:r><w:pict><v:shape style="width:300pt;height:60pt">'
        f'<v:textpath string="{words("watermark")}"/></v:shape></w:pict></w:r></w:p>'
    )
    core = (
        f'<cp:coreProperties xmlns:cp="{PACKAGE}/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{words('property title')}</dc:title><dc:subject>{words('property subject')}</dc:subject>"
        f"<cp:keywords>{words('keywords')}</cp:keywords>"
        f"<dc:description>{words('long property', named='its properties')} and six words more in it"
        f"</dc:description><dc:creator>{words('author', named=AUTHORS)}</dc:creator></cp:coreProperties>"
    )
    custom = (
        '<Properties xmlns:vt="urn:vt"><property fmtid="x" pid="2" name="Project">'
        f"<vt:lpwstr>{words('custom property')}</vt:lpwstr></property></Properties>"
    )
    comment = (
        f'<w:comment w:id="0" w:author="{words("comment author")}">'
        f"{samples.paragraph(words('comment'))}</w:comment>"
    )
    diagram = f'<dgm:pt xmlns:dgm="urn:d" {SPACES}><a:p><a:r><a:t>{words("diagram")}</a:t></a:r></a:p></dgm:pt>'
    external = ' TargetMode="External"'
    link = f"https://{words('link target').lower()}.invalid/"
    parts: dict[str, str | bytes] = {
        "word/document.xml": _root("document", f"<w:body>{_body(words)}</w:body>"),
        "word/_rels/document.xml.rels": _relations(
            ("rId2", "header", "header1.xml", ""),
            ("rId3", "header", "header2.xml", ""),
            ("rId4", "footer", "footer1.xml", ""),
            ("rId5", "footnotes", "footnotes.xml", ""),
            ("rId6", "endnotes", "endnotes.xml", ""),
            ("rId7", "comments", "comments.xml", ""),
            ("rId8", "package", "embeddings/book.xlsx", ""),
            ("rId9", "hyperlink", link, external),
            ("rId10", "numbering", "numbering.xml", ""),
        ),
        "word/numbering.xml": _root("numbering", _list(words("label of a list"))),
        "word/header1.xml": _root("hdr", samples.paragraph(words("header")) + mark),
        "word/header2.xml": _root("hdr", samples.paragraph(words("header of the first page"))),
        "word/footer1.xml": _root("ftr", samples.paragraph(words("footer"))),
        "word/footnotes.xml": _note("footnote", words("footnote")),
        "word/endnotes.xml": _note("endnote", words("endnote")),
        "word/comments.xml": _root("comments", comment),
        "word/charts/chart1.xml": _chart(words),
        "word/diagrams/data1.xml": diagram,
        "word/embeddings/book.xlsx": samples.zipped(
            {"a.txt": words("embedded file", named="embedded files, not shown")}
        ),
        "docProps/core.xml": core,
        "docProps/custom.xml": custom,
    }
    return samples.docx("", parts)


def deck_by_python_pptx(words: Bed) -> bytes:
    """Titles, levels, tables, groups, charts, notes, hidden things."""
    show = Presentation()
    one = show.slides.add_slide(show.slide_layouts[0])
    one.shapes.title.text = words("title")
    one.placeholders[1].text = words("subtitle")
    one.notes_slide.notes_text_frame.text = words("notes")
    two = show.slides.add_slide(show.slide_layouts[1])
    two.placeholders[1].text_frame.text = words("bullet")
    box = two.shapes.add_textbox(Inches(1), Inches(4), Inches(3), Inches(1)).text_frame
    box.text = words("text box")
    link = box.paragraphs[0].add_run()
    link.text = words("link text")
    link.hyperlink.address = f"https://{words('link target').lower()}.invalid/"
    outer = two.shapes.add_group_shape()
    inner = outer.shapes.add_group_shape()
    inner.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = words("group in a group")
    table = two.shapes.add_table(1, 2, Inches(1), Inches(5), Inches(4), Inches(1)).table
    table.cell(0, 0).text = words("table cell")
    three = show.slides.add_slide(show.slide_layouts[6])
    data = CategoryChartData()  # type: ignore[no-untyped-call]
    data.categories = [words("chart category")]
    data.add_series(words("chart series"), (1.5,))  # type: ignore[no-untyped-call]
    chart = three.shapes.add_chart(
        XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, Inches(4), Inches(3), data
    ).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = words("chart title")
    chart.value_axis.has_title = True
    chart.value_axis.axis_title.text_frame.text = words("axis title")
    picture = three.shapes.add_picture(
        io.BytesIO(drawn(words("picture", drawn=True))), 0, Inches(4)
    )
    picture._element.nvPicPr.cNvPr.set("descr", words("alt text"))
    away = three.shapes.add_textbox(Inches(40), 0, Inches(1), Inches(1))
    away.text_frame.text = words("beside the slide")
    four = show.slides.add_slide(show.slide_layouts[5])
    four.shapes.title.text = words("hidden slide")
    four._element.set("show", "0")
    show.core_properties.title = words("property title")
    show.core_properties.author = words("author", named=AUTHORS)
    stream = io.BytesIO()
    show.save(stream)
    return stream.getvalue()


def workbook_by_openpyxl(words: Bed) -> bytes:
    """Cells, formulas, comments, hidden things, dates, prompts."""
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.title = words("sheet name")
    computed = words("computed value")
    sheet["A1"] = words("cell")
    sheet["A2"] = f'=CONCATENATE("{computed[:4]}","{computed[4:]}")'
    sheet["A3"] = datetime.date(2026, 5, 19)
    sheet["A3"].number_format = f'd mmmm yyyy "{words("date as shown")}"'
    sheet["A4"] = 5
    sheet["A4"].number_format = f'0 "{words("number as shown")}"'
    sheet["A5"] = words("merged cells")
    sheet.merge_cells("A5:C5")
    sheet["A6"] = words("hidden row")
    sheet.row_dimensions[6].hidden = True
    sheet["F1"] = words("hidden column")
    sheet.column_dimensions["F"].hidden = True
    sheet["A7"] = "link"
    sheet["A7"].hyperlink = f"https://{words('link target').lower()}.invalid/"
    sheet["A1"].comment = Comment(words("comment"), words("comment author"))
    assert sheet.oddHeader is not None and sheet.oddFooter is not None
    sheet.oddHeader.center.text = words("page header")
    sheet.oddFooter.left.text = words("page footer")
    rule = DataValidation(type="list", formula1=f'"{words("choice")},b"')
    rule.promptTitle, rule.prompt = words("prompt title"), words("prompt")
    sheet.add_data_validation(rule)
    rule.add("B1")
    chart = BarChart()
    chart.title = words("chart title")
    chart.x_axis.title = words("axis title")
    sheet["B8"], sheet["B9"] = words("chart series"), 3
    chart.add_data(ChartData(sheet, min_col=2, min_row=8, max_row=9), titles_from_data=True)
    sheet.add_chart(chart, "H2")
    name = words("defined name")
    book.defined_names[name] = DefinedName(name, attr_text=f"{sheet.title}!$A$1")
    hidden = book.create_sheet(words("name of a hidden sheet"))
    hidden.sheet_state = "veryHidden"
    hidden["C3"] = words("cell of a hidden sheet")
    book.properties.title = words("property title")
    book.properties.keywords = words("keywords")
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def workbook_by_xlsxwriter(words: Bed) -> bytes:
    """Rich text, text boxes, tables, charts."""
    stream = io.BytesIO()
    book = xlsxwriter.Workbook(stream)
    sheet = book.add_worksheet(words("sheet name"))
    bold = book.add_format({"bold": True})
    rich = words("rich text")
    sheet.write_rich_string("A1", rich[:4], bold, rich[4:], " end")
    computed = words("computed value")
    sheet.write_formula("A2", f'=CONCATENATE("{computed[:4]}","{computed[4:]}")')
    sheet.write_comment("A1", words("comment"))
    sheet.insert_textbox("D24", words("text box"))
    sheet.insert_image("D34", "a.png", {
        "image_data": io.BytesIO(drawn(words("picture", drawn=True))), "description": words("alt text"),
    })  # fmt: skip
    sheet.add_table("A4:B5", {"columns": [{"header": words("table header")}, {"header": "b"}]})
    sheet.set_header(f"&C{words('page header')}")
    chart = book.add_chart({"type": "column"})
    assert chart is not None
    chart.add_series({"values": f"='{sheet.get_name()}'!$B$5", "name": words("chart series")})
    chart.set_title({"name": words("chart title")})
    sheet.insert_chart("D1", chart)
    secret = book.add_worksheet("Secret")
    secret.write("A1", words("cell of a hidden sheet"))
    secret.hide()
    book.set_properties({"title": words("property title"), "comments": words("remarks")})
    book.set_custom_property("Project", words("custom property"))
    book.close()
    return stream.getvalue()
