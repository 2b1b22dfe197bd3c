"""Datasets from a local git repository and from a local server with the Hub's routes."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from gta_bench.datasets import remote
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.fetch import Progress
from gta_bench.datasets.installed import load_any
from gta_bench.datasets.remote import Downloaded, Hub, Source, download_dataset
from gta_bench.errors import FetchError
from tests.authored import write_task
from tests.file_server import FileServer, serving

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def unseen(name: str) -> AbstractContextManager[Progress]:
    return nullcontext(lambda done, total: None)


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "A version")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a dataset in the folder `tasks`, in one commit with the tag v1."""
    folder = tmp_path / "repository"
    write_task(folder / "tasks")
    git(folder, "init", "--quiet")
    commit(folder)
    git(folder, "tag", "v1")
    return folder


def fetch(
    source: Source, target: Path, digest: str | None = None, hub: Hub | None = None
) -> Downloaded:
    hub = hub or Hub("http://127.0.0.1:9")
    return download_dataset(source, target, hub=hub, progress=unseen, digest=digest)


def test_one_commit_of_a_repository_is_downloaded_and_pinned(
    repository: Path, tmp_path: Path
) -> None:
    first = git(repository, "rev-parse", "HEAD")
    (repository / "tasks/q3-sales/request.md").write_text("Another request.")
    second = commit(repository)
    source = Source(git=str(repository), folder="tasks")
    newest = fetch(source, tmp_path / "newest")
    assert (newest.revision, list(newest.dataset.tasks)) == (second, ["q3-sales"])
    assert newest.dataset.tasks["q3-sales"].request == "Another request."
    assert not (tmp_path / "newest/.git").exists()
    tagged = fetch(source._replace(revision="v1"), tmp_path / "tagged")
    assert tagged.revision == first and not tagged.already_there
    pinned = source._replace(revision=first)
    assert fetch(pinned, tmp_path / "tagged").already_there
    # Another revision, or a file that was changed by hand, is downloaded again.
    assert fetch(pinned._replace(revision=second), tmp_path / "tagged").revision == second
    (tmp_path / "newest/q3-sales/request.md").unlink()
    assert not fetch(source._replace(revision=second), tmp_path / "newest").already_there
    assert sorted(path.name for path in tmp_path.iterdir()) == ["newest", "repository", "tagged"]


def test_another_digest_than_the_pinned_one_is_refused(repository: Path, tmp_path: Path) -> None:
    source = Source(git=str(repository), folder="tasks")
    digest = dataset_digest(load_any(repository / "tasks"))
    assert fetch(source, tmp_path / "same", digest).dataset.tasks
    with pytest.raises(FetchError, match=f"has the digest {digest}, not 000"):
        fetch(source, tmp_path / "other", "000")
    assert not (tmp_path / "other").exists()


def test_links_are_refused(repository: Path, tmp_path: Path) -> None:
    (repository / "tasks/q3-sales/inputs/link.csv").symlink_to("/etc/passwd")
    commit(repository)
    with pytest.raises(FetchError, match=r"q3-sales/inputs/link\.csv is a link"):
        fetch(Source(git=str(repository), folder="tasks"), tmp_path / "data")


def test_submodules_are_refused(repository: Path, tmp_path: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{head},other")
    git(repository, "commit", "--quiet", "-m", "Add a submodule")
    with pytest.raises(FetchError, match="other is a submodule"):
        fetch(Source(git=str(repository)), tmp_path / "data")


def test_more_than_a_dataset_can_have_is_refused(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "MAX_BYTES", 10)
    with pytest.raises(FetchError, match="more files than a dataset can have"):
        fetch(Source(git=str(repository)), tmp_path / "data")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (Source(git="--upload-pack=touch"), "begin with a dash"),
        (Source(git="https://example.org/x", revision="--all"), "begin with a dash"),
        (Source(git="https://ann:pass@example.org/x"), "contains a password"),
        (Source(git="missing"), "git fetch failed: "),
    ],
)
def test_what_git_cannot_or_must_not_fetch_is_one_line(
    source: Source, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(FetchError, match=problem) as raised:
        fetch(source, tmp_path / "data")
    assert "\n" not in str(raised.value) and "pass@" not in str(raised.value)


def test_a_folder_of_somebody_else_is_not_replaced(repository: Path, tmp_path: Path) -> None:
    write_task(tmp_path / "mine")
    with pytest.raises(FetchError, match="was not downloaded"):
        fetch(Source(git=str(repository)), tmp_path / "mine")


def test_a_machine_without_git_and_a_server_that_never_ends_are_named(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "GIT_SECONDS", 0)
    with pytest.raises(FetchError, match="took more than 0 seconds"):
        fetch(Source(git=str(repository)), tmp_path / "data")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match="git is not installed"):
        fetch(Source(git=str(repository)), tmp_path / "data")


@pytest.fixture
def hub(tmp_path: Path, loopback: None) -> Iterator[FileServer]:
    """The dataset acme/tasks in the folder `data`, in the revisions main and v1."""
    write_task(tmp_path / "source/data")
    files = [path for path in sorted((tmp_path / "source").rglob("*")) if path.is_file()]
    names = [path.relative_to(tmp_path / "source").as_posix() for path in files]
    listing = [{"type": "directory", "path": "data"}]
    listing += [{"type": "file", "path": name} for name in ["README.md", ".gitattributes", *names]]
    api, main = "/api/datasets/acme/tasks", "/datasets/acme/tasks/resolve"
    with serving() as server:
        for revision in ("main", "v1", COMMIT):
            server.files[f"{api}/revision/{revision}"] = json.dumps({"sha": COMMIT}).encode()
        server.files[f"{api}/tree/{COMMIT}?recursive=true"] = json.dumps(listing).encode()
        server.files[f"{main}/{COMMIT}/README.md"] = b"# Tasks"
        for path, name in zip(files, names, strict=True):
            server.files[f"{main}/{COMMIT}/{name}"] = path.read_bytes()
        yield server


def test_a_revision_of_the_hub_is_downloaded_and_pinned(hub: FileServer, tmp_path: Path) -> None:
    source = Source(hf="acme/tasks", revision="v1", folder="data")
    found = fetch(source, tmp_path / "here", hub=Hub(f"{hub.url}/", "secret"))
    assert (found.revision, list(found.dataset.tasks)) == (COMMIT, ["q3-sales"])
    again = Source(hf="acme/tasks", revision=COMMIT, folder="data")
    asked = len(hub.requests)
    assert fetch(again, tmp_path / "here", hub=Hub(hub.url)).already_there
    assert len(hub.requests) == asked
    newest = fetch(Source(hf="acme/tasks", folder="data"), tmp_path / "new", hub=Hub(hub.url))
    assert dataset_digest(newest.dataset) == dataset_digest(found.dataset)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("acme/none", "answered 404. A private dataset needs HF_TOKEN"),
        ("odd/odd", "revision could"),
    ],
)
def test_what_the_hub_does_not_have_is_one_line(
    hub: FileServer, tmp_path: Path, name: str, problem: str
) -> None:
    hub.files["/api/datasets/odd/odd/revision/main"] = b"{}"
    with pytest.raises(FetchError, match=problem):
        fetch(Source(hf=name), tmp_path / "data", hub=Hub(hub.url))


def test_a_hub_dataset_with_too_many_files_is_refused(
    hub: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "MAX_MEMBERS", 1)
    with pytest.raises(FetchError, match="more files than a dataset can have"):
        fetch(Source(hf="acme/tasks"), tmp_path / "data", hub=Hub(hub.url))
