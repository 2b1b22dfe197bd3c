import io
import json
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.checks import verify
from gta_bench.datasets.fetch import Fetched, Progress, SourceName, fetch, fetch_prompts
from gta_bench.datasets.pinned import PINNED_FILES, RECEIPT, read_prompts, read_receipt, text_digest
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import DatasetError, FetchError
from tests.builders import write_workflow
from tests.file_server import FileServer, serving

ARCHIVE = "/open-compass/GTA/releases/download/v0.2.0/gta_workflow_dataset.zip"
ATOMIC_ARCHIVE = "/open-compass/GTA/releases/download/v0.1.0/gta_dataset.zip"
LISTING = "/api/datasets/Jize1/GTA-Workflow/tree/main?recursive=true"
SEEN: list[tuple[str, int, int | None]] = []


@contextmanager
def progress(name: str) -> Iterator[Progress]:
    yield lambda done, total: SEEN.append((name, done, total))


@pytest.fixture
def server(loopback: None) -> Iterator[FileServer]:
    SEEN.clear()
    with serving() as running:
        yield running


def zipped(files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        for name, target in (links or {}).items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, target)
    return buffer.getvalue()


def workflow_files(tmp_path: Path, filler: int = 0) -> dict[str, bytes]:
    root = write_workflow(tmp_path / "made")
    files = {f"gta/{file.name}": file.read_bytes() for file in root.iterdir()}
    return {**files, "gta/resources/big.bin": bytes(range(256)) * (filler // 256)}


def fetch_workflow(server: FileServer, folder: Path, source: SourceName = "github") -> Fetched:
    return fetch("workflow", folder, source=source, host=server.url, progress=progress)


def test_a_dataset_is_fetched_unpacked_and_recorded(tmp_path: Path, server: FileServer) -> None:
    server.files[ARCHIVE] = zipped(workflow_files(tmp_path, 4096))
    result = fetch_workflow(server, tmp_path / "data")
    assert not result.already_there
    assert sorted(result.receipt.files) == ["end.json", "resources/big.bin", "toolmeta.json"]
    assert result.receipt.pinned == ()
    assert load_workflow(tmp_path / "data").tasks.keys() == {"0"}
    assert SEEN[-1][1] == SEEN[-1][2] == len(server.files[ARCHIVE])
    assert sorted(item.name for item in tmp_path.iterdir()) == ["data", "made"]


def test_a_second_fetch_does_nothing(tmp_path: Path, server: FileServer) -> None:
    server.files[ARCHIVE] = zipped(workflow_files(tmp_path))
    fetch_workflow(server, tmp_path / "data")
    server.requests.clear()
    assert fetch_workflow(server, tmp_path / "data").already_there
    assert server.requests == []


def test_a_download_cut_in_the_middle_goes_on_where_it_stopped(
    tmp_path: Path, server: FileServer
) -> None:
    server.files[ARCHIVE] = zipped(workflow_files(tmp_path, 1 << 20))
    server.cuts = [300_000, 200_000]
    fetch_workflow(server, tmp_path / "data")
    assert [span for _, span in server.requests] == [None, "bytes=300000-", "bytes=500000-"]
    assert server.sent == len(server.files[ARCHIVE])


def test_an_interrupted_fetch_is_continued_by_the_next_one(
    tmp_path: Path, server: FileServer
) -> None:
    server.files[ARCHIVE] = zipped(workflow_files(tmp_path, 1 << 20))
    server.cuts = [100_000] * 5
    with pytest.raises(FetchError, match="The same command continues the download"):
        fetch_workflow(server, tmp_path / "data")
    assert not (tmp_path / "data").exists()
    server.requests.clear()
    fetch_workflow(server, tmp_path / "data")
    assert [span for _, span in server.requests] == ["bytes=500000-"]
    assert server.sent == len(server.files[ARCHIVE])


def test_a_part_of_another_file_is_not_continued(tmp_path: Path, server: FileServer) -> None:
    server.files[ARCHIVE] = zipped(workflow_files(tmp_path, 1 << 20))
    server.cuts = [100_000] * 5
    with pytest.raises(FetchError):
        fetch_workflow(server, tmp_path / "data")
    server.files[ARCHIVE] = zipped(workflow_files(tmp_path, 1 << 19))
    fetch_workflow(server, tmp_path / "data")
    assert (tmp_path / "data" / "resources" / "big.bin").stat().st_size == 1 << 19


def test_a_part_longer_than_the_file_is_dropped(tmp_path: Path, server: FileServer) -> None:
    server.files[ARCHIVE] = zipped(workflow_files(tmp_path))
    staging = tmp_path / ".data.fetching" / "github"
    staging.mkdir(parents=True)
    part = staging / "gta_workflow_dataset.zip.part"
    part.write_bytes(bytes(len(server.files[ARCHIVE])))
    tag = f'"{hash(server.files[ARCHIVE])}"'
    part.with_name(f"{part.name}.etag").write_text(tag, encoding="utf-8")
    fetch_workflow(server, tmp_path / "data")
    assert len(server.requests) == 2


def test_a_part_without_a_tag_is_fetched_anew(tmp_path: Path, server: FileServer) -> None:
    server.files[ARCHIVE] = zipped(workflow_files(tmp_path))
    staging = tmp_path / ".data.fetching" / "github"
    staging.mkdir(parents=True)
    (staging / "gta_workflow_dataset.zip.part").write_bytes(b"anything")
    fetch_workflow(server, tmp_path / "data")
    assert [span for _, span in server.requests] == [None]


@pytest.mark.parametrize(
    ("statuses", "message"),
    [([404], "answered 404"), ([500] * 5, "answered 500"), ([403], "answered 403")],
)
def test_a_server_that_refuses_is_named_with_its_answer(
    tmp_path: Path, server: FileServer, statuses: list[int], message: str
) -> None:
    server.statuses = statuses
    with pytest.raises(FetchError, match=message):
        fetch_workflow(server, tmp_path / "data")


def test_a_server_that_stumbles_is_asked_again(tmp_path: Path, server: FileServer) -> None:
    server.files[ARCHIVE] = zipped(workflow_files(tmp_path))
    server.statuses = [503, 500]
    assert fetch_workflow(server, tmp_path / "data").receipt.source == "github"


def test_a_host_that_is_not_there_is_one_line(tmp_path: Path, loopback: None) -> None:
    with serving() as gone:
        url = gone.url
    with pytest.raises(FetchError, match=r"gta_workflow_dataset\.zip: "):
        fetch("workflow", tmp_path / "data", source="github", host=url, progress=progress)


def test_a_wrong_digest_is_refused_and_nothing_is_left(tmp_path: Path, server: FileServer) -> None:
    files = {"gta_dataset/dataset.json": b"{}", "gta_dataset/toolmeta.json": b"{}"}
    server.files[ATOMIC_ARCHIVE] = zipped(files)
    with pytest.raises(FetchError, match=r"dataset.json is refused: sha256 44136fa3.*published is"):
        fetch("atomic", tmp_path / "data", source="github", host=server.url, progress=progress)
    assert list(tmp_path.iterdir()) == []


def test_the_published_gta_atomic_is_fetched_and_pinned(
    tmp_path: Path, server: FileServer, atomic_dir: Path
) -> None:
    files = {
        f"gta_dataset/{name}": (atomic_dir / name).read_bytes() for name in PINNED_FILES["atomic"]
    }
    server.files[ATOMIC_ARCHIVE] = zipped(files)
    result = fetch("atomic", tmp_path / "a", source="github", host=server.url, progress=progress)
    assert result.receipt.pinned == ("dataset.json", "toolmeta.json")
    assert len(load_atomic(tmp_path / "a").tasks) == 229


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["../escape.txt"], "points outside"),
        (["/etc/cron.d/x"], "points outside"),
        (["a/../../b"], "points outside"),
        (["a\\..\\b"], "points outside"),
        (["C:/x"], "points outside"),
        (["gta/end.json", "gta/END.json"], "occurs twice"),
        (["gta/nothing.txt"], "there is no end.json"),
    ],
)
def test_a_hostile_archive_is_refused_whole(
    tmp_path: Path, server: FileServer, names: list[str], problem: str
) -> None:
    server.files[ARCHIVE] = zipped({name: b"{}" for name in names})
    with pytest.raises(FetchError, match=problem):
        fetch_workflow(server, tmp_path / "inner" / "data")
    assert list((tmp_path / "inner").iterdir()) == []
    assert [item.name for item in tmp_path.iterdir()] == ["inner"]


def test_a_link_in_an_archive_is_refused(tmp_path: Path, server: FileServer) -> None:
    server.files[ARCHIVE] = zipped(workflow_files(tmp_path), {"gta/link": "/etc/passwd"})
    with pytest.raises(FetchError, match="'gta/link' is not a plain file"):
        fetch_workflow(server, tmp_path / "data")


def test_a_zip_bomb_is_refused(tmp_path: Path, server: FileServer) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("gta/end.json", bytes(50 << 20))
    server.files[ARCHIVE] = buffer.getvalue()
    with pytest.raises(FetchError, match="compressed too much"):
        fetch_workflow(server, tmp_path / "data")


def test_an_archive_with_too_many_members_is_refused(tmp_path: Path, server: FileServer) -> None:
    server.files[ARCHIVE] = zipped({f"gta/{number}": b"" for number in range(20_001)})
    with pytest.raises(FetchError, match="more than a dataset can have"):
        fetch_workflow(server, tmp_path / "data")


@pytest.mark.parametrize("content", [b"", b"no zip at all", b"PK\x03\x04broken"])
def test_an_archive_that_is_none_is_refused(
    tmp_path: Path, server: FileServer, content: bytes
) -> None:
    server.files[ARCHIVE] = content
    with pytest.raises(FetchError, match="cannot be unpacked"):
        fetch_workflow(server, tmp_path / "data")


def test_a_folder_of_someone_elses_files_is_not_touched(tmp_path: Path, server: FileServer) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FetchError, match="was not created by `gta data fetch`"):
        fetch_workflow(server, tmp_path / "data")
    assert server.requests == []


def test_a_damaged_folder_is_fetched_again(tmp_path: Path, server: FileServer) -> None:
    server.files[ARCHIVE] = zipped(workflow_files(tmp_path))
    fetch_workflow(server, tmp_path / "data")
    (tmp_path / "data" / "toolmeta.json").write_text("[]", encoding="utf-8")
    found = verify(load_workflow(tmp_path / "data")).findings
    assert ("changed-since-fetch", "toolmeta.json") in {(one.check, one.file) for one in found}
    assert not fetch_workflow(server, tmp_path / "data").already_there
    assert fetch_workflow(server, tmp_path / "data").already_there


def test_a_source_that_changed_since_the_first_fetch_is_refused(
    tmp_path: Path, server: FileServer
) -> None:
    files = workflow_files(tmp_path)
    server.files[ARCHIVE] = zipped(files)
    fetch_workflow(server, tmp_path / "data")
    (tmp_path / "data" / "end.json").unlink()
    server.files[ARCHIVE] = zipped({**files, "gta/toolmeta.json": b"[ ]"})
    with pytest.raises(FetchError, match=r"now has another toolmeta.json than at the first"):
        fetch_workflow(server, tmp_path / "data")


def test_a_receipt_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / RECEIPT).write_text("{}", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"fetched.json: is not a receipt"):
        read_receipt(tmp_path)


def hub(server: FileServer, files: Mapping[str, bytes], listing: object = None) -> None:
    prefix = "/datasets/Jize1/GTA-Workflow/resolve/main/"
    for name, content in files.items():
        server.files[f"{prefix}{name.replace(' ', '%20')}"] = content
    entries = [{"type": "file", "path": name} for name in files]
    server.files[LISTING] = json.dumps(listing or entries).encode()


def test_a_dataset_is_fetched_from_the_hub_file_by_file(tmp_path: Path, server: FileServer) -> None:
    root = write_workflow(tmp_path / "made")
    files = {file.name: file.read_bytes() for file in root.iterdir()}
    hub(server, {**files, "resources/a b.txt": b"x", ".gitattributes": b""})
    listing = json.loads(server.files[LISTING])
    server.files[LISTING] = json.dumps([*listing, {"type": "directory", "path": "r"}]).encode()
    result = fetch_workflow(server, tmp_path / "data", "huggingface")
    assert sorted(result.receipt.files) == ["end.json", "resources/a b.txt", "toolmeta.json"]


def test_files_of_the_hub_that_are_here_already_are_not_fetched_again(
    tmp_path: Path, server: FileServer
) -> None:
    root = write_workflow(tmp_path / "made")
    hub(server, {file.name: file.read_bytes() for file in sorted(root.iterdir())})
    missing = server.files.pop("/datasets/Jize1/GTA-Workflow/resolve/main/toolmeta.json")
    with pytest.raises(FetchError, match="answered 404"):
        fetch_workflow(server, tmp_path / "data", "huggingface")
    server.files["/datasets/Jize1/GTA-Workflow/resolve/main/toolmeta.json"] = missing
    server.requests.clear()
    fetch_workflow(server, tmp_path / "data", "huggingface")
    assert [path.rpartition("/")[2] for path, _ in server.requests] == [
        "main?recursive=true",
        "toolmeta.json",
    ]


def test_the_hubs_listing_is_read_page_by_page(tmp_path: Path, server: FileServer) -> None:
    root = write_workflow(tmp_path / "made")
    hub(server, {file.name: file.read_bytes() for file in root.iterdir()})
    entries = json.loads(server.files[LISTING])
    server.files[LISTING] = json.dumps(entries[:1]).encode()
    server.files["/page2"] = json.dumps(entries[1:]).encode()
    server.pages[LISTING] = "/page2"
    result = fetch_workflow(server, tmp_path / "data", "huggingface")
    assert len(result.receipt.files) == 2


@pytest.mark.parametrize(
    ("listing", "problem"),
    [
        ({"error": "gone"}, "could not be read"),
        ([{"type": "file", "path": "../x"}], "points outside the folder"),
        ([{"type": "file", "path": "/x"}], "points outside the folder"),
    ],
)
def test_a_listing_that_cannot_be_trusted_is_refused(
    tmp_path: Path, server: FileServer, listing: object, problem: str
) -> None:
    hub(server, {}, listing)
    with pytest.raises(FetchError, match=problem):
        fetch_workflow(server, tmp_path / "data", "huggingface")


SOURCE_PATH = (
    "/open-compass/GTA/raw/e1a53a7c8e1c44c79e58ccc8437505d8860a10e8"
    "/opencompass/opencompass/models/lagent.py"
)
STAND_INS = {"files": "Look at ", "answer_without_tools": "Now answer."}
STAND_IN_PINS = {name: text_digest(text) for name, text in STAND_INS.items()}
STAND_IN_SOURCE = b"""
raise SystemExit("this source is never run")
def tell(files, last):
    words = 'Look at ' + ', '.join(files)
    return words + ('Now '
                    'answer.' if last else '')
"""


def test_published_texts_are_found_in_the_source_by_their_digests(
    tmp_path: Path, server: FileServer
) -> None:
    server.files[SOURCE_PATH] = STAND_IN_SOURCE
    folder = tmp_path / "prompts"
    options: Any = {"host": server.url, "progress": progress, "pins": STAND_IN_PINS}
    assert fetch_prompts(folder, **options)
    assert read_prompts(folder, STAND_IN_PINS) == STAND_INS
    assert not fetch_prompts(folder, **options)
    assert len(server.requests) == 1


@pytest.mark.parametrize("source", [b"WORDS = 'Look at'", b"not ( python", b""])
def test_a_source_without_the_published_texts_is_refused_and_nothing_is_kept(
    tmp_path: Path, server: FileServer, source: bytes
) -> None:
    server.files[SOURCE_PATH] = source
    with pytest.raises(FetchError, match=r"lagent\.py is refused: "):
        fetch_prompts(tmp_path / "prompts", host=server.url, progress=progress, pins=STAND_IN_PINS)
    assert not (tmp_path / "prompts").exists()
