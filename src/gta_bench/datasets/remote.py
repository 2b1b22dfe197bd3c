"""Download a dataset of anybody's from a git repository or from the Hub: pinned, all or nothing."""

import shutil
import subprocess
import tarfile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.fetch import (
    MAX_BYTES,
    MAX_MEMBERS,
    TIMEOUT,
    ProgressFor,
    download,
    list_hub_files,
)
from gta_bench.datasets.files import sha256
from gta_bench.datasets.installed import load_any
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.pinned import Receipt, find_changes, read_receipt, write_receipt
from gta_bench.errors import FetchError

GIT_SECONDS: Final = 1800
# Modes of git for what is not a plain file.
_REFUSED_MODES: Final = {"120000": "a link", "160000": "a submodule"}


class Source(NamedTuple):
    """Where a dataset comes from: a git address, or a dataset of the Hub.

    `revision` is a branch, tag or commit, and `folder` the dataset's folder inside.
    """

    git: str | None = None
    hf: str | None = None
    revision: str | None = None
    folder: str | None = None

    def __str__(self) -> str:
        where = f"git+{self.git}" if self.git is not None else f"hf:{self.hf}"
        return f"{where}@{self.revision}" + (f"#{self.folder}" if self.folder else "")


class Hub(NamedTuple):
    """The Hub, or a mirror of it, and the token for private datasets."""

    host: str
    token: str | None = None


class Downloaded(NamedTuple):
    """A dataset, and the commit that it is."""

    dataset: Dataset
    revision: str
    already_there: bool = False


def download_dataset(
    source: Source, target: Path, *, hub: Hub, progress: ProgressFor, digest: str | None = None
) -> Downloaded:
    """Download a dataset to the folder `target`; FetchError if it has another digest."""
    receipt = read_receipt(target)
    if receipt is not None and receipt.source == str(source):
        if not any(find_changes(target, receipt)):
            return Downloaded(load_any(target), str(source.revision), already_there=True)
    elif receipt is None and target.exists() and any(target.iterdir()):
        raise FetchError(f"{target} is not empty and was not downloaded. Choose another folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=".fetching-") as staging:
        data = Path(staging) / "data"
        data.mkdir()
        if source.git is not None:
            commit = _fetch_git(source, Path(staging), data)
        else:
            commit = _fetch_hub(source, data, hub, progress)
        dataset = load_any(data)
        found = dataset_digest(dataset)
        if digest is not None and found != digest:
            raise FetchError(
                f"{source} has the digest {found}, not {digest}. Accept it by changing the digest "
                "in gta.toml, or name another revision."
            )
        files = {
            file.relative_to(data).as_posix(): sha256(file)
            for file in sorted(data.rglob("*"))
            if file.is_file()
        }
        pinned = str(source._replace(revision=commit))
        write_receipt(data, Receipt(source=pinned, archives={}, files=files, pinned=()))
        if target.exists():
            shutil.rmtree(target)
        data.replace(target)
    return Downloaded(load_any(target), commit)


def _fetch_git(source: Source, staging: Path, data: Path) -> str:
    """Fetch one commit of a repository and write its files; return the commit."""
    address, revision = str(source.git), source.revision or "HEAD"
    if address.startswith("-") or revision.startswith("-"):
        raise FetchError(f"{source}: neither the address nor the revision may begin with a dash.")
    if urlsplit(address).password is not None:
        raise FetchError("The address contains a password; use git's credential helper instead.")
    repository = staging / "repository"
    repository.mkdir()
    _git(repository, "init", "--quiet", "--bare")
    where = str(Path(address).resolve()) if Path(address).exists() else address
    _git(repository, "fetch", "--quiet", "--depth", "1", "--no-tags", "--", where, revision)
    commit = _git(repository, "rev-parse", "FETCH_HEAD^{commit}").strip()
    tree = f"{commit}:{source.folder}" if source.folder else commit
    _check_tree(source, _git(repository, "ls-tree", "-r", "-l", "-z", tree))
    archive = (staging / "files.tar").resolve()
    _git(repository, "archive", "--format=tar", "-o", str(archive), tree)
    with tarfile.open(archive) as opened:
        opened.extractall(data, filter="data")
    return commit


def _check_tree(source: Source, listing: str) -> None:
    """Raise FetchError for links, submodules, and more than a dataset can have."""
    entries = [entry.partition("\t") for entry in listing.split("\0") if entry]
    total = 0
    for facts, _, path in entries:
        mode, _, _, size = facts.split()
        if mode in _REFUSED_MODES:
            raise FetchError(f"{source} is refused: {path} is {_REFUSED_MODES[mode]}.")
        total += int(size)
    if len(entries) > MAX_MEMBERS or total > MAX_BYTES:
        raise FetchError(f"{source} is refused: it has more files than a dataset can have.")


def _git(folder: Path, *arguments: str) -> str:
    command = ("git", "-C", str(folder), "-c", "core.hooksPath=/dev/null", *arguments)
    try:
        ran = subprocess.run(
            command, capture_output=True, check=True, timeout=GIT_SECONDS, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as exc:
        raise FetchError("git is not installed. Install it, or use a local folder.") from exc
    except subprocess.CalledProcessError as exc:
        lines = exc.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise FetchError(f"git {arguments[0]} failed: {lines[-1]}") from exc
    except subprocess.TimeoutExpired as exc:
        raise FetchError(f"git {arguments[0]} took more than {GIT_SECONDS} seconds.") from exc
    return ran.stdout.decode(errors="surrogateescape")


class _HubRevision(BaseModel):
    """The part of the Hub's description of a revision that is read."""

    sha: str


def _fetch_hub(source: Source, data: Path, hub: Hub, progress: ProgressFor) -> str:
    """Download one revision of a dataset of the Hub; return its commit."""
    headers = {} if hub.token is None else {"authorization": f"Bearer {hub.token}"}
    api = f"{hub.host.rstrip('/')}/api/datasets/{source.hf}"
    with httpx.Client(timeout=TIMEOUT, follow_redirects=True, headers=headers) as client:
        url = f"{api}/revision/{quote(source.revision or 'main', safe='')}"
        try:
            found = client.get(url).raise_for_status()
            commit = _HubRevision.model_validate_json(found.content).sha
        except httpx.HTTPStatusError as exc:
            status = exc.response.status_code
            hint = " A private dataset needs HF_TOKEN." if status in (401, 403, 404) else ""
            raise FetchError(f"{source}: the Hub answered {status}.{hint}") from exc
        except (httpx.HTTPError, ValidationError) as exc:
            raise FetchError(f"{url}: the revision could not be read.") from exc
        files = list_hub_files(client, f"{api}/tree/{quote(commit, safe='')}?recursive=true")
        inside = PurePosixPath(source.folder or ".")
        chosen = [path for path in files if PurePosixPath(path).is_relative_to(inside)]
        if len(chosen) > MAX_MEMBERS:
            raise FetchError(f"{source} is refused: it has more files than a dataset can have.")
        for path in chosen:
            place = f"{hub.host.rstrip('/')}/datasets/{source.hf}/resolve/{commit}/{quote(path)}"
            with progress(path) as report:
                target = data / PurePosixPath(path).relative_to(inside)
                download(client, place, target, report)
    return commit
