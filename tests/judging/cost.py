"""The cost of judging: upstream's behavior and ours against the same server, in one run."""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from gta_bench.records.units import WorkflowUnit
from gta_bench.running.judge_run import judge_run, plan_judging
from gta_bench.settings import BudgetSettings, JudgeSettings, ModelSettings, Settings
from tests.judging.counting_server import CountingServer, Counts
from tests.judging.upstream_client import UpstreamClient


class Cost(NamedTuple):
    """One side's wall time and what the server counted."""

    name: str
    seconds: float
    counts: Counts

    def line(self) -> str:
        counts = self.counts
        shares = ""
        if counts.tokens:
            shares = (
                f", {counts.tokens} tokens, prefix {counts.prefix / counts.tokens:.1%}, "
                f"cached {counts.cached / counts.tokens:.1%}"
            )
        return (
            f"{self.name}: {self.seconds:.1f} s, {counts.calls} calls, {counts.uploads} uploads, "
            f"{counts.bytes / 1e6:.1f} MB{shares}"
        )


def upstream_cost(
    units: dict[str, WorkflowUnit], files: dict[str, list[Path]], server: CountingServer
) -> Cost:
    server.fresh()
    client = UpstreamClient(server.url)
    start = time.monotonic()
    for name, unit in units.items():
        for leaf in unit.task.leaves():
            client.judge(unit.task.request, unit.answer, leaf, files[name])
    seconds = time.monotonic() - start
    client.connection.close()
    return Cost("upstream", seconds, server.counts)


def our_cost(run: Path, server: CountingServer, leaves: int, *, connections: int = 10) -> Cost:
    server.fresh()
    settings = Settings(
        models={
            "local": ModelSettings(
                model=f"openai-api/local/m{leaves}",
                base_url=server.url,
                key_env="GTA_TEST_KEY_A",
            )
        },
        judge=JudgeSettings(leaves_per_call=leaves),
        budget=BudgetSettings(max_connections=connections),
    )
    start = time.monotonic()
    judging = plan_judging(["local"], settings)
    done = list(judge_run(run, judging, lambda _: nullcontext(lambda _: None)))
    seconds = time.monotonic() - start
    assert [one.scored for one in done] == [one.wanted for one in done]
    return Cost(f"{leaves} a call", seconds, server.counts)
