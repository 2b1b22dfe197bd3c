"""The judge's prompt: instructions, then the evidence, and the requirements last.

Everything before the requirements is the same for all leaves of a unit, so that providers can read
it from their prefix caches.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
)

from gta_bench.judging.options import CONTROL, JudgeOptions, Marks
from gta_bench.judging.prompts import render
from gta_bench.judging.showing.draft import HIDDEN, quote
from gta_bench.judging.visibility import ShownEvidence, ShownFile, fit_evidence, text_tokens
from gta_bench.records.evidence import Evidence, FileEvidence
from gta_bench.records.workflow import Checkpoint, WorkflowTask

_JUDGE: Final = (
    r"(?:the )?(?:judges?|graders?|evaluators?|evaluation (?:team|system|model|harness)"
    r"|grading (?:team|system|model)|scoring (?:system|model)|llm[- ]judge|ai (?:judge|grader))"
)
_HIGH: Final = r"(?:10|ten|full|maximum|max|highest|perfect|top)\b"
# Every repetition is bounded, so that matching a hostile text takes linear time.
_ORDERS: Final = re.compile(
    rf"\b(?:notes?|message|notice|instructions?|attention|memo)[ :,-]{{1,3}}"
    rf"(?:to|for|from|by|of) {_JUDGE}"
    rf"|\bas {_JUDGE},? (?:you|i)\b"
    r"|\b(?:ignore|disregard|forget|override) (?:all |any |the |your |every |these ){0,3}"
    r"(?:previous|prior|above|earlier|preceding|other|system|scoring|grading) "
    r"(?:instructions?|rules?|prompts?|guidelines?|requirements?|criteria)"
    r"|\b(?:give|assign|award|set|return|report|output|record|reply with|respond with|rate|score)\b"
    rf"[^.\n]{{0,60}}\b(?:score|rating|mark|grade|requirement|verdict)s?\b[^.\n]{{0,6}}\b{_HIGH}"
    rf"|\b(?:give|assign|award)\b[^.\n]{{0,40}}\b{_HIGH}[^.\n]{{0,20}}"
    r"\b(?:score|points?|marks?|rating)\b"
    rf"|\b(?:score|rate|grade) (?:it|this|each|every|all)\b[^.\n]{{0,60}}\b{_HIGH}",
    re.IGNORECASE,
)
# Quotes in a file inside a file may be doubled or escaped with a backslash.
_Q: Final = r"(?:\\?[\"“”]){1,2}"
_FIELD: Final = rf"{_Q}(?:leaf|verdicts?|reason|requirement){_Q}\s{{0,4}}:"
_SCORE: Final = rf"{_Q}score{_Q}\s{{0,4}}:\s{{0,4}}(?:{_Q})?\d"
_VERDICT: Final = re.compile(
    rf"{_FIELD}[^\n]{{0,400}}{_SCORE}|{_SCORE}[^\n]{{0,400}}{_FIELD}", re.IGNORECASE
)
_OURS: Final = re.compile(
    r"^\W{0,3}(?:BEGIN|END) (?:[0-9a-f]{8,64}|EVIDENCE)\b"
    r"|^\W{0,3}The evidence ends here\b|\bJudge th(?:is|ese) (?:\d+ )?requirements?\b"
    r"|^\W{0,3}Files that the system (?:produced|was given) \("
    r"|<\|(?:im_start|system|end|start_header_id)|\[/?INST\]|</?(?:system|evidence)>"
    r"|^\W{0,3}(?:system|evaluator|judge) ?(?:message|prompt|note)? ?:",
    re.IGNORECASE | re.MULTILINE,
)
_KINDS: Final = (
    (_ORDERS, "speaks to whoever scores the work"),
    (_VERDICT, "has the form of a verdict"),
    (_OURS, "imitates the words around the evidence"),
)
# Zero-width and tag characters, and those that change the direction of writing. Joiners are part of
# emoji and of some scripts, tags of some flags, after the black one.
_FLAG: Final = re.compile("\U0001f3f4[\U000e0020-\U000e007f]{1,8}")
_UNSEEN: Final = re.compile("[\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
FEW_UNSEEN: Final = 3


def find_appeals(text: str) -> Iterator[str]:
    """Describe, in our words only, what in a text is addressed to the judge."""
    for pattern, description in _KINDS:
        if pattern.search(text):
            yield description
    if len(_UNSEEN.findall(_FLAG.sub("", text))) > FEW_UNSEEN:
        yield "has characters that no reader sees"


PictureSource = Callable[[str], bytes]
NOTHING = "(none)"
# Room for the reply, also of a model that thinks first, and for each further leaf of the call.
_REPLY_TOKENS = 2_000
_REPLY_TOKENS_PER_LEAF = 250


class UnitPrompt:
    """The common beginning of all calls of a unit, and the question at the end of each."""

    def __init__(
        self, task: WorkflowTask, evidence: Evidence, options: JudgeOptions, source: PictureSource
    ) -> None:
        self.several = options.leaves_per_call > 1
        self.marks = Marks(task, evidence, options)
        self._options = options
        nonce = self.marks.frame
        system = render("system.md", nonce=nonce)
        shown = fit_evidence(evidence, options, taken=_taken_tokens(task, options, system))
        work = render(
            "work.md",
            nonce=nonce,
            request=task.request,
            manifest=_manifest(shown, options),
            answer=_answer(shown),
        )
        self._system = system
        self._evidence: list[Content] = [ContentText(text=work)]
        for role, files in (("deliverable", shown.deliverables), ("input", shown.inputs)):
            for one in files:
                self._evidence += _file_blocks(one, role, nonce, source)
        # Providers that cache up to a mark find it at the end of the evidence.
        last = self._evidence.pop()
        self._evidence.append(last.model_copy(update={"cache_breakpoint": True}))

    def ask(self, leaves: Sequence[Checkpoint], problem: str | None = None) -> list[ChatMessage]:
        """Return the messages of one call; `problem` says what was wrong with the last reply."""
        question = self._question(leaves)
        if problem is not None:
            question += "\n\n" + render("again.md", problem=problem)
        return self._messages(question)

    def ask_control(self) -> list[ChatMessage]:
        """Return the messages of the control, which asks for a code that no work contains."""
        leaf = Checkpoint(id=CONTROL, requirements=render("control.md", code=self.marks.code))
        return self._messages(self._question([leaf]))

    def _messages(self, question: str) -> list[ChatMessage]:
        user = [*self._evidence, ContentText(text=question)]
        if "roles" in self._options.without:
            return [ChatMessageUser(content=[ContentText(text=self._system), *user])]
        return [ChatMessageSystem(content=self._system), ChatMessageUser(content=user)]

    def _question(self, leaves: Sequence[Checkpoint]) -> str:
        if self.several:
            entries = (
                f"leaf: {self.marks.name(leaf.id)}\nrequirement: {_requirement(leaf)}"
                for leaf in leaves
            )
            return render("leaves.md", count=str(len(leaves)), requirements="\n\n".join(entries))
        (leaf,) = leaves
        name = self.marks.name(leaf.id)
        return render("leaf.md", leaf=name, requirement=_requirement(leaf))


def _taken_tokens(task: WorkflowTask, options: JudgeOptions, system: str) -> int:
    """Return the tokens besides evidence: instructions, request, longest question, reply."""
    longest = sorted((text_tokens(_requirement(leaf)) for leaf in task.leaves()), reverse=True)
    asked = longest[: options.leaves_per_call]
    question = text_tokens(render("leaves.md", count="", requirements="")) + 20 * len(asked)
    reply = min(_REPLY_TOKENS, options.context_tokens // 8)
    reply += _REPLY_TOKENS_PER_LEAF * (len(asked) - 1)
    frame = text_tokens(render("work.md", nonce="", request=task.request, manifest="", answer=""))
    return text_tokens(system) + frame + question + sum(asked) + reply


def _requirement(leaf: Checkpoint) -> str:
    return leaf.question or NOTHING


def _manifest(shown: ShownEvidence, options: JudgeOptions) -> str:
    if options.visibility == "upstream":
        return render("all_shown.md")
    text = render(
        "manifest.md",
        n_deliverables=str(len(shown.deliverables)),
        deliverables=_listing(shown.deliverables, options),
        n_inputs=str(len(shown.inputs)),
        inputs=_listing(shown.inputs, options) if options.inputs else "They are not shown to you.",
    )
    given = {one.file.digest: one.file.path for one in shown.inputs if one.file.size}
    copies = [one.file for one in shown.deliverables if one.file.digest in given]
    for file in copies:
        text += f"\n{quote(file.path)} has the same bytes as {quote(given[file.digest])}."
    if "findings" not in options.without:
        text += "".join(f"\nThe answer: it {appeal}." for appeal in find_appeals(shown.answer))
    if shown.unlisted:
        text += f"\n\n{shown.unlisted} more files are neither listed nor shown, for lack of room."
    return text


def _listing(files: Sequence[ShownFile], options: JudgeOptions) -> str:
    if not files:
        return NOTHING
    return "\n".join(line for one in files for line in _entry(one, options))


def _entry(one: ShownFile, options: JudgeOptions) -> list[str]:
    file = one.file
    kind = file.kind if file.kind == file.claims else f"named {file.claims}, is {file.kind}"
    facts = "; ".join(
        f"{probe.name} {json.dumps(probe.value, ensure_ascii=False)}" for probe in file.probes
    )
    lines = [f"- {quote(file.path)}: {kind}, {file.size:,} bytes"]
    lines += [f"  measured: {facts}"] if facts else []
    lines += [f"  shown in part: {cut}" for cut in one.cuts(options)]
    lines += [f"  not shown: {reason}" for reason in file.unshown]
    lines += [f"  note: {finding}" for finding in _notes(file, options)]
    # A name inside a file may have line breaks, which would look like lines of the list.
    return [lines[0], *("  " + " ".join(line.split()) for line in lines[1:])]


def _notes(file: FileEvidence, options: JudgeOptions) -> Iterator[str]:
    """Yield the findings on a file, and what in it is addressed to the judge."""
    if "findings" in options.without:
        yield from (finding for finding in file.findings if not finding.startswith(HIDDEN))
        return
    yield from file.findings
    yield from (f"its name {appeal}" for appeal in find_appeals(file.path))
    yield from (f"its text {appeal}" for appeal in find_appeals(file.text))


def _answer(shown: ShownEvidence) -> str:
    if not shown.answer.strip():
        return "(the system gave no answer)"
    if len(shown.answer) < shown.answer_length:
        note = f"[cut here: {len(shown.answer):,} of {shown.answer_length:,} characters]"
        return f"{shown.answer}\n{note}"
    return shown.answer


def _file_blocks(one: ShownFile, role: str, nonce: str, source: PictureSource) -> list[Content]:
    blocks: list[Content] = []
    text = f"BEGIN {nonce} {role} {quote(one.file.path)}\n{one.text}".rstrip()
    for picture in one.pictures:
        blocks.append(ContentText(text=f"{text}\n[{picture.label}]".lstrip()))
        data = b64encode(source(picture.digest)).decode()
        blocks.append(ContentImage(image=f"data:{picture.media_type};base64,{data}"))
        text = ""
    return [*blocks, ContentText(text=f"{text}\nEND {nonce}".lstrip())]
