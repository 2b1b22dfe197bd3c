"""Secrets taken out of whatever is kept.

Everything that is written goes through `current_redactor()`, which knows what `protect` was given
in this process. Nothing is forgotten there: a key that was known once must not be written later.
"""

import base64
import gzip
import html
import io
import json
import lzma
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, AnyStr, Final
from urllib.parse import quote

from gta_bench.redaction.recognition import MARK, is_secret

if TYPE_CHECKING:
    # Importing pydantic takes longer than all else that `gta --help` does.
    from pydantic import JsonValue

FILLER: Final = "REDACTED"  # valid in base64, hex-like digits and file names alike
# How far one file is unpacked, all archives inside it together; beyond, it stays packed as it is.
LARGEST: Final = 256 * 2**20  # bytes
MOST_MEMBERS: Final = 10_000
LONGEST: Final = 30.0  # seconds of a processor
DEEPEST: Final = 3  # archives inside archives
# Strings of JSON, and numbers that could be a secret.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]{7,}', re.DOTALL)
_PERCENT = re.compile("%[0-9A-F]{2}")
_UNICODE = re.compile(r"\\u([0-9a-f]{4})")
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError),
    *(RuntimeError, ValueError, ArithmeticError, LookupError),
)


class Redactor:
    """Puts a mark in place of every secret; secrets are values with the names of their places."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = dict(secrets)

    def __bool__(self) -> bool:
        return bool(self._secrets)

    @cached_property
    def _marks(self) -> list[tuple[str, str]]:
        """Every form of every secret with what replaces it."""
        spelled: dict[str, str] = {}
        for value, name in self._secrets.items():
            spelled |= {form: _filled(form) for form in _encoded(value)}
            spelled |= {form: _mark(name) for form in _spelled(value)}
        return _longest_first(spelled)

    @cached_property
    def _covers(self) -> list[tuple[bytes, bytes]]:
        """The same for bytes; what replaces a form has its length."""
        covers: dict[bytes, bytes] = {}
        for form, replacement in self._marks:
            plain = _bytes(form)
            encoded = replacement == _filled(form)
            covers[plain] = replacement.encode() if encoded else b"*" * len(plain)
        return _longest_first(covers)

    @cached_property
    def _wide_covers(self) -> list[tuple[bytes, bytes, bytes]]:
        """The same for UTF-16, each with what is left of it without zero bytes."""
        covers: dict[bytes, bytes] = {}
        for form, replacement in self._marks:
            if replacement != _filled(form):
                for code in ("utf-16-le", "utf-16-be"):
                    wide = form.encode(code, "surrogatepass")
                    covers[wide] = ("*" * (len(wide) // 2)).encode(code)
        return [(wide.replace(b"\0", b""), wide, cover) for wide, cover in _longest_first(covers)]

    def text(self, text: str) -> str:
        """The text without secrets."""
        return _replaced(text, self._marks)

    def json(self, data: bytes) -> bytes:
        """JSON, or lines of it, without secrets; it stays JSON whatever its strings hold.

        Secrets are looked for in what the strings mean and not in how they are escaped.
        """
        if not self._secrets:
            return data
        try:
            text = data.decode()
            tokens = (one if one[0] == '"' else f'"{one}"' for one in _TOKEN.findall(text))
            meant = "\n".join(json.loads(f"[{','.join(tokens)}]", strict=False))
        except ValueError:
            return self._cover(data)  # no JSON
        found = [(secret, mark) for secret, mark in self._marks if secret in meant]

        def clean(token: re.Match[str]) -> str:
            if token[0][0] != '"':
                return token[0] if _replaced(token[0], found) == token[0] else "0"
            before = json.loads(token[0], strict=False)
            after = _replaced(before, found)
            return token[0] if after == before else json.dumps(after, ensure_ascii=False)

        # Half a surrogate pair is no UTF-8; its escape in JSON is the same as Python's.
        return _TOKEN.sub(clean, text).encode(errors="backslashreplace") if found else data

    def data(self, data: bytes) -> bytes:
        """The bytes with stars over secrets: the length stays, so most file kinds stay readable.

        Archives that hold a secret, and the office files that are archives, are packed anew.
        """
        if not self._secrets:
            return data
        try:
            return self._data(data, DEEPEST, _Room())
        except _TooLargeError:
            return self._cover(data)

    def finds(self, data: bytes) -> str | None:
        """The name of a secret that stands in the bytes; None where there is none."""
        if self.data(data) == data:
            return None
        for value, name in self._secrets.items():
            if Redactor({value: name}).data(data) != data:
                return name
        return None

    def value(self, value: "JsonValue") -> "JsonValue":
        """The value without secrets, in keys as well."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return value

    def _data(self, data: bytes, deeper: int, room: "_Room") -> bytes:
        if deeper and data.startswith(b"\x1f\x8b"):
            data = self._zipped(data, deeper - 1, room)
        if deeper and zipfile.is_zipfile(io.BytesIO(data)):
            data = self._packed(data, deeper - 1, room)
        return self._cover(data)

    def _cover(self, data: bytes) -> bytes:
        """The bytes as they are, with stars over secrets."""
        for secret, cover in self._covers:
            if secret in data:
                data = data.replace(secret, cover)
        # Searching zeros for UTF-16 is slow, and what has no zeros has no UTF-16 of a key in ASCII.
        narrow = data.translate(None, b"\0")
        for short, secret, cover in self._wide_covers:
            if short in narrow and secret in data:
                data = data.replace(secret, cover)
        return data

    def _zipped(self, data: bytes, deeper: int, room: "_Room") -> bytes:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                inside = stream.read(room.size + 1)
        except _UNREADABLE:
            return data
        room.take(len(inside))
        clean = self._data(inside, deeper, room)
        return data if clean == inside else gzip.compress(clean, mtime=0)

    def _packed(self, data: bytes, deeper: int, room: "_Room") -> bytes:
        """The archive with clean members; as it was where none has a secret or can be read.

        Members that cannot be read are left out of an archive that is packed anew.
        """
        try:
            archive = zipfile.ZipFile(io.BytesIO(data))
        except _UNREADABLE:
            return data
        room.take(members=len(archive.filelist))
        changed, clean = False, list[tuple[zipfile.ZipInfo, bytes]]()
        for member in archive.filelist:
            room.take(member.file_size)
            try:
                inside = archive.read(member)
            except _UNREADABLE:
                continue
            clean.append((member, self._data(inside, deeper, room)))
            changed |= clean[-1][1] != inside or self.filename(member.filename) != member.filename
        return self._pack(data, archive, clean) if changed else data

    def _pack(
        self, data: bytes, old: zipfile.ZipFile, members: Iterable[tuple[zipfile.ZipInfo, bytes]]
    ) -> bytes:
        """An archive of these members, after whatever stood before the old one."""
        written, numbers = io.BytesIO(), count(2)
        written.write(data[: max(0, min(member.header_offset for member in old.filelist))])
        with zipfile.ZipFile(written, "w") as archive:
            archive.comment = old.comment
            for member, inside in members:
                name = self.filename(member.filename)
                name = free_name(name, archive.NameToInfo.__contains__, numbers)
                info = zipfile.ZipInfo(name, member.date_time)
                info.compress_type, info.external_attr = member.compress_type, member.external_attr
                archive.writestr(info, inside)
        return written.getvalue()

    def filename(self, name: str) -> str:
        """A file's name without secrets, still a name."""
        for secret, _ in self._marks:
            name = name.replace(secret, FILLER)
        return name


class _TooLargeError(Exception):
    """A file holds more than is unpacked."""


class _Room:
    """What may still be unpacked of one file."""

    def __init__(self) -> None:
        self.size, self._members = LARGEST, MOST_MEMBERS
        self._end = time.thread_time() + LONGEST

    def take(self, size: int = 0, members: int = 0) -> None:
        self.size -= size
        self._members -= members
        if self.size < 0 or self._members < 0 or time.thread_time() > self._end:
            raise _TooLargeError


def free_name(name: str, is_taken: Callable[[str], bool], numbers: Iterator[int]) -> str:
    """The name of a file, or a numbered one where it is taken; no longer than names may be."""
    folder, slash, last = name.rpartition("/")
    stem, dot, ending = last.rpartition(".")
    free = name
    while is_taken(free):
        number = next(numbers)
        short = f"{stem[:40]}-{number}.{ending[:16]}" if dot else f"{last[:40]}-{number}"
        free = f"{folder}{slash}{short}"
    return free


def _longest_first(covers: Mapping[AnyStr, AnyStr]) -> list[tuple[AnyStr, AnyStr]]:
    """One secret may be the beginning of another."""
    return sorted(covers.items(), key=lambda item: -len(item[0]))


def _replaced(text: str, marks: Iterable[tuple[str, str]]) -> str:
    for secret, mark in marks:
        if secret in text:
            text = text.replace(secret, mark)
    return text


def _mark(name: str) -> str:
    """What stands in place of a secret; names of variables can hold any character."""
    return MARK.format(re.sub(r"[^A-Za-z0-9_.-]", "_", name))


def _bytes(text: str) -> bytes:
    """As UTF-8; variables that are none have halves of surrogate pairs for such bytes."""
    return text.encode(errors="surrogateescape")


def _filled(form: str) -> str:
    """What stands in place of an encoded secret: of its length, and still decodable."""
    return (FILLER * (len(form) // len(FILLER) + 1))[: len(form)]


def _spelled(value: str) -> Iterator[str]:
    """A secret as texts have it: as it is, in addresses, in JSON (twice), in HTML and XML."""
    shown = _bytes(value).decode(errors="replace")
    for text in (value, shown) if is_secret(shown.replace("\ufffd", "")) else (value,):
        yield text
        for safe in ("", "/"):
            quoted = quote(text, safe, errors="surrogateescape")
            yield from (
                quoted,
                quoted.replace("%20", "+"),
                _PERCENT.sub(lambda e: e[0].lower(), quoted),
            )
        marked = html.escape(text, quote=False)
        yield from (marked, html.escape(text))
        yield marked.replace('"', "&#34;").replace("'", "&#39;")
        yield marked.replace('"', "&quot;").replace("'", "&apos;")
        for form in _escaped(text):
            yield form
            yield from _escaped(form)


def _escaped(text: str) -> Iterator[str]:
    """A text inside JSON, as Python, JavaScript, PHP and Go write it."""
    for ascii_only in (True, False):
        form = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield from (
            form,
            form.replace("/", "\\/"),
            _UNICODE.sub(lambda e: "\\u" + e[1].upper(), form),
        )
        yield form.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"})


def _encoded(value: str) -> Iterator[str]:
    """A secret in hexadecimal, and in base64 wherever it stands among the bytes around it."""
    data = _bytes(value)
    yield from (data.hex(), data.hex().upper())
    for before in range(3):
        # Characters that depend on neighboring bytes are left out.
        first = (before * 8 + 5) // 6
        last = (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * before + data + b"\0\0").decode()[first:last]


_protected: dict[str, str] = {}
_current = Redactor({})


def protect(secrets: Mapping[str, str]) -> None:
    """Keep these values out of everything that this process writes from now on."""
    global _current
    if not secrets.keys() <= _protected.keys():
        _protected.update(secrets)
        _current = Redactor(_protected)


def current_redactor() -> Redactor:
    """What takes out all secrets that this process knows."""
    return _current


def forget_secrets() -> None:
    """Begin anew; for tests, which share a process."""
    global _current
    _protected.clear()
    _current = Redactor({})
