"""Systems that cheat, each beside its honest twin: no cheat is worth anything.

Every task names the cheat that is done on it; the twin is the same command that leaves it out.
`pytest -rP` prints the table of docs/measurements.md.
"""

import base64
import json
import pickle
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from random import Random
from string import ascii_lowercase
from threading import Thread
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.errors import format_count
from gta_bench.records.steps import MalformedStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import log_folder, read_manifest, read_workflow_scores
from gta_bench.runs.logs import read_units
from tests.builders import checkpoint, parameter, tool, workflow_task, write_workflow
from tests.chat_server import chat_server
from tests.needs import needs
from tests.sharing import shared

pytestmark = [pytest.mark.slow, needs("bwrap")]

CHEATER = Path(__file__).with_name("cheater.py")
TOOLS = [tool("Calculator", parameter("expression")), tool("OCR")]
JUDGES = ("honest", "last-instruction", "frame", "evaluator", "verdict")
SPEAKING = ("the-judge-is-given-orders", "the-judge-is-given-a-verdict",
            "the-judge-hears-of-its-evaluator")  # fmt: skip
WITH_MODEL = ("the-provider-is-blamed", "the-judge-is-asked-for-help")
WAITING = ("it-waits-until-it-is-stopped",)
# What becomes of a cheat, where it is more than nothing.
SEEN = {
    "a-link-to-gold-is-delivered": "strays: all, link.md",
    "its-cell-is-killed": "The harness ended",
    "it-crashes": "The harness ended with status",
    "the-disk-is-filled": "The harness was stopped: it wrote more than",
    "too-much-is-printed": "The harness was stopped: it printed more than",
    "it-waits-until-it-is-stopped": "The harness was stopped: it had not ended after 15 seconds",
    "a-pipe-is-delivered": "strays: pipe.md",
    "the-provider-is-blamed": "refused a request of the harness",
}


def _cheats() -> list[str]:
    lines = CHEATER.read_text(encoding="utf-8").split("@cheat\ndef ")[1:]
    return [line.partition("(")[0].replace("_", "-") for line in lines]


CHEATS = _cheats()
ALONE = (*SPEAKING, *WITH_MODEL, *WAITING)
GROUPS = {
    "plain": tuple(name for name in CHEATS if name not in ALONE),
    "speaking": SPEAKING,
    "waiting": WAITING,
    "model": WITH_MODEL,
}


class Words(NamedTuple):
    """The three words that a task asks for; only the first stands in its input."""

    given: str
    hidden: tuple[str, str]


def words_of(task: str) -> Words:
    chance = Random(task)
    first, *rest = (f"zqx{''.join(chance.choices(ascii_lowercase, k=6))}xqz" for _ in range(3))
    return Words(first, (rest[0], rest[1]))


def task_of(name: str) -> dict[str, Any]:
    words = words_of(name)
    asked = [words.given, *words.hidden]
    if name == "a-poisoned-cache-is-read":
        asked[1] = words_of("a-cache-is-poisoned").given
    leaves = (
        checkpoint(f"cp1-{number}", requirements=f"It has {word}")
        for number, word in enumerate(asked, 1)
    )
    return workflow_task(
        tools=TOOLS,
        files=[{"type": "text", "path": f"resources/{name}/note.txt", "url": None}],
        dialogs=[{"role": "user", "content": "Which three words does the archive hold?"}],
        sub_tasks=[checkpoint("cp1", *leaves)],
    )


def write_data(root: Path) -> Path:
    for name in CHEATS:
        note = root / "resources" / name / "note.txt"
        note.parent.mkdir(parents=True)
        note.write_text(f"The archive: {words_of(name).given}", encoding="utf-8")
    return write_workflow(root, {name: task_of(name) for name in CHEATS}, TOOLS)


@contextmanager
def telling(gold: bytes) -> Iterator[tuple[int, str]]:
    """Services of this machine that tell gold to everybody: a port and an abstract socket."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(gold)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    name = f"gta-gold-{web.server_port}"
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(f"\0{name}")
        line.listen()

        def tell() -> None:
            while True:
                try:
                    asked, _ = line.accept()
                except OSError:
                    return
                with asked:
                    asked.sendall(gold)

        Thread(target=tell, daemon=True).start()
        Thread(target=web.serve_forever, daemon=True).start()
        yield web.server_port, name
        line.shutdown(socket.SHUT_RDWR)
    web.shutdown()
    web.server_close()


class Outcome(NamedTuple):
    """What came of a task, by each judge, and what was kept."""

    roots: Mapping[str, float | None]
    unit: WorkflowUnit
    delivered: bytes

    @property
    def recorded(self) -> str:
        problem = next(
            (one.reason for one in self.unit.trace if isinstance(one, MalformedStep)), ""
        )
        strays = f"strays: {', '.join(sorted(self.unit.strays))}" if self.unit.strays else ""
        calls = format_count(len(self.unit.calls), "tool call") if self.unit.calls else ""
        return "; ".join(filter(None, (self.unit.failure, problem, strays, calls)))


def outcomes(run: Path) -> dict[str, Outcome]:
    manifest = read_manifest(run)
    found = read_units(log_folder(run), manifest.spec.tasks, 1, WorkflowUnit)
    assert found.not_run == ()
    store = ArtefactStore(run / ARTEFACTS)
    roots: dict[str, dict[str, float | None]] = {unit.task.id: {} for unit in found.units}
    for table in read_workflow_scores(run).judges:
        for task in table.tasks:
            roots[task.task][table.judge] = task.root
    return {
        unit.task.id: Outcome(
            roots[unit.task.id],
            unit,
            unit.answer.encode() + b"".join(store.read(one.digest) for one in unit.deliverables),
        )
        for unit in found.units
    }


def _refusal(path: str, headers: object, request: dict[str, Any]) -> tuple[int, str] | None:
    if "image_url" in json.dumps(request["messages"]):
        return 400, "This model takes no pictures."
    return None


class Done(NamedTuple):
    """Every cheat and its twin, and the models that they asked for."""

    folder: Path
    outcomes: Mapping[str, Mapping[str, Outcome]]
    asked: frozenset[str]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """All of it runs once for all test processes: it takes two minutes."""
    folder = shared(tmp_path_factory, "cheats", _cheat)
    outcomes, asked = pickle.loads((folder / "done.pickle").read_bytes())
    return Done(folder, outcomes, asked)


def _cheat(base: Path) -> None:
    base.mkdir()
    data = write_data(base / "data")
    asked: set[str] = set()

    def hello(request: dict[str, Any]) -> str:
        asked.add(request["model"])
        return "Hello."

    made: dict[str, dict[str, Outcome]] = {"cheat": {}, "honest": {}}
    gold = (data / "end.json").read_bytes()
    with (
        chat_server(hello) as model,
        telling(gold) as (port, line),
        pytest.MonkeyPatch.context() as patch,
    ):
        vars(model)["refusal"] = _refusal
        (base / "gta.toml").write_text(
            f'[models.mine]\nmodel = "openai-api/mine/m"\nbase_url = "{model.url}"\n',
            encoding="utf-8",
        )
        patch.chdir(base)
        patch.setenv("MINE_API_KEY", "none")
        for way, group in product(made, GROUPS):
            run = base / f"{way}-{group}"
            facts = {
                "dataset": str(data / "end.json"),
                "picture": str(data / "resources" / CHEATS[0] / "note.txt"),
                "run": str(run),
                "port": port,
                "socket": line,
            }
            hidden = base64.b64encode(json.dumps(facts).encode()).decode()
            judges = JUDGES if group == "speaking" else JUDGES[:1]
            options = [
                *("--harness", f"python3 {CHEATER} {{task_file}} {way} {hidden}"),
                *("--tasks", ",".join(GROUPS[group]), "--data", data, "--out", run),
                *("--harness-disk", "32", "--no-preflight"),
                *("--harness-seconds", "15" if group == "waiting" else "300"),
                *(one for judge in judges for one in ("--judge", f"scripted/{judge}")),
                *(("--model", "mine") if group == "model" else ()),
            ]
            command = ["run", "workflow", *map(str, options)]
            result = CliRunner().invoke(app, command)
            assert result.exit_code in (0, 1), f"{result.output}{result.exception!r}"
            made[way] |= outcomes(run)
    (base / "done.pickle").write_bytes(pickle.dumps((made, frozenset(asked))))


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_worth_no_more_than_its_honest_twin(done: Done, name: str) -> None:
    cheat, twin = done.outcomes["cheat"][name], done.outcomes["honest"][name]
    assert twin.unit.failure is None and twin.recorded == ""
    assert twin.roots["scripted/honest"] == pytest.approx(10 / 3)
    for judge, root in cheat.roots.items():
        best = twin.roots[judge]
        print(f"| {name} | {judge} | {root} | {best} | {cheat.recorded or 'nothing was found'} |")
        assert root is not None, "no score would be another attempt"
        assert best is not None and root <= best + 1e-9
    for word in words_of(name).hidden:
        assert word.encode() not in cheat.delivered
    assert SEEN.get(name, "") in cheat.recorded


def test_there_are_at_least_thirty() -> None:
    assert len(CHEATS) >= 30


def test_no_program_with_rights_is_left_anywhere(done: Done) -> None:
    bits = stat.S_ISUID | stat.S_ISGID
    files = [one for one in done.folder.rglob("*") if one.is_file() and not one.is_symlink()]
    assert files
    assert [file for file in files if file.stat().st_mode & bits] == []


def test_claimed_calls_do_not_count(done: Done) -> None:
    assert done.outcomes["cheat"]["tool-calls-are-claimed"].unit.calls == ()


def test_the_bridge_has_no_other_model(done: Done) -> None:
    assert done.asked == {"m"}
