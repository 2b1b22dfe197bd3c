"""Bundles: a zip with an entry, the runs behind it, and a signature over all of it.

entry.json  signature.json  bundle.json
runs/1/run.json  scores.json  verdicts.jsonl  judges.json  attempts.jsonl  logs/….json
"""

import hashlib
import re
import struct
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from gta_bench.confine.archives import ArchiveLimits, check_archive
from gta_bench.confine.limits import MIB
from gta_bench.errors import ToolError
from gta_bench.leaderboard.signing import has_small_order, holds, sign
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

ENTRY: Final = "entry.json"
BUNDLE: Final = "bundle.json"
SIGNATURE: Final = "signature.json"
NAME: Final = re.compile(
    r"entry\.json|bundle\.json|signature\.json"
    r"|runs/[1-9]/((run|scores|judges)\.json|(verdicts|attempts)\.jsonl"
    r"|logs/[A-Za-z0-9][A-Za-z0-9._+-]*\.json)"
)
# Logs are text and shrink well; more than this is no run of 361 tasks.
LIMITS: Final = ArchiveLimits(members=500, total_bytes=1024 * MIB, depth=0)
# Signature, four counts, length and start of the list, length of the comment.
END: Final = struct.Struct("<4s4H2IH")
END_MARK: Final = b"PK\x05\x06"
# What points at another list, which some readers follow and others do not.
LOCATOR_MARK: Final = b"PK\x06\x07"
LOCATOR_SIZE: Final = 20
# One moment for all members, so that the same runs give the same archive.
MOMENT: Final = (1980, 1, 1, 0, 0, 0)


class Refused(Exception):
    """A bundle that need not be looked at any further, and why."""

    def __init__(self, check: BundleCheck, message: str) -> None:
        self.check = check
        self.message = message
        super().__init__(message)


class OpenBundle(NamedTuple):
    """A bundle whose signature and digests hold, unpacked."""

    entry: Entry
    manifest: BundleManifest
    signature: Signature
    runs: tuple[Path, ...]


def gather(runs: Sequence[Path], folder: Path) -> None:
    """Copy into a folder what a bundle holds of the runs."""
    for number, run in enumerate(runs, start=1):
        own = folder / "runs" / str(number)
        (own / LOGS).mkdir(parents=True)
        for name in (MANIFEST, SCORES, VERDICTS, JUDGES, ATTEMPTS):
            if (run / name).is_file():
                (own / name).write_bytes((run / name).read_bytes())
        copy_logs(log_folder(run), log_folder(own))


def listed(folder: Path) -> tuple[BundleFile, ...]:
    """The files below a folder by their digests, in order."""
    return tuple(
        BundleFile(path=path, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
        for path, data in _contents(folder)
    )


def run_digest(files: Sequence[BundleFile]) -> str:
    """One digest for all files but the entry."""
    lines = (f"{file.path}\0{file.sha256}\n" for file in files if file.path != ENTRY)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def sign_bundle(
    folder: Path,
    entry: Entry,
    manifest: RunManifest,
    artefacts: Sequence[Deliverable],
    key: Ed25519PrivateKey,
) -> OpenBundle:
    """Sign what was gathered, with its entry."""
    (folder / ENTRY).write_text(entry.model_dump_json(indent=2) + "\n", encoding="utf-8")
    files = listed(folder)
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
    (folder / SIGNATURE).write_text(signature.model_dump_json(indent=2), encoding="utf-8")
    return OpenBundle(entry, bundle, signature, _runs(folder))


def pack_bundle(folder: Path, file: Path) -> None:
    """Pack a signed folder; refuses one that is too large for a bundle, and leaves no file."""
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
    """Unpack a bundle of unknown origin into an empty folder, or refuse it with the reason."""
    _unpack(file, folder)
    try:
        signed = (folder / BUNDLE).read_bytes()
        signature = Signature.model_validate_json((folder / SIGNATURE).read_bytes())
        if has_small_order(signature):
            raise Refused("signature", "the key is of small order: anybody can sign with it")
        if not holds(signed, signature):
            raise Refused("signature", f"the signature is not that of {BUNDLE}: it was changed")
        manifest = BundleManifest.model_validate_json(signed)
        _compare(listed(folder), manifest)
        entry = Entry.model_validate_json((folder / ENTRY).read_bytes())
    except FileNotFoundError as exc:
        raise Refused("archive", f"{Path(exc.filename).name} is missing") from exc
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise Refused("archive", f"{exc.title} cannot be read: {place}: {first['msg']}") from exc
    return OpenBundle(entry, manifest, signature, _runs(folder))


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
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if NAME.fullmatch(name) is None:
                raise Refused("archive", f"{name!r} does not belong into a bundle")
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                target.write_bytes(archive.read(name))
            except zipfile.BadZipFile as exc:
                raise Refused("archive", f"{name!r} is broken") from exc


def _check_end(stream: BinaryIO) -> None:
    """Refuse an archive in which readers may find different lists of files.

    Its end record is its last bytes, without a comment, in which a second one could hide, and the
    list lies right before it.
    """
    size = stream.seek(0, 2)
    stream.seek(max(0, size - END.size))
    end = stream.read(END.size)
    if len(end) < END.size:
        raise Refused("archive", "it is no zip archive")
    mark, *_, length, start, comment = END.unpack(end)
    if mark != END_MARK or comment != 0:
        raise Refused("archive", "it does not end with its list of files")
    if start + length != size - END.size:
        raise Refused("archive", "something lies before, after or between its parts")
    stream.seek(max(0, size - END.size - LOCATOR_SIZE))
    if stream.read(4) == LOCATOR_MARK:
        raise Refused("archive", "it has a second list of files")
    stream.seek(0)


def _compare(found: Sequence[BundleFile], manifest: BundleManifest) -> None:
    """Every file is as it was signed, none is missing, none came in."""
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
        raise Refused("digest", "the run's digest is not that of its files")


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield file.relative_to(folder).as_posix(), file.read_bytes()
