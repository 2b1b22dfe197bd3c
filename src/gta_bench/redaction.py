"""Secrets: what counts as one, and how it is removed from everything that is written.

Everything that is written goes through `current_redactor()`, which knows all secrets that were
passed to `protect` in this process. Secrets are never dropped: a key that was known once must not
be written later.
"""

import base64
import gzip
import html
import io
import json
import lzma
import re
import shlex
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, AnyStr, Final
from urllib.parse import quote, unquote, urlsplit

if TYPE_CHECKING:
    # Importing pydantic takes longer than everything else that `gta --help` does.
    from pydantic import JsonValue

MARK: Final = "[redacted:{}]"
# Names of secrets: OPENAI_API_KEY, HF_TOKEN, AWS_SECRET_ACCESS_KEY, PGPASSWORD, --api-key.
SECRET_NAME: Final = re.compile(
    r"(^|[_-])(KEY|TOKEN)([_-]|$)|API[_-]?KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE", re.IGNORECASE
)
# Options and assignments in a command whose value is hidden: --api-key, but not --token-limit.
SECRET_OPTION: Final = re.compile(
    r"(^|[_-])(API)?(KEY|TOKEN)$|(SECRET|PASSWORD|PASSWD|PASSPHRASE)$", re.IGNORECASE
)
# Names of variables whose value is not a secret, although an address in it may contain one.
PLAIN_NAME: Final = re.compile(
    r"(^|_)(MODEL|URL|URI|HOST|PORT|NAME|REGION|PROXY|DIR|PATH|HOME|LANG|LEVEL|VERSION|MODE)S?$",
    re.IGNORECASE,
)
# Parameters of an address that are secrets although SECRET_NAME does not match them.
SECRET_PARAMETERS: Final = frozenset({"auth", "code", "pass", "pwd", "sig", "signature"})
ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>`]+")
BEARER: Final = re.compile(r"\b(?:Bearer|Basic)\s+([^\s'\"]+)", re.IGNORECASE)
# How the keys of widely used services begin.
WELL_KNOWN: Final = re.compile(
    r"\b(?:sk-|sk_|pk_|rk_|gsk_|ghp_|gho_|github_pat_|glpat-|hf_|xai-|xox[abps]-|AKIA|AIza|eyJ)"
    r"[A-Za-z0-9_.+/=-]{12,}"
)
SHORTEST: Final = 8
LONG: Final = 16
FILLER: Final = "REDACTED"  # valid in base64, hex-like digits and file names alike
# How much of one file is unpacked, over all archives inside it; a larger one stays packed.
LARGEST: Final = 256 * 2**20  # bytes
MOST_MEMBERS: Final = 10_000
LONGEST: Final = 30.0  # seconds of CPU time
DEEPEST: Final = 3  # archives inside archives
# JSON strings, and numbers that could be a secret.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]{7,}', re.DOTALL)
_PERCENT = re.compile("%[0-9A-F]{2}")
_UNICODE = re.compile(r"\\u([0-9a-f]{4})")
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError),
    *(RuntimeError, ValueError, ArithmeticError, LookupError),
)


def is_secret(value: str) -> bool:
    """Check whether a value differs from ordinary words, so that replacing it corrupts no text.

    It needs at least 8 characters, 5 of them different, and two of: digits, lowercase letters,
    uppercase letters (not counting the first letter). Or at least 16 characters, 8 of them
    different.

    >>> [is_secret(value) for value in ("none", "local-key", "Barcelona", "sk-live-7f3a", "0" * 40)]
    [False, False, False, True, False]
    """
    if len(value) < SHORTEST:
        return False
    inner = value[0].lower() + value[1:]
    kinds = sum(re.search(kind, inner) is not None for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    different = len(set(value))
    return (different >= 5 and kinds >= 2) or (len(value) >= LONG and different >= 8)


def find_address_secrets(address: str, name: str) -> dict[str, str]:
    """Return the password and secret parameters of an address, each with `name` as its source.

    If one of them is too plain to be replaced everywhere, the whole address is a secret.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return {}
    user, at, _ = parts.netloc.rpartition("@")
    values = [user.partition(":")[2] or user] if at else []
    for pair in parts.query.split("&"):
        key, _, value = pair.partition("=")
        if value and (SECRET_NAME.search(key) or key.lower() in SECRET_PARAMETERS):
            values.append(value)
    spelled = {form for value in values for form in (value, unquote(value)) if is_secret(form)}
    if any(not is_secret(value) for value in values):
        spelled.add(address.partition("://")[2])
    return dict.fromkeys(sorted(spelled), name)


def find_text_secrets(text: str, name: str) -> dict[str, str]:
    """Find secrets in a command: in addresses, after `--api-key`, in NAME=VALUE, by their form."""
    found: dict[str, str] = {}
    for address in ADDRESS.findall(text):
        found |= find_address_secrets(address, name)
    candidates = [*BEARER.findall(text), *WELL_KNOWN.findall(text), *_find_named_values(text)]
    return found | {value: name for value in candidates if is_secret(value)}


def mask_text(text: str, name: str) -> str:
    """Redact a command so that it can be shown, including secrets that look like plain words."""
    found = find_text_secrets(text, name) | dict.fromkeys(_find_named_values(text), name)
    for value in sorted(found, key=len, reverse=True):
        # A plain value may be part of other words.
        text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", MARK.format(name), text)
    return text


def _find_named_values(text: str) -> Iterator[str]:
    """Yield the values of options and assignments that have the name of a secret."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if not SECRET_OPTION.search(option.lstrip("-")):
            continue
        if not equals and option.startswith("-") and not following.startswith("-"):
            value = following
        # A number such as --max-token 100 is a setting.
        if value and not value.isdecimal() and not value.startswith(("{", "$")):
            yield value


class Redactor:
    """Replaces every secret with a mark; `secrets` maps values to the names of their sources.

    >>> Redactor({"sk-live-7f3a": "API_KEY"}).text("key: sk-live-7f3a")
    'key: [redacted:API_KEY]'
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = dict(secrets)

    def __bool__(self) -> bool:
        return bool(self._secrets)

    @cached_property
    def _marks(self) -> list[tuple[str, str]]:
        """Every form of every secret, with its replacement."""
        spelled: dict[str, str] = {}
        for value, name in self._secrets.items():
            spelled |= {form: _fill(form) for form in _iter_encodings(value)}
            spelled |= {form: _mark(name) for form in _iter_spellings(value)}
        return _sort_by_length(spelled)

    @cached_property
    def _covers(self) -> list[tuple[bytes, bytes]]:
        """The same for bytes, with replacements of the same length."""
        covers: dict[bytes, bytes] = {}
        for form, replacement in self._marks:
            plain = _bytes(form)
            encoded = replacement == _fill(form)
            covers[plain] = replacement.encode() if encoded else b"*" * len(plain)
        return _sort_by_length(covers)

    @cached_property
    def _wide_covers(self) -> list[tuple[bytes, bytes, bytes]]:
        """The same for UTF-16, each with its bytes that are not zero."""
        covers: dict[bytes, bytes] = {}
        for form, replacement in self._marks:
            if replacement != _fill(form):
                for code in ("utf-16-le", "utf-16-be"):
                    wide = form.encode(code, "surrogatepass")
                    covers[wide] = ("*" * (len(wide) // 2)).encode(code)
        return [(wide.replace(b"\0", b""), wide, cover) for wide, cover in _sort_by_length(covers)]

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        return _replace_all(text, self._marks)

    def json(self, data: bytes) -> bytes:
        """Return JSON or JSON lines without secrets; the result is always valid JSON.

        Looks for secrets in the decoded strings, so escapes in them do not matter.
        """
        if not self._secrets:
            return data
        try:
            text = data.decode()
            tokens = (one if one[0] == '"' else f'"{one}"' for one in _TOKEN.findall(text))
            meant = "\n".join(json.loads(f"[{','.join(tokens)}]", strict=False))
        except ValueError:
            return self._cover(data)  # not JSON
        found = [(secret, mark) for secret, mark in self._marks if secret in meant]

        def clean(token: re.Match[str]) -> str:
            if token[0][0] != '"':
                return token[0] if _replace_all(token[0], found) == token[0] else "0"
            before = json.loads(token[0], strict=False)
            after = _replace_all(before, found)
            return token[0] if after == before else json.dumps(after, ensure_ascii=False)

        # UTF-8 has no lone surrogates; JSON and Python escape them in the same way.
        return _TOKEN.sub(clean, text).encode(errors="backslashreplace") if found else data

    def data(self, data: bytes) -> bytes:
        """Return the bytes with secrets overwritten by `*`, so that most files stay readable.

        Archives that contain a secret, including office files, are packed again.
        """
        if not self._secrets:
            return data
        try:
            return self._data(data, DEEPEST, _Room())
        except _TooLargeError:
            return self._cover(data)

    def finds(self, data: bytes) -> str | None:
        """Return the name of a secret in the bytes, or None."""
        if self.data(data) == data:
            return None
        for value, name in self._secrets.items():
            if Redactor({value: name}).data(data) != data:
                return name
        return None

    def value(self, value: "JsonValue") -> "JsonValue":
        """Return the value without secrets, in keys as well."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return value

    def _data(self, data: bytes, deeper: int, room: "_Room") -> bytes:
        if deeper and data.startswith(b"\x1f\x8b"):
            data = self._clean_gzip(data, deeper - 1, room)
        if deeper and zipfile.is_zipfile(io.BytesIO(data)):
            data = self._clean_zip(data, deeper - 1, room)
        return self._cover(data)

    def _cover(self, data: bytes) -> bytes:
        """Overwrite secrets without unpacking anything."""
        for secret, cover in self._covers:
            if secret in data:
                data = data.replace(secret, cover)
        # Searching for UTF-16 is slow, so first search the bytes without zeros for ASCII keys.
        narrow = data.translate(None, b"\0")
        for short, secret, cover in self._wide_covers:
            if short in narrow and secret in data:
                data = data.replace(secret, cover)
        return data

    def _clean_gzip(self, data: bytes, deeper: int, room: "_Room") -> bytes:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                inside = stream.read(room.size + 1)
        except _UNREADABLE:
            return data
        room.take(len(inside))
        clean = self._data(inside, deeper, room)
        return data if clean == inside else gzip.compress(clean, mtime=0)

    def _clean_zip(self, data: bytes, deeper: int, room: "_Room") -> bytes:
        """Return the archive without secrets, or unchanged if no readable member has one.

        Members that cannot be read are left out of an archive that is packed again.
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
        """Pack these members, after any bytes that preceded the old archive."""
        written, numbers = io.BytesIO(), count(2)
        written.write(data[: max(0, min(member.header_offset for member in old.filelist))])
        with zipfile.ZipFile(written, "w") as archive:
            archive.comment = old.comment
            for member, inside in members:
                name = self.filename(member.filename)
                name = find_free_name(name, archive.NameToInfo.__contains__, numbers)
                info = zipfile.ZipInfo(name, member.date_time)
                info.compress_type, info.external_attr = member.compress_type, member.external_attr
                archive.writestr(info, inside)
        return written.getvalue()

    def filename(self, name: str) -> str:
        """Return a file name without secrets that is still a valid name."""
        for secret, _ in self._marks:
            name = name.replace(secret, FILLER)
        return name


class _TooLargeError(Exception):
    """A file has more content than is unpacked."""


class _Room:
    """How much of one file may still be unpacked."""

    def __init__(self) -> None:
        self.size, self._members = LARGEST, MOST_MEMBERS
        self._end = time.thread_time() + LONGEST

    def take(self, size: int = 0, members: int = 0) -> None:
        self.size -= size
        self._members -= members
        if self.size < 0 or self._members < 0 or time.thread_time() > self._end:
            raise _TooLargeError


def find_free_name(name: str, is_taken: Callable[[str], bool], numbers: Iterator[int]) -> str:
    """Return the file name, or a numbered and shortened one if it is taken."""
    folder, slash, last = name.rpartition("/")
    stem, dot, ending = last.rpartition(".")
    free = name
    while is_taken(free):
        number = next(numbers)
        short = f"{stem[:40]}-{number}.{ending[:16]}" if dot else f"{last[:40]}-{number}"
        free = f"{folder}{slash}{short}"
    return free


def _sort_by_length(covers: Mapping[AnyStr, AnyStr]) -> list[tuple[AnyStr, AnyStr]]:
    """Sort by length, because one secret may be the beginning of another."""
    return sorted(covers.items(), key=lambda item: -len(item[0]))


def _replace_all(text: str, marks: Iterable[tuple[str, str]]) -> str:
    for secret, mark in marks:
        if secret in text:
            text = text.replace(secret, mark)
    return text


def _mark(name: str) -> str:
    """Return the mark for a secret; a variable's name can contain any character."""
    return MARK.format(re.sub(r"[^A-Za-z0-9_.-]", "_", name))


def _bytes(text: str) -> bytes:
    """Encode as UTF-8; bytes of a variable that are not UTF-8 are lone surrogates in Python."""
    return text.encode(errors="surrogateescape")


def _fill(form: str) -> str:
    """Return the replacement of an encoded secret: of the same length, and still decodable."""
    return (FILLER * (len(form) // len(FILLER) + 1))[: len(form)]


def _iter_spellings(value: str) -> Iterator[str]:
    """Yield the spellings of a secret: plain, in addresses, in (nested) JSON, in HTML and XML."""
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
        for form in _iter_escapes(text):
            yield form
            yield from _iter_escapes(form)


def _iter_escapes(text: str) -> Iterator[str]:
    """Yield a text as JSON strings that Python, JavaScript, PHP and Go write."""
    for ascii_only in (True, False):
        form = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield from (
            form,
            form.replace("/", "\\/"),
            _UNICODE.sub(lambda e: "\\u" + e[1].upper(), form),
        )
        yield form.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"})


def _iter_encodings(value: str) -> Iterator[str]:
    """Yield a secret in hexadecimal, and in base64 at every offset."""
    data = _bytes(value)
    yield from (data.hex(), data.hex().upper())
    for before in range(3):
        # Without the characters that depend on neighboring bytes.
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
    """Return the redactor that removes all secrets that this process knows."""
    return _current


def forget_secrets() -> None:
    """Forget all secrets; only for tests, which share a process."""
    global _current
    _protected.clear()
    _current = Redactor({})
