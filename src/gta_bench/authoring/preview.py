"""A task as the system will see it, and as its judge and its checks will decide it."""

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from inspect_ai.model import ChatMessageUser
from pydantic import BaseModel

from gta_bench.agents.contract import History
from gta_bench.agents.toolcalling import make_toolcalling_messages
from gta_bench.authoring.pilot import build_work
from gta_bench.authoring.proofs import AuthoredTask
from gta_bench.authoring.readiness import read_readiness, read_thresholds
from gta_bench.checks.decide import run_check
from gta_bench.checks.delivery import CheckedWork
from gta_bench.checks.outcome import CheckBroken
from gta_bench.content.identify import identify
from gta_bench.content.text import read_text
from gta_bench.datasets.folders import read_task_file
from gta_bench.datasets.package_checks import make_package_check
from gta_bench.errors import ConfinedError, ToolError, ToolUnavailable
from gta_bench.harnesses.delivery import store_task_inputs
from gta_bench.judging import prompts
from gta_bench.judging.messages import NOTHING
from gta_bench.metrics.strict.workflow import leaf_shares
from gta_bench.records.checks import (
    AnyCheck,
    OurCheck,
    PackageCheck,
    PythonCheck,
    TableSame,
    WantedRange,
)
from gta_bench.records.pilot import Readiness
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.running.check_run import open_work
from gta_bench.running.stopping import run_apart
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.settings import Settings
from gta_bench.tools.catalog import load_tool, tool_names
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.offering import list_offered_tools, list_own_tools

MOST_TEXT: Final = 1_500
BETWEEN: Final = "…"


@dataclass(frozen=True)
class CheckOutcome:
    """What a check finds in a gold work; `state` is passed, failed or unscored."""

    work: str
    state: str
    text: str


@dataclass(frozen=True)
class CheckPreview:
    """A check in words, with its parameters, its code if it has any, and outcomes on gold."""

    kind: str
    words: str
    parameters: Mapping[str, str]
    code: str
    outcomes: tuple[CheckOutcome, ...]


@dataclass(frozen=True)
class NodePreview:
    """A group or a leaf; `share` is its part of the root score."""

    node: Checkpoint
    share: float
    broken_by: tuple[str, ...] = ()
    checks: tuple[CheckPreview, ...] = ()
    children: tuple["NodePreview", ...] = ()


@dataclass(frozen=True)
class InputPreview:
    """An input file, with the beginning of its text if it is text."""

    path: str
    kind: str
    size: int
    text: str


@dataclass(frozen=True)
class TaskPreview:
    """Everything that the page of a task shows."""

    task: WorkflowTask
    license: str | None
    deliverables: Mapping[str, str]
    works: Mapping[str, tuple[str, ...]]
    readiness: Readiness
    messages: tuple[tuple[str, str], ...]
    tools: tuple[ToolSpec, ...]
    inputs: tuple[InputPreview, ...]
    instructions: str
    question: str
    nodes: tuple[NodePreview, ...]


def preview_task(authored: AuthoredTask, settings: Settings) -> TaskPreview:
    """Return the preview of a task; checks are decided on its gold works."""
    outcomes = _check_golds(authored, settings)
    written = read_task_file(authored.folder)
    return TaskPreview(
        task=authored.task,
        license=written.license,
        deliverables=written.deliverables,
        works={
            kind: tuple(proof.folder for proof in authored.of(kind))
            for kind in ("gold", "wrong", "cheat")
        },
        readiness=read_readiness(authored.folder, read_thresholds(settings)),
        messages=tuple(_system_messages(authored.task)),
        tools=tuple(_offered_tools(authored)),
        inputs=tuple(_preview_inputs(authored)),
        instructions=prompts.render("system.md", nonce=BETWEEN),
        question=prompts.render("leaf.md", leaf=BETWEEN, requirement=BETWEEN),
        nodes=_preview_nodes(authored, authored.task.checkpoints, outcomes),
    )


def _system_messages(task: WorkflowTask) -> Iterator[tuple[str, str]]:
    """Yield role and text of the first messages that the default agent sends."""
    history = History(
        task=task.id,
        attachments=task.attachments,
        messages=(ChatMessageUser(content=task.request),),
        mode="end-to-end",
    )
    for message in make_toolcalling_messages(history):
        yield message.role, message.text


def _offered_tools(authored: AuthoredTask) -> list[ToolSpec]:
    own = list_own_tools(authored.dataset, authored.task)
    known = {name: load_tool(name).spec() for name in tool_names() if name in own}
    return list_offered_tools(own, known)


def _preview_inputs(authored: AuthoredTask) -> Iterator[InputPreview]:
    for item in authored.task.attachments:
        data = (authored.dataset.root / item.source).read_bytes()
        kind = identify(item.path, data).kind
        yield InputPreview(item.path, kind, len(data), _read_start(data, kind))


def _read_start(data: bytes, kind: str) -> str:
    if kind not in ("csv", "markdown", "text", "json", "html", "code"):
        return ""
    try:
        text = read_text(data).text
    except ToolError:
        return ""
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}{BETWEEN}"


def _preview_nodes(
    authored: AuthoredTask,
    nodes: Sequence[Checkpoint],
    outcomes: Mapping[str, Sequence[Sequence[CheckOutcome]]],
) -> tuple[NodePreview, ...]:
    shares = leaf_shares(authored.task)
    return tuple(
        NodePreview(
            node,
            sum(shares[leaf.id] for leaf in node.leaves()),
            tuple(one.name for one in authored.of("wrong") if node.id in one.breaks),
            tuple(
                _preview_check(check, found)
                for check, found in zip(node.checks, outcomes.get(node.id, ()), strict=True)
            ),
            _preview_nodes(authored, node.children, outcomes),
        )
        for node in nodes
    )


def describe_check(kind: type[BaseModel]) -> str:
    """Return when checks of a kind hold, as a sentence."""
    text = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    words = " ".join(text.replace("`", "").split()).removeprefix("Holds if ")
    return f"{words[:1].upper()}{words[1:]}"


def _preview_check(check: AnyCheck, found: Sequence[CheckOutcome]) -> CheckPreview:
    code = check.source if isinstance(check, PythonCheck) else None
    if isinstance(check, PackageCheck):
        model = make_package_check(check)
        parameters = {name: _format(value) for name, value in check.parameters.items()}
    else:
        model, parameters = check, dict(_parameters(check))
    words = describe_check(type(model))
    return CheckPreview(check.label, words, parameters, code or "", tuple(found))


def _parameters(check: OurCheck) -> Iterator[tuple[str, str]]:
    # The contents of a file that the check names.
    attached = "rows" if isinstance(check, TableSame) else "source"
    for name in type(check).model_fields:
        value = getattr(check, name)
        default = type(check).model_fields[name].default
        if name not in ("check", attached) and value not in (None, {}) and value != default:
            yield name, _format(value)


def _format(value: object) -> str:
    if isinstance(value, WantedRange):
        if value.max is None:
            return f"at least {value.min:g}"
        return f"at most {value.max:g}" if value.min is None else f"{value.min:g} to {value.max:g}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:,.10g}"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _check_golds(authored: AuthoredTask, settings: Settings) -> dict[str, list[list[CheckOutcome]]]:
    """Return the outcomes of every check of every leaf, one for each gold work."""
    with TemporaryDirectory() as folder:
        return run_apart(_check_works(authored, ArtefactStore(Path(folder)), settings))


async def _check_works(
    authored: AuthoredTask, store: ArtefactStore, settings: Settings
) -> dict[str, list[list[CheckOutcome]]]:
    leaves = [leaf for leaf in authored.task.leaves() if leaf.checks]
    found = {leaf.id: [list[CheckOutcome]() for _ in leaf.checks] for leaf in leaves}
    golds = authored.of("gold")
    if not leaves or not golds:
        return found
    inputs = store_task_inputs(authored.dataset, authored.task, store)
    async with use_equipment(settings) as equipment:
        for proof in golds:
            unit = build_work(authored, proof, inputs, store)
            work = open_work(unit, store, equipment)
            for leaf in leaves:
                for check, outcomes in zip(leaf.checks, found[leaf.id], strict=True):
                    outcomes.append(await _run_check(check, work, proof.name))
    return found


async def _run_check(check: AnyCheck, work: CheckedWork, name: str) -> CheckOutcome:
    try:
        outcome = await run_check(check, work)
    except (ToolUnavailable, ConfinedError, CheckBroken) as exc:
        return CheckOutcome(name, "unscored", str(exc))
    return CheckOutcome(name, "passed" if outcome.holds else "failed", str(outcome))


def requirement_text(leaf: Checkpoint) -> str:
    """Return the requirement of a leaf as it stands in the judge's prompt."""
    return leaf.question or NOTHING
