"""Load GTA-Workflow's released layout (`end.json`), or a folder of task folders."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gta_bench.datasets.files import Location, read_tasks
from gta_bench.datasets.folders import (
    TASK_FILE,
    find_task_folders,
    load_folders,
    refuse_single_task,
)
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.datasets.released import (
    ReleasedCheckpoint,
    ReleasedFile,
    ReleasedMessage,
    ReleasedTool,
    ReleasedWorkflowTask,
    find_oddities,
    load_toolmeta,
    missing_file,
    read_attachments,
)
from gta_bench.records.workflow import Checkpoint, WorkflowTask

WORKFLOW_FILE = "end.json"


def is_workflow(root: Path) -> bool:
    """Whether a folder contains Workflow tasks, in either layout, or is one of them."""
    files = (WORKFLOW_FILE, TASK_FILE)
    return any((root / file).is_file() for file in files) or bool(find_task_folders(root))


def load_workflow(root: Path) -> WorkflowDataset:
    """Load a folder in GTA-Workflow's layout; every oddity becomes a finding.

    A folder without `end.json` may contain task folders, whose mistakes are errors.
    """
    file = WORKFLOW_FILE
    if not (root / file).is_file():
        refuse_single_task(root)
        if find_task_folders(root):
            return load_folders(root)
        raise missing_file(root / file, "workflow")
    tools, findings = load_toolmeta(root)
    tasks = {}
    for task, entry in read_tasks(root / file, ReleasedWorkflowTask).items():
        where = Location(file, task)
        listed = {item if isinstance(item, str) else item.path for item in entry.files}
        resources = [item for message in entry.dialogs for item in message.resources]
        # The two published runners differ: one attaches `files`, the other `resources`.
        files: list[ReleasedFile | str] = [
            *entry.files,
            *(item for item in resources if item.path not in listed),
        ]
        tasks[task] = WorkflowTask(
            id=task,
            request=_read_request(entry.dialogs, where),
            category=entry.workflow_category_6class,
            tools=tuple(
                tool.name if isinstance(tool, ReleasedTool) else tool for tool in entry.tools
            ),
            attachments=read_attachments(files, where),
            checkpoints=tuple(_read_checkpoints(entry.sub_tasks, where)),
        )
        # Two leaves with the same id would share a verdict.
        for name, count in Counter(leaf.id for leaf in tasks[task].leaves()).items():
            if count > 1:
                raise where.error(f"{count} leaves have this id.", name)
        findings += find_oddities(entry, files, where)
        if resources and {item.path for item in resources} != listed:
            message = "lists different files than `files`; all of them are attached."
            field = "dialogs.0.resources"
            findings.append(where.finding("resources-differ", message, field=field))
    return WorkflowDataset(root, file, tasks, tools, tuple(findings))


def _read_request(messages: Sequence[ReleasedMessage], where: Location) -> str:
    texts = []
    for index, message in enumerate(messages):
        if message.role != "user" or not isinstance(message.content, str):
            problem = "all messages of a Workflow task must be user messages with text."
            raise where.error(problem, f"dialogs.{index}")
        texts.append(message.content)
    return "\n".join(texts)


def _read_checkpoints(nodes: Sequence[ReleasedCheckpoint], where: Location) -> Iterator[Checkpoint]:
    for node in nodes:
        if "children" in (node.model_extra or {}):
            # The record's name; the tree would become a single leaf, without a word.
            problem = "the released layout calls the key `sub_tasks`, not `children`."
            raise where.error(problem, f"{node.id}.children")
        yield Checkpoint(
            id=node.id,
            requirements=node.requirements,
            weight=node.weight,
            children=tuple(_read_checkpoints(node.sub_tasks, where)),
        )
