"""GTA-Workflow's released layout (`end.json`) as records."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gta_bench.datasets.files import check_task_id, parse, read_entries
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.datasets.released import (
    ReleasedCheckpoint,
    ReleasedFile,
    ReleasedMessage,
    ReleasedTool,
    ReleasedWorkflowTask,
    attachments,
    bare_string_findings,
    load_toolmeta,
    unknown_key_findings,
)
from gta_bench.errors import DatasetError
from gta_bench.records.finding import Finding
from gta_bench.records.workflow import Checkpoint, WorkflowTask

WORKFLOW_FILE = "end.json"


def load_workflow(root: Path) -> WorkflowDataset:
    """Load a folder of GTA-Workflow's layout; every quirk becomes a finding."""
    file = WORKFLOW_FILE
    if not (root / file).is_file():
        raise DatasetError(
            "no such file; `gta data fetch workflow` brings it. `--data DIR` names another folder, "
            "GTA_DATA the one above it.",
            file=str(root / file),
        )
    tools, findings = load_toolmeta(root)
    tasks = {}
    for task, raw in read_entries(root / file).items():
        check_task_id(task, file=file)
        entry = parse(ReleasedWorkflowTask, raw, file=file, task=task)
        files = _all_files(entry)
        tasks[task] = made = WorkflowTask(
            id=task,
            request=_request(entry.dialogs, file=file, task=task),
            category=entry.workflow_category_6class,
            tools=tuple(
                tool.name if isinstance(tool, ReleasedTool) else tool for tool in entry.tools
            ),
            attachments=attachments(files, file=file, task=task),
            checkpoints=tuple(_checkpoints(entry.sub_tasks)),
        )
        _require_different(made, file=file)
        findings += bare_string_findings(files, file=file, task=task)
        findings += unknown_key_findings(entry, file=file, task=task)
        findings += _resource_findings(entry, file=file, task=task)
    return WorkflowDataset(root=root, file=file, tasks=tasks, tools=tools, findings=tuple(findings))


def _request(messages: Sequence[ReleasedMessage], *, file: str, task: str) -> str:
    texts = []
    for index, message in enumerate(messages):
        if message.role != "user" or not isinstance(message.content, str):
            raise DatasetError(
                "a Workflow task has user messages with a text only.",
                file=file,
                task=task,
                field=f"dialogs.{index}",
            )
        texts.append(message.content)
    return "\n".join(texts)


def _all_files(entry: ReleasedWorkflowTask) -> list[ReleasedFile | str]:
    """`files`, and what only a message's `resources` names: the two published runners differ."""
    known = {item if isinstance(item, str) else item.path for item in entry.files}
    return [*entry.files, *(item for item in _resources(entry) if item.path not in known)]


def _resources(entry: ReleasedWorkflowTask) -> Iterator[ReleasedFile]:
    for message in entry.dialogs:
        yield from message.resources


def _resource_findings(entry: ReleasedWorkflowTask, *, file: str, task: str) -> Iterator[Finding]:
    named = {item.path for item in _resources(entry)}
    listed = {item if isinstance(item, str) else item.path for item in entry.files}
    if named and named != listed:
        yield Finding(
            check="resources-differ",
            severity="warning",
            file=file,
            task=task,
            field="dialogs.0.resources",
            message="names other files than `files`; all of them are attached.",
        )


def _require_different(task: WorkflowTask, *, file: str) -> None:
    """Two leaves of one name would share a verdict."""
    for name, count in Counter(leaf.id for leaf in task.leaves()).items():
        if count > 1:
            raise DatasetError(f"{count} leaves have this id.", file=file, task=task.id, field=name)


def _checkpoints(nodes: Sequence[ReleasedCheckpoint]) -> Iterator[Checkpoint]:
    for node in nodes:
        yield Checkpoint(
            id=node.id,
            requirements=node.requirements,
            weight=node.weight,
            children=tuple(_checkpoints(node.sub_tasks)),
        )
