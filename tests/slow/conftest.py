from pathlib import Path

import pytest

from tests.browser import install


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what drives Chromium."""
    return install(tmp_path_factory.mktemp("npm"))
