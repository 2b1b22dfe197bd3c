"""The notebooks of examples/: stored with outputs, and executed in a real kernel."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "run_notebooks.py"))
NOTEBOOKS: list[Path] = SCRIPT["NOTEBOOKS"]

# A real model answers there.
BY_HAND = {"first_model": pytest.mark.measure}
# Paths of a machine, and times, which differ on every run.
NOISE = re.compile(r"(?<![\w<./])/(?:home|root|tmp|usr|work|var|Users|opt)/|[A-Z]:\\\\|\d\.\d+ s\b")


def outputs(notebook: Any) -> list[dict[str, Any]]:
    return [one for cell in notebook["cells"] for one in cell.get("outputs", ())]


def plain(notebook: Any) -> list[str]:
    """What each output shows as text."""
    found = (one.get("text") or one.get("data", {}).get("text/plain") for one in outputs(notebook))
    return ["".join(one) for one in found if one]


def test_there_are_two() -> None:
    assert [file.name for file in NOTEBOOKS] == [
        "first_model.ipynb",
        "own_agent_and_metric.ipynb",
    ]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_stored_notebook_was_executed_and_names_no_machine(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    notebook = json.loads(text)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    kinds = {one["output_type"] for one in outputs(notebook)}
    assert kinds <= {"stream", "execute_result"}
    assert any(
        "gta-view" in "".join(one.get("data", {}).get("text/html", "")) for one in outputs(notebook)
    )
    assert NOISE.findall(text) == []
    assert "widgets" not in notebook["metadata"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    [pytest.param(file, id=file.stem, marks=BY_HAND.get(file.stem, ())) for file in NOTEBOOKS],
)
def test_a_notebook_runs_in_a_kernel_and_shows_what_is_stored(
    file: Path, tmp_path: Path, loopback: None
) -> None:
    done = SCRIPT["execute"](file, tmp_path)
    assert plain(done) == plain(json.loads(file.read_text(encoding="utf-8")))
