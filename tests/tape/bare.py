"""`gta` on a machine where no backend is installed and nothing can be reached."""

import socket
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

REMOVED = {
    *("pydantic_monty", "matplotlib", "sympy", "z3", "rapidocr", "onnxruntime", "cv2", "PIL"),
    *("librosa", "soundfile", "noisereduce", "pypandoc", "typst", "pptx", "openpyxl", "pypdf"),
    *("pdfplumber", "pypdfium2"),
}
REMOVED_TOOLS = tuple(
    f"gta_bench.tools.{name}"
    for name in (
        *("logic", "perception", "operation", "creativity", "backends", "documents", "media"),
    )
)


class Removed(MetaPathFinder):
    """Says that there is no such module."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.startswith(REMOVED_TOOLS) or name.partition(".")[0] in REMOVED:
            raise ModuleNotFoundError(f"{name} is removed", name=name)
        return None


def refuse(*_: object) -> None:
    raise OSError("the network is off")


if __name__ == "__main__":
    sys.meta_path.insert(0, Removed())
    socket.socket.connect = refuse  # type: ignore[method-assign]
    socket.getaddrinfo = refuse  # type: ignore[assignment]

    from gta_bench.cli import main

    main()
