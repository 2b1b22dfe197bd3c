import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.browser import install
from tests.needs import require_programs

CODEX: Final = "0.166.0"


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what drives Chromium."""
    return install(tmp_path_factory.mktemp("npm"))


@pytest.fixture(scope="session")
def codex_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Codex CLI of the pinned version; the folder of its program."""
    require_programs("npm")
    folder = tmp_path_factory.mktemp("npm")
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--silent", f"@openai/codex@{CODEX}"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "node_modules" / ".bin"


@pytest.fixture
def codex(codex_folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Codex CLI, ready to be started; its version."""
    monkeypatch.setenv("PATH", f"{codex_folder}:{os.environ['PATH']}")
    # Codex's list of models, for which inspect_swe has a copy, cannot be downloaded in a test.
    monkeypatch.setattr("inspect_swe._util.download._RETRY_DELAYS", ())
    return CODEX
