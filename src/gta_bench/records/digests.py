"""Digests of what a task asks and of how it is scored, so that results survive edits.

They are computed from the parsed record, not from its file: the order of keys, white space,
comments and the category do not change them.
"""

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field, JsonValue

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.base import Record
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, Turn
from gta_bench.records.files import Deliverable
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import Checkpoint, WorkflowTask

# The first half of a SHA-256: enough to identify contents, and short enough to store in every unit.
DIGITS = 32
ContentDigest = Annotated[str, Field(pattern=rf"^[0-9a-f]{{{DIGITS}}}$")]
# Parts of an Atomic task's reference, which have the role of leaves.
DIALOGUE, ANSWER = "dialogue", "answer"


class TaskChanges(NamedTuple):
    """How a task differs from an earlier version of itself.

    `asks` names what changed of `request`, `inputs` and `tools`, `leaves` the leaves that are new
    or decided otherwise, and `gone` those that no longer exist.
    """

    asks: tuple[str, ...]
    leaves: tuple[str, ...]
    gone: tuple[str, ...]
    weighs: bool
    proofs: bool


class TaskDigests(Record):
    """Digests of what a unit was asked and how it is scored.

    `inputs` and `tools` are None for units of earlier versions that did not record them. `leaf` has
    a digest for every leaf of a Workflow task; for an Atomic task it has `dialogue`, the reference
    without the user's messages, and `answer`, the accepted answers. `weighs` is the tree of
    checkpoints with its weights; None for Atomic tasks. `proofs` are the examples in a task folder
    (gold, wrong, cheat); None if there are none. No score depends on them.

    If `asks` changes, the task must be run again; if a leaf changes, that leaf must be scored
    again; if `weighs` changes, scores are computed again. In step mode the system sees the
    reference, so a change of `leaf["dialogue"]` also requires a new run of the task.
    """

    request: ContentDigest
    inputs: ContentDigest | None = None
    tools: ContentDigest | None = None
    leaf: Mapping[str, ContentDigest] = {}
    weighs: ContentDigest | None = None
    proofs: ContentDigest | None = Field(None, exclude_if=lambda proofs: proofs is None)

    @property
    def asks(self) -> str | None:
        """The digest of what the system gets: request, inputs, tools; None if one is unknown."""
        if self.inputs is None or self.tools is None:
            return None
        return content_digest([self.request, self.inputs, self.tools])

    def changes(self, before: "TaskDigests") -> TaskChanges:
        """What changed since the earlier version; inputs and tools count if both are known."""
        asked = (("request", self.request, before.request), ("inputs", self.inputs, before.inputs))
        pairs = (*asked, ("tools", self.tools, before.tools))
        return TaskChanges(
            asks=tuple(name for name, one, two in pairs if one != two and None not in (one, two)),
            leaves=tuple(name for name, one in self.leaf.items() if before.leaf.get(name) != one),
            gone=tuple(name for name in before.leaf if name not in self.leaf),
            weighs=self.weighs != before.weighs,
            proofs=self.proofs != before.proofs,
        )

    def agrees(self, other: "TaskDigests") -> bool:
        """Whether both ask and score the same; inputs and tools are compared if both are known."""
        return not any(self.changes(other)[:-1])


def digest_atomic(task: AtomicTask, *, inputs: Mapping[str, str | None] | None) -> TaskDigests:
    """The digests of an Atomic task; `inputs` has the SHA-256 of every attachment by its path.

    The SHA-256 of a missing file is None; `inputs` is None if nothing is known about them.
    """
    return TaskDigests(
        request=content_digest(task.request),
        inputs=None if inputs is None else content_digest(dict(inputs)),
        tools=_digest_tools(task.offered),
        leaf={
            DIALOGUE: content_digest([_turn(turn) for turn in task.dialogue]),
            ANSWER: content_digest(_accepted(task)),
        },
    )


def digest_workflow(
    task: WorkflowTask,
    *,
    inputs: Mapping[str, str | None] | None,
    tools: Mapping[str, ToolSpec | None] | None,
) -> TaskDigests:
    """The digests of a Workflow task; `tools` are those it offers, as the dataset defines them.

    A tool that the dataset names without a definition has None; `tools` is None if they are
    unknown.
    """
    leaves: dict[str, list[JsonValue]] = {}
    for leaf in task.leaves():
        leaves.setdefault(leaf.id, []).append(_describe_leaf(leaf))
    return TaskDigests(
        request=content_digest(task.request),
        inputs=None if inputs is None else content_digest(dict(inputs)),
        tools=_digest_tools(tools),
        # Leaves that share an id cannot be told apart by verdicts either.
        leaf={name: content_digest(says) for name, says in leaves.items()},
        weighs=content_digest([_weights(node) for node in task.checkpoints]),
    )


def digest_known(task: AtomicTask | WorkflowTask, inputs: Sequence[Deliverable]) -> TaskDigests:
    """The digests that can be computed from a stored unit: its task, and the inputs it kept.

    The first versions kept no inputs of Atomic units and no tools of Workflow units.
    """
    kept = {file.path: file.digest for file in inputs}
    known = all(item.path in kept for item in task.attachments)
    found = {item.path: kept[item.path] for item in task.attachments} if known else None
    if isinstance(task, AtomicTask):
        return digest_atomic(task, inputs=found)
    return digest_workflow(task, inputs=found, tools=None)


def digest_leaf(leaf: Checkpoint) -> str:
    """The digest of everything that decides the score of a leaf, without its id and weight."""
    return content_digest(_describe_leaf(leaf))


def _describe_leaf(leaf: Checkpoint) -> JsonValue:
    """What a leaf says and who decides it; fields that are not used are left out."""
    used = leaf.model_dump(
        mode="json",
        include={"levels", "by", "checks", "credit"},
        exclude_defaults=True,
    )
    said: dict[str, JsonValue] = {} if leaf.requirements is None else {"says": leaf.requirements}
    return {**said, **used}


def content_digest(value: JsonValue) -> str:
    """The digest of JSON data; it does not depend on how the same content is written.

    Every text and number that a dataset can contain has a digest, even half a surrogate pair.
    """
    written = canonical_json(value).encode(errors="surrogatepass")
    return hashlib.sha256(written).hexdigest()[:DIGITS]


def canonical_json(value: JsonValue) -> str:
    """JSON in a canonical form: keys in order, texts in NFC, and 1 for 1.0.

    A number beyond the range of floats (`1e400`) is `Infinity`.
    """
    return json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _canonical(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return unicodedata.normalize("NFC", value)
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_canonical(one) for one in value]
        case dict():
            return {
                unicodedata.normalize("NFC", key): _canonical(one) for key, one in value.items()
            }
        case _:
            return value


def _digest_tools(tools: Mapping[str, ToolSpec | None] | None) -> str | None:
    """Definitions without default values, so that a new field changes only tools that use it."""
    if tools is None:
        return None
    return content_digest(
        {
            name: None if spec is None else spec.model_dump(mode="json", exclude_defaults=True)
            for name, spec in tools.items()
        }
    )


def _weights(node: Checkpoint) -> JsonValue:
    found: dict[str, JsonValue] = {"id": node.id, "weight": node.weight}
    if node.children:
        found["children"] = [_weights(child) for child in node.children]
    return found


def _turn(turn: Turn) -> JsonValue:
    """A turn as systems in step mode and scorers see it, without thoughts."""
    match turn:
        case CallTurn():
            return {"call": turn.call.name, "arguments": dict(turn.call.arguments)}
        case AnswerTurn():
            return {"answer": turn.content}
        case ReplyTurn():
            return {"reply": turn.tool, "type": turn.type, "content": turn.content}
        case _:
            return "user"


def _accepted(task: AtomicTask) -> JsonValue:
    """The accepted answers without empty parts."""
    if task.answer is None:
        return None
    accepted: JsonValue = task.answer.model_dump(mode="json", exclude={"kind"}, exclude_none=True)
    return accepted
