"""Bundles: a zip file with an entry, its runs, and an Ed25519 signature of everything.

entry.json  signature.json  bundle.json
runs/1/run.json  scores.json  verdicts.jsonl  judges.json  attempts.jsonl  logs/….json
"""

import hashlib
import json
import os
import re
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import ValidationError

from gta_bench.confine.archives import ArchiveLimits, check_archive
from gta_bench.confine.limits import MIB
from gta_bench.errors import ToolError, UsageError
from gta_bench.records.base import Record
from gta_bench.records.files import Deliverable
from gta_bench.records.leaderboard import (
    BundleCheck,
    BundleFile,
    BundleManifest,
    Entry,
    Signature,
)
from gta_bench.records.run import RunManifest
from gta_bench.runs.directory import LOGS, MANIFEST, SCORES, log_folder
from gta_bench.runs.logs import ATTEMPTS, copy_logs
from gta_bench.runs.verdicts import JUDGES, VERDICTS

_Record = TypeVar("_Record", bound=Record)
ENTRY: Final = "entry.json"
BUNDLE: Final = "bundle.json"
SIGNATURE: Final = "signature.json"
NAME: Final = re.compile(
    r"entry\.json|bundle\.json|signature\.json"
    r"|runs/[1-9]/((run|scores|judges)\.json|(verdicts|attempts)\.jsonl"
    r"|logs/[A-Za-z0-9][A-Za-z0-9._+-]*\.json)"
)
# Logs are text and compress well; a run of 361 tasks never needs more.
LIMITS: Final = ArchiveLimits(members=500, total_bytes=1024 * MIB, depth=0)
# The end record of a zip: mark, four counts, length and start of the list, length of comment.
END: Final = struct.Struct("<4s4H2IH")
END_MARK: Final = b"PK\x05\x06"
# A zip64 locator points to a second list, which some readers use and others ignore.
LOCATOR_MARK: Final = b"PK\x06\x07"
LOCATOR_SIZE: Final = 20
# The header of a member: flags, checksum, packed size, size.
MEMBER: Final = struct.Struct("<6xH6x3I")
STREAMED: Final = 0x8
# All members get the same time, so that the same runs give the same archive.
MOMENT: Final = (1980, 1, 1, 0, 0, 0)

# All encodings of points whose order divides 8, without the sign bit (as in libsodium).
SMALL_ORDER: Final = frozenset(
    bytes.fromhex(text)
    for text in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)


class Refused(Exception):
    """A bundle is refused before its contents are checked."""

    def __init__(self, check: BundleCheck, message: str) -> None:
        self.check = check
        self.message = message
        self.signer = ""  # known if the signature is valid
        super().__init__(message)


class OpenBundle(NamedTuple):
    """An unpacked bundle with a valid signature and valid digests."""

    entry: Entry
    manifest: BundleManifest
    signature: Signature
    runs: tuple[Path, ...]


def gather(runs: Sequence[Path], folder: Path) -> None:
    """Copy the files of the runs that belong in a bundle."""
    for number, run in enumerate(runs, start=1):
        own = folder / "runs" / str(number)
        (own / LOGS).mkdir(parents=True)
        for name in (MANIFEST, SCORES, VERDICTS, JUDGES, ATTEMPTS):
            if (run / name).is_file():
                (own / name).write_bytes((run / name).read_bytes())
        copy_logs(log_folder(run), log_folder(own))


def list_bundle_files(folder: Path) -> tuple[BundleFile, ...]:
    """Return the sorted files in a folder with their digests."""
    return tuple(
        BundleFile(path=path, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
        for path, data in _contents(folder)
    )


def run_digest(files: Sequence[BundleFile]) -> str:
    """Return one digest of all files except the entry."""
    lines = (f"{file.path}\0{file.sha256}\n" for file in files if file.path != ENTRY)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def sign_bundle(
    folder: Path,
    entry: Entry,
    manifest: RunManifest,
    artefacts: Sequence[Deliverable],
    key: Ed25519PrivateKey,
) -> OpenBundle:
    """Write the entry, the list of files and its signature into a folder of runs."""
    (folder / ENTRY).write_text(
        entry.model_dump_json(indent=2) + "\n", encoding="utf-8", newline="\n"
    )
    files = list_bundle_files(folder)
    bundle = BundleManifest(
        dataset=manifest.spec.dataset,
        dataset_digest=manifest.dataset_digest,
        run_digest=run_digest(files),
        files=files,
        artefacts=tuple(artefacts),
    )
    text = bundle.model_dump_json(indent=2).encode() + b"\n"
    (folder / BUNDLE).write_bytes(text)
    signature = sign(text, key)
    (folder / SIGNATURE).write_text(
        signature.model_dump_json(indent=2), encoding="utf-8", newline="\n"
    )
    return OpenBundle(entry, bundle, signature, _runs(folder))


def pack_bundle(folder: Path, file: Path) -> None:
    """Pack a signed folder; if it is too large, leave no file and raise `Refused`."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in _contents(folder):
            info = zipfile.ZipInfo(path, MOMENT)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    try:
        _check_archive(file)
    except Refused:
        file.unlink()
        raise


def open_bundle(file: Path, folder: Path) -> OpenBundle:
    """Unpack an untrusted bundle into an empty folder, or raise `Refused`."""
    _unpack(file, folder)
    try:
        signed = (folder / BUNDLE).read_bytes()
        signature = _read_json(folder / SIGNATURE, Signature)
        if _has_small_order(signature):
            raise Refused("signature", "the key is of small order, so anyone can sign with it")
        if not _is_valid(signed, signature):
            raise Refused("signature", f"the signature does not match {BUNDLE}")
        try:
            manifest = _read_json(folder / BUNDLE, BundleManifest)
            _compare(list_bundle_files(folder), manifest)
            entry = _read_json(folder / ENTRY, Entry)
        except Refused as exc:
            exc.signer = fingerprint(signature)
            raise
    except FileNotFoundError as exc:
        raise Refused("archive", f"{Path(exc.filename).name} is missing") from exc
    except ValidationError as exc:
        first = exc.errors()[0]
        field = ".".join(map(str, first["loc"]))
        reason = first["msg"].removeprefix("Value error, ")
        raise Refused("archive", f"{exc.title} cannot be read: {field}: {reason}") from exc
    return OpenBundle(entry, manifest, signature, _runs(folder))


def _read_json(file: Path, kind: type[_Record]) -> _Record:
    """Read a record in which no key stands twice, because readers choose different ones."""

    def refuse_twice(pairs: list[tuple[str, object]]) -> None:
        keys = Counter(key for key, _ in pairs)
        for key in (key for key, number in keys.items() if number > 1):
            raise Refused("archive", f"{file.name} has the key {key!r} more than once")

    data = file.read_bytes()
    found = kind.model_validate_json(data)
    json.loads(data, object_pairs_hook=refuse_twice)
    return found


def _runs(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted((folder / "runs").iterdir())) if (folder / "runs").is_dir() else ()


def _check_archive(file: Path) -> None:
    try:
        with file.open("rb") as stream:
            _check_end(stream)
            check_archive(stream, limits=LIMITS)
    except ToolError as exc:
        raise Refused("archive", str(exc).rstrip(".")) from exc


def _unpack(file: Path, folder: Path) -> None:
    _check_archive(file)
    with file.open("rb") as stream, zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            name = info.filename
            if NAME.fullmatch(name) is None:
                raise Refused("archive", f"{name!r} does not belong in a bundle")
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                data = archive.read(info)
            except zipfile.BadZipFile as exc:
                raise Refused("archive", f"{name!r} is broken") from exc
            if len(data) != info.file_size or not _agrees_with_list(stream, info):
                raise Refused("archive", f"{name!r} has another size than the list of files states")
            target.write_bytes(data)


def _agrees_with_list(stream: BinaryIO, info: zipfile.ZipInfo) -> bool:
    """Return whether the header before a member states what the list of files does."""
    stream.seek(info.header_offset)
    flags, *stated = MEMBER.unpack(stream.read(MEMBER.size))
    listed = [info.CRC, info.compress_size, info.file_size]
    # A writer that cannot go back writes zeros, and the numbers after the data.
    return stated == listed or bool(flags & STREAMED and not any(stated))


def _check_end(stream: BinaryIO) -> None:
    """Refuse an archive in which different readers may find different lists of files.

    The end record must be the last bytes, without a comment, which could contain a second record,
    and the list must come directly before it.
    """
    size = stream.seek(0, 2)
    stream.seek(max(0, size - END.size))
    end = stream.read(END.size)
    if len(end) < END.size:
        raise Refused("archive", "it is not a zip archive")
    mark, *_, length, start, comment = END.unpack(end)
    if mark != END_MARK or comment != 0:
        raise Refused("archive", "it does not end with its list of files")
    if start + length != size - END.size:
        raise Refused("archive", "it has extra bytes before, after or between its parts")
    stream.seek(max(0, size - END.size - LOCATOR_SIZE))
    if stream.read(4) == LOCATOR_MARK:
        raise Refused("archive", "it has a second list of files")
    stream.seek(0)


def _compare(found: Sequence[BundleFile], manifest: BundleManifest) -> None:
    """Refuse if a file was changed, removed or added after signing."""
    there = {file.path: file for file in found if file.path not in (BUNDLE, SIGNATURE)}
    signed = {file.path: file for file in manifest.files}
    for path in sorted({*there, *signed}):
        if path not in there:
            raise Refused("digest", f"{path} is missing")
        if path not in signed:
            raise Refused("digest", f"{path} was added after signing")
        if there[path] != signed[path]:
            raise Refused("digest", f"{path} was changed after signing")
    if manifest.run_digest != run_digest(manifest.files):
        raise Refused("digest", "the run digest does not match the files")


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield file.relative_to(folder).as_posix(), file.read_bytes()


def read_key(file: Path) -> Ed25519PrivateKey:
    """Read a private key from a PEM file without a password."""
    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except (ValueError, TypeError) as exc:
        raise UsageError(
            f"{file} is not a PEM private key without a password. Name a new file to create a key."
        ) from exc
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{file} is not an Ed25519 key. Name a new file to create one.")
    return key


def make_key(file: Path) -> Ed25519PrivateKey:
    """Create a key in a file that only its owner can read; never overwrites a file."""
    key = Ed25519PrivateKey.generate()
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


def sign(data: bytes, key: Ed25519PrivateKey) -> Signature:
    """Sign the bytes."""
    public = key.public_key().public_bytes_raw()
    return Signature(public_key=public.hex(), signature=key.sign(data).hex())


def _has_small_order(signature: Signature) -> bool:
    """Return whether the public key is one of the few for which anyone can forge signatures."""
    key = bytearray.fromhex(signature.public_key)
    key[-1] &= 0x7F  # the sign of x
    return bytes(key) in SMALL_ORDER


def _is_valid(data: bytes, signature: Signature) -> bool:
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
    try:
        public.verify(bytes.fromhex(signature.signature), data)
    except InvalidSignature:
        return False
    return True


def fingerprint(signature: Signature) -> str:
    """Identify the signer by 16 digits; all bundles of one submitter have the same."""
    return hashlib.sha256(bytes.fromhex(signature.public_key)).hexdigest()[:16]
