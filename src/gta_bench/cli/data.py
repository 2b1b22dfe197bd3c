"""`gta data`: fetch, verify, describe and sample the datasets."""

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Literal

import click

from gta_bench.agents.published import LAGENT, find_published
from gta_bench.cli.options import DATASET, command_settings, data_option, json_option, load_dataset
from gta_bench.cli.output import COLORS, download_bar, say, write_json, write_rows
from gta_bench.datasets.checks import Check, Verified, verify
from gta_bench.datasets.fetch import SourceName, fetch, fetch_prompts
from gta_bench.datasets.model import AtomicDataset
from gta_bench.datasets.pinned import PINNED_TEXTS
from gta_bench.datasets.selection import name_subset, sample_tasks
from gta_bench.datasets.stats import AtomicStats, WorkflowStats, atomic_stats, workflow_stats
from gta_bench.errors import UsageError, format_count
from gta_bench.records.run import DatasetName
from gta_bench.settings import DataSettings

dataset_argument = click.argument("dataset", type=DATASET)


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
    help="Where to download from.",
)
@data_option
def fetch_command(
    dataset: DatasetName | Literal["prompts"], source: SourceName, folder: str | None
) -> None:
    """Download a published dataset and check its digests.

    Run the command again to continue an interrupted download. `prompts` downloads the texts of the
    published pipeline, which `--agent react-upstream` sends. Next: `gta data verify DATASET`.
    """
    settings = command_settings({f"data.{dataset}": folder}).data
    if dataset == "prompts":
        _fetch_prompts(settings, source)
        return
    host = settings.github if source == "github" else settings.huggingface
    target = Path(getattr(settings, dataset))
    result = fetch(dataset, target, source=source, host=host, progress=download_bar)
    receipt = result.receipt
    files = format_count(len(receipt.files), "file")
    if result.already_there:
        say(f"{target} is already there and unchanged ({files}).")
    else:
        say(f"{files} in {target}.")
        pinned = ", ".join(receipt.pinned) or "nothing"
        others = format_count(len(receipt.files) - len(receipt.pinned), "file")
        say(f"Checked against the published digests: {pinned}. Not pinned: {others}.")


def _fetch_prompts(settings: DataSettings, source: SourceName) -> None:
    if source != "github":
        raise UsageError("The published texts are on GitHub only: leave --from out.")
    target = Path(settings.prompts)
    fresh = fetch_prompts(target, host=settings.github, progress=download_bar)
    count = format_count(len(PINNED_TEXTS), "text")
    state = "fetched, with the published digests" if fresh else "already there and unchanged"
    say(f"{count} in {target}: {state}.")
    if find_published(target) is None:
        say(f"`--agent react-upstream` also needs lagent: pip install --no-deps lagent=={LAGENT}")


@data.command("verify")
@dataset_argument
@data_option
@json_option
def verify_command(dataset: DatasetName, folder: str | None, as_json: bool) -> None:
    """List problems in a dataset; exits with 1 if a task cannot be used."""
    loaded = load_dataset(dataset, folder)
    if isinstance(loaded, AtomicDataset):
        # Runs a tool, which no other command of this group needs.
        from gta_bench.tools.logic.expressions import check_calculator_replies

        verified = verify(loaded, {"reply-not-computed": Check("note", check_calculator_replies)})
    else:
        verified = verify(loaded)
    if as_json:
        write_json([finding.model_dump(mode="json") for finding in verified.findings])
    else:
        _write_findings(verified)
    raise click.exceptions.Exit(0 if verified.usable else 1)


@data.command("stats")
@dataset_argument
@data_option
@json_option
def stats_command(dataset: DatasetName, folder: str | None, as_json: bool) -> None:
    """Show the size and composition of a dataset."""
    loaded = load_dataset(dataset, folder)
    stats: AtomicStats | WorkflowStats = (
        atomic_stats(loaded) if isinstance(loaded, AtomicDataset) else workflow_stats(loaded)
    )
    if as_json:
        write_json(stats.model_dump(mode="json"))
    else:
        write_rows([(name.replace("_", " "), _format_value(value)) for name, value in stats])


@data.command("subset")
@dataset_argument
@click.option("--size", type=click.IntRange(1), required=True, help="Number of tasks.")
@click.option("--seed", type=int, default=0, help="Seed of the sample.")
@data_option
@json_option
def subset_command(
    dataset: DatasetName, size: int, seed: int, folder: str | None, as_json: bool
) -> None:
    """Draw a stratified sample and print its task ids, for `gta run --tasks`.

    The same size and seed give the same tasks everywhere, and a larger sample contains a smaller
    one with the same seed. The name of the subset ends with a digest of the tasks' content.
    """
    loaded = load_dataset(dataset, folder)
    tasks = sample_tasks(loaded, size, seed=seed)
    subset = name_subset(loaded, tasks, f"{dataset}-{size}-seed{seed}")
    if as_json:
        write_json({"name": subset.name, "seed": seed, "tasks": list(subset.tasks)})
    else:
        click.echo(",".join(subset.tasks))
        say(f"{subset.name}: {size} of {len(loaded.tasks)} tasks.")


def _format_value(value: object) -> str:
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
            task = None if finding.task is None else f"task {finding.task}"
            location = ", ".join(part for part in (task or finding.file, finding.field) if part)
            click.echo(f"  {location}: {finding.message}")
    counts = Counter(finding.severity for finding in ranked)
    listed = ", ".join(format_count(counts[severity], severity) for severity in order)
    say(f"{format_count(len(ranked), 'finding')}: {listed}.")
