"""Inside the jail: the text, tables and page pictures of a PDF file."""

import base64
import io
import json
import logging
import re
import time
import warnings
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pypdfium2

# The libraries log a lot about broken files.
logging.disable()
warnings.simplefilter("ignore")

FEW_CHARACTERS = 16  # a page with fewer is a picture, perhaps with a stamp or page number
TEXT_SECONDS = 12.0  # of CPU time, so that a long file is at least read in part
TABLE_SECONDS = 18.0
PICTURE_SECONDS = 24.0
LOCKED = "It is encrypted and needs a password."
POINTS_PER_INCH = 72
STRETCHED = 3.0
FEW_COLORS = 4096
# Edges of letters have hundreds of colors; a palette of 256 looks the same at half the size.
TEXT_COLORS = 2048
PALETTE = 256
# A letter is visible if its area in the picture is not all of one color.
CONTRAST = 12
SMALLEST_POINTS = 2.0
FEW_LETTERS = 4
MOST_LETTERS = 30_000
MOST_PROPERTIES = 20_000
MOST_LISTED = 500
MOST_TAGS = 50_000
ABOUT_NOTES = (("about", "/Subj"), ("by", "/T"))
MOST_ATTACHED = 40 << 20  # bytes
TAGS = re.compile(r"<[^<>]{0,5000}>")
SIGNATURE = ("/Author", "/CreationDate", "/ModDate")
USUAL = ("/Producer", "/Creator", "/Trapped", "/PTEX.Fullbanner")
# XMP metadata: a tag, the text after it, and its attributes.
XMP_PIECE = re.compile(r"<([^<>]{0,5000})>([^<]{0,20000})")
XMP_ATTRIBUTE = re.compile(r"\s([\w.-]{1,60}:[\w.-]{1,60})=[\"']([^\"'<>]{1,5000})[\"']")
XMP_FRAME = ("/", "?", "rdf:", "x:")
XMP_CODES = ("xmlns:", "xml:", "rdf:", "x:", "xmpMM:", "stRef:", "stEvt:", "pdfaid:", "pdfuaid:",
             "pdfaSchema:", "pdfaProperty:", "pdfaExtension:", "xmpTPg:")  # fmt: skip
XMP_USUAL = ("dc:format", "dc:language", "xmp:CreatorTool", "xmp:MetadataDate", "pdf:Producer",
             "pdf:PDFVersion", "pdf:Trapped")  # fmt: skip
XMP_SIGNATURE = ("dc:creator", "dc:date", "xmp:CreateDate", "xmp:ModifyDate", "pdf:Author")
MOST_LABELED = 5000  # pages


def prepare() -> dict[str, Any]:
    """Import the packages for reading; rendering does not need them."""
    options = json.loads(Path("options.json").read_text(encoding="utf-8"))
    if options["work"] == "read":
        import pdfplumber  # noqa: F401
        import pypdf  # noqa: F401
    return {"options": options}


def finish(names: dict[str, Any]) -> str:
    """Return the pages as JSON, or why the file is refused."""
    options = names["options"]
    file = Path("file")
    try:
        with pypdfium2.PdfDocument(file.read_bytes()) as document:
            document.init_forms()  # otherwise pictures omit form fields
            pages = len(document)
            if options["work"] == "render":
                wanted = [number for number in options["pages"] if 1 <= number <= pages]
                images = list(_render_pages(document, wanted, options))
                return json.dumps({"pages": images, "page_count": pages})
            return json.dumps(_read_content(file, document, options))
    except pypdfium2.PdfiumError as exc:
        return LOCKED if "password" in str(exc).lower() else f"It is broken ({exc})."


def _read_content(
    file: Path, document: pypdfium2.PdfDocument, options: dict[str, Any]
) -> dict[str, Any]:
    texts = list(_read_texts(file, document, options["most_pages"]))
    tables = list(_read_tables(file, len(texts)))
    poor = [
        number
        for number, text in enumerate(texts, 1)
        if len("".join(text.split())) < FEW_CHARACTERS
    ]
    images = {
        image["number"]: image["data"]
        for image in _render_pages(document, poor[: options["most_images"]], options)
    }
    return {
        "pages": [
            {
                "number": number,
                "text": text,
                "tables": tables[number - 1] if number <= len(tables) else [],
                "origin": "text" if text.strip() else "none",
                "image": images.get(number),
            }
            for number, text in enumerate(texts, 1)
        ],
        "page_count": len(document),
        "pages_searched_for_tables": len(tables),
        **_read_extras(file, len(texts)),
    }


def _read_extras(file: Path, pages: int) -> dict[str, Any]:
    """Read everything besides the pages. What is broken is left out."""
    import pypdf.errors

    broken = (
        pypdf.errors.PyPdfError, ValueError, LookupError, TypeError, AttributeError, RecursionError,
    )  # fmt: skip
    found: dict[str, Any] = {
        "properties": [], "signed": False, "remarks": [], "fields": [], "links": [],
        "bookmarks": [], "attachments": [], "descriptions": [], "scripts": False, "xfa": False,
        "labels": [], "layers": [], "layers_off": [],
    }  # fmt: skip
    reader = _open_reader(file)
    for read in (
        _read_properties, _read_xmp, _read_annotations, _read_fields, _read_xfa, _read_bookmarks,
        _read_attachments, _read_descriptions, _read_scripts, _read_labels, _read_layers,
    ):  # fmt: skip
        try:
            read(reader, pages, found)
        except broken:
            continue
    return found


def _read_properties(reader: Any, pages: int, found: dict[str, Any]) -> None:
    """Read the metadata: title, subject, keywords."""
    for name, value in (reader.metadata or {}).items():
        if name in SIGNATURE:
            found["signed"] = True
        elif name not in USUAL and str(value).strip():
            words = _clean(" ".join(str(value).split()))
            found["properties"].append([name.strip("/"), words[:MOST_PROPERTIES]])


def _read_xmp(reader: Any, pages: int, found: dict[str, Any]) -> None:
    """Read the XMP metadata that the properties do not repeat."""
    stream = reader.root_object.get("/Metadata")
    if stream is None:
        return
    name, known = "", {value for _, value in found["properties"]}
    source = stream.get_object().get_data().decode("utf-8", "replace")
    for tag, text in XMP_PIECE.findall(source):
        if not tag.startswith(XMP_FRAME):
            name = tag.partition(" ")[0].strip("/")
        for key, value in ((name, text), *XMP_ATTRIBUTE.findall(tag)):
            words = _clean(" ".join(unescape(value).split()))[:MOST_PROPERTIES]
            if not words or words in known or key.startswith(XMP_CODES) or key in XMP_USUAL:
                continue
            if key in XMP_SIGNATURE:
                found["signed"] = True
            elif len(found["properties"]) < MOST_LISTED:
                known.add(words)
                found["properties"].append([key, words])


def _read_labels(reader: Any, pages: int, found: dict[str, Any]) -> None:
    """Read the page labels that differ from the page numbers."""
    if "/PageLabels" in reader.root_object and len(reader.pages) <= MOST_LABELED:
        named = enumerate(reader.page_labels[:pages], 1)
        other = [f"page {number}: {label}" for number, label in named if label != str(number)]
        found["labels"] = [_clean(line)[:200] for line in other[:MOST_LISTED]]


def _read_layers(reader: Any, pages: int, found: dict[str, Any]) -> None:
    """Read the layers; those that are switched off are not drawn."""
    properties = reader.root_object.get("/OCProperties")
    if properties is None:
        return
    groups = properties.get_object()
    setting = groups.get("/D", {}).get_object() if "/D" in groups else {}
    state = {key: {int(one.idnum) for one in setting.get(key) or ()} for key in ("/ON", "/OFF")}
    usual_off = setting.get("/BaseState") == "/OFF"
    for layer in groups["/OCGs"][:MOST_LISTED]:
        number, name = (
            int(layer.idnum),
            _clean(str(layer.get_object().get("/Name") or ""))[:2000],
        )
        off = number in state["/OFF"] or (usual_off and number not in state["/ON"])
        found["layers_off" if off else "layers"].append(name)


def _read_annotations(reader: Any, pages: int, found: dict[str, Any]) -> None:
    """Read the text of annotations and the targets of links."""
    for number, note in _read_notes(reader, pages):
        words = _read_remark(note)
        if words and len(found["remarks"]) < MOST_LISTED:
            found["remarks"].append(_clean(f"page {number}: {words}")[:MOST_PROPERTIES])
        action = note.get("/A")
        address = action.get_object().get("/URI") if action is not None else None
        if address is not None and len(found["links"]) < MOST_LISTED:
            found["links"].append(_clean(str(address))[:2000])


def _read_notes(reader: Any, pages: int) -> Iterator[tuple[int, Any]]:
    for number, page in enumerate(reader.pages[:pages], 1):
        annotations = page.get("/Annots")
        for entry in (annotations.get_object() if annotations is not None else None) or ():
            yield number, entry.get_object()


def _read_remark(note: Any) -> str:
    """Return the plain and rich text of an annotation, its subject and its author."""
    words = " ".join(str(note.get("/Contents") or "").split())
    for key in ("/RC", "/OverlayText"):
        more = note.get(key)
        data = more.get_object() if more is not None else ""
        source = data.get_data().decode("utf-8", "replace") if hasattr(data, "get_data") else data
        rich = " ".join(unescape(TAGS.sub(" ", str(source))).split())
        if rich and rich not in words:
            words = f"{words} {rich}".strip()
    if note.get("/Subtype") == "/Widget":  # its /T is the name of a field
        return words
    about = [
        f"{name}: {note[key]}" for name, key in ABOUT_NOTES if str(note.get(key) or "").strip()
    ]
    return f"{words} ({'; '.join(about)})".strip() if about else words


def _read_fields(reader: Any, pages: int, found: dict[str, Any]) -> None:
    """Read the fields of a form, filled in or not, with their choices."""
    for name, field in (reader.get_fields() or {}).items():
        value = field.get("/V")
        choices = field.get("/Opt")
        text = "" if value is None else str(value).lstrip("/")
        if choices:
            text += f" (choices: {', '.join(map(_read_choice, choices))})"
        hint = field.get("/TU")
        if hint is not None and str(hint) != name:
            text += f" (hint: {hint})"
        found["fields"].append([_clean(str(name)), _clean(text)])


def _read_xfa(reader: Any, pages: int, found: dict[str, Any]) -> None:
    """Read the text of an XFA form, which is one stream or a list of names and streams."""
    form = reader.root_object.get("/AcroForm")
    xfa = form.get_object().get("/XFA") if form is not None else None
    if xfa is None:
        return
    found["xfa"] = True
    content = xfa.get_object()
    parts = (
        list(zip(content[::2], content[1::2], strict=False)) if isinstance(content, list) else []
    )
    for name, stream in parts or [("form", content)]:
        source = stream.get_object().get_data().decode("utf-8", "replace")
        text = " ".join(TAGS.sub(" ", source).split())
        if text:
            found["fields"].append([_clean(f"XFA {name}"), _clean(text)[:MOST_PROPERTIES]])


def _read_choice(option: Any) -> str:
    option = option.get_object() if hasattr(option, "get_object") else option
    return str(option[-1]) if isinstance(option, list) else str(option)


def _read_bookmarks(reader: Any, pages: int, found: dict[str, Any]) -> None:
    left = list(reader.outline)
    while left and len(found["bookmarks"]) < MOST_LISTED:
        entry = left.pop(0)
        if isinstance(entry, list):
            left = entry + left
        else:
            found["bookmarks"].append(_clean(str(entry.title)))


def _read_attachments(reader: Any, pages: int, found: dict[str, Any]) -> None:
    """Read attached files up to a total size; some are attached to a page as annotations."""
    room = MOST_ATTACHED
    listed = [(one.name, one.description, one.content) for one in reader.attachment_list]
    pinned = (_read_pinned(note) for _, note in _read_notes(reader, pages))
    for name, about, content in dict.fromkeys([*listed, *filter(None, pinned)]):
        data = content or b""
        room -= len(data)
        kept = base64.b64encode(data).decode("ascii") if room > 0 else None
        found["attachments"].append(
            {"name": _clean(name or "attached"), "about": _clean(about or ""), "data": kept}
        )


def _read_pinned(note: Any) -> tuple[str, str | None, bytes] | None:
    if note.get("/Subtype") != "/FileAttachment":
        return None
    file = note["/FS"].get_object()
    streams = file["/EF"].get_object()
    stream = streams["/F"] if "/F" in streams else streams["/UF"]
    about = file.get("/Desc")
    name = str(file.get("/UF") or file.get("/F") or "attached")
    return name, None if about is None else str(about), stream.get_object().get_data()


def _read_descriptions(reader: Any, pages: int, found: dict[str, Any]) -> None:
    """Read the alternative texts of tags for pictures, formulas and shapes."""
    left: list[Any] = [reader.root_object.get("/StructTreeRoot")]
    seen: set[int] = set()
    while left and len(seen) < MOST_TAGS and len(found["descriptions"]) < MOST_LISTED:
        entry = left.pop()
        tag: Any = entry.get_object() if entry is not None else None
        if isinstance(tag, list):
            left += reversed(tag)
        if id(tag) in seen or not hasattr(tag, "get"):
            continue
        seen.add(id(tag))
        for key in ("/Alt", "/ActualText", "/E"):
            words = " ".join(str(tag.get(key) or "").split())
            if words:
                found["descriptions"].append(_clean(words)[:MOST_PROPERTIES])
        left.append(tag.get("/K"))


def _read_scripts(reader: Any, pages: int, found: dict[str, Any]) -> None:
    """Find out whether it contains scripts. They are not run."""
    root = reader.root_object
    names = root.get("/Names")
    holders = [root, *reader.pages[:pages], *(note for _, note in _read_notes(reader, pages))]
    found["scripts"] = (names is not None and "/JavaScript" in names.get_object()) or any(
        _is_script(action) for holder in holders for action in _find_actions(holder)
    )


def _find_actions(holder: Any) -> Iterator[Any]:
    yield from (holder[key].get_object() for key in ("/A", "/OpenAction") if key in holder)
    if "/AA" in holder:
        yield from (action.get_object() for action in holder["/AA"].get_object().values())


def _is_script(action: Any) -> bool:
    return hasattr(action, "get") and action.get("/S") == "/JavaScript"


def _open_reader(file: Path) -> Any:
    """Open the file with pypdf. The renderer has opened it, so it needs no password."""
    import pypdf

    reader = pypdf.PdfReader(file)
    if reader.is_encrypted:
        reader.decrypt("")
    return reader


def _read_texts(file: Path, document: pypdfium2.PdfDocument, most: int) -> Iterator[str]:
    """Yield the text of each page, while there is time."""
    for number, page in enumerate(_open_reader(file).pages):
        if number >= most or (number and time.process_time() > TEXT_SECONDS):
            return
        yield _fix_spaces(page.extract_text(), document, number)


def _fix_spaces(text: str, document: pypdfium2.PdfDocument, number: int) -> str:
    """Return the text with the spaces of pdfium if both have the same letters.

    pypdf mistakes kerned letters (`Ta`) for the end of a word.
    """
    text = _clean(text)
    if number >= len(document):
        return text
    words = document[number].get_textpage()
    seen = _clean(words.get_text_range(0, min(words.count_chars(), MOST_LETTERS)))
    same = "".join(seen.split()) == "".join(text.split())
    return "\n".join(seen.splitlines()) if same else text


def _read_tables(file: Path, pages: int) -> Iterator[list[list[list[str]]]]:
    """Yield the tables of each page, while there is time."""
    import pdfplumber

    with pdfplumber.open(file) as document:
        for page in document.pages[:pages]:
            if time.process_time() > TABLE_SECONDS:
                return
            yield [table for table in map(_clean_table, page.extract_tables()) if _is_table(table)]
            page.close()


def _clean_table(table: Iterable[Iterable[str | None]]) -> list[list[str]]:
    return [[_clean(cell or "") for cell in row] for row in table]


def _is_table(rows: list[list[str]]) -> bool:
    """Whether it is more than a frame: it has two columns and some text."""
    return max(map(len, rows), default=0) > 1 and any(any(row) for row in rows)


def _clean(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _render_pages(
    document: pypdfium2.PdfDocument, numbers: Iterable[int], options: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    for number in numbers:
        if time.process_time() > PICTURE_SECONDS:
            return
        page = document[number - 1]
        width, height = (max(side, 1.0) for side in page.get_size())
        most = options["longest_side"] * POINTS_PER_INCH / options["dpi"]
        longest = max(width, height)
        # Show only a readable part of a very long or wide page, such as a sheet.
        if longest > STRETCHED * min(width, height) and longest > 2 * most:
            longest = max(min(width, height), most)
        scale = min(options["dpi"] / POINTS_PER_INCH, options["longest_side"] / longest)
        shown = [min(side, options["longest_side"] / scale) for side in (width, height)]
        crop = (0, max(0.0, height - shown[1]), max(0.0, width - shown[0]), 0)
        picture = page.render(scale=scale, crop=crop).to_pil().convert("RGB")
        unseen = _find_unseen(page, picture, scale)
        page.close()
        yield {
            "number": number,
            "unseen": unseen,
            "data": base64.b64encode(_encode(picture)).decode("ascii"),
            "part": shown[0] * shown[1] / (width * height),
        }


def _find_unseen(page: Any, picture: Any, scale: float) -> str:
    """Find text that the picture does not show: same color, covered, tiny, or outside."""
    if page.get_rotation():
        return ""
    words = page.get_textpage()
    left, bottom, right, top = page.get_cropbox()
    letters = words.get_text_range(0, min(words.count_chars(), MOST_LETTERS))
    found, run = [], ""
    for index, letter in enumerate(letters):
        if letter.isspace():
            run += " " if run else ""
            continue
        x0, y0, x1, y1 = words.get_charbox(index, loose=True)
        box = ((x0 - left) * scale, (top - y1) * scale, (x1 - left) * scale, (top - y0) * scale)
        beyond = x0 >= right or y1 <= bottom or x1 <= left or y0 >= top
        if beyond or y1 - y0 < SMALLEST_POINTS or not _is_visible(picture, box):
            run += letter
        else:
            found.append(run)
            run = ""
    long = [run for run in [*found, run] if len("".join(run.split())) >= FEW_LETTERS]
    return _clean(" ".join(long))


def _is_visible(picture: Any, box: tuple[float, float, float, float]) -> bool:
    """Whether the area shows anything; an area outside of the picture counts as shown."""
    inner = [int(box[0]) - 1, int(box[1]) - 1, int(box[2]) + 2, int(box[3]) + 2]
    bounds = [max(0, inner[0]), max(0, inner[1]),
              min(picture.width, inner[2]), min(picture.height, inner[3])]  # fmt: skip
    if bounds[0] >= bounds[2] or bounds[1] >= bounds[3]:
        return True
    return any(high - low > CONTRAST for low, high in picture.crop(bounds).getextrema())


def _encode(picture: Any) -> bytes:
    """Encode text without loss and photographs as JPEG."""
    stream = io.BytesIO()
    if picture.getcolors(FEW_COLORS) is None:
        picture.save(stream, "JPEG", quality=85)
    elif picture.getcolors(TEXT_COLORS) is not None:
        picture.quantize(PALETTE).save(stream, "PNG")
    else:
        picture.save(stream, "PNG")
    return stream.getvalue()
