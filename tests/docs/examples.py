"""Every Python example that a user may copy, one by one, from pages, docstrings and examples/."""

import ast
import doctest
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conftest import REPOSITORY
from tests.docs.blocks import of

SOURCE = REPOSITORY / "src"
EXAMPLES = REPOSITORY / "examples"
# This page quotes the descriptions of the tools, as models get them.
QUOTES = REPOSITORY / "docs" / "reference" / "tools.md"


class Example(NamedTuple):
    """A program; `file` is a relative path that says where it comes from."""

    file: Path
    text: str


def examples() -> list[Example]:
    """All of them; each stands on its own, except for the modules of the extension."""
    return [*_blocks(), *_docstrings(), *_files(), *_notebooks()]


def modules_with_examples() -> list[str]:
    """The modules of the package whose docstrings have examples."""
    return sorted({module for module, _, _ in _docstring_examples()})


def _blocks() -> Iterator[Example]:
    for block in of("python"):
        if block.page != QUOTES:
            yield _name(block.page, block.line, block.text)


def _docstrings() -> Iterator[Example]:
    """A docstring's example knows the names of its module, and nothing that the module imports."""
    for module, line, text in _docstring_examples():
        file = Path(f"{module.replace('.', '_')}_{line}.py")
        yield Example(file, f"from {module} import *\n{text}")


def _docstring_examples() -> Iterator[tuple[str, int, str]]:
    parser = doctest.DocTestParser()
    for file in sorted((SOURCE / "gta_bench").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if ">>> " not in text:
            continue
        module = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found = parser.get_examples(ast.get_docstring(node) or "")
                if found:
                    yield module, getattr(node, "lineno", 1), "".join(one.source for one in found)


def _files() -> Iterator[Example]:
    for file in sorted(EXAMPLES.rglob("*.py")):
        in_package = (file.parent / "__init__.py").exists()
        folder = file.parent.parent if in_package else file.parent
        yield Example(file.relative_to(folder), file.read_text(encoding="utf-8"))


def _notebooks() -> Iterator[Example]:
    for file in sorted(EXAMPLES.glob("*.ipynb")):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        yield _name(file, 1, "\n".join(f"{one}\n" for one in sources))


def _name(file: Path, line: int, text: str) -> Example:
    parts = file.relative_to(REPOSITORY).with_suffix("").parts
    return Example(Path("_".join(parts).replace("-", "_") + f"_{line}.py"), text)
