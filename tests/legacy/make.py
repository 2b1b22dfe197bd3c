"""Make the stored runs again: `python -m tests.legacy.make FOLDER`, with the version before only.

FOLDER is a new folder outside of any repository, with a name that may stand in the logs.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_IFDIR, S_IFLNK, S_IFREG
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

# Importing it teaches `zipfile` the compression of the engine's logs.
import inspect_ai.log  # noqa: F401
from PIL import Image

from gta_bench.records.labels import Label, Labels
from gta_bench.runs.labels import write_adjudication, write_labels
from tests.builders import checkpoint, tool, workflow_task, write_atomic, write_workflow
from tests.legacy.bench import (
    EXPECTED,
    HARD,
    KEY,
    NOWHERE,
    STORED,
    Bench,
    gta,
    observe,
    observe_boards,
    open_bench,
    resume,
    said,
    unpack,
    write_settings,
)
from tests.legacy.kinds import (
    ATTACK,
    IMPORTS,
    READ,
    RUNS,
    SETTINGS,
    TOGETHER,
    UNFINISHED,
    UNJUDGED,
    alone,
    command,
)

REPOSITORY = Path(__file__).parents[2]
DEMO = REPOSITORY / "src" / "gta_bench" / "demo" / "data"


def read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def put(name: str, content: str) -> None:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")


# Datasets


def call(name: str, **arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "tool_calls": [{"type": "function", "function": function}],
        "thought": "A tool helps.",
    }


def reply(name: str, content: str, kind: str = "text") -> dict[str, Any]:
    return {"role": "tool", "name": name, "content": {"type": kind, "content": content}}


def write_datasets() -> None:
    tools = {one["name"]: one for one in read(DEMO / "atomic" / "toolmeta.json").values()}
    calculator, writer = tools["Calculator"], tools["AddText"]
    picture = {"type": "image", "path": "image/sea.png", "url": None}
    tasks = {
        "0": {
            "tools": [calculator, writer],
            "files": [],
            "dialogs": [
                {"role": "user", "content": "What is 12*7, and nine times that?"},
                call("Calculator", expression="12*7"),
                reply("Calculator", "84"),
                call("Calculator", expression="84*9"),
                reply("Calculator", "756"),
                {"role": "assistant", "content": "It is 84, and nine times that is 756."},
            ],
            "gt_answer": {"whitelist": [["84"], ["756"]], "blacklist": None},
        },
        "1": {
            "tools": [writer],
            "files": [picture],
            "dialogs": [
                {"role": "user", "content": "Write 'Hi' on this picture."},
                call("AddText", image="image/sea.png", text="Hi", position="mt", color="white"),
                reply("AddText", "image/dummy_generated_image.jpg", "image"),
                {"role": "assistant", "content": "Here is your picture."},
            ],
            "gt_answer": None,
        },
        "2": {
            "tools": [calculator],
            "files": [],
            "dialogs": [
                {"role": "user", "content": f"What is 15*7? {HARD}"},
                call("Calculator", expression="15*7"),
                reply("Calculator", "105"),
                {"role": "assistant", "content": "It is 105."},
            ],
            "gt_answer": {"whitelist": [["105"]], "blacklist": [["104"]]},
        },
    }
    root = write_atomic(Path("data/atomic"), tasks, tools)
    (root / "image" / "menu.jpg").unlink()
    for name in ("sea.png", "dummy_generated_image.jpg"):
        Image.new("RGB", (120, 60), "navy").save(root / "image" / name)
    write_workflow_data()


def write_workflow_data() -> None:
    tools = read(DEMO / "workflow" / "toolmeta.json")
    named = {one["name"]: one for one in tools}
    tree = [
        checkpoint(
            "cp1",
            checkpoint("cp1-1", requirements="The first animal is named"),
            checkpoint("cp1-2", requirements="The second animal is named"),
            requirements="Both animals",
        ),
        checkpoint("cp2", requirements="The animal that was not asked for is named", weight=2),
    ]
    tasks = {
        "1": workflow_task(
            tools=[named["CsvFileGenerator"]],
            dialogs=[{"role": "user", "content": "Make a table of two animals."}],
            sub_tasks=tree,
        ),
        "2": workflow_task(
            tools=[named["ReadCSV"], named["CsvFileGenerator"]],
            files=[{"type": "file", "path": "files/list.csv", "url": None}],
            dialogs=[{"role": "user", "content": "Please sort the list of animals."}],
            sub_tasks=tree,
        ),
    }
    root = write_workflow(Path("data/workflow"), tasks, [*tools, tool("Unused")])
    put(str(root / "files" / "list.csv"), "name\nquokka\nnumbat\n")


# Results of elsewhere


def write_sources() -> None:
    put("sources/folder/meta.json", json.dumps({"harness": "Elsewhere", "model": "m"}))
    put("sources/folder/1/final.txt", "The table is there.")
    put("sources/folder/1/files/animals.csv", "name\nquokka\n")
    meta = {"seconds": 61.5, "cost_usd": 0.25, "tokens": {"input": 10, "output": 2}}
    put("sources/folder/1/meta.json", json.dumps(meta))
    put("sources/answers/0/final.txt", "84 and 756")
    put("sources/answers/2/final.txt", "It is 104.")
    put("sources/pack/table.csv", "name\nwombat\n")
    steps = [[{"role": "assistant", "content": "Done."}]]
    entry = {"task_id": 1, "assistant_outputs": steps, "attached_files": ["table.csv"]}
    about = {"backend": "openclaw"}
    pack = {"schema_version": 1, "generated_from": about, "tasks": [entry]}
    put("sources/pack/pack.json", json.dumps(pack))
    for mode, name in (("step", "step"), ("end-to-end", "end")):
        put(f"sources/{name}.json", json.dumps(predictions(Path("data/atomic"), mode, wrong=3)))
    prediction = {"0": {"prediction": steps, "gold": [[]]}}
    put("sources/stored/task1/prediction.json", json.dumps(prediction))
    put("sources/stored/task1/attachments/animals.csv", "name\nquokka\n")


def predictions(data: Path, mode: str, *, wrong: int) -> dict[str, Any]:
    """The reference as predictions of the published pipeline; every so many answers are wrong."""
    found = {}
    for position, task in enumerate(read(data / "dataset.json").values()):
        turns = [turn for turn in task["dialogs"] if turn["role"] != "user"]
        if mode == "step":
            turns = [turn for turn in turns if turn["role"] == "assistant"]
        said = turns
        if position % wrong == wrong - 1:
            said = [*turns[:-1], {"role": "assistant", "content": "No idea."}]
        gold, prediction = (turns, said) if mode == "step" else ([turns], [said])
        found[str(position)] = {"prediction": prediction, "gold": gold, "origin_prompt": []}
    return found


# Runs


def do(*arguments: str, code: int = 0) -> None:
    result = gta(*arguments)
    if result.exit_code != code:
        raise RuntimeError(f"{arguments}: {result.exit_code}\n{result.output}") from (
            result.exception
        )


@contextmanager
def started(*arguments: str, program: str = "") -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own; `program` is run before it."""
    code = f"{program}\nfrom gta_bench.cli import main\nmain()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def stop(bench: Bench, kind: str, how: signal.Signals, model: str, words: str) -> None:
    """End the command by a signal while the model is asked with these words."""
    out = f"runs/{kind}"
    bench.waiting.clear()
    bench.silent = {(model, words)}
    done = 2 if kind.startswith("shards") else 0
    with started(*command(UNFINISHED[kind], out)) as process:
        wait_for(lambda: bench.waiting.is_set() and finished(out) >= done, process)
        time.sleep(2)
        os.killpg(process.pid, how)
        process.wait(60)
    bench.silent = set()
    bench.ended.set()
    bench.ended.clear()


def finished(out: str) -> int:
    if not Path(out, "run.json").is_file():
        return 0
    result = gta("status", out, "--json")
    return int(json.loads(result.stdout)["done"]) if result.exit_code == 0 else 0


def wait_for(true: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 180
    while not true():
        if time.monotonic() > end or process.poll() is not None:
            raise RuntimeError(f"not reached: {process.communicate()}")
        time.sleep(0.2)


def make_runs(bench: Bench) -> None:
    for kind in RUNS:
        print(kind, flush=True)
        write_settings(bench.server.url, SETTINGS.get(kind, ""))
        if "--workers" in RUNS[kind]:
            with started(*command(kind)) as process:
                _, err = process.communicate(timeout=180)
                assert process.returncode == 0, err
        else:
            do(*command(kind))
    write_settings(bench.server.url)
    for kind, imported in IMPORTS.items():
        print(kind, flush=True)
        do(*imported, "--out", f"runs/{kind}")


HARD_TASK = ("scripted", "What is 15*7")
LAST_WORKFLOW_TASK = "sort the list"
# Stops before the logs of finished shards become one.
UNMERGED = """
import gta_bench.tasks.shards as shards
def stop(*_):
    raise KeyboardInterrupt
shards._merge = stop
"""


def make_unfinished(bench: Bench) -> None:
    stops = {
        "step-killed": (signal.SIGKILL, *HARD_TASK),
        "step-interrupted": (signal.SIGINT, *HARD_TASK),
        "end-to-end-killed": (signal.SIGKILL, *HARD_TASK),
        "epochs-killed": (signal.SIGKILL, *HARD_TASK),
        "workflow-killed": (signal.SIGKILL, "scripted", LAST_WORKFLOW_TASK),
        "judging-killed": (signal.SIGKILL, "strict", LAST_WORKFLOW_TASK),
        "feedback-killed": (signal.SIGKILL, "scripted", "second animal"),
        "shards-killed": (signal.SIGKILL, *HARD_TASK),
    }
    for kind, stopped in stops.items():
        print(kind, flush=True)
        stop(bench, kind, *stopped)
    bench.broken = {HARD_TASK}
    do(*command("step", "runs/step-failed"), code=1)
    for kind, program in (("shards-failed", ""), ("shards-unmerged", UNMERGED)):
        print(kind, flush=True)
        with started(*command("shards", f"runs/{kind}"), program=program) as process:
            _, err = process.communicate(timeout=180)
            assert process.returncode == 1, err
        bench.broken = set()


def make_judged() -> None:
    """A run of two judges with a floor and labels, and a set to compare judges on."""
    run = Path("runs/judged")
    shutil.copytree("runs/two-judges", run)
    do("judge", "floor", str(run), "--judge", "strict")
    leaves = [(task, leaf) for task in ("1", "2") for leaf in ("cp1-1", "cp1-2", "cp2")]
    for rater, low in (("anna", 3.0), ("ben", 9.0)):
        labels = tuple(
            Label(task=task, leaf=leaf, value=low if leaf == "cp2" else 8.0, reason="Seen.")
            for task, leaf in leaves
        )
        write_labels(run, Labels(rater=rater, labels=labels))
    word = Label(task="1", leaf="cp2", value=2.0, reason="It is not there.")
    write_adjudication(run, Labels(rater="adjudicator", labels=(word,)))
    do("judge", "bridge", "runs/two-judges", "--out", "runs/bridge")
    do(*ATTACK)


def make_exports() -> None:
    for shape in ("csv", "parquet"):
        runs = ("runs/end-to-end", "runs/two-judges")
        do("results", "export", *runs, "--out", f"exports/{shape}", "--format", shape)


# Bundles, whose runs have as many tasks as the boards


def board_task(number: int) -> dict[str, Any]:
    """A task of a dataset with as many turns and calls as GTA-Atomic; some end without answer."""
    tools = read(Path("data/atomic/toolmeta.json"))
    factors = range(7, 10 if number < 99 else 9)
    turns: list[dict[str, Any]] = []
    for factor in factors:
        turns += [
            call("Calculator", expression=f"{number}*{factor}"),
            reply("Calculator", str(number * factor)),
        ]
    answer = str(number * factors[-1])
    if number >= 16:
        turns.append({"role": "assistant", "content": f"It is {answer}."})
    whitelist = {"whitelist": [[answer]], "blacklist": None}
    return {
        "tools": [tools["Calculator"]],
        "files": [],
        "dialogs": [{"role": "user", "content": f"How many are {number} boxes?"}, *turns],
        "gt_answer": None if number < 57 else whitelist,
    }


def make_bundles(bench: Bench) -> None:
    tasks = {str(number): board_task(number) for number in range(229)}
    tools = read(Path("data/atomic/toolmeta.json"))
    root = write_atomic(Path("data/atomic-229"), tasks, tools)
    shutil.rmtree(root / "image")
    data = ("--data", str(root))
    for mode in ("step", "end-to-end"):
        put(f"many/{mode}.json", json.dumps(predictions(root, mode, wrong=10)))
        source = ("opencompass", f"many/{mode}.json", "--mode", mode)
        do("import", *source, *data, "--model", "m", "--out", f"boards/{mode}")
        do("score", f"boards/{mode}")
    for number in range(0, 229, 2):
        put(f"many/answers/{number}/final.txt", f"It is {number * 8}.")
    folder = ("folder", "many/answers", "--dataset", "atomic")
    do("import", *folder, *data, "--out", "boards/other")
    do("score", "boards/other")
    runs = ("boards/step", "boards/end-to-end")
    do("leaderboard", "submit", *runs, "--out", "atomic.zip", "--key", "key.pem")
    make_workflow_bundle(bench)


def make_workflow_bundle(bench: Bench) -> None:
    counts = [9] * 100 + [8] * 32  # 1,156 leaves, as GTA-Workflow has
    tree = {
        str(number): workflow_task(
            sub_tasks=[
                checkpoint(f"cp{leaf}", requirements=f"Part {leaf} of {number} is there")
                for leaf in range(count)
            ]
        )
        for number, count in enumerate(counts)
    }
    write_workflow(Path("data/workflow-132"), tree)
    for number in range(132):
        put(f"many/works/{number}/final.txt", "Done.")
        put(f"many/works/{number}/files/a.txt", "wombat" if number % 10 == 0 else "quokka")
    data = ("--data", "data/workflow-132")
    do("import", "folder", "many/works", *data, "--harness", "Mine", "--out", "boards/workflow")
    write_settings(bench.server.url, "[judge]\nleaves_per_call = 9\n")
    do("score", "boards/workflow", "--judge", "strict")
    name = ("--system", "My system", "--group", "harness")
    do(
        "leaderboard",
        "submit",
        "boards/workflow",
        *name,
        "--out",
        "workflow.zip",
        "--key",
        "key.pem",
    )
    write_settings(bench.server.url)
    # The judge's own logs are large and no part of a bundle.
    shutil.rmtree("boards/workflow/judging")


# Archives


# What tracebacks tell of the machine.
PLACES = (
    *(f"{sysconfig.get_path(name)}/" for name in ("purelib", "stdlib")),
    *(f"{REPOSITORY}/src/", f"{REPOSITORY}/", f"{sys.prefix}/", f"{Path.home()}/"),
)


def scrub(file: Path) -> None:
    """Take the machine's folders out of a log."""
    with ZipFile(file) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    with ZipFile(file, "w") as archive:
        for info, data in members:
            for place in PLACES:
                data = data.replace(place.encode(), b"")
            archive.writestr(info, data)


def pack(name: str, *folders: str, expected: Any = None) -> None:
    """Folders of the bench as an archive, with what is expected of them."""
    files = sorted(file for folder in folders for file in (Path(folder), *Path(folder).rglob("*")))
    with ZipFile(STORED / f"{name}.zip", "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for file in files:
            if file.is_symlink():
                target = str(file.readlink()).encode()
                archive.writestr(member(file.as_posix(), S_IFLNK | 0o777), target)
            elif file.is_dir():
                archive.writestr(member(f"{file.as_posix()}/", S_IFDIR | 0o755), b"")
            else:
                archive.writestr(member(file.as_posix(), S_IFREG | 0o644), file.read_bytes())
        if expected is not None:
            text = json.dumps(expected, indent=1, sort_keys=True)
            archive.writestr(member(EXPECTED, S_IFREG | 0o644), text)


def member(name: str, mode: int) -> ZipInfo:
    """A member of an archive that is the same whenever it is made."""
    info = ZipInfo(name, (2026, 11, 15, 0, 0, 0))
    info.external_attr = mode << 16
    info.compress_type = ZIP_DEFLATED
    return info


def check_places() -> None:
    """Nothing that is stored tells of the machine."""
    places = [*PLACES, f"{Path.cwd()}"]
    for file in Path().rglob("*"):
        parts = [file.read_bytes()] if file.is_file() else []
        if file.suffix in (".eval", ".zip"):
            with ZipFile(file) as archive:
                parts = [archive.read(name) for name in archive.namelist()]
        for place in places:
            if any(place.encode() in part for part in parts):
                raise RuntimeError(f"{file} holds {place}")


def write_archives() -> None:
    """The archives without expectations."""
    STORED.mkdir(exist_ok=True)
    for log in Path("runs").rglob("*.eval"):
        scrub(log)
    check_places()
    pack("bench", "data/atomic", "data/workflow", "data/tape", "sources")
    pack("exports", "exports")
    pack("attack", "attack")
    pack("boards", "boards", "data/atomic-229", "data/workflow-132", "atomic.zip", "workflow.zip")
    for kind in READ:
        pack(kind, f"runs/{kind}", *(("recorded-tape",) if kind == "recorded" else ()))


def expect(bench: Bench, kind: str) -> Any:
    """What this version says of the unpacked run, and how it goes on with it."""
    run = f"runs/{kind}"
    write_settings(NOWHERE, SETTINGS.get(kind, ""))
    found: dict[str, Any] = {"observed": observe(run)}
    write_settings(bench.server.url, SETTINGS.get(kind, ""))
    if kind in UNFINISHED:
        found["resumed"] = resume(bench, run, *alone(command(UNFINISHED[kind], run)))
    if kind in UNJUDGED:
        found["judged"] = resume(bench, run, "score", run, "--judge", "strict")
    return found


@contextmanager
def elsewhere(*archives: str) -> Iterator[None]:
    """Another folder that holds what the archives hold."""
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        for name in archives:
            unpack(name, Path(folder))
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def write_expectations(bench: Bench) -> None:
    expected = {}
    for kind in READ:
        print(f"expected of {kind}", flush=True)
        with elsewhere("bench", kind):
            expected[kind] = expect(bench, kind)
        if kind in UNFINISHED:
            with elsewhere("bench", UNFINISHED[kind]):
                whole = resume(bench, f"runs/{UNFINISHED[kind]}", "--version")["scores"]
            assert expected[kind]["resumed"]["scores"] == whole, kind
    for kind, found in expected.items():
        add = ("recorded-tape",) if kind == "recorded" else ()
        pack(kind, f"runs/{kind}", *add, expected=found)
    with elsewhere("bench", "exports", "attack", *READ):
        write_settings(NOWHERE)
        together: dict[str, Any] = {name: said(*parts) for name, parts in TOGETHER.items()}
        together["labels.csv"] = Path("labels.csv").read_text(encoding="utf-8")
    pack("together", expected=together)
    with elsewhere("bench", "boards"):
        write_settings(NOWHERE)
        pack_boards(observe_boards())


def pack_boards(expected: Any) -> None:
    folders = ("boards", "data/atomic-229", "data/workflow-132", "atomic.zip", "workflow.zip")
    pack("boards", *folders, expected=expected)


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    os.chdir(folder)
    os.environ[KEY] = "none"
    write_datasets()
    write_sources()
    do("tape", "from-reference", "--data", "data/atomic", "--out", "data/tape")
    with open_bench() as bench:
        write_settings(bench.server.url)
        make_runs(bench)
        make_unfinished(bench)
        make_judged()
        make_exports()
        make_bundles(bench)
        write_archives()
        write_expectations(bench)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
