import os
import shutil
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pytest_socket import disable_socket, enable_socket, socket_allow_hosts

from gta_bench.datasets.atomic import load_atomic
from gta_bench.records.atomic import AtomicTask

REPOSITORY = Path(__file__).parent.parent

# A busy machine is no defect, and a failure must come again: no deadlines, the same examples.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


# Programs that some tests need, with the words by which a failure tells that one is missing.
PROGRAMS = {
    "bwrap": ("bubblewrap", "bwrap", "No jail"),
    "ffmpeg": ("ffmpeg",),
    "ffprobe": ("ffprobe",),
    "soffice": ("LibreOffice", "soffice"),
    "chromium": ("Chromium", "chromium"),
    "pdftoppm": ("poppler", "pdftoppm"),
    "npm": ("npm",),
    "flite": ("flite",),
    "sox": ("sox",),
}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure that names a program which is not on this machine is a skip, and says so.

    Python and git are enough to work on the project; where all programs are, as on CI, nothing
    changes.
    """
    report = yield
    if report.failed and (program := _missing_program(report)) is not None:
        report.outcome = "skipped"
        reason = f"Skipped: {program} is not installed here"
        report.longrepr = (str(item.path), item.location[1] or 0, reason)
    return report


def _missing_program(report: pytest.TestReport) -> str | None:
    said = "\n".join([report.longreprtext, *(text for _, text in report.sections)])
    absent = (name for name in PROGRAMS if shutil.which(name) is None)
    return next((name for name in absent if any(word in said for word in PROGRAMS[name])), None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test reaches the network; one that needs this machine's loopback asks for `loopback`."""
    if "loopback" in request.fixturenames:
        socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)
    else:
        disable_socket(allow_unix_socket=True)
    yield
    enable_socket()
    socket_allow_hosts(None)


@pytest.fixture
def loopback() -> None:
    """Sockets to 127.0.0.1 are allowed in this test."""


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The released data: GTA_DATA, or the folder that lies beside the repository."""
    folder = Path(os.environ.get("GTA_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no released data in {folder}; GTA_DATA names the folder")
    return folder.resolve()


@pytest.fixture(scope="session")
def atomic_dir(data_dir: Path) -> Path:
    return data_dir / "gta_atomic"


@pytest.fixture(scope="session")
def atomic_tasks(atomic_dir: Path) -> Mapping[str, AtomicTask]:
    """The 229 tasks of GTA-Atomic."""
    return load_atomic(atomic_dir).tasks


@pytest.fixture(scope="session")
def workflow_dir(data_dir: Path) -> Path:
    return data_dir / "gta_workflow"
