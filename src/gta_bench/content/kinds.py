"""Every known kind of file: its suffixes, the form of its bytes, its reader."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

ContentKind = Literal[
    "docx", "pptx", "xlsx", "pdf", "csv", "markdown", "html", "json", "code", "text",
    "png", "jpeg", "gif", "webp", "bmp", "tiff", "avif", "svg",
    "wav", "mp3", "flac", "ogg", "m4a", "mp4", "mov", "webm", "mkv", "avi", "zip",
    "packed", "mail", "notebook",
    "odt", "ods", "odp", "epub", "rtf", "office-97", "unknown",
]  # fmt: skip
ReaderName = Literal["docx", "pptx", "xlsx", "pdf", "csv", "text", "image", "media", "zip"]

CODE = (
    ".bash", ".c", ".cfg", ".cpp", ".cs", ".css", ".go", ".h", ".hpp", ".ini", ".java",
    ".js", ".jsx", ".kt", ".lua", ".m", ".php", ".pl", ".py", ".r", ".rb", ".rs", ".scala", ".sh",
    ".smt2", ".sql", ".swift", ".tex", ".toml", ".ts", ".tsx", ".typ", ".vue", ".xml", ".yaml",
    ".yml",
)  # fmt: skip


class KindFacts(NamedTuple):
    """`form` is what `identify.find_form` returns; kinds without a reader are only named."""

    suffixes: tuple[str, ...]
    form: str
    reader: ReaderName | None


KINDS: Mapping[ContentKind, KindFacts] = {
    "docx": KindFacts((".docx", ".docm", ".dotx"), "docx", "docx"),
    "pptx": KindFacts((".pptx", ".pptm", ".ppsx", ".potx"), "pptx", "pptx"),
    "xlsx": KindFacts((".xlsx", ".xlsm", ".xltx"), "xlsx", "xlsx"),
    "pdf": KindFacts((".pdf",), "pdf", "pdf"),
    "csv": KindFacts((".csv", ".tsv", ".tab"), "text", "csv"),
    "markdown": KindFacts((".md", ".markdown"), "text", "text"),
    "html": KindFacts((".html", ".htm", ".xhtml"), "text", "text"),
    "json": KindFacts((".json", ".jsonl", ".geojson"), "text", "text"),
    "code": KindFacts(CODE, "text", "text"),
    "text": KindFacts((".txt", ".log", ".srt", ".vtt", ".rst"), "text", "text"),
    "png": KindFacts((".png",), "png", "image"),
    "jpeg": KindFacts((".jpg", ".jpeg", ".jfif"), "jpeg", "image"),
    "gif": KindFacts((".gif",), "gif", "image"),
    "webp": KindFacts((".webp",), "webp", "image"),
    "bmp": KindFacts((".bmp",), "bmp", "image"),
    "tiff": KindFacts((".tif", ".tiff"), "tiff", "image"),
    "avif": KindFacts((".avif",), "avif", "image"),
    "svg": KindFacts((".svg",), "text", "text"),
    "wav": KindFacts((".wav",), "wav", "media"),
    "mp3": KindFacts((".mp3",), "mp3", "media"),
    "flac": KindFacts((".flac",), "flac", "media"),
    "ogg": KindFacts((".ogg", ".oga", ".opus", ".ogv"), "ogg", "media"),
    "m4a": KindFacts((".m4a",), "mp4", "media"),
    "mp4": KindFacts((".mp4", ".m4v"), "mp4", "media"),
    "mov": KindFacts((".mov",), "mp4", "media"),
    "webm": KindFacts((".webm",), "matroska", "media"),
    "mkv": KindFacts((".mkv", ".mka"), "matroska", "media"),
    "avi": KindFacts((".avi",), "avi", "media"),
    "zip": KindFacts((".zip",), "zip", "zip"),
    "packed": KindFacts((".tar", ".tgz", ".gz", ".bz2", ".xz"), "packed", None),
    "mail": KindFacts((".eml",), "text", "text"),
    "notebook": KindFacts((".ipynb",), "text", "text"),
    "odt": KindFacts((".odt",), "odt", None),
    "ods": KindFacts((".ods",), "ods", None),
    "odp": KindFacts((".odp",), "odp", None),
    "epub": KindFacts((".epub",), "epub", None),
    "rtf": KindFacts((".rtf",), "rtf", None),
    "office-97": KindFacts((".doc", ".xls", ".ppt"), "ole", None),
    "unknown": KindFacts((), "binary", None),
}

KIND_OF_SUFFIX: Mapping[str, ContentKind] = {
    suffix: kind for kind, facts in KINDS.items() for suffix in facts.suffixes
}

# The default kind of a form, used if the file name does not decide.
KIND_OF_FORM: Mapping[str, ContentKind] = {
    **{facts.form: kind for kind, facts in KINDS.items()},
    "text": "text",
    "mp4": "mp4",
    "matroska": "mkv",
}
