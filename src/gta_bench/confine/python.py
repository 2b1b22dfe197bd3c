"""The interpreter inside: where it lies, and the few folders that must be visible for it to run."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE_FOLDERS = ("site-packages", "dist-packages")
# A prefix can be a project's folder or a home, so no more of it is shown than Python's own. That of
# Conda holds nothing else, and its packages need its libraries and data.
OWN = (
    *("bin", "pyvenv.cfg"),
    *(f"{lib}/{name}" for lib in ("lib", "lib64") for name in ("python3*", "libpython3*")),
)
OWN_OF_CONDA = ("bin", "lib", "share", "etc", "ssl")


@dataclass(frozen=True, slots=True)
class Python:
    """The interpreter for snippets: where it lies and what must be visible for it to run."""

    executable: str
    roots: tuple[str, ...]

    @classmethod
    def current(cls) -> "Python":
        """The interpreter that runs this program, in its virtual environment if it has one."""
        prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
        return cls.at(sys.executable, prefixes, packages=sys.path)

    @classmethod
    def at(
        cls, executable: str, prefixes: Sequence[str], *, packages: Sequence[str] = ()
    ) -> "Python":
        """An interpreter by its path, its prefixes (`sys.prefix`, …) and its `sys.path`.

        Of the latter, folders of packages count; that of an editable install is a project. Started
        as `../venv/bin/python`, Python keeps the two dots in all of them, and no jail takes those.
        """
        executable = os.path.normpath(executable)
        prefixes = [os.path.normpath(prefix) for prefix in prefixes]
        packages = [os.path.normpath(name) for name in packages]
        wanted = [own for prefix in dict.fromkeys(prefixes) for own in _own(Path(prefix))]
        wanted += [Path(name) for name in packages if Path(name).name in PACKAGE_FOLDERS]
        wanted += _hops(Path(executable))  # a chain of links may lead through other folders
        roots: list[Path] = [Path("/usr")]
        for path in wanted:
            if path.exists() and not any(path.is_relative_to(root) for root in roots):
                roots.append(path)
        return cls(executable, tuple(map(str, roots[1:])))


def _own(prefix: Path) -> Iterator[Path]:
    if prefix == Path("/"):
        return
    for name in OWN_OF_CONDA if (prefix / "conda-meta").is_dir() else OWN:
        yield from sorted(prefix.glob(name))


def _hops(file: Path) -> list[Path]:
    hops = [file]
    while hops[-1].is_symlink() and len(hops) < 10:
        target = hops[-1].readlink()
        hops.append(Path(os.path.normpath(hops[-1].parent / target)))
    return hops
