import gc
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pytest_socket import disable_socket, enable_socket, socket_allow_hosts

from gta_bench.datasets.atomic import load_atomic
from gta_bench.records.atomic import AtomicTask
from gta_bench.redaction import forget_secrets

pytest_plugins = ("tests.needs",)

REPOSITORY = Path(__file__).parent.parent
DATA = Path(os.environ.get("GTA_DATA", REPOSITORY.parent / "shared" / "data"))

# Slow modules outside of tests/slow whose tests take longest.
LONG_MODULES = {
    "test_cheats.py",
    "test_first_hour.py",
    "test_gaming.py",
    "test_harbor.py",
    "test_runs.py",
}
# A busy machine is no defect, and a failure must come again: no deadlines, the same examples.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every process begins with its share of the longest modules.

    Processes get equal parts of the list; one that is done takes work from the end of another's.
    """
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    longest = [item for item in items if _takes_minutes(item)]
    others = [item for item in items if not _takes_minutes(item)]
    number = {path: place for place, path in enumerate(dict.fromkeys(one.path for one in longest))}
    left = len(items)
    for process in range(processes):
        part = [item for item in longest if number[item.path] % processes == process]
        room = max(0, left // (processes - process) - len(part))
        part, others = part + others[:room], others[room:]
        items[len(items) - left : len(items) - left + len(part)] = part
        left -= len(part)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A run of slow tests does not import modules that have none: each process would import all."""
    if not config.option.markexpr.startswith("slow") or not collection_path.name.startswith(
        "test_"
    ):
        return None
    return None if "mark.slow" in collection_path.read_text(encoding="utf-8") else True


def pytest_collection_finish() -> None:
    """What was imported and collected stays; nobody looks for garbage in it while tests run."""
    gc.freeze()


def _takes_minutes(item: pytest.Item) -> bool:
    return item.path.parent.name == "slow" or item.path.name in LONG_MODULES


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")


@pytest.fixture(scope="session", autouse=True)
def no_data_variable() -> Iterator[None]:
    """Commands find data where a test puts them, whatever the variable of the tests names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GTA_DATA", raising=False)
        patch.delenv("HF_ENDPOINT", raising=False)
        yield


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
    if not DATA.is_dir():
        pytest.skip(f"no released data in {DATA}; GTA_DATA names the folder")
    return DATA.resolve()


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


@pytest.fixture(autouse=True)
def no_known_secrets() -> Iterator[None]:
    """What one test made the process keep out of files is nothing to the next."""
    forget_secrets()
    yield
    forget_secrets()
