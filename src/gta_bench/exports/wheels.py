"""Wheels of packages that are installed here, for an image that cannot get them from an index."""

import base64
import hashlib
import json
import re
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final, Literal

from gta_bench.errors import RunError

# Where pip notes that a package did not come from an index (PEP 610).
ORIGIN: Final = "direct_url.json"
# What an installer writes, and what it makes again.
_INSTALLED: Final = frozenset({ORIGIN, "INSTALLER", "RECORD", "REQUESTED"})
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
PackageOrigin = Literal["index", "local", "editable"]


def find_origin(package: str) -> PackageOrigin:
    """Return where an installed package came from: an index, a local path or URL, or a checkout."""
    stated = distribution(package).read_text(ORIGIN)
    if stated is None:
        return "index"
    editable = json.loads(stated).get("dir_info", {}).get("editable", False)
    return "editable" if editable else "local"


def write_wheel(package: str, folder: Path) -> Path:
    """Write the files of an installed package as a wheel, the same bytes each time.

    Raises RunError for one with files outside of its environment's packages.
    """
    dist = distribution(package)
    files = {
        str(file): Path(str(file.locate())).read_bytes()
        for file in dist.files or ()
        if file.name not in _INSTALLED and file.suffix != ".pyc" and not _is_script(file.parts)
    }
    outside = [name for name in files if name.startswith(("..", "/"))]
    if outside or not files:
        problem = f"has {outside[0]} outside of it" if outside else "lists no files"
        raise RunError(
            f"The package {package} cannot be copied into an image, because it {problem}: build "
            "its wheel, and name it with --wheel."
        )
    name = normalize_name(dist.name).replace("-", "_")
    info = next(one.rpartition("/")[0] for one in files if one.endswith(".dist-info/METADATA"))
    record = f"{info}/RECORD"
    files[record] = _record(files, record)
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{dist.version}-{_find_tag(dist)}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(path, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return wheel


def read_wheel_name(wheel: Path) -> str:
    """Return the name of the package in a wheel, as its file name states it."""
    return normalize_name(wheel.name.partition("-")[0])


def normalize_name(package: str) -> str:
    """Return the one spelling of a package's name that indexes compare."""
    return re.sub(r"[-_.]+", "-", package).lower()


def _is_script(parts: tuple[str, ...]) -> bool:
    """Whether a file is a command, which pip makes from the entry points of a wheel."""
    return ".." in parts and parts[-2:-1] in (("bin",), ("Scripts",))


def _find_tag(dist: Distribution) -> str:
    """The tags of a wheel in one: `py2-none-any` and `py3-none-any` are `py2.py3-none-any`."""
    lines = (dist.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag:").strip().split("-") for line in lines if line[:4] == "Tag:"]
    parts = zip(*(tags or [["py3", "none", "any"]]), strict=True)
    return "-".join(".".join(dict.fromkeys(part)) for part in parts)


def _record(files: dict[str, bytes], record: str) -> bytes:
    lines = []
    for path, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{record},,\n"]).encode()
