"""What a harness left in its outputs, read when nothing of it runs any more."""

import unicodedata
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gta_bench.confine import files
from gta_bench.confine.names import is_plain
from gta_bench.confine.workspace import Workspace


class Left(NamedTuple):
    """Files by the path that agents see; `strays` are links, devices or too large."""

    files: dict[str, bytes]
    strays: tuple[str, ...]


def collect(workspace: Workspace) -> Left:
    """Every file below `outputs`, in folders too, within the workspace's quota."""
    root = workspace.root / "outputs"
    found: dict[str, bytes] = {}
    strays, room = [], workspace.quota.total_bytes
    for entry in files.walk(root):
        if entry.is_dir(follow_symlinks=False):
            continue
        path = Path(entry.path).relative_to(root).as_posix()
        data = _content(Path(entry.path), path, min(room, workspace.quota.file_bytes))
        if data is None or len(found) >= workspace.quota.files:
            strays.append(path.encode("utf-8", "replace").decode())
        else:
            found[f"outputs/{path}"] = data
            room -= len(data)
    return Left(dict(sorted(found.items())), tuple(sorted(strays)))


def clear(workspace: Workspace) -> None:
    """Empty the outputs: those of a harness that filled the disk are not kept."""
    outputs = workspace.root / "outputs"
    files.remove_tree(outputs)
    outputs.mkdir()


def _content(file: Path, path: str, most: int) -> bytes | None:
    parts = PurePosixPath(unicodedata.normalize("NFC", path)).parts
    if not all(is_plain(part) for part in parts):
        return None
    try:
        with files.open_regular(file) as stream:
            return files.read_bounded(stream, most)
    except OSError:
        return None
