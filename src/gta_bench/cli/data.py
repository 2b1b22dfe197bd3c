"""`gta data`: fetch, verify, describe, sample, name and convert the datasets."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import get_args

import click
from pydantic import ValidationError
from typing_extensions import TypeIs

from gta_bench.agents.published import LAGENT, find_published
from gta_bench.cli.options import (
    DATASET,
    FOLDER,
    NEW_FOLDER,
    RUN,
    command_settings,
    data_option,
    json_option,
    load_dataset,
)
from gta_bench.cli.output import COLORS, download_bar, say, write_json, write_rows, write_table
from gta_bench.datasets.canary import mark_dataset
from gta_bench.datasets.checks import Check, Verified, verify
from gta_bench.datasets.convert import convert
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.fetch import SourceName, fetch, fetch_prompts
from gta_bench.datasets.installed import NamedDataset, dataset_root, list_named, load_any
from gta_bench.datasets.model import AtomicDataset
from gta_bench.datasets.pinned import PINNED_TEXTS
from gta_bench.datasets.remote import Downloaded, Hub, Source, download_dataset
from gta_bench.datasets.selection import name_subset, sample_tasks
from gta_bench.datasets.stats import AtomicStats, WorkflowStats, atomic_stats, workflow_stats
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import GtaError, UsageError, format_count
from gta_bench.records.run import DatasetName
from gta_bench.records.versions import ACTIONS, RunNeeds
from gta_bench.reports.tables import Table
from gta_bench.runs.store import StorePath
from gta_bench.settings import (
    CONFIG_FILE,
    NAME_PATTERN,
    DatasetSettings,
    DataSettings,
    first_problem,
    read_key,
)

dataset_argument = click.argument("dataset", type=DATASET)


@click.group()
def data() -> None:
    """Fetch, verify, describe, sample, name and convert datasets."""


@data.command("fetch")
@click.argument("dataset", metavar="atomic|workflow|prompts|NAME")
@click.option(
    "--from",
    "source",
    type=click.Choice(["github", "huggingface"]),
    default="github",
    help="Where to download from.",
)
@data_option
def fetch_command(dataset: str, source: SourceName, folder: str | None) -> None:
    """Download a published dataset, or one that gta.toml names, and check its digests.

    Run the command again to continue an interrupted download. `prompts` downloads the texts of the
    published pipeline, which `--agent react-upstream` sends. NAME is a dataset that `gta data add`
    added from a git repository or from the Hub. Next: `gta data verify DATASET`.
    """
    if not is_published(dataset) and dataset != "prompts":
        _fetch_named(dataset, folder)
        return
    settings = command_settings({f"data.{dataset}": folder}).data
    if not is_published(dataset):
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


def is_published(name: str) -> TypeIs[DatasetName]:
    """Return whether this is one of the two published datasets."""
    return name in get_args(DatasetName)


def _fetch_named(name: str, folder: str | None) -> None:
    settings = command_settings()
    entry = settings.datasets.get(name)
    if entry is None or (entry.git is None and entry.hf is None):
        known = [one for one, own in settings.datasets.items() if own.git or own.hf]
        choices = ", ".join([*get_args(DatasetName), "prompts", *known])
        raise UsageError(f"{name!r} cannot be downloaded. Use one of: {choices}.")
    if folder is not None:
        raise UsageError(f"{name} is downloaded to datasets.{name}.path: leave --data out.")
    source = Source(entry.git, entry.hf, entry.revision, entry.folder)
    found = _download(source, Path(entry.path), settings.data, entry.digest)
    tasks = format_count(len(found.dataset.tasks), "task")
    state = "already there and unchanged" if found.already_there else "downloaded"
    say(f"{entry.path}: {tasks}, {state} ({source}).")


def _download(
    source: Source, target: Path, settings: DataSettings, digest: str | None = None
) -> Downloaded:
    hub = Hub(settings.huggingface, read_key("HF_TOKEN"))
    return download_dataset(source, target, hub=hub, progress=download_bar, digest=digest)


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


@data.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the datasets that --data and gta.toml know by name."""
    settings = command_settings()
    found = [
        NamedDataset(name, dataset_root(getattr(settings.data, name)), f"data.{name}")
        for name in get_args(DatasetName)
    ]
    named = settings.datasets
    listed = [
        *((one, *_describe_dataset(one)) for one in found),
        *((one, *_describe_dataset(one, named.get(one.name))) for one in list_named(named)),
    ]
    if as_json:
        write_json(
            [
                {**one._asdict(), "root": str(one.root), "tasks": tasks, "problem": problem}
                for one, tasks, problem in listed
            ]
        )
        return
    write_rows(
        [
            (
                one.name,
                problem or format_count(tasks or 0, "task"),
                f"{one.root} ({one.origin})",
            )
            for one, tasks, problem in listed
        ]
    )


def _describe_dataset(
    one: NamedDataset, entry: DatasetSettings | None = None
) -> tuple[int | None, str | None]:
    """Return the number of tasks, or why it cannot be used."""
    if not one.root.exists():
        return None, "missing"
    try:
        loaded = load_any(one.root)
    except GtaError as exc:
        return None, str(exc)
    if entry is not None and entry.digest not in (None, dataset_digest(loaded)):
        return None, "changed since it was added"
    return len(loaded.tasks), None


@data.command("add")
@click.argument("name")
@click.argument("source")
@click.option("--revision", help="Branch, tag or commit to download; the newest by default.")
@click.option("--folder", help="Folder of the dataset inside of the repository.")
def add_command(name: str, source: str, revision: str | None, folder: str | None) -> None:
    """Give the dataset SOURCE a NAME for --data, with its digest, in gta.toml.

    SOURCE is a folder, a git repository (git+ADDRESS), or a dataset of the Hugging Face Hub
    (hf:ORG/NAME; HF_ENDPOINT names a mirror, HF_TOKEN opens private ones). Downloads are pinned to
    their commit. A dataset that changes afterwards is refused until its digest in gta.toml is
    changed, too.
    """
    settings = command_settings()
    if name in (*get_args(DatasetName), "prompts", *settings.datasets):
        raise UsageError(f"There already is a dataset {name!r}. Choose another name.")
    if not re.fullmatch(NAME_PATTERN, name):
        raise UsageError(f"{name!r} is not a name: use letters, digits, dots, dashes, underscores.")
    origin = _read_source(source, revision, folder)
    if origin is None:
        loaded = load_any(FOLDER.convert(source, None, click.get_current_context()))
        entry = DatasetSettings(path=source, digest=dataset_digest(loaded))
    else:
        path = Path(settings.data.workflow).parent / name
        try:
            entry = DatasetSettings(path=str(path), **origin._asdict())
        except ValidationError as exc:
            raise UsageError(f"{source}: {first_problem(exc)}") from exc
        found = _download(origin, path, settings.data)
        loaded = found.dataset
        pinned = {"revision": found.revision, "digest": dataset_digest(loaded)}
        entry = entry.model_copy(update=pinned)
    file: Path = click.get_current_context().obj or Path(CONFIG_FILE)
    _append_dataset(file, name, entry)
    kind = "atomic" if isinstance(loaded, AtomicDataset) else "workflow"
    say(f"{file}: added {name}, {format_count(len(loaded.tasks), 'task')}.")
    say(f"Use it: gta run {kind} --data {name} …")


def _read_source(text: str, revision: str | None, folder: str | None) -> Source | None:
    """Return where to download from; None for a folder of this machine."""
    if text.startswith("git+"):
        return Source(git=text.removeprefix("git+"), revision=revision, folder=folder)
    if text.startswith("hf:"):
        return Source(hf=text.removeprefix("hf:"), revision=revision, folder=folder)
    if revision is not None or folder is not None:
        raise UsageError(
            "--revision and --folder need a SOURCE that is git+ADDRESS or hf:ORG/NAME."
        )
    return None


def _append_dataset(file: Path, name: str, entry: DatasetSettings) -> None:
    before = file.read_text(encoding="utf-8") if file.is_file() else ""
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    key = name if "." not in name else json.dumps(name)
    given = entry.model_dump(exclude_none=True)
    lines = [f"{field} = {json.dumps(value)}\n" for field, value in given.items()]
    file.write_text(
        f"{before}{gap}[datasets.{key}]\n{''.join(lines)}", encoding="utf-8", newline="\n"
    )


@data.command("canary")
@click.argument("folder", type=FOLDER)
def canary_command(folder: Path) -> None:
    """Mark the dataset in FOLDER before you publish it, and print its canary.

    A line with an id that occurs nowhere else is appended to README.md and, as a comment, to every
    task.toml. No digest changes. `gta score` warns if an answer or a deliverable contains it: the
    system has then seen the dataset's files.
    """
    load_any(folder)
    canary, written = mark_dataset(folder)
    click.echo(canary)
    say(f"{folder}: {format_count(written, 'file')} marked.")


@data.command("diff")
@click.argument("old")
@click.argument("new")
@click.argument("runs", nargs=-1, type=RUN)
@json_option
def diff_command(old: str, new: str, runs: tuple[StorePath, ...], as_json: bool) -> None:
    """Show what the dataset NEW keeps of OLD, and what RUNS need to become runs of NEW.

    OLD and NEW are folders or names of datasets. By the content of each task, results are reused,
    rescored with other weights, checked or judged again leaf by leaf, or the task is run again.
    `gta score RUN --data NEW` does all that needs no system.
    """
    named = command_settings().datasets
    first, second = (load_any(dataset_root(one, named)) for one in (old, new))
    # Reading runs needs the evaluation engine.
    from gta_bench.running.versions import diff_datasets

    found = diff_datasets(first, second, runs)
    if as_json:
        write_json(found.model_dump(mode="json"))
        return
    rows = tuple((one.task, ACTIONS[one.action], ", ".join(one.changed)) for one in found.tasks)
    shown = tuple(row for row in rows if row[2] or row[1] != ACTIONS["reuse"])
    if shown:
        write_table(Table(("task", "needs", "changed"), shown), (0, 1, 2))
    counts = [(found.count(action), label) for action, label in ACTIONS.items()]
    listed = ", ".join(f"{count} {label}" for count, label in counts if count)
    say(f"{format_count(len(rows), 'task')}: {listed}.")
    if found.runs:
        write_table(_needs_table(found.runs), (0,))
        say("Next: gta score RUN --data NEW, then gta run with --data NEW and --out RUN.")


def _needs_table(runs: Sequence[RunNeeds]) -> Table:
    """Return units by action, leaves, and model calls of every run."""
    rows = tuple(
        (
            one.run,
            *(str(one.units.get(action, 0)) for action in ACTIONS),
            str(one.recheck),
            str(one.judge),
            str(one.judge_calls),
            "unknown" if one.system_calls is None else f"~{one.system_calls}",
            str(one.new_judge_calls),
        )
        for one in runs
    )
    leaves = ("leaves to check", "leaves to judge", "judge calls")
    return Table(
        ("run (units)", *ACTIONS.values(), *leaves, "system calls", "judge calls after"), rows
    )


@data.command("convert")
@click.argument("source", type=FOLDER)
@click.option("--out", required=True, type=NEW_FOLDER, help="Folder to write to; must be new.")
def convert_command(source: Path, out: Path) -> None:
    """Convert the Workflow dataset in the folder SOURCE to the other layout.

    The released layout (`end.json`) becomes task folders, and task folders become the released
    layout if it can hold them: it has no checks, levels or needs.
    """
    loaded = load_workflow(source)
    missing = convert(loaded, out)
    if loaded.layout == "released":
        say(f"{format_count(len(loaded.tasks), 'task folder')} in {out}.")
    else:
        say(f"{format_count(len(loaded.tasks), 'task')} in the released layout in {out}.")
    if missing:
        say(f"{format_count(missing, 'input')} missing in {source} and therefore in {out}.")


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
