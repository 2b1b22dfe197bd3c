"""The table of checks that `gta data verify` runs over a loaded dataset."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from gta_bench.datasets import atomic_checks, file_checks, workflow_checks
from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.datasets.spot import Spot
from gta_bench.records.finding import Finding, Severity

Kind = TypeVar("Kind", contravariant=True)


@dataclass(frozen=True)
class Check(Generic[Kind]):
    """One thing to look for: how grave it is, and the function that finds its places."""

    severity: Severity
    find: Callable[[Kind], Iterator[Spot]]


ATOMIC_CHECKS: Mapping[str, Check[AtomicDataset]] = {
    "attachment-missing": Check("error", file_checks.missing_attachments),
    "not-the-release": Check("note", file_checks.not_the_release),
    "changed-since-fetch": Check("error", file_checks.changed_since_fetch),
    "bytes-disagree": Check("warning", file_checks.bytes_disagree),
    "file-unused": Check("note", file_checks.unused_images),
    "no-final-answer": Check("warning", atomic_checks.no_final_answer),
    "call-without-reply": Check("warning", atomic_checks.call_without_reply),
    "reply-of-another-tool": Check("warning", atomic_checks.reply_of_another_tool),
    "unequal-replies": Check("warning", atomic_checks.unequal_replies),
    "tool-differs": Check("warning", atomic_checks.tool_differs),
    "tool-unknown": Check("warning", atomic_checks.tool_unknown),
    "tool-twice": Check("warning", atomic_checks.tool_twice),
    "description-copied": Check("warning", atomic_checks.description_copied),
    "call-not-offered": Check("warning", atomic_checks.call_not_offered),
    "argument-unfit": Check("warning", atomic_checks.arguments_unfit),
    "argument-unlisted": Check("warning", atomic_checks.arguments_unlisted),
    "file-not-attached": Check("warning", atomic_checks.file_not_attached),
    "plot-unparsable": Check("warning", atomic_checks.plot_unparsable),
    "whitelist-unmatchable": Check("warning", atomic_checks.whitelist_unmatchable),
    "call-without-thought": Check("note", atomic_checks.call_without_thought),
    "content-beside-call": Check("note", atomic_checks.content_beside_call),
    "placeholder-image": Check("note", atomic_checks.placeholder_image),
}

WORKFLOW_CHECKS: Mapping[str, Check[WorkflowDataset]] = {
    "attachment-missing": Check("error", file_checks.missing_attachments),
    "changed-since-fetch": Check("error", file_checks.changed_since_fetch),
    "bytes-disagree": Check("warning", file_checks.bytes_disagree),
    "type-disagrees": Check("note", file_checks.type_disagrees),
    "incomplete": Check("note", workflow_checks.incomplete),
    "no-checkpoints": Check("error", workflow_checks.no_checkpoints),
    "leaf-without-requirement": Check("error", workflow_checks.leaf_without_requirement),
    "checkpoint-twice": Check("error", workflow_checks.checkpoint_twice),
    "weight-zero": Check("warning", workflow_checks.weight_zero),
    "category-unknown": Check("note", workflow_checks.category_unknown),
}


class Verified(NamedTuple):
    """What loading and the checks found, in the order of the tasks and checks."""

    findings: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        """Whether nothing keeps a task from being measured."""
        return all(finding.severity != "error" for finding in self.findings)


def verify(dataset: Dataset, more: Mapping[str, Check[AtomicDataset]] | None = None) -> Verified:
    """Run every check of the dataset's table, and more that need what lies above this layer."""
    found = list(dataset.findings)
    if isinstance(dataset, AtomicDataset):
        found += _run({**ATOMIC_CHECKS, **(more or {})}, dataset, dataset.file)
    else:
        found += _run(WORKFLOW_CHECKS, dataset, dataset.file)
    return Verified(tuple(found))


def _run(checks: Mapping[str, Check[Kind]], dataset: Kind, file: str) -> Iterator[Finding]:
    for name, check in checks.items():
        for spot in check.find(dataset):
            yield Finding(
                check=name,
                severity=check.severity,
                file=spot.file or file,
                task=spot.task,
                field=spot.field,
                message=spot.message,
            )
