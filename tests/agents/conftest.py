from collections.abc import Callable
from pathlib import Path

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import AtomicDataset

GOLDEN = Path(__file__).parent.parent / "golden"

CheckGolden = Callable[[str, str], None]


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> CheckGolden:
    """Compares a text with its golden file; only `--update-golden` writes one."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no golden file {name}; `pytest --update-golden` writes it"
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="session")
def atomic(atomic_dir: Path) -> AtomicDataset:
    return load_atomic(atomic_dir)
