"""Figures for docs/measurements-tools.md; run by hand with `pytest -m measure -s`."""

import asyncio
import re
import statistics
import time
from collections.abc import Awaitable, Mapping
from pathlib import Path

import pytest

from gta_bench.errors import ToolError
from gta_bench.records.atomic import AtomicTask
from gta_bench.settings import Settings
from gta_bench.tools.backends.boxes import Box
from gta_bench.tools.backends.detection import match
from gta_bench.tools.backends.local import find_objects
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox
from tests.tools.gold_calls import GoldCall, gold_calls, words

pytestmark = pytest.mark.measure
Tasks = Mapping[str, AtomicTask]


def call(box: Toolbox, tool: str, gold: GoldCall, atomic_dir: Path, folder: Path) -> str:
    space = gold.workspace(atomic_dir, folder)
    return asyncio.run(box.call(space, tool, gold.arguments)).text


def test_ocr_finds_the_words_of_the_recorded_replies(
    atomic_tasks: Tasks, atomic_dir: Path, tmp_path: Path
) -> None:
    box, rows, seconds = Toolbox(Equipment(Settings())), [], list[float]()
    cache: dict[str, str] = {}
    astray = []
    for gold in gold_calls(atomic_tasks, "OCR"):
        image = str(gold.arguments["image"])
        if image not in {attached.path for attached in gold.task.attachments}:
            astray.append(gold.task.id)  # task 108 asks for an image of task 107
            with pytest.raises(ToolError, match="There is no file"):
                call(box, "OCR", gold, atomic_dir, tmp_path)
            continue
        if image not in cache:
            start = time.perf_counter()
            cache[image] = call(box, "OCR", gold, atomic_dir, tmp_path)
            seconds.append(time.perf_counter() - start)
        wanted, found = words(gold.reply), words(cache[image])
        joined = "".join(found.elements())
        hits = (wanted & found).total()
        loose = sum(number for word, number in wanted.items() if word in joined)
        rows.append((hits / max(1, wanted.total()), hits, loose, wanted.total(), gold, image))
    total = sum(row[3] for row in rows)
    print(f"\ncalls {len(rows)}, images {len(seconds)}, words {total}; no such file: {astray}")
    print(f"words found {sum(row[1] for row in rows) / total:.1%}")
    print(f"words found, blanks ignored {sum(row[2] for row in rows) / total:.1%}")
    print(f"mean over calls {statistics.mean(row[0] for row in rows):.1%}")
    print(f"median over calls {statistics.median(row[0] for row in rows):.1%}")
    print(f"calls with every word {sum(row[1] == row[3] for row in rows)}")
    print(f"seconds a call: median {statistics.median(seconds):.1f}, most {max(seconds):.1f}")
    for share, hits, _, count, gold, image in sorted(rows, key=lambda row: row[0])[:10]:
        print(f"task {gold.task.id} {image}: {hits}/{count} = {share:.0%}")
        print(f"   recorded {gold.reply[:150]!r}\n   read     {cache[image][:150]!r}")
    assert len(rows) + len(astray) == 131


def test_counting_offline_against_the_recorded_counts(
    atomic_tasks: Tasks, atomic_dir: Path, tmp_path: Path, offline: Equipment
) -> None:
    box, tally = Toolbox(offline), {"asked": [0, 0], "refused, had it counted": [0, 0]}
    unknown = 0
    for gold in gold_calls(atomic_tasks, "CountGivenObject"):
        text = str(gold.arguments["text"])
        matched = match(text)
        if matched is None:
            unknown += 1
            with pytest.raises(ToolError, match="does not know"):
                call(box, "CountGivenObject", gold, atomic_dir, tmp_path)
            continue
        if matched.unseen:
            kind = "refused, had it counted"
            data = gold.workspace(atomic_dir, tmp_path).read(str(gold.arguments["image"]))
            seen = asyncio.run(find_objects(offline, data, "image", floor=0.5))
            number = sum(one.label == matched.label for one in seen)
        else:
            kind = "asked"
            number = int(call(box, "CountGivenObject", gold, atomic_dir, tmp_path))
        tally[kind][0] += number == int(gold.reply)
        tally[kind][1] += 1
        print(f"task {gold.task.id} {text!r}: {kind}, recorded {gold.reply}, counted {number}")
    print(f"\nexact counts {tally}, no class {unknown}")


def test_grounding_offline_against_the_recorded_boxes(
    atomic_tasks: Tasks, atomic_dir: Path, tmp_path: Path, offline: Equipment
) -> None:
    box, overlaps, refused = Toolbox(offline), list[float](), list[str]()
    for gold in gold_calls(atomic_tasks, "TextToBbox"):
        try:
            said = call(box, "TextToBbox", gold, atomic_dir, tmp_path)
        except ToolError as exc:
            refused.append(f"{gold.task.id} {gold.arguments['text']!r}: {str(exc)[:60]}")
            continue
        found = boxes(said)
        best = [max([one.overlap(other) for other in found] or [0.0]) for one in boxes(gold.reply)]
        print(f"task {gold.task.id} {gold.arguments['text']!r}: {[round(one, 2) for one in best]}")
        overlaps += best
    hits = sum(one >= 0.5 for one in overlaps)
    print(f"\nrecorded boxes {len(overlaps)}, overlap of at least 0.5: {hits}")
    print(f"mean overlap {statistics.mean(overlaps):.2f}; refused {len(refused)}: {refused}")


def boxes(reply: str) -> list[Box]:
    numbers = [re.findall(r"\d+", line)[:4] for line in reply.splitlines()]
    return [Box(*map(int, four)) for four in numbers if len(four) == 4]


async def lag_during(work: Awaitable[object]) -> list[float]:
    """How late the event loop was, in milliseconds, sampled every 5 ms while the work went on."""
    late: list[float] = []

    async def watch() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.005)
            late.append((time.perf_counter() - start - 0.005) * 1000)

    watcher = asyncio.create_task(watch())
    await work
    watcher.cancel()
    return sorted(late)


def test_the_event_loop_stays_free_while_50_calls_run(
    atomic_dir: Path, tmp_path: Path, offline: Equipment, atomic_tasks: Tasks
) -> None:
    box = Toolbox(offline)
    (gold,) = (one for one in gold_calls(atomic_tasks, "OCR") if one.task.id == "107")
    space = gold.workspace(atomic_dir, tmp_path)
    image = gold.arguments["image"]
    calls = [
        ("OCR", {"image": image}),
        ("CountGivenObject", {"image": image, "text": "cup"}),
        ("ImageStylization", {"image": image, "instruction": "cartoon style"}),
        ("TextToBbox", {"image": image, "text": "cup"}),
        ("ImageDescription", {"image": image}),
    ] * 10

    async def run() -> list[float]:
        await box.call(space, "ImageDescription", {"image": image})
        return await lag_during(
            asyncio.gather(*(box.call(space, name, given) for name, given in calls))
        )

    start = time.perf_counter()
    late = asyncio.run(run())
    took = time.perf_counter() - start
    p99 = late[int(len(late) * 0.99)]
    print(f"\n50 calls in {took:.0f} s; lag: median {statistics.median(late):.1f} ms, ", end="")
    print(f"p99 {p99:.1f} ms, most {late[-1]:.1f} ms, samples {len(late)}")
    assert p99 < 50
