"""`gta data`: fetch, verify, describe and sample the datasets."""

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Literal

import click

from gta_bench.agents.published import LAGENT, find_published
from gta_bench.cli.options import CommandFunction, config_path, data_option, json_option
from gta_bench.cli.output import COLORS, download_bar, say, write_json, write_rows
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.checks import Check, Verified, verify
from gta_bench.datasets.fetch import SourceName, fetch, fetch_prompts
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.model import AtomicDataset
from gta_bench.datasets.prompts import PINNED_TEXTS
from gta_bench.datasets.selection import name_subset, sample_tasks
from gta_bench.datasets.stats import AtomicStats, WorkflowStats, atomic_stats, workflow_stats
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError, counted
from gta_bench.records.finding import Finding
from gta_bench.records.run import DatasetName
from gta_bench.settings import DataSettings, read_settings


def dataset_argument(command: CommandFunction) -> CommandFunction:
    """The dataset's name, on every subcommand."""
    return click.argument("dataset", type=click.Choice(["atomic", "workflow"]))(command)


@click.group()
def data() -> None:
    """Fetch, verify, describe and sample the datasets."""


@data.command("fetch")
@click.argument("dataset", type=click.Choice(["atomic", "workflow", "prompts"]))
@click.option(
    "--from",
    "source",
    type=click.Choice(["github", "huggingface"]),
    default="github",
    show_default=True,
    help="Where it comes from.",
)
@data_option
@click.pass_obj
def fetch_command(
    config_file: str | None,
    dataset: DatasetName | Literal["prompts"],
    source: SourceName,
    folder: str | None,
) -> None:
    """Bring a published dataset here; an interrupted download is continued.

    `prompts` are the published pipeline's own texts, which `--agent react-upstream` then sends.
    """
    settings = _data_settings(config_file, dataset, folder)
    if dataset == "prompts":
        _fetch_prompts(settings, source)
        return
    host = settings.github if source == "github" else settings.huggingface
    target = Path(getattr(settings, dataset))
    result = fetch(dataset, target, source=source, host=host, progress=download_bar)
    receipt = result.receipt
    pinned = ", ".join(receipt.pinned) or "nothing"
    others = len(receipt.files) - len(receipt.pinned)
    if result.already_there:
        say(f"{target} is already there and unchanged ({counted(len(receipt.files), 'file')}).")
    else:
        say(f"{counted(len(receipt.files), 'file')} in {target}.")
        unpinned = counted(others, "file")
        say(f"Checked against the published digests: {pinned}. Not pinned: {unpinned}.")


def _fetch_prompts(settings: DataSettings, source: SourceName) -> None:
    if source != "github":
        raise UsageError("The published texts are on GitHub only: leave --from out.")
    target = Path(settings.prompts)
    fresh = fetch_prompts(target, host=settings.github, progress=download_bar)
    count = counted(len(PINNED_TEXTS), "text")
    state = "fetched, with the published digests" if fresh else "already there and unchanged"
    say(f"{count} in {target}: {state}.")
    if find_published(target) is None:
        say(f"`--agent react-upstream` also needs lagent's: pip install --no-deps lagent=={LAGENT}")


@data.command("verify")
@dataset_argument
@data_option
@json_option
@click.pass_obj
@click.pass_context
def verify_command(
    context: click.Context,
    config_file: str | None,
    dataset: DatasetName,
    folder: str | None,
    as_json: bool,
) -> None:
    """List what is odd or broken in a dataset; exit 1 if a task cannot be measured."""
    root = dataset_root(getattr(_data_settings(config_file, dataset, folder), dataset))
    if dataset == "atomic":
        verified = verify(load_atomic(root), _checks_with_tools())
    else:
        verified = verify(load_workflow(root))
    if as_json:
        write_json([finding.model_dump(mode="json") for finding in verified.findings])
    else:
        _write_findings(verified)
    context.exit(0 if verified.usable else 1)


@data.command("stats")
@dataset_argument
@data_option
@json_option
@click.pass_obj
def stats_command(
    config_file: str | None, dataset: DatasetName, folder: str | None, as_json: bool
) -> None:
    """Describe a dataset in numbers."""
    root = dataset_root(getattr(_data_settings(config_file, dataset, folder), dataset))
    stats: AtomicStats | WorkflowStats
    if dataset == "atomic":
        stats = atomic_stats(load_atomic(root))
    else:
        stats = workflow_stats(load_workflow(root))
    if as_json:
        write_json(stats.model_dump(mode="json"))
    else:
        write_rows([(name.replace("_", " "), _shown(value)) for name, value in stats])


@data.command("subset")
@dataset_argument
@click.option("--size", type=click.IntRange(1), required=True, help="Tasks of the subset.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample.")
@data_option
@json_option
@click.pass_obj
def subset_command(
    config_file: str | None,
    dataset: DatasetName,
    size: int,
    seed: int,
    folder: str | None,
    as_json: bool,
) -> None:
    """Choose a stratified subset: its ids on stdout, as `gta run --tasks` takes them.

    The same size and seed give the same tasks everywhere, and a larger size of a seed contains a
    smaller one. The name ends with a digest of the tasks' content.
    """
    root = dataset_root(getattr(_data_settings(config_file, dataset, folder), dataset))
    loaded = load_atomic(root) if dataset == "atomic" else load_workflow(root)
    tasks = sample_tasks(loaded, size, seed=seed)
    subset = name_subset(loaded, tasks, f"{dataset}-{size}-seed{seed}")
    if as_json:
        write_json({"name": subset.name, "seed": seed, "tasks": list(subset.tasks)})
    else:
        click.echo(",".join(subset.tasks))
        say(f"{subset.name}: {size} of {len(loaded.tasks)} tasks.")


def _data_settings(config_file: str | None, dataset: str, folder: str | None) -> DataSettings:
    return read_settings(
        config_path(config_file), overrides={f"data.{dataset}": folder}
    ).settings.data


def _checks_with_tools() -> dict[str, Check[AtomicDataset]]:
    """Checks that run a tool, which only this command imports."""
    from gta_bench.tools.logic.expressions import check_calculator_replies

    return {"reply-not-computed": Check("note", check_calculator_replies)}


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {count}" for key, count in value.items())
    return str(value)


def _write_findings(verified: Verified) -> None:
    order = list(COLORS)
    ranked = sorted(verified.findings, key=lambda finding: order.index(finding.severity))
    for check, findings in groupby(ranked, key=lambda finding: (finding.severity, finding.check)):
        group = list(findings)
        heading = click.style(check[0], fg=COLORS[check[0]], bold=True)
        click.echo(f"{heading} {check[1]} ({len(group)})")
        for finding in group:
            click.echo(f"  {_place(finding)}: {finding.message}")
    counts = Counter(finding.severity for finding in ranked)
    words = ", ".join(counted(counts[severity], severity) for severity in order)
    say(f"{counted(len(ranked), 'finding')}: {words}.")


def _place(finding: Finding) -> str:
    task = None if finding.task is None else f"task {finding.task}"
    return ", ".join(part for part in (task or finding.file, finding.field) if part)
