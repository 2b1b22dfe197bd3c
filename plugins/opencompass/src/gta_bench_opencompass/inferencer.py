"""The published ReAct protocol with any of OpenCompass' models, step by step or end to end."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import Any, Literal

from inspect_ai.model import ModelOutput
from opencompass.openicl.icl_inferencer.icl_base_inferencer import BaseInferencer
from opencompass.registry import ICL_INFERENCERS
from opencompass.utils.prompt import PromptList

from gta_bench.agents.catalog import make_reference_step
from gta_bench.agents.contract import Decision, History, list_dataset_files, make_step_histories
from gta_bench.agents.loop import Dialogue, work_on
from gta_bench.agents.react import make_upstream_chat
from gta_bench.agents.react_parser import parse_upstream, read_upstream_thought
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.released import load_toolmeta
from gta_bench.metrics.reference import reference_trace
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import DEFAULT_TURNS, LoopLimits
from gta_bench.records.steps import write_step, write_trace
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.redaction import Redactor
from gta_bench.serving.choice import TOKEN_VARIABLE, parse_tools
from gta_bench.serving.client import connect
from gta_bench.settings import read_key
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape
from gta_bench.tools.source import ToolSource
from gta_bench_opencompass.datasets import INPUT, OUTPUT

ROLES = {"system": "SYSTEM", "user": "HUMAN", "assistant": "BOT"}


@ICL_INFERENCERS.register_module()
class GTAInferencer(BaseInferencer):
    """Writes upstream's predictions, one entry a task, after every task; it resumes by them.

    `infer_mode`: `every_with_gt` is step by step, `every` end to end, as upstream calls them.
    End to end needs `tools` (the address of `gta tools serve`, or `agentlego+http://…`) or `tape`
    (the folder of a tape). `files` is where Workflow's deliverables are kept.
    """

    def __init__(
        self,
        model: Any,
        infer_mode: Literal["every", "every_with_gt"] = "every_with_gt",
        tools: str | None = None,
        tape: str | None = None,
        files: str | None = None,
        max_turn: int = DEFAULT_TURNS,
        max_out_len: int = 512,
        **kwargs: Any,
    ) -> None:
        super().__init__(model=model, **kwargs)
        if infer_mode == "every" and (tools is None) == (tape is None):
            raise ValueError("infer_mode='every' needs either `tools` or `tape`.")
        self.infer_mode = infer_mode
        self.tools = tools
        self.tape = tape
        self.files = files
        self.max_turn = max_turn
        self.max_out_len = max_out_len or 512

    def inference(
        self,
        retriever: Any,
        ice_template: Any = None,
        prompt_template: Any = None,
        output_json_filepath: str | None = None,
        output_json_filename: str | None = None,
    ) -> dict[str, Any]:
        """Work on every task that the output has no entry of yet."""
        folder = Path(output_json_filepath or self.output_json_filepath)
        name = output_json_filename or self.output_json_filename
        partial = folder / f"tmp_{name}"
        found = json.loads(partial.read_text(encoding="utf-8")) if partial.is_file() else {}
        for index, row in enumerate(retriever.test_ds):
            if str(index) not in found:
                found[str(index)] = asyncio.run(self._entry(row))
                # Never half a file: a kill here would spoil what is done.
                written = folder / f"new_{name}"
                written.write_text(json.dumps(found, ensure_ascii=False, indent=1), "utf-8")
                written.replace(partial)
        (folder / name).write_text(json.dumps(found, ensure_ascii=False, indent=1), "utf-8")
        partial.unlink(missing_ok=True)
        return found

    async def _entry(self, row: dict[str, Any]) -> dict[str, Any]:
        """Upstream's layout: flat lists step by step, lists of one list end to end."""
        root = Path(row["root"])
        if self.infer_mode == "every_with_gt":
            task = AtomicTask.model_validate_json(row[OUTPUT])
            prediction, gold = await self._steps(task, root)
            return {"gold": gold, "prediction": prediction, "origin_prompt": [row[INPUT]]} | EMPTY
        if "checkpoints" in json.loads(row[OUTPUT]):
            flow = WorkflowTask.model_validate_json(row[OUTPUT])
            work, files = await self._work(flow, root)
            gold, more = [], {"attached_files": files, "task_id": flow.id}
        else:
            task = AtomicTask.model_validate_json(row[OUTPUT])
            work, _ = await self._work(task, root)
            gold, more = [write_trace(reference_trace(task))], {}
        entry = {"gold": gold, "prediction": [write_trace(work.trace)]}
        return {**entry, "origin_prompt": [row[INPUT]], **EMPTY, **more}

    async def _steps(self, task: AtomicTask, root: Path) -> tuple[list[Any], list[Any]]:
        offered, files = _dummies(task, root), _files(root)
        steps = [
            (await self._decide(history, offered, files)).step
            for history in make_step_histories(task)
        ]
        gold = [write_step(make_reference_step(turn)) for turn in task.steps]
        return [write_step(step) for step in steps], gold

    async def _decide(
        self, history: History, tools: Sequence[ToolSpec], files: frozenset[str] = frozenset()
    ) -> Decision:
        """One call of the model, read by upstream's parser."""
        prompt = PromptList(
            {"role": ROLES[message.role], "prompt": message.text}
            for message in make_upstream_chat(history, tools)
        )
        replies = await asyncio.to_thread(self.model.generate, [prompt], self.max_out_len)
        reply = str(replies[0]).strip()
        step = parse_upstream(reply, tools, (history.files | files).__contains__)
        said = ModelOutput.from_content("opencompass", reply)
        return Decision(step=step, output=said, thought=read_upstream_thought(reply))

    async def _work(
        self, task: AtomicTask | WorkflowTask, root: Path
    ) -> tuple[Dialogue, list[str]]:
        """The loop with real tools; the files that it left are kept where there is a place."""
        async with AsyncExitStack() as stack:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="gta-oc-"))
            given = {item.path: root / item.source for item in task.attachments}
            workspace = Workspace.create(Path(place), given, follow_links=True)
            source = await self._source(stack, task, workspace)
            known = source.specs()
            own = task.offered if isinstance(task, AtomicTask) else dict.fromkeys(known)
            offered = [spec for name in own if (spec := known.get(name) or own[name]) is not None]
            work = await work_on(
                task,
                self._decide,
                source,
                workspace,
                tools=offered,
                limits=LoopLimits(max_turns=self.max_turn),
            )
            return work, self._kept(task.id, workspace)

    async def _source(
        self, stack: AsyncExitStack, task: AtomicTask | WorkflowTask, workspace: Workspace
    ) -> ToolSource:
        if self.tape is not None:
            tape = Tape.open(Path(self.tape))
            stack.callback(tape.close)
            name = "atomic" if isinstance(task, AtomicTask) else "workflow"
            return TapedTools(tape, TapeUnit(name, task.id, 1), "replay", Redactor({}))
        server = parse_tools(str(self.tools))
        if server is None:
            raise ValueError("`tools` is the address of a tool server.")
        source = await connect(server, read_key(TOKEN_VARIABLE))
        stack.push_async_callback(source.aclose)
        stack.push_async_callback(source.release, workspace)
        return source

    def _kept(self, task: str, workspace: Workspace) -> list[str]:
        paths = [file.path for file in workspace.outputs().files]
        if self.files is None:
            return []
        folder = Path(self.files) / task / "files"
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            (folder / Path(path).name).write_bytes(workspace.read(path))
        return [str(folder / Path(path).name) for path in paths]


@cache
def _files(root: Path) -> frozenset[str]:
    """All files of the dataset: upstream's parser takes a path to any of them."""
    return list_dataset_files(load_atomic(root).tasks.values())


EMPTY: dict[str, Any] = {"steps": []}


def _dummies(task: AtomicTask, root: Path) -> list[ToolSpec]:
    """The task's tools as toolmeta.json defines them, as upstream's step mode offers them."""
    toolmeta, _ = load_toolmeta(root)
    return [toolmeta.get(name, spec) for name, spec in task.offered.items()]
