"""`gta_bench/judge` as Inspect runs it by itself."""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model

from gta_bench.errors import RunError
from gta_bench.records.verdicts import Scored, Unscored
from gta_bench.runs.directory import open_run
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.tasks.judging import find_judgeable_units, judge_task
from tests.judging.builders import asked, honest, task
from tests.judging.stored import stored_run
from tests.runs.test_directory import manifest


def reply(input: list[ChatMessage], *_: Any) -> ModelOutput:
    request = {"messages": [{"content": str(getattr(input[-1].content[-1], "text", ""))}]}
    text = "no idea" if "cp1-2" in asked(request) else honest(request)
    output = ModelOutput.from_content("mockllm", text)
    output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return output


def test_inspect_judges_a_stored_run_by_the_role_judge(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "run", [task("1", 2)], {"notes.txt": b"All is well."})
    judge = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    log = inspect_eval(
        judge_task(run=str(run)),
        model_roles={"judge": judge},
        log_dir=str(tmp_path / "logs"),
        display="none",
        log_realtime=False,
    )[0]
    assert (log.status, log.eval.task) == ("success", "gta_bench/judge")
    (sample,) = log.samples or []
    score = (sample.scores or {})["share_scored"]
    assert score.value == 0.5
    assert "cp1-1: 8. Seen." in str(score.explanation)
    assert "cp1-2: unscored, reply_not_json" in str(score.explanation)
    verdicts = [row.verdict for row in read_verdicts(run).values()]
    assert [type(verdict) for verdict in verdicts] == [Scored, Unscored]
    assert {key.judge for key in read_verdicts(run)} == {"mockllm/model"}


def test_a_run_of_gta_atomic_has_no_judge(tmp_path: Path) -> None:
    open_run(tmp_path, manifest())
    with pytest.raises(RunError, match="which is scored without a judge"):
        find_judgeable_units(tmp_path)
