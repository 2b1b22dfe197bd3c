"""Execute the notebooks of examples/ in an empty folder and store them with their outputs.

Run it after a change to a notebook: python scripts/run_notebooks.py
"""

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
SECONDS = 300


def execute(file: Path, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook, executed in that folder by a kernel of its own."""
    notebook = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook, timeout=SECONDS, resources=resources, record_timing=False, coalesce_streams=True
    )
    return client.execute()


def main() -> None:
    """Execute and store every notebook."""
    for file in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(file, Path(folder))
        # The version of Python that ran it is of no interest, and would change every time.
        notebook.metadata["language_info"] = {"name": "python"}
        nbformat.write(notebook, file)  # type: ignore[no-untyped-call]
        print(file.name)


if __name__ == "__main__":
    main()
