"""`gta-nemo-gym-rows`: the dataset of NeMo Gym, one row an episode, with the tools that it offers.

A row has no request: the server makes the task, and sends its request when the episode starts.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from gta_bench.errors import GtaError, UsageError
from gta_bench.rl.chat import ChatEpisode, ChatStart
from gta_bench.rl.options import EpisodeChoice, EpisodeMaker, read_options

AGENT = "gta_bench_agent"


async def make_rows(
    maker: EpisodeMaker, count: int | None, first: int
) -> AsyncIterator[dict[str, Any]]:
    """Yield a row for each episode."""
    episode = ChatEpisode(await maker.make())
    try:
        for choice in maker.list_choices(count, first):
            yield make_row(choice, await episode.start(seed=choice.seed, task=choice.task))
    finally:
        episode.close()


def make_row(choice: EpisodeChoice, start: ChatStart) -> dict[str, Any]:
    """Return the row of an episode."""
    tools = [{"type": "function", "strict": False} | one._asdict() for one in start.functions]
    return {
        "responses_create_params": {
            "input": [{"role": "system", "content": start.system}],
            "tools": tools,
        },
        **{name: value for name, value in choice._asdict().items() if value is not None},
        "agent_ref": {"type": "responses_api_agents", "name": AGENT},
    }


async def _write(maker: EpisodeMaker, count: int | None, first: int, out: Path) -> int:
    rows = [json.dumps(row) async for row in make_rows(maker, count, first)]
    await maker.close()
    out.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return len(rows)


def main() -> None:
    """Write rows: `gta-nemo-gym-rows '{"families": ["chart"]}' --count 100 --out rows.jsonl`."""
    parser = argparse.ArgumentParser(prog="gta-nemo-gym-rows", description=main.__doc__)
    parser.add_argument("options", help="options of the episodes, as JSON")
    parser.add_argument("--count", type=int, help="episodes; default: every task of the data once")
    parser.add_argument("--first", type=int, default=0, help="seed of the first episode")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    try:
        maker = EpisodeMaker(read_options(given.options))
        if given.count is None and maker.endless:
            raise UsageError("Families have no last task: set --count.")
        written = asyncio.run(_write(maker, given.count, given.first, given.out))
    except GtaError as exc:
        sys.exit(f"gta-nemo-gym-rows: {exc}")
    sys.stdout.write(f"{written} rows in {given.out}\n")
