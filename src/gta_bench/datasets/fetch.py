"""Download the published datasets: named sources, pinned digests, all or nothing."""

import shutil
import stat
import zipfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter, ValidationError

from gta_bench.datasets.files import sha256
from gta_bench.datasets.pinned import (
    COMMIT,
    MAIN_FILE,
    PINNED_FILES,
    PINNED_TEXTS,
    REPOSITORY,
    SOURCE,
    Receipt,
    find_changes,
    find_texts,
    read_prompts,
    read_receipt,
    write_prompts,
    write_receipt,
)
from gta_bench.errors import FetchError, format_count
from gta_bench.records.run import DatasetName

MAX_MEMBERS = 20_000
MAX_BYTES = 8 << 30
MAX_RATIO = 200
SMALL_ENOUGH = 1 << 20
ATTEMPTS = 5
TIMEOUT = httpx.Timeout(30.0)
FORBIDDEN_TO_RESUME = httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE
SourceName = Literal["github", "huggingface"]
GITHUB_ARCHIVES: Mapping[DatasetName, str] = {
    "atomic": "open-compass/GTA/releases/download/v0.1.0/gta_dataset.zip",
    "workflow": "open-compass/GTA/releases/download/v0.2.0/gta_workflow_dataset.zip",
}
HUB_DATASETS: Mapping[DatasetName, str] = {"atomic": "Jize1/GTA", "workflow": "Jize1/GTA-Workflow"}
_HUB_LISTING = TypeAdapter(list[dict[str, object]])

# Called with the bytes done and the total, which is None if the server does not state it.
Progress = Callable[[int, int | None], None]
ProgressFor = Callable[[str], AbstractContextManager[Progress]]


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip archive into a new folder; FetchError if any member is unsafe."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [info for info in opened.infolist() if not info.is_dir()]
            _check_members(members, archive.name)
            for info in members:
                target = folder / info.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with opened.open(info) as source, target.open("xb") as out:
                    shutil.copyfileobj(source, out)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as exc:
        raise FetchError(f"{archive.name}: cannot be unpacked: {exc}.") from exc


def _check_members(members: list[zipfile.ZipInfo], archive: str) -> None:
    if len(members) > MAX_MEMBERS or sum(info.file_size for info in members) > MAX_BYTES:
        raise FetchError(f"{archive}: refused: it would unpack to more than a dataset can have.")
    seen: set[str] = set()
    for info in members:
        path = PurePosixPath(info.filename)
        outside = not path.name or path.is_absolute() or ".." in path.parts
        problem = None
        if outside or "\\" in info.filename or ":" in info.filename:
            problem = "points outside the folder"
        elif stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            problem = "is not a plain file"
        elif info.filename.casefold() in seen:
            problem = "occurs twice"
        elif info.file_size > max(SMALL_ENOUGH, MAX_RATIO * max(info.compress_size, 1)):
            problem = "is compressed too much to be data"
        if problem is not None:
            raise FetchError(f"{archive}: refused: member {info.filename!r} {problem}.")
        seen.add(info.filename.casefold())


def download(client: httpx.Client, url: str, target: Path, progress: Progress) -> None:
    """Fetch `url` to `target`; an interrupted download is continued."""
    part = target.with_name(f"{target.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, ATTEMPTS + 1):  # pragma: no branch (the last one ends or raises)
        try:
            _continue(client, url, part, progress)
            break
        except httpx.HTTPStatusError as exc:
            status = exc.response.status_code
            if status < 500 or attempt == ATTEMPTS:
                raise FetchError(f"{url}: the server answered {status}.") from exc
        except httpx.TransportError as exc:
            if attempt == ATTEMPTS:
                raise FetchError(
                    f"{url}: {exc or type(exc).__name__}. The same command continues the download."
                ) from exc
    part.replace(target)
    _tag_file(part).unlink(missing_ok=True)


def _continue(client: httpx.Client, url: str, part: Path, progress: Progress) -> None:
    have = part.stat().st_size if part.exists() else 0
    tag = _tag_file(part).read_text(encoding="utf-8") if _tag_file(part).exists() else ""
    headers = {"accept-encoding": "identity"}
    if have and tag and not tag.startswith("W/"):  # the rest, if the server still has that file
        headers |= {"range": f"bytes={have}-", "if-range": tag}
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == FORBIDDEN_TO_RESUME:
            part.unlink()
            raise httpx.RemoteProtocolError("the partial download does not match the file")
        response.raise_for_status()
        resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
        done = have if resumed else 0
        length = response.headers.get("content-length")
        total = done + int(length) if length is not None else None
        _tag_file(part).write_text(response.headers.get("etag", ""), encoding="utf-8", newline="\n")
        with part.open("ab" if resumed else "wb") as stream:
            for chunk in response.iter_raw():
                stream.write(chunk)
                done += len(chunk)
                progress(done, total)


def _tag_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


class Fetched(NamedTuple):
    """The result of a fetch."""

    folder: Path
    receipt: Receipt
    already_there: bool


def fetch(
    dataset: DatasetName, folder: Path, *, source: SourceName, host: str, progress: ProgressFor
) -> Fetched:
    """Download a dataset to `folder`, unless it is already there and complete."""
    receipt = read_receipt(folder)
    if receipt is not None and not any(find_changes(folder, receipt)):
        return Fetched(folder, receipt, already_there=True)
    if receipt is None and folder.exists() and any(folder.iterdir()):
        raise FetchError(
            f"{folder} is not empty and was not created by `gta data fetch`. Remove it or choose "
            "another folder."
        )
    # An interrupted download continues from here; a complete one that is refused is deleted.
    staging = folder.with_name(f".{folder.name}.fetching")
    downloaded = staging / source
    with httpx.Client(timeout=TIMEOUT, follow_redirects=True) as client:
        for path, url in _list_downloads(client, dataset, source, host).items():
            if not (downloaded / path).exists():
                with progress(path) as report:
                    download(client, url, downloaded / path, report)
    try:
        fresh = _assemble(dataset, source, downloaded, staging / "data")
        if receipt is not None:
            _check_unchanged(folder, receipt, fresh)
        if folder.exists():
            shutil.rmtree(folder)
        (staging / "data").replace(folder)
    finally:
        shutil.rmtree(staging)
    return Fetched(folder, fresh, already_there=False)


def fetch_prompts(
    folder: Path, *, host: str, progress: ProgressFor, pins: Mapping[str, str] = PINNED_TEXTS
) -> bool:
    """Download the published pipeline's texts to `folder`; False if they are already there."""
    if read_prompts(folder, pins) is not None:
        return False
    url = f"{host}/{REPOSITORY}/raw/{COMMIT}/{SOURCE}"
    with TemporaryDirectory() as staging, progress(PurePosixPath(SOURCE).name) as report:
        file = Path(staging) / "source.py"
        with httpx.Client(timeout=TIMEOUT, follow_redirects=True) as client:
            download(client, url, file, report)
        try:
            texts = find_texts(file.read_text(encoding="utf-8"), pins)
        except ValueError as exc:
            raise FetchError(f"{url} is refused: {exc}") from exc
    write_prompts(folder, texts)
    return True


def _list_downloads(
    client: httpx.Client, dataset: DatasetName, source: SourceName, host: str
) -> dict[str, str]:
    """The URLs to download, by the name of the local file."""
    if source == "github":
        location = GITHUB_ARCHIVES[dataset]
        return {PurePosixPath(location).name: f"{host}/{location}"}
    name = HUB_DATASETS[dataset]
    paths = list_hub_files(client, f"{host}/api/datasets/{name}/tree/main?recursive=true")
    return {path: f"{host}/datasets/{name}/resolve/main/{quote(path)}" for path in paths}


def _assemble(dataset: DatasetName, source: SourceName, downloaded: Path, data: Path) -> Receipt:
    """Make the dataset's folder from the download, check it and write its receipt."""
    shutil.rmtree(data, ignore_errors=True)
    archives = {}
    if source == "github":
        archive = downloaded / PurePosixPath(GITHUB_ARCHIVES[dataset]).name
        archives[archive.name] = sha256(archive)
        unpack(archive, data)
    else:
        downloaded.replace(data)
    _move_to_top(data, MAIN_FILE[dataset])
    receipt = Receipt(
        source=source,
        archives=archives,
        files={
            file.relative_to(data).as_posix(): sha256(file)
            for file in sorted(data.rglob("*"))
            if file.is_file()
        },
        pinned=tuple(PINNED_FILES[dataset]),
    )
    for name, published in PINNED_FILES[dataset].items():
        digest = receipt.files.get(name)
        if digest != published:
            raise FetchError(f"{name} is refused: sha256 {digest}, published is {published}.")
    write_receipt(data, receipt)
    return receipt


def list_hub_files(client: httpx.Client, url: str) -> list[str]:
    """Every file of a Hub repository; the listing comes in pages."""
    paths: list[str] = []
    next_page: str | None = url
    while next_page is not None:
        try:
            response = client.get(next_page).raise_for_status()
            entries = _HUB_LISTING.validate_json(response.content)
        except (httpx.HTTPError, ValidationError) as exc:
            raise FetchError(f"{url}: the list of files could not be read.") from exc
        paths += [str(entry.get("path")) for entry in entries if entry.get("type") == "file"]
        next_page = response.links.get("next", {}).get("url")
    for path in paths:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise FetchError(f"{url}: refused: {path!r} points outside the folder.")
    return [path for path in paths if not PurePosixPath(path).name.startswith(".")]


def _move_to_top(data: Path, main_file: str) -> None:
    """Make the folder with the main file the dataset's folder."""
    found = sorted(data.rglob(main_file), key=lambda file: len(file.parts))
    if not found:
        raise FetchError(f"refused: there is no {main_file} in the download.")
    if found[0].parent != data:
        lifted = data.with_name("lifted")
        found[0].parent.replace(lifted)
        shutil.rmtree(data)
        lifted.replace(data)


def _check_unchanged(folder: Path, old: Receipt, new: Receipt) -> None:
    differing = sorted(
        name for name in old.files.keys() & new.files.keys() if old.files[name] != new.files[name]
    )
    if differing:
        raise FetchError(
            f"{folder}: the source now has another {differing[0]} than at the first fetch "
            f"(changed: {format_count(len(differing), 'file')}). "
            "Remove the folder to fetch the new one."
        )
