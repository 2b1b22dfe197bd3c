"""Small boards, and honest runs with their bundles, which tests change or check."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import gta_bench
from gta_bench.leaderboard import submission
from gta_bench.settings import Settings
from tests.builders import atomic_task, workflow_task, write_atomic, write_workflow
from tests.leaderboard.bundles import SIMILARITY, scripted_judge
from tests.leaderboard.submitting import Made, imported, model, pack


@pytest.fixture(scope="module")
def small_boards() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(submission, "SIZES", {"atomic": 3, "workflow": 2})
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forgeries")


@pytest.fixture(scope="module")
def data(folder: Path) -> Mapping[str, Path]:
    return {
        "atomic": write_atomic(folder / "atomic", {str(n): atomic_task() for n in range(3)}),
        "workflow": write_workflow(
            folder / "workflow", {str(n): workflow_task() for n in range(2)}
        ),
    }


@pytest.fixture(scope="module")
def made(small_boards: None, folder: Path, data: Mapping[str, Path]) -> Mapping[str, Made]:
    """Two real runs of a scripted model and one whose results were brought from elsewhere."""
    atomic, workflow = folder / "run-atomic", folder / "run-workflow"
    settings = Settings.model_validate({"scoring": {"similarity": SIMILARITY}})
    gta_bench.run("atomic", atomic, model=model("7"), data=data["atomic"], settings=settings)
    judge = scripted_judge(lambda shown, leaf: 8)
    gta_bench.run("workflow", workflow, model=model("Done."), data=data["workflow"])
    gta_bench.judge(workflow, judge)
    gta_bench.score(workflow)
    runs = {"atomic": atomic, "workflow": workflow, "imported": imported(data, folder / "brought")}
    found = {}
    for name, run in runs.items():
        own = data["workflow" if name == "workflow" else "atomic"]
        found[name] = Made(run, own, pack(run, own, folder))
    return found
