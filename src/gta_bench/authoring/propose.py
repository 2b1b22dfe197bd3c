"""Ask a model for the leaves of a draft; the author still decides, and so does the pilot."""

import json
import logging
import re
from collections.abc import Sequence
from typing import Annotated, Final

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, Model
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gta_bench.agents.models import choose_model, open_model
from gta_bench.authoring import prompts
from gta_bench.authoring.drafts import OPEN
from gta_bench.authoring.from_trace import ProposedTree
from gta_bench.authoring.traces.observed import ObservedCall, ObservedTrace
from gta_bench.datasets.folders import LeafEntry
from gta_bench.errors import EnvironmentProblem, UsageError, describe_fault
from gta_bench.records.checks import CHECK
from gta_bench.running.stopping import run_async
from gta_bench.settings import Settings

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 3
# No check that runs code or needs further files.
ALLOWED: Final = ("answer.contains", "text.contains", "file.exists")
MOST_TEXT: Final = 20_000
MOST_CALLS: Final = 40
MOST_CALL: Final = 1_000
_FENCE: Final = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL)


class _Proposal(BaseModel):
    """The reply of a model."""

    model_config = ConfigDict(extra="forbid")

    leaves: Annotated[tuple[LeafEntry, ...], Field(min_length=1, max_length=20)]


def propose_trees(
    name: str, traces: Sequence[ObservedTrace], settings: Settings
) -> list[ProposedTree]:
    """Ask a model for the leaves of each trace, one after another.

    Raises EnvironmentProblem if the model cannot be used, UsageError if it gives no usable reply.
    """
    chosen = choose_model(name, settings)
    model = open_model(chosen, settings.budget)

    async def ask() -> list[ProposedTree]:
        try:
            return [await propose_tree(model, trace) for trace in traces]
        finally:
            await model.api.aclose()

    return run_async(ask())


async def propose_tree(model: Model, trace: ObservedTrace) -> ProposedTree:
    """Ask a model for the leaves of a trace, again if its reply cannot be used."""
    messages: list[ChatMessage] = [ChatMessageUser(content=_write_prompt(trace))]
    problem = ""
    for _ in range(ATTEMPTS):
        try:
            output = await model.generate(messages)
        except Exception as exc:
            logger.debug("the proposal failed", exc_info=True)
            raise EnvironmentProblem(
                f"Model {model!s} cannot be asked for a tree: {describe_fault(exc)}. Correct "
                "[models] in gta.toml or the key, or leave the model out."
            ) from exc
        read = read_proposal(output.completion, trace.delivered or ())
        if not isinstance(read, str):
            return ProposedTree(read, str(model), prompts.digest())
        problem = read
        again = ChatMessageUser(content=prompts.render("again.md", problem=problem))
        messages += [ChatMessageAssistant(content=output.completion), again]
    raise UsageError(
        f"Model {model!s} proposed no usable tree for {trace.id} in {ATTEMPTS} replies: {problem} "
        "Name another model, or leave it out and write the leaves yourself."
    )


def read_proposal(text: str, files: Sequence[str]) -> tuple[LeafEntry, ...] | str:
    """Return the proposed leaves, or what is wrong with the reply."""
    fenced = _FENCE.fullmatch(text)
    try:
        leaves = _Proposal.model_validate_json(fenced[1] if fenced else text).leaves
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the reply"
        return f"{where}: {first['msg']}."
    ids = [leaf.id for leaf in leaves]
    if len({*ids}) < len(ids):
        return "two leaves have the same id."
    named = {name.removeprefix("outputs/") for name in files}
    for leaf in leaves:
        if not leaf.says or leaf.says.startswith(OPEN):
            return f"{leaf.id}: `says` is missing."
        if leaf.needs or leaf.credit != "all" or leaf.by not in (None, CHECK, "judge"):
            return f"{leaf.id}: only id, says, weight and checks are allowed."
        for check in leaf.checks:
            if check.label not in ALLOWED:
                return f"{leaf.id}: the check {check.label!r} is not allowed."
            file = getattr(check, "file", None)
            if file is not None and file not in named:
                return f"{leaf.id}: no file {file!r} was delivered."
    return leaves


def _write_prompt(trace: ObservedTrace) -> str:
    files = ", ".join(name.removeprefix("outputs/") for name in trace.delivered or ())
    return prompts.render(
        "propose.md",
        files=files or "none",
        request=_shorten(trace.request or "(not recorded)"),
        calls="\n".join(map(_describe_call, trace.calls[:MOST_CALLS])) or "(none)",
        answer=_shorten(trace.answer or "(not recorded)"),
    )


def _describe_call(call: ObservedCall) -> str:
    given = "…" if call.arguments is None else json.dumps(dict(call.arguments), ensure_ascii=False)
    said = call.error or " ".join(part.content for part in call.reply or ()) or "(not recorded)"
    return f"{call.tool}({given[:MOST_CALL]}) -> {said[:MOST_CALL]}"


def _shorten(text: str) -> str:
    """Return a text of limited length, in which no line looks like one of the prompt's own."""
    shown = re.sub(r"^={5,}", "====", text[:MOST_TEXT], flags=re.MULTILINE)
    return shown if len(text) <= MOST_TEXT else f"{shown}\n(cut)"
