"""Ten tasks that a calculator solves, their reference as a tape, and an environment on them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import AtomicDataset
from gta_bench.metrics.similarity import exact
from gta_bench.rl.environment import Environment, replay_tape
from gta_bench.rl.rewards import step_rewards
from gta_bench.tape.reference import write_reference_tape
from gta_bench.tape.storage import Tape
from tests.builders import write_atomic
from tests.tape.datasets import CALCULATOR, multiplication


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> AtomicDataset:
    tasks = {str(number): multiplication(number) for number in range(2, 12)}
    return load_atomic(write_atomic(tmp_path_factory.mktemp("data"), tasks, [CALCULATOR]))


@pytest.fixture(scope="module")
def tape(dataset: AtomicDataset, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tape]:
    folder = tmp_path_factory.mktemp("tape")
    write_reference_tape(dataset, folder)
    tape = Tape.open(folder)
    yield tape
    tape.close()


@pytest.fixture
def environment(dataset: AtomicDataset, tape: Tape, tmp_path: Path) -> Environment:
    return Environment(
        dataset, replay_tape(tape, "atomic"), step_rewards(exact), folder=tmp_path / "w"
    )
