"""Keys and passwords: what counts as one, and how it is taken out of whatever is kept.

Everything that is written goes through `current_redactor()`, which knows what `protect` was given
in this process. Nothing is forgotten there: a key that was known once must not be written later.
"""

import base64
import gzip
import html
import io
import json
import re
import shlex
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus, unquote, urlsplit

if TYPE_CHECKING:
    # Importing pydantic takes longer than all else that `gta --help` does.
    from pydantic import JsonValue

MARK: Final = "[redacted:{}]"
FILLER: Final = "REDACTED"  # valid in base64, hex-like digits and file names alike
# Names that hold secrets: OPENAI_API_KEY, HF_TOKEN, AWS_SECRET_ACCESS_KEY, PGPASSWORD, --api-key.
SECRET_NAME: Final = re.compile(
    r"(^|[_-])(KEY|TOKEN)([_-]|$)|API[_-]?KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE", re.IGNORECASE
)
# Options and assignments of a command whose value is hidden: --api-key, but not --token-limit.
SECRET_OPTION: Final = re.compile(
    r"(^|[_-])(API)?(KEY|TOKEN)$|(SECRET|PASSWORD|PASSWD|PASSPHRASE)$", re.IGNORECASE
)
# Names of variables that hold no secret themselves; a password inside an address still is one.
PLAIN_NAME: Final = re.compile(
    r"(^|_)(MODEL|URL|URI|HOST|PORT|NAME|REGION|PROXY|DIR|PATH|HOME|LANG|LEVEL|VERSION|MODE)S?$",
    re.IGNORECASE,
)
# Parameters of an address that hold secrets besides those whose names say so.
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
LARGEST: Final = 256 * 2**20  # bytes inside an archive that are looked at
DEEPEST: Final = 3  # archives inside archives
_UNREADABLE = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError)


def is_secret(value: str) -> bool:
    """Whether a value can be told from ordinary words, so that replacing it corrupts no text.

    At least 8 characters, 5 of them different, with two of: digits, small letters, capitals (one
    at the beginning does not count). Or at least 16 characters, 8 of them different.

    >>> [is_secret(value) for value in ("none", "local-key", "Barcelona", "sk-live-7f3a", "0" * 40)]
    [False, False, False, True, False]
    """
    if len(value) < SHORTEST:
        return False
    inner = value[0].lower() + value[1:]
    kinds = sum(re.search(kind, inner) is not None for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    different = len(set(value))
    return (different >= 5 and kinds >= 2) or (len(value) >= LONG and different >= 8)


def secrets_in_address(address: str, name: str) -> dict[str, str]:
    """The password and the secret parameters of an address, as values with the name of its place.

    Where one of them is too plain to be replaced everywhere, the whole address is a secret.
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


def secrets_in_text(text: str, name: str) -> dict[str, str]:
    """Secrets in a command: in addresses, after `--api-key`, as NAME=VALUE, by their form."""
    found: dict[str, str] = {}
    for address in ADDRESS.findall(text):
        found |= secrets_in_address(address, name)
    candidates = [*BEARER.findall(text), *WELL_KNOWN.findall(text), *_named_words(text)]
    return found | {value: name for value in candidates if is_secret(value)}


def mask_text(text: str, name: str) -> str:
    """A command as it may be shown: without its secrets, however plain they are."""
    found = secrets_in_text(text, name) | dict.fromkeys(_named_words(text), name)
    for value in sorted(found, key=len, reverse=True):
        # A plain value may be a part of other words.
        text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", MARK.format(name), text)
    return text


def _named_words(text: str) -> Iterator[str]:
    """The values of options and assignments whose names say that they are secret."""
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
        # A number such as --max-token 100 is a setting, in which runs can differ.
        if value and not value.isdecimal() and not value.startswith(("{", "$")):
            yield value


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
            spelled |= {form: MARK.format(name) for form in _spelled(value)}
        # The longest first: one secret may be the beginning of another.
        return sorted(spelled.items(), key=lambda item: -len(item[0]))

    @cached_property
    def _covers(self) -> list[tuple[bytes, bytes]]:
        """The same for bytes; what replaces a form has its length."""
        covers: dict[bytes, bytes] = {}
        for form, replacement in self._marks:
            encoded = replacement == _filled(form)
            plain = form.encode()
            covers[plain] = replacement.encode() if encoded else b"*" * len(plain)
            if not encoded:
                for code in ("utf-16-le", "utf-16-be"):
                    wide = form.encode(code)
                    covers[wide] = ("*" * (len(wide) // 2)).encode(code)
        return sorted(covers.items(), key=lambda item: -len(item[0]))

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret, mark in self._marks:
            if secret in text:
                text = text.replace(secret, mark)
        return text

    def json(self, data: bytes) -> bytes:
        """JSON or other text in UTF-8 without secrets; JSON stays JSON."""
        for secret, mark in self._marks:
            found = secret.encode()
            if found in data:
                data = data.replace(found, mark.encode())
        return data

    def data(self, data: bytes) -> bytes:
        """The bytes with stars over secrets: the length stays, so most file kinds stay readable.

        Archives that hold a secret, and the office files that are archives, are packed anew.
        """
        return self._data(data, DEEPEST) if self._secrets else data

    def finds(self, data: bytes) -> str | None:
        """The name of a secret that stands in the bytes; None where there is none."""
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

    def _data(self, data: bytes, deeper: int) -> bytes:
        if deeper and data.startswith(b"PK\x03\x04"):
            data = self._packed(data, deeper - 1)
        elif deeper and data.startswith(b"\x1f\x8b"):
            data = self._zipped(data, deeper - 1)
        for secret, cover in self._covers:
            if secret in data:
                data = data.replace(secret, cover)
        return data

    def _zipped(self, data: bytes, deeper: int) -> bytes:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                inside = stream.read(LARGEST + 1)
        except _UNREADABLE:
            return data
        clean = inside if len(inside) > LARGEST else self._data(inside, deeper)
        return data if clean == inside else gzip.compress(clean, mtime=0)

    def _packed(self, data: bytes, deeper: int) -> bytes:
        """The archive with clean members; as it was where none has a secret or can be read."""
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = archive.infolist()
                if sum(member.file_size for member in members) > LARGEST:
                    return data
                read = [(member, archive.read(member)) for member in members]
        except _UNREADABLE:
            return data
        names = [self.filename(member.filename) for member, _ in read]
        clean = [self._data(inside, deeper) for _, inside in read]
        if names == [member.filename for member in members] and clean == [one for _, one in read]:
            return data
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as archive:
            for member, name, inside in zip(members, names, clean, strict=True):
                info = zipfile.ZipInfo(name, member.date_time)
                info.compress_type, info.external_attr = member.compress_type, member.external_attr
                archive.writestr(info, inside)
        return written.getvalue()

    def filename(self, name: str) -> str:
        """A file's name without secrets, still a name."""
        for secret, _ in self._marks:
            name = name.replace(secret, FILLER)
        return name


def _filled(form: str) -> str:
    """What stands in place of an encoded secret: of its length, and still decodable."""
    return (FILLER * (len(form) // len(FILLER) + 1))[: len(form)]


def _spelled(value: str) -> Iterable[str]:
    """A secret as texts have it: as it is, in addresses, in JSON (twice), in HTML."""
    escaped = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    twice = [json.dumps(form)[1:-1] for form in escaped]
    return (value, quote(value, safe=""), quote_plus(value), html.escape(value), *escaped, *twice)


def _encoded(value: str) -> Iterator[str]:
    """A secret in hexadecimal, and in base64 wherever it stands among the bytes around it."""
    data = value.encode()
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
