from pathlib import Path

import pytest

from tests.tasks.workflow_runs import judged_run


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two tasks that write one page; each has one leaf of three."""
    return judged_run(tmp_path_factory.mktemp("judged"))
