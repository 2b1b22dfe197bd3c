"""Export a run as records of Every Eval Ever (schema 0.3.0): scores, uncertainty and samples."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal, NamedTuple
from uuid import UUID

from pydantic import JsonValue

from gta_bench.errors import RunError, UsageError
from gta_bench.exports.eee_samples import format_sample
from gta_bench.exports.uncertainty import list_metrics
from gta_bench.exports.unit_scores import MAIN, OneScore, UnitScores
from gta_bench.metrics import table
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.attempts import UnitKey
from gta_bench.records.checks import CHECK
from gta_bench.records.judges import JudgeEntry
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import RunScores
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.redaction import current_redactor
from gta_bench.reports.certainty import RunMetrics
from gta_bench.reports.estimates import Estimate
from gta_bench.reports.summary import RELEASED_TASKS, run_badges
from gta_bench.runs.directory import read_gate_plan
from gta_bench.runs.logs import read_run_units, unit_keys
from gta_bench.runs.store import StorePath, write_bytes_atomically
from gta_bench.runs.verdicts import read_judges

SCHEMA: Final = "0.3.0"
Relationship = Literal["first_party", "third_party", "collaborative", "other"]
_Object = dict[str, JsonValue]
_MODEL: Final = re.compile(r"\w[\w.-]*/\w[\w.-]*")


@dataclass(frozen=True, kw_only=True)
class RecordSource:
    """Who publishes the record: an organization, and how it is related to the model's developer.

    `model` is the model's id as `developer/name`; by default the name that the run used.
    """

    organization: str
    relationship: Relationship = "other"
    model: str | None = None


class ExportedRecord(NamedTuple):
    """The files of a record, how many samples it has, and how many lack because of no score."""

    record: Path
    samples: Path
    rows: int
    lacking: int


def export_eee(
    run: StorePath, out: Path, source: RecordSource, *, now: datetime, judge: str | None = None
) -> ExportedRecord:
    """Write a record and its samples below `out`, in the layout of the public collection.

    A unit without a score has no sample, because the format has no place for a missing score.
    """
    scores = UnitScores(run, judge)
    plan, tasks = read_gate_plan(run), scores.manifest.spec.tasks
    if plan is not None and not {*plan.tasks} <= {*tasks}:
        raise RunError(
            f"{run} was run only as far as a sequential gate needed, so its scores are biased: "
            "finish it with `gta run`, then export it."
        )
    about = _About(scores.manifest, source, now)
    folder = out / about.folder
    folder.mkdir(parents=True, exist_ok=True)
    record, samples = folder / f"{about.uuid}.json", folder / f"{about.uuid}_samples.jsonl"
    units = read_run_units(run, scores.manifest.spec)
    lines = list(_list_samples(units, scores, about))
    data = current_redactor().json(b"".join(json.dumps(one).encode() + b"\n" for one in lines))
    write_bytes_atomically(samples, data)
    found = _make_record(scores, about, _list_tools(units))
    found["detailed_evaluation_results"] = {
        "format": "jsonl",
        "file_path": f"{about.folder}/{samples.name}",
        "hash_algorithm": "sha256",
        "checksum": sha256(data).hexdigest(),
        "total_rows": len(lines),
    }
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    write_bytes_atomically(record, current_redactor().json(text.encode()))
    return ExportedRecord(record, samples, len(lines), _count_lacking(scores))


class _About:
    """The names and ids of a record, which follow from its run and the time."""

    def __init__(self, manifest: RunManifest, source: RecordSource, now: datetime) -> None:
        spec = manifest.spec
        self.source = source
        self.manifest = manifest
        own = manifest.dataset_tasks not in (None, RELEASED_TASKS[spec.dataset])
        title = f"GTA-{spec.dataset.capitalize()}"
        self.dataset = f"own tasks in the format of {title}" if own else title
        kind = f"gta-{spec.dataset}" + ("" if spec.mode == "workflow" else f"-{spec.mode}")
        self.name = f"{kind}-own" if own else kind
        given = source.model or spec.system.model
        developer, _, model = given.partition("/")
        if source.model is not None and not _MODEL.fullmatch(source.model):
            raise UsageError(
                f"The id of a model is developer/name, in letters, digits and . _ - only, not "
                f"{source.model!r}."
            )
        self.model = f"{developer}/{model}" if model else f"unknown/{developer}"
        self.developer = developer if model else "unknown"
        self.short = model or developer
        self.time = str(int(now.timestamp()))
        # The same run has the same id, so that exporting it again replaces its record.
        made = int(manifest.created.timestamp())
        self.id = f"{self.name}/{self.model.replace('/', '_')}/{made}"
        seed = f"{self.id} {manifest.created.isoformat()} {spec.describe()}"
        self.uuid = UUID(bytes=sha256(seed.encode()).digest()[:16], version=4)
        parts = (re.sub(r"[^\w.-]|^\.+", "_", part) for part in (self.developer, self.short))
        self.folder = "/".join(("data", self.name, *parts))

    def result_id(self, metric: str, judge: str | None) -> str:
        """Return the id of a result, which samples refer to."""
        return "/".join([self.name, metric, *([judge] if judge else [])])


def _make_record(scores: UnitScores, about: _About, tools: Sequence[JsonValue]) -> _Object:
    spec = scores.manifest.spec
    system = spec.system
    return {
        "schema_version": SCHEMA,
        "evaluation_id": about.id,
        "evaluation_timestamp": scores.manifest.created.isoformat(),
        "retrieved_timestamp": about.time,
        "source_metadata": {
            "source_name": "gta-bench",
            "source_type": "evaluation_run",
            "source_organization_name": about.source.organization,
            "evaluator_relationship": about.source.relationship,
        },
        "eval_library": {
            "name": "gta-bench",
            "version": scores.manifest.packages.get("gta-bench", version("gta-bench")),
            "additional_details": dict(sorted(scores.manifest.packages.items())),
        },
        "model_info": {
            **_name_model(about.short, about.model),
            "developer": about.developer,
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "agent": system.harness or system.agent,
            },
        },
        "evaluation_results": list(_list_results(scores, about, tools)),
    }


def _name_model(name: str, model: str) -> _Object:
    unknown: _Object = {"deployment_type": "unknown", "model_availability": "unknown"}
    return {"name": name, "id": model, "additional_details": unknown}


def _list_results(
    scores: UnitScores, about: _About, tools: Sequence[JsonValue]
) -> Iterator[_Object]:
    """Yield every metric of every judge with its interval."""
    judges = {one.name: one for one in read_judges(scores.run).judges}
    for metrics in list_metrics(scores):
        for one in metrics.estimates():
            found = _make_result(one, metrics, judges.get(metrics.judge), scores, about)
            yield {**found, "generation_config": _describe_generation(scores.manifest, tools)}


def _make_result(
    one: Estimate,
    metrics: RunMetrics,
    judge: JudgeEntry | None,
    scores: UnitScores,
    about: _About,
) -> _Object:
    spec, row = metrics.spec, table.metric(one.metric)
    details = {"tasks": str(len(spec.tasks)), "epochs": str(spec.epochs), "scored": str(one.n)}
    if badges := run_badges(scores.manifest):
        details["remarks"] = "; ".join(badges)
    if one.bounds is not None:
        details |= {
            "if_missing_fail": f"{one.bounds.low:.6g}",
            "if_missing_pass": f"{one.bounds.high:.6g}",
        }
    config: _Object = {
        "evaluation_description": row.meaning,
        "metric_id": f"gta.{row.name}",
        "metric_name": row.label,
        "metric_unit": "points" if row.scale == "points" else "percent",
        "lower_is_better": row.better == "lower",
        "score_type": "continuous",
        "min_score": 0,
        "max_score": row.top * row.factor,
        "additional_details": {
            "scoring": f"strict, version {scores.scores.scoring_version}",
            "is_correct": _explain_correct(scores.scores),
        },
    }
    if metrics.judge and metrics.judge != CHECK:
        config["llm_scoring"] = _describe_judge(metrics.judge, judge)
    return {
        "evaluation_result_id": about.result_id(row.name, metrics.judge or None),
        "evaluation_name": about.name,
        "source_data": {
            "dataset_name": about.dataset,
            "source_type": "other",
            "additional_details": {"digest": scores.manifest.dataset_digest},
        },
        "metric_config": config,
        "score_details": {
            "score": one.value,
            "details": dict(details),
            "uncertainty": {
                "confidence_interval": {
                    "lower": one.low,
                    "upper": one.high,
                    "confidence_level": 0.95,
                    "method": "over tasks, each with all of its repeats",
                },
                "num_samples": one.n,
            },
        },
    }


def _explain_correct(scores: RunScores | WorkflowScores) -> str:
    """Say what `is_correct` means in samples, which the format has no field for."""
    if isinstance(scores, WorkflowScores):
        return f"root score of at least {scores.root_threshold:g}"
    return "nothing in the task failed"


def _list_tools(units: Iterable[AtomicUnit] | Iterable[WorkflowUnit]) -> list[JsonValue]:
    """Return every tool that a task offered; tasks of GTA-Workflow have only names."""
    found: dict[str, _Object] = {}
    for unit in units:
        task = unit.task
        if isinstance(task, AtomicTask):
            for tool in task.offered.values():
                found[tool.name] = {"name": tool.name, "description": tool.description}
        else:
            found |= {name: {"name": name} for name in task.tools}
    return [found[name] for name in sorted(found)]


def _describe_judge(name: str, judge: JudgeEntry | None) -> _Object:
    """Return a judge's configuration; a pooled one has only a name."""
    model = name if judge is None else judge.model
    entry: _Object = {"model_info": _name_model(name, model)}
    prompts = "unknown" if judge is None else judge.prompts
    if judge is not None:
        if judge.temperature is not None:
            entry["temperature"] = judge.temperature
        entry["additional_details"] = {
            key: json.dumps(value) for key, value in sorted(judge.options.items())
        }
    return {"judges": [entry], "input_prompt": f"The judge's prompts of gta-bench, {prompts}"}


def _describe_generation(manifest: RunManifest, tools: Sequence[JsonValue]) -> _Object:
    spec = manifest.spec
    system = spec.system
    arguments: _Object = {
        name: value
        for name in ("temperature", "top_p", "top_k", "max_tokens")
        if (value := getattr(system, name)) is not None
    }
    details: dict[str, str] = {"agent": system.agent, "tools": spec.tools}
    if spec.loop is not None:
        details |= {key: str(value) for key, value in spec.loop.model_dump().items()}
    arguments["agentic_eval_config"] = {
        "available_tools": list(tools),
        "additional_details": dict(details),
    }
    if spec.limits is not None:
        arguments["eval_limits"] = {"time_limit": round(spec.limits.seconds)}
    return {"generation_args": arguments}


def _list_samples(
    units: Iterable[AtomicUnit] | Iterable[WorkflowUnit], scores: UnitScores, about: _About
) -> Iterator[_Object]:
    spec = scores.manifest.spec
    for unit in units:
        key: UnitKey = (unit.task.id, unit.epoch)
        for judge, own in _split_judges(scores.of(key)).items():
            main, leaves = own[0], own[1:]
            if main.value is None or main.cause is not None:
                continue
            yield {
                "schema_version": SCHEMA,
                "evaluation_id": about.id,
                "model_id": about.model,
                "evaluation_name": about.name,
                "evaluation_result_id": about.result_id(MAIN[spec.mode], judge),
                **format_sample(unit, main, leaves),
            }


def _count_lacking(scores: UnitScores) -> int:
    spec = scores.manifest.spec
    found = (one for key in unit_keys(spec.tasks, spec.epochs) for one in scores.of(key))
    return sum(one.cause is not None and one.leaf is None for one in found)


def _split_judges(found: Sequence[OneScore]) -> Mapping[str | None, list[OneScore]]:
    by: dict[str | None, list[OneScore]] = {}
    for one in found:
        by.setdefault(one.judge, []).append(one)
    return by
