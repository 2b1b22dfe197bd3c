"""The Python interpreter for snippets, and the few folders that it needs to run."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE_FOLDERS = ("site-packages", "dist-packages")
# A prefix can be a project's folder or a home, so only Python's own files in it are visible. A
# Conda prefix contains nothing else, and its packages need its libraries and data.
OWN = (
    *("bin", "pyvenv.cfg"),
    *(f"{lib}/{name}" for lib in ("lib", "lib64") for name in ("python3*", "libpython3*")),
)
OWN_OF_CONDA = ("bin", "lib", "share", "etc", "ssl")


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter: its path, and the files and folders (`roots`) that it needs to run."""

    executable: str
    roots: tuple[str, ...]

    @classmethod
    def current(cls) -> "Python":
        """The running interpreter, with its virtual environment if it has one."""
        prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
        return cls.at(sys.executable, prefixes, packages=sys.path)

    @classmethod
    def at(
        cls, executable: str, prefixes: Sequence[str], *, packages: Sequence[str] = ()
    ) -> "Python":
        """An interpreter by its path, its prefixes (`sys.prefix`, …) and its `sys.path`.

        Only package folders of `packages` are visible: an editable install adds a whole project.
        Paths are normalized, because no jail accepts `../venv/bin/python`.
        """
        executable = os.path.normpath(executable)
        prefixes = [os.path.normpath(prefix) for prefix in prefixes]
        packages = [os.path.normpath(name) for name in packages]
        wanted = [own for prefix in dict.fromkeys(prefixes) for own in _own_files(Path(prefix))]
        wanted += [Path(name) for name in packages if Path(name).name in PACKAGE_FOLDERS]
        link = Path(executable)
        wanted.append(link)
        for _ in range(9):  # a chain of links may lead through other folders
            if link.is_symlink():
                link = Path(os.path.normpath(link.parent / link.readlink()))
                wanted.append(link)
        roots: list[Path] = [Path("/usr")]
        for path in wanted:
            if path.exists() and not any(path.is_relative_to(root) for root in roots):
                roots.append(path)
        return cls(executable, tuple(map(str, roots[1:])))


def _own_files(prefix: Path) -> Iterator[Path]:
    if prefix == Path("/"):
        return
    for name in OWN_OF_CONDA if (prefix / "conda-meta").is_dir() else OWN:
        yield from sorted(prefix.glob(name))
