"""Bringing the published datasets here: named sources, pinned digests, all or nothing."""

import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter, ValidationError

from gta_bench.datasets.download import TIMEOUT, ProgressFor, download
from gta_bench.datasets.files import sha256
from gta_bench.datasets.pins import MAIN_FILE, PINNED_FILES, DatasetName
from gta_bench.datasets.prompts import (
    COMMIT,
    PINNED_TEXTS,
    REPOSITORY,
    SOURCE,
    find_texts,
    read_prompts,
    write_prompts,
)
from gta_bench.datasets.receipt import Receipt, changed_files, read_receipt, write_receipt
from gta_bench.datasets.unpack import unpack
from gta_bench.errors import FetchError, counted

SourceName = Literal["github", "huggingface"]
GITHUB_ARCHIVES: Mapping[DatasetName, str] = {
    "atomic": "open-compass/GTA/releases/download/v0.1.0/gta_dataset.zip",
    "workflow": "open-compass/GTA/releases/download/v0.2.0/gta_workflow_dataset.zip",
}
HUB_DATASETS: Mapping[DatasetName, str] = {"atomic": "Jize1/GTA", "workflow": "Jize1/GTA-Workflow"}


class Fetched(NamedTuple):
    """The outcome of a fetch."""

    folder: Path
    receipt: Receipt
    already_there: bool


_HUB_LISTING = TypeAdapter(list[dict[str, object]])


def fetch(
    dataset: DatasetName, folder: Path, *, source: SourceName, host: str, progress: ProgressFor
) -> Fetched:
    """Bring a dataset to `folder`; nothing is done where it is already there and whole."""
    receipt = read_receipt(folder)
    if receipt is not None and not any(changed_files(folder, receipt)):
        return Fetched(folder, receipt, already_there=True)
    if receipt is None and folder.exists() and any(folder.iterdir()):
        raise FetchError(
            f"{folder} is not empty and was not made by a fetch: remove it or name another folder."
        )
    # An interrupted download is continued from here; a complete one that is refused is dropped.
    staging = folder.with_name(f".{folder.name}.fetching")
    downloaded = staging / source
    with httpx.Client(timeout=TIMEOUT, follow_redirects=True) as client:
        _download(client, dataset, source, host, downloaded, progress)
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
    """Bring the published pipeline's texts to `folder`; False where they are already there."""
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


def _download(
    client: httpx.Client,
    dataset: DatasetName,
    source: SourceName,
    host: str,
    downloaded: Path,
    progress: ProgressFor,
) -> None:
    for path, url in _locations(client, dataset, source, host).items():
        if not (downloaded / path).exists():
            with progress(path) as report:
                download(client, url, downloaded / path, report)


def _locations(
    client: httpx.Client, dataset: DatasetName, source: SourceName, host: str
) -> dict[str, str]:
    """What to download, by its name here."""
    if source == "github":
        location = GITHUB_ARCHIVES[dataset]
        return {PurePosixPath(location).name: f"{host}/{location}"}
    name = HUB_DATASETS[dataset]
    paths = _hub_files(client, f"{host}/api/datasets/{name}/tree/main?recursive=true")
    return {path: f"{host}/datasets/{name}/resolve/main/{quote(path)}" for path in paths}


def _assemble(dataset: DatasetName, source: SourceName, downloaded: Path, data: Path) -> Receipt:
    """Make the dataset's folder from what was downloaded, checked and with its receipt."""
    shutil.rmtree(data, ignore_errors=True)
    archives = {}
    if source == "github":
        archive = downloaded / PurePosixPath(GITHUB_ARCHIVES[dataset]).name
        archives[archive.name] = sha256(archive)
        unpack(archive, data)
    else:
        downloaded.replace(data)
    _lift(data, MAIN_FILE[dataset])
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
    _check_pinned(dataset, receipt)
    write_receipt(data, receipt)
    return receipt


def _hub_files(client: httpx.Client, url: str) -> list[str]:
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


def _lift(data: Path, main_file: str) -> None:
    """Make the folder that holds the main file the dataset's folder."""
    found = sorted(data.rglob(main_file), key=lambda file: len(file.parts))
    if not found:
        raise FetchError(f"refused: there is no {main_file} in what was downloaded.")
    if found[0].parent != data:
        lifted = data.with_name("lifted")
        found[0].parent.replace(lifted)
        shutil.rmtree(data)
        lifted.replace(data)


def _check_pinned(dataset: DatasetName, receipt: Receipt) -> None:
    for name, published in PINNED_FILES[dataset].items():
        digest = receipt.files.get(name)
        if digest != published:
            raise FetchError(f"{name} is refused: sha256 {digest}, published is {published}.")


def _check_unchanged(folder: Path, old: Receipt, new: Receipt) -> None:
    differing = sorted(
        name for name in old.files.keys() & new.files.keys() if old.files[name] != new.files[name]
    )
    if differing:
        raise FetchError(
            f"{folder}: the source now gives another {differing[0]} than at the first fetch "
            f"(changed: {counted(len(differing), 'file')}). Remove the folder to take the new one."
        )
