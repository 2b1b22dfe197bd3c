"""Evaluation results for the Hub, read back by its own package."""

import shutil
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner, Result
from huggingface_hub import eval_result_entries_to_yaml, parse_eval_result_entries

from gta_bench.cli import app
from gta_bench.runs.directory import (
    read_manifest,
    read_workflow_scores,
    write_manifest,
    write_scores,
)

OPTIONS = ("--dataset", "lab/gta", "--task-id", "workflow")


def export(run: Path, out: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["export", "hf", str(run), "--out", str(out), *options])


def test_the_hubs_package_reads_the_result(judged: Path, tmp_path: Path) -> None:
    more = ("--revision", "a" * 40, "--source-url", "https://example.org", "--source-org", "lab")
    result = export(judged, tmp_path, *OPTIONS, *more)
    assert result.exit_code == 0, (result.output, result.exception)
    file = tmp_path / ".eval_results" / "gta-workflow-workflow.yaml"
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    [entry] = parse_eval_result_entries(data)
    assert (entry.dataset_id, entry.task_id) == ("lab/gta", "workflow")
    assert (entry.dataset_revision, entry.source_org) == ("a" * 40, "lab")
    assert entry.value == read_workflow_scores(judged).judges[0].strict.root_sr
    assert entry.notes is not None and "Root SR, judged by scripted; 95 % interval" in entry.notes
    # Nothing is lost, and nothing is in the file that the package does not know.
    assert eval_result_entries_to_yaml([entry]) == data


def test_an_incomplete_run_is_refused(judged: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(judged, run)
    scores = read_workflow_scores(run)
    write_scores(run, scores.model_copy(update={"n": scores.n - 1}))
    result = export(run, tmp_path / "out", *OPTIONS)
    assert "is not complete" in str(result.exception) and not (tmp_path / "out").exists()


def test_a_run_of_some_tasks_is_refused(judged: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(judged, run)
    write_manifest(run, read_manifest(run).model_copy(update={"dataset_tasks": 132}))
    assert "all tasks" in str(export(run, tmp_path / "out", *OPTIONS).exception)


@pytest.mark.parametrize("option", ["--dataset", "--task-id"])
def test_the_benchmark_must_be_named(judged: Path, tmp_path: Path, option: str) -> None:
    given = [*OPTIONS]
    del given[given.index(option) : given.index(option) + 2]
    assert export(judged, tmp_path, *given).exit_code == 2


def test_an_organization_needs_an_address(judged: Path, tmp_path: Path) -> None:
    result = export(judged, tmp_path, *OPTIONS, "--source-org", "lab")
    assert "--source-org needs --source-url" in str(result.exception)
