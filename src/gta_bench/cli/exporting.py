"""`gta export`: tasks, traces and scores in the formats of others; `gta results`: tables."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from gta_bench.cli.options import (
    DATASET,
    FILE,
    NEW_FILE,
    NEW_FOLDER,
    RUN,
    STORE_PATH,
    command_settings,
    data_option,
    load_dataset,
)
from gta_bench.cli.output import count_bar, say
from gta_bench.datasets.selection import select_tasks
from gta_bench.errors import UsageError, format_count, join_first
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.packages import require_packages
from gta_bench.records.run import DatasetName
from gta_bench.redaction import current_redactor
from gta_bench.runs.store import StorePath, write_bytes_atomically
from gta_bench.settings import read_otlp_variables

if TYPE_CHECKING:
    # Protobuf and scipy are extras.
    from gta_bench.exports.eee import Relationship
    from gta_bench.exports.score_sinks import SinkName

judge_option = click.option("--judge", show_default="all", help="Judge whose scores to export.")
one_judge_option = click.option(
    "--judge", help="Judge whose scores count, if several judges scored the run."
)


@click.group("export")
def export_group() -> None:
    """Export tasks, traces and scores in the formats of other programs."""


@export_group.command("harbor")
@click.option("--dataset", "name", type=DATASET, required=True, help="Dataset to export.")
@click.option("--tasks", show_default="all", help="Tasks by position (0:20) or by id (3,5,7).")
@click.option("--out", type=NEW_FOLDER, required=True, help="Folder for the task folders.")
@click.option(
    "--wheel",
    "wheels",
    type=FILE,
    multiple=True,
    help="Wheel of a package for the images: of your own tools or checks, or of gta-bench; "
    "repeatable.",
)
@data_option
def harbor_command(
    name: DatasetName, tasks: str | None, out: Path, wheels: tuple[Path, ...], folder: str | None
) -> None:
    """Export tasks as Harbor task folders, with our tools over MCP and our scoring as verifier."""
    from gta_bench.exports.harbor import export_harbor

    dataset = load_dataset(name, folder)
    made = export_harbor(dataset, select_tasks(dataset.tasks, tasks), out, wheels)
    say(f"Exported {format_count(len(made.folders), 'task')} to {out}.")
    for why, names in (
        ("Left out, because they produce an image and are scored by their calls", made.left_out),
        ("Left out, because checks look at the state of a tool server", made.stateful),
        ("With leaves that need a judge, so set GTA_JUDGE for `harbor run`", made.judged),
        (
            "Installed here from a checkout, so the images take them from the package index; name "
            "their wheels with --wheel if it lacks them",
            made.unbundled,
        ),
    ):
        if names:
            say(f"{why}: {join_first(names, 10)}")
    if made.missing:
        lacking = format_count(len(made.missing), "file")
        say(f"{lacking} missing from the dataset: {' '.join(made.missing[:10])}")
    _say_forged(dataset.root)


def _say_forged(root: Path) -> None:
    """Warn about forged tasks that an agent can forge again, with their solutions."""
    from gta_bench.forge.writing import ABOUT, Forge

    if (root / ABOUT).is_file():
        made = Forge.model_validate_json((root / ABOUT).read_bytes())
        if made.namespace != "private":
            say(
                f"Anyone can forge the tasks of the namespace {made.namespace} again, with their "
                "solutions: measure agents on --namespace private."
            )


@export_group.command("atif")
@click.argument("run", type=RUN)
@click.option("--out", type=NEW_FOLDER, required=True, help="An empty or new folder.")
def atif_command(run: StorePath, out: Path) -> None:
    """Export the traces of RUN as ATIF trajectories, one file per task and epoch."""
    from gta_bench.exports.atif import export_atif

    files = format_count(export_atif(run, out), "trajectory", "trajectories")
    say(f"Exported {files} to {out}.")


@export_group.command("junit")
@click.argument("run", type=RUN)
@click.option("--out", type=NEW_FILE, required=True, help="File to write, such as gta.xml.")
@one_judge_option
def junit_command(run: StorePath, out: Path, judge: str | None) -> None:
    """Export the scores of RUN as JUnit XML, which CI systems show as test results.

    Every task and every leaf is a test case. One without a score is an error, not a failure. To
    fail a job if a system got worse, use `gta gate`.
    """
    from gta_bench.exports.junit_run import export_junit

    command_settings()
    data = current_redactor().data(export_junit(run, judge))
    write_bytes_atomically(out, data)
    say(f"Wrote {out}.")


@export_group.command("otel")
@click.argument("run", type=RUN)
@click.option(
    "--endpoint",
    show_default="OTEL_EXPORTER_OTLP_ENDPOINT",
    help="Address of the server, to which /v1/traces and /v1/logs are added.",
)
@click.option(
    "--scores",
    "sink",
    type=click.Choice(["logs", "mlflow", "phoenix", "none"]),
    default="logs",
    help="How scores are sent: as log records, or by the API of MLflow or Phoenix.",
)
@click.option(
    "--content",
    is_flag=True,
    help="Also send prompts, replies, and arguments and results of tools.",
)
@judge_option
def otel_command(
    run: StorePath, endpoint: str | None, sink: "SinkName", content: bool, judge: str | None
) -> None:
    """Send the traces and scores of RUN to an OpenTelemetry server (OTLP/HTTP, GenAI spans).

    Headers, such as a key, are read from OTEL_EXPORTER_OTLP_HEADERS (name=value,name=value).
    """
    # Other packages bring `opentelemetry` without this part of it.
    for module in ("opentelemetry", "opentelemetry.proto"):
        require_packages("gta export otel", module, extra="otel")
    from gta_bench.exports.otel import export_otel

    command_settings()
    otlp = read_otlp_variables(endpoint)
    if otlp.traces is None or (sink == "logs" and otlp.logs is None):
        raise UsageError("Name the server: --endpoint URL, or OTEL_EXPORTER_OTLP_ENDPOINT.")
    with count_bar("units") as listen:
        sent = export_otel(run, otlp, sink=sink, judge=judge, content=content, listen=listen)
    spans, scores = format_count(sent.spans, "span"), format_count(sent.scores, "score")
    say(f"Sent {format_count(sent.units, 'unit')} ({spans}, {scores}) to {otlp.traces}.")


@export_group.command("eee")
@click.argument("run", type=RUN)
@click.option("--out", type=NEW_FOLDER, required=True, help="Folder that gets `data/…`.")
@click.option("--organization", required=True, help="Who publishes the results.")
@click.option(
    "--relationship",
    type=click.Choice(["first_party", "third_party", "collaborative", "other"]),
    default="other",
    help="How that organization is related to the model's developer.",
)
@click.option(
    "--model-id",
    metavar="DEVELOPER/NAME",
    show_default="the model's name in the run",
    help="The model's id, as on the Hugging Face Hub.",
)
@judge_option
def eee_command(
    run: StorePath,
    out: Path,
    organization: str,
    relationship: "Relationship",
    model_id: str | None,
    judge: str | None,
) -> None:
    """Export RUN as a record of Every Eval Ever: scores, intervals and samples.

    Samples contain requests and traces, but no reference answers.
    """
    require_packages("gta export eee", "scipy", extra="report")
    from gta_bench.exports.eee import RecordSource, export_eee

    command_settings()
    source = RecordSource(organization=organization, relationship=relationship, model=model_id)
    made = export_eee(run, out, source, now=datetime.now(UTC), judge=judge)
    say(f"Wrote {made.record} with {format_count(made.rows, 'sample')}.")
    if made.lacking:
        lacking = format_count(made.lacking, "score")
        say(f"{lacking} missing: these units have no sample. Finish the run, then export again.")


@export_group.command("hf")
@click.argument("run", type=RUN)
@click.option("--out", type=NEW_FOLDER, required=True, help="Folder that gets `.eval_results/`.")
@click.option(
    "--dataset", required=True, metavar="ORG/NAME", help="The benchmark's dataset on the Hub."
)
@click.option("--task-id", required=True, help="The task's id in the benchmark's eval.yaml.")
@click.option("--revision", help="Commit of that dataset.")
@click.option("--source-url", help="Where the evaluation is documented.")
@click.option("--source-org", help="Organization on the Hub that made it; needs --source-url.")
@one_judge_option
def hf_command(
    run: StorePath,
    out: Path,
    dataset: str,
    task_id: str,
    revision: str | None,
    source_url: str | None,
    source_org: str | None,
    judge: str | None,
) -> None:
    """Export the primary metric of RUN as an evaluation result for a model's page on the Hub.

    Add the file to the model's repository: `hf upload ORG/MODEL OUT . --create-pr`.
    """
    require_packages("gta export hf", "scipy", extra="report")
    if source_org is not None and source_url is None:
        raise UsageError("--source-org needs --source-url.")
    from gta_bench.exports.hf import HubBenchmark, export_hf

    command_settings()
    benchmark = HubBenchmark(
        dataset=dataset, task=task_id, revision=revision, url=source_url, organization=source_org
    )
    say(f"Wrote {export_hf(run, out, benchmark, judge)}.")


@click.group()
def results() -> None:
    """Export runs as tables, with a row for each sample, verdict and failure."""


@results.command()
@click.argument("runs", nargs=-1, required=True, type=RUN)
@click.option("--out", required=True, type=STORE_PATH, help="A new folder, or s3://….")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["parquet", "csv"]),
    default="parquet",
    help="File format of the tables.",
)
def export(runs: tuple[StorePath, ...], out: StorePath, shape: Literal["parquet", "csv"]) -> None:
    """Write RUNS as tables below --out: a folder per table, a file per run.

    docs/reference/results.md lists the columns. `gta report OUT` shows the scores of exported
    runs, also with millions of verdicts.
    """
    require_packages("gta results export", "duckdb", extra="report")
    from gta_bench.runs.results_table import export_results

    judge = command_settings().judge
    thresholds = Thresholds(judge.leaf_threshold, judge.root_threshold)
    rows = export_results(runs, out, thresholds=thresholds, shape=shape)
    counts = (format_count(count, table.removesuffix("s")) for table, count in rows.items())
    say(f"Wrote {', '.join(counts)} to {out}.")
