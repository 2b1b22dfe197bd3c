"""Inside the jail: the files in a tar archive, a compressed file or a mail."""

import base64
import bz2
import email
import email.policy
import gzip
import json
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

BROKEN = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError)
OPENERS: tuple[Any, ...] = (gzip.open, bz2.open, lzma.open)
SUFFIXES = {"text/plain": "txt", "text/html": "html", "message/rfc822": "eml"}
HEADERS = "headers.txt"


def prepare() -> dict[str, Any]:
    """Nothing to prepare: the imports above are all that must run outside of the limits."""
    return {}


def finish(names: dict[str, Any]) -> str:
    """Return the members as JSON, or why the file is refused."""
    options = json.loads(Path("options.json").read_text(encoding="utf-8"))
    read = _read_mail if options["form"] == "mail" else _read_packed
    members, room = [], options["most_bytes"]
    try:
        for name, size, data in read(Path("file"), options):
            room -= len(data or b"")
            kept = None if data is None or room < 0 else base64.b64encode(data).decode("ascii")
            members.append({"name": _clean(name), "bytes": size, "data": kept})
            if len(members) >= options["most_members"]:
                members.append(_problem_entry("there are more members than are read"))
                break
    except BROKEN as exc:
        if not members:
            return f"It is broken ({type(exc).__name__})."
        members.append(_problem_entry(f"the archive breaks off there ({type(exc).__name__})"))
    return json.dumps({"members": members})


def _problem_entry(problem: str) -> dict[str, Any]:
    return {"name": "(what follows)", "bytes": 0, "data": None, "problem": problem}


def _clean(name: str) -> str:
    return name.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _read_packed(file: Path, options: dict[str, Any]) -> Iterator[tuple[str, int, bytes | None]]:
    """Yield the files of a tar archive, or the one compressed file."""
    most = options["most_bytes"]
    try:
        archive = tarfile.open(file)  # noqa: SIM115 - closed by the end of this process
    except tarfile.TarError:
        for opener in OPENERS:
            try:
                with opener(file) as stream:
                    data = stream.read(most + 1)
            except BROKEN:
                continue
            yield options["inner"], len(data), data if len(data) <= most else None
            return
        raise
    for entry in archive:
        if entry.isdir():
            continue
        stream = archive.extractfile(entry) if entry.isfile() and entry.size <= most else None
        yield entry.name, entry.size, stream.read() if stream is not None else None


def _read_mail(file: Path, options: dict[str, Any]) -> Iterator[tuple[str, int, bytes | None]]:
    """Yield the headers, bodies and attachments of a mail."""
    policy = email.policy.default
    message = email.message_from_bytes(file.read_bytes(), policy=policy)
    headers = "".join(f"{name}: {value}\n" for name, value in message.items()).encode()
    yield HEADERS, len(headers), headers
    for number, part in enumerate(_leaves(message), 1):
        kind = part.get_content_type()
        name = part.get_filename() or f"part {number}.{SUFFIXES.get(kind, 'bin')}"
        if kind == "message/rfc822":
            inner = part.get_payload(0)
            data = inner.as_bytes() if isinstance(inner, EmailMessage) else b""
        else:
            data = _decode(part, kind)
        yield name, len(data), data


def _leaves(message: EmailMessage) -> Iterator[Any]:
    if message.is_multipart() and message.get_content_type() != "message/rfc822":
        for part in message.iter_parts():
            yield from _leaves(part)  # type: ignore[arg-type]
    else:
        yield message


def _decode(part: Any, kind: str) -> bytes:
    data: bytes = part.get_payload(decode=True) or b""
    if not kind.startswith("text/"):
        return data
    try:
        return data.decode(part.get_content_charset() or "utf-8").encode()
    except (LookupError, UnicodeDecodeError):
        return data
