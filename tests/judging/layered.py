"""An environment on top of another one by a `.pth` file, which the jail sees only in part."""

import os
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

from gta_bench.confine.walls import Python

# All that the readers in the jail import, pandoc's package among them.
PACKAGES = (
    "PIL", "_cffi_backend", "cffi", "charset_normalizer", "cryptography", "et_xmlfile", "lxml",
    "openpyxl", "pdfminer", "pdfplumber", "pillow.libs", "pptx", "pypandoc", "pypdf", "pypdfium2",
    "pypdfium2_cfg", "pypdfium2_raw", "typing_extensions.py", "xlsxwriter",
)  # fmt: skip


def layered_python(folder: Path, *, without: str) -> Python:
    """This Python in an environment of its own; packages come from ours, all but one of them.

    The host imports everything, and the jail sees everything but `without`.
    """
    below = Path(sysconfig.get_path("purelib"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = folder / "lib" / version / "site-packages"
    own.mkdir(parents=True)
    (folder / "bin").mkdir()
    executable = folder / "bin" / "python"
    executable.symlink_to(Path(sys.executable).resolve())
    home = Path(os.path.realpath(sys.executable)).parent
    (folder / "pyvenv.cfg").write_text(f"home = {home}\n", encoding="utf-8")
    (own / "below.pth").write_text(f"{below}\n", encoding="utf-8")
    seen = [str(below / name) for name in PACKAGES if name != without and (below / name).exists()]
    made = Python.at(str(executable), [str(folder), sys.base_prefix])
    return replace(made, roots=(*made.roots, *seen))
