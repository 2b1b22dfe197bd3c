"""Checks before a run that its folder, models, judges, tools and harness work.

Each model and judge gets one short request; a harness does its first task in a temporary folder. A
failure is reported in one line, and the run's folder is left unchanged.
"""

import asyncio
import errno
import logging
import os
import shutil
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from inspect_ai.model import (
    ChatMessageUser,
    ContentImage,
    ContentText,
    GenerateConfig,
    Model,
    ModelOutput,
)
from inspect_ai.tool import ToolInfo, ToolParams

from gta_bench.agents import provider
from gta_bench.agents.models import ChosenModel, check_price, open_model
from gta_bench.confine.files import remove_tree
from gta_bench.confine.systems import require_linux
from gta_bench.errors import (
    INTERRUPTED,
    EnvironmentProblem,
    RunError,
    WorkFailed,
    describe_fault,
    find_status,
    iter_causes,
)
from gta_bench.harnesses.contract import REQUEST
from gta_bench.records.run import OWN_TOOLS, RunManifest
from gta_bench.records.steps import MalformedStep
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.running.shards import Listener
from gta_bench.running.stopping import run_async
from gta_bench.running.system_run import Resources, execute
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import (
    files_folder,
    find_run,
    log_folder,
    open_run,
    read_manifest,
    read_workflow_scores,
)
from gta_bench.runs.logs import (
    ATTEMPTS,
    count_sent,
    find_kept_units,
    read_run_units,
    unit_keys,
)
from gta_bench.runs.merge import write_partial_log
from gta_bench.runs.store import StorePath, append_lines
from gta_bench.tasks.run_tools import check_tools

if TYPE_CHECKING:
    # Evidence imports what renders it, and most runs have no judge.
    from gta_bench.judging.judge import Judge
    from gta_bench.running.judge_run import Judging

logger = logging.getLogger(__name__)

# Together with a command's start, this reports a problem within ten seconds. A server that accepted
# the request may be slow or still starting, so it gets a minute, with a notice to the user.
SECONDS = 6.0
LONGEST = 60.0
PAUSE = 1.0
REPLY_TOKENS = 16
SKIP = "skip this check with --no-preflight"
# Providers whose models are scripts in this process.
SCRIPTED = ("none", "mockllm", "scripted")
REFUSED, MISSING, BUSY = (401, 403), 404, 429
UNKNOWN_MODEL = ("valid model", "unknown model", "model not found", "model does not exist")
NO_CREDIT = ("insufficient_quota", "exceeded your current quota", "credit balance")
SHOWN = 400
LEAST_BYTES = 2**20  # on the disk of a run that begins
# A second request is longer by these words and by a tool with eight times as many. Prompts that
# grow by less than five times as many tokens do not have the tool; those that do not grow were not
# counted.
WORDS = "one two three four five six seven eight nine ten"
PROBE = ToolInfo(name="ready", description=" ".join([WORDS] * 8), parameters=ToolParams())
DROPPED = 5 * len(WORDS.split())

Start = tuple[StorePath, RunManifest, Resources]
# Opens a progress bar with that name.
_Watching = Callable[[str], AbstractContextManager[Listener]]
# Shows a line to the user.
Say = Callable[[str], None]


class Asked(NamedTuple):
    """A model that gets one request; a second one with a tool if the run sends it `tools`.

    `pictures` says whether the run will send it images.
    """

    role: Literal["Model", "Judge"]
    chosen: ChosenModel
    model: Model
    pictures: bool = False
    tools: bool = False

    def __str__(self) -> str:
        address = self.model.api.base_url
        return f"{self.role} {self.chosen.name!r}" + (f" at {address}" if address else "")

    @property
    def key(self) -> str:
        """The environment variable with its key."""
        names = [self.chosen.settings.key_env, *self.model.api.api_key_vars]
        return next((name for name in names if name), "its key")


def check_start(
    runs: Sequence[Start],
    judging: "Judging | None" = None,
    *,
    ask: bool = True,
    model: Model | None = None,
    watching: _Watching = lambda _: nullcontext(lambda _: None),
    say: Say = logger.warning,
) -> None:
    """Raise if one of the runs could not start; a finished run asks no model.

    Without `ask`, no model is asked and no harness started, but everything else is checked.
    `model` replaces the models that the runs name.
    """
    left = [one for one in runs if not _is_finished(*one[:2])]
    asked: list[Asked] = []
    for out, manifest, resources in left:
        if resources.harness is not None and resources.harness.kind != "bridged":
            require_linux("A harness")
        check_writable(out)
        if model is None:
            opened = open_model(resources.model, resources.settings.budget)
            if not _is_scripted(resources.model):
                check_price(opened, resources.settings.budget)
            called = manifest.spec.system.agent == "toolcalling"
            asked.append(Asked("Model", resources.model, opened, tools=called))
        tools = manifest.spec.tools
        if tools != OWN_TOOLS:
            run_async(check_tools(tools))
    if judging is not None:
        asked += _open_judges(judging, [out for out, *_ in runs])
    if ask:
        run_async(_ask_all(asked, say))
        _try_harnesses(left, watching, model)


def check_judges(judging: "Judging", run: StorePath, say: Say) -> None:
    """Send a request to each judge that has not scored all of the run yet."""
    run_async(_ask_all(_open_judges(judging, [run]), say))


def check_writable(out: StorePath) -> None:
    """Raise the OSError that writing a run there would raise."""
    if not isinstance(out, Path):
        return
    parent = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    number = 0 if parent.is_dir() else errno.ENOTDIR
    if not number:
        try:
            with tempfile.TemporaryFile(dir=parent):  # has no name, so nobody sees it
                pass
        except OSError as exc:
            raise OSError(exc.errno, exc.strerror, str(out)) from exc
        disk = shutil.disk_usage(parent)
        if disk.total and disk.free < LEAST_BYTES:
            number = errno.ENOSPC
    if number:
        raise OSError(number, os.strerror(number), str(parent))


def _is_finished(out: StorePath, manifest: RunManifest) -> bool:
    """Whether all units that the command asks for are finished; the run may have others."""
    if find_run(out, manifest) is None:
        return False
    kept, spec = find_kept_units(log_folder(out)), manifest.spec
    wanted = unit_keys(spec.tasks, spec.epochs)
    return all(key in kept and kept[key].finished for key in wanted)


def _open_judges(judging: "Judging", runs: Sequence[StorePath]) -> list[Asked]:
    """Open the judges that any of the runs still needs."""
    from gta_bench.running.judge_run import open_judge_model, open_judges

    opened = [open_judge_model(chosen, judging) for chosen in judging.models]
    judges = open_judges(judging, opened)
    return [
        Asked("Judge", chosen, judge.model, judging.options.pictures)
        for chosen, judge in zip(judging.models, judges, strict=True)
        if not all(_is_judged(run, judge) for run in runs)
    ]


def _is_judged(run: StorePath, judge: "Judge") -> bool:
    """Whether the run's scores show that the judge has scored all of it."""
    try:
        units = read_manifest(run).spec.units
        table = read_workflow_scores(run).table(judge.name)
    except RunError:
        return False
    return table is not None and table.repeats >= judge.repeats and table.strict.n == units


def _is_scripted(chosen: ChosenModel) -> bool:
    return chosen.name.partition("/")[0] in SCRIPTED


async def _ask_all(asked: Sequence[Asked], say: Say) -> None:
    """Ask all models at once; raises for the first one in order that cannot be used."""
    calling = [one.chosen for one in asked if one.tools]
    different = [
        one._replace(tools=one.role == "Model" and one.chosen in calling)
        for number, one in enumerate(asked)
        if not _is_scripted(one.chosen)
        and (one.role, one.chosen) not in [(other.role, other.chosen) for other in asked[:number]]
    ]
    for refusal in await asyncio.gather(*(_refusal(one, say) for one in different)):
        if refusal is not None:
            raise EnvironmentProblem(refusal)


async def _refusal(asked: Asked, say: Say) -> str | None:
    """Return why the model cannot be used; None if it answers."""
    slow = f"{asked} has not answered after {SECONDS:g} s; waiting up to {LONGEST:g} s ({SKIP})."
    notice = asyncio.get_running_loop().call_later(SECONDS, say, slow)
    try:
        async with asyncio.timeout(LONGEST):
            return await _tried(asked)
    except TimeoutError:
        return (
            f"{asked} did not answer within {LONGEST:g} s. Wait until the server is ready, correct "
            f"`base_url` under [models] in gta.toml, or {SKIP}."
        )
    finally:
        notice.cancel()
        await asked.model.api.aclose()


async def _tried(asked: Asked) -> str | None:
    raised = await _call(asked, picture=asked.pictures)
    if isinstance(raised, ModelOutput):
        return await _refuse_tools(asked, raised) if asked.tools else None
    status = find_status(raised)
    refused = asked.pictures and status not in (None, *REFUSED, MISSING, BUSY)
    if refused and isinstance(await _call(asked, picture=False), ModelOutput):
        return (
            f"{asked} does not accept images ({_reason(raised)}). Judge by text alone: "
            "`pictures = false` under [judge] in gta.toml, or `gta score --no-pictures`."
        )
    if status is not None and status >= 500:
        await asyncio.sleep(PAUSE)
        raised = await _call(asked, picture=False)
    return None if isinstance(raised, ModelOutput) else _explain(asked, raised)


async def _call(
    asked: Asked, *, picture: bool = False, tool: ToolInfo | None = None
) -> ModelOutput | Exception:
    """Return the reply to one short request, or what it raises: every provider has its own."""
    most = asked.model.config.max_tokens
    config = GenerateConfig(max_retries=0, max_tokens=min(most or REPLY_TOKENS, REPLY_TOKENS))
    text = REQUEST if tool is None else f"{REQUEST}. {WORDS}"
    parts = [ContentText(text=text), *([ContentImage(image=_picture())] if picture else [])]
    tools = [] if tool is None else [tool]
    try:
        return await asked.model.generate(
            [ChatMessageUser(content=parts)], tools=tools, config=config
        )
    except Exception as exc:
        logger.debug("the first request failed", exc_info=True)
        return exc


async def _refuse_tools(asked: Asked, first: ModelOutput) -> str | None:
    """Say that a server does not take tools, or does not show them to the model; None if it does.

    A model that is not shown its tools calls none, which would count against it.
    """
    second = await _call(asked, tool=PROBE)
    fix = f"Choose another chat template there, use `--agent react`, or {SKIP}."
    if isinstance(second, Exception):
        status = find_status(second)
        named = provider.is_template_error(_reason(second))
        if not named and (status is None or status in (BUSY, *REFUSED) or status >= 500):
            return None
        return f"{asked} rejects a request with tools: {_reason(second)}. {fix}"
    if any(choice.message.tool_calls for choice in second.choices):
        return None  # whatever the server counts
    if first.usage is None or second.usage is None:
        return None
    if not 0 < count_sent(second.usage) - count_sent(first.usage) < DROPPED:
        return None
    return (
        f"{asked} is not shown its tools: the server leaves them out of the prompt, as many do if "
        f"the model's chat template has no place for them. {fix}"
    )


def _explain(asked: Asked, raised: Exception) -> str | None:
    """Say what is wrong and what to do; None if waiting helps, as a run does."""
    status, reason = find_status(raised), _reason(raised)
    address = asked.model.api.base_url
    if status == BUSY and any(text in reason.lower() for text in NO_CREDIT):
        return f"{asked} has no credit left ({reason}). Raise its limit, or use another key."
    if status == BUSY or (status == 400 and "max_tokens" in reason):
        return None
    if status in REFUSED:
        return f"{asked} rejects the key (status {status}). Set a valid one: export {asked.key}=…"
    if _is_unknown_model(status, reason.lower()):
        known = f"; `curl {address}/models` lists the available ones" if address else ""
        return f"{asked} does not know that model ({reason}). Check its name{known}."
    if status in (MISSING, 405):
        return (
            f"{asked}: the server has no such path (status {status}). Correct `base_url` under "
            "[models] in gta.toml; for most servers it ends in /v1."
        )
    if status is not None:
        return f"{asked} rejects a short request: {reason}. Fix this, or {SKIP}."
    if any("wrong version number" in str(exc).lower() for exc in iter_causes(raised)):
        return (
            f"{asked} does not use https. Write http:// in `base_url` under [models] in gta.toml."
        )
    chain = list(iter_causes(raised))
    if any(isinstance(exc, OSError) or "Connect" in type(exc).__name__ for exc in chain):
        refused = any(isinstance(exc, ConnectionRefusedError) for exc in chain)
        cause = "connection refused" if refused else _reason(chain[-1])
        return (
            f"{asked} cannot be reached ({cause}). Start the server, or correct `base_url` under "
            "[models] in gta.toml."
        )
    return (
        f"{asked} sent a reply that cannot be read ({reason}). Correct `base_url` under [models] "
        f"in gta.toml, or {SKIP}."
    )


def _is_unknown_model(status: int | None, reason: str) -> bool:
    """Whether the model is unknown; servers use 404, 400 or 422, which have other meanings, too."""
    if status == MISSING:
        return "model" in reason
    return status in (400, 422) and any(text in reason for text in UNKNOWN_MODEL)


def _reason(raised: BaseException) -> str:
    return describe_fault(raised).strip().rstrip(".")


def _picture() -> str:
    """Return a gray square as a data URL, large enough for every model that takes images."""
    from PIL import Image

    stream = BytesIO()
    Image.new("L", (64, 64), 128).save(stream, "PNG")
    return f"data:image/png;base64,{b64encode(stream.getvalue()).decode()}"


def _try_harnesses(runs: Sequence[Start], watching: _Watching, model: Model | None) -> None:
    """Let each harness do the first task of a run that has no units yet, and keep its work."""
    with ExitStack() as stack:
        tried = [
            (stack.enter_context(_first_task(run, watching, model)), run)
            for run in runs
            if run[2].harness is not None and not find_kept_units(log_folder(run[0]))
        ]
        for trial, (out, manifest, _) in tried:
            open_run(out, manifest)
            _adopt(trial, out)


@contextmanager
def _first_task(run: Start, watching: _Watching, model: Model | None) -> Iterator[Path]:
    """Run only the first task, in a temporary folder; raises if the harness did not start."""
    out, manifest, resources = run
    folder = Path(tempfile.mkdtemp(prefix="gta-first-"))
    first = manifest.with_spec(tasks=manifest.spec.tasks[:1])
    try:
        with watching(f"{out}, first task") as listener:
            execute(first, resources, folder / "run", listener, model=model)
        _check_work(folder / "run", first)
        yield folder / "run"
    except WorkFailed as exc:
        if exc.exit_code != INTERRUPTED:
            raise
        raise WorkFailed("Interrupted. Nothing was written.", exit_code=INTERRUPTED) from exc
    finally:
        remove_tree(folder)


def _check_work(run: Path, manifest: RunManifest) -> None:
    """Raise if the harness failed, or left no trace of any work."""
    spec = manifest.spec
    units = read_run_units(run, spec)
    harness, task = spec.system.harness, spec.tasks[0]
    if all(unit.failure is not None for unit in units):
        reason = units[0].failure if units else "it left no log"
        raise EnvironmentProblem(
            f"Harness {harness!r} could not do its first task {task!r}: {reason}"
        )
    if not any(_has_begun(unit) for unit in units):
        raise EnvironmentProblem(
            f"Harness {harness!r} did nothing on its first task {task!r}: no answer, no file, no "
            f"tool call. {_last_words(units[0])} Fix the command, or {SKIP}."
        )


def _has_begun(unit: AtomicUnit | WorkflowUnit) -> bool:
    """Whether the harness left a trace of work, or a limit stopped it while it worked."""
    stopped = any(
        isinstance(step, MalformedStep) and "was stopped:" in step.reason
        for step in unit.trace or ()
    )
    worked = unit.answer or unit.deliverables or unit.calls or unit.usage.model_calls
    return unit.failure is not None or stopped or bool(worked)


def _last_words(unit: AtomicUnit | WorkflowUnit) -> str:
    """Say how the harness ended and what it printed last, in one line."""
    ends = [step for step in unit.trace or () if isinstance(step, MalformedStep)]
    if not ends:
        return "It exited with status 0, and printed nothing or left an empty final.txt."
    printed = " / ".join(line.strip() for line in ends[-1].content.splitlines() if line.strip())
    return f"{ends[-1].reason} It printed: {(printed[-SHOWN:] or 'nothing').removesuffix('.')}."


def _adopt(trial: Path, out: StorePath) -> None:
    """Move the units of a trial run into a run that has none, which continues from there."""
    kept = {key: one.log for key, one in find_kept_units(log_folder(trial)).items() if one.finished}
    name = Path(next(iter(kept.values()))).name
    store = ArtefactStore(out / ARTEFACTS)
    for file in (trial / ARTEFACTS).glob("*/*"):
        store.keep(file.read_bytes())
    if isinstance(out, Path):
        # Sockets and the like that a harness left cannot be copied, and do not count.
        with suppress(shutil.Error):
            shutil.copytree(files_folder(trial), files_folder(out), symlinks=True)
    append_lines(out / ATTEMPTS, (trial / ATTEMPTS).read_bytes())
    write_partial_log(kept, log_folder(out) / name)
