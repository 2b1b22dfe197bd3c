"""The bench on which the stored runs were made, and on which they are read and resumed.

Only the command line is used, so that it works with every version. All paths are relative to
the current folder, because a run can be resumed only with the `--data` that it was started with.
"""

import csv
import io
import json
import math
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from stat import S_ISLNK
from typing import Any
from zipfile import ZipFile

from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.errors import GtaError
from gta_bench.metrics.run_scores import SCORING_VERSION
from tests.chat_server import ChatServer, chat_server
from tests.legacy.kinds import BOARDS, BUNDLES

STORED = Path(__file__).with_name("data")
EXPECTED = "expected.json"
# Nobody listens here; commands that only read need no model.
NOWHERE = "http://127.0.0.1:9/v1"
KEY = "SCRIPTED_KEY"
# A task whose request ends so is one that the scripted model cannot do.
HARD = "Take your time."
WORDS = {"cp1-1": "quokka", "cp1-2": "wombat", "cp2": "numbat"}
# Where commands say something to people.
# The scoring version of the stored runs; traces of theirs score as they did.
BEFORE = 2
WORDS_FOR_PEOPLE = ("/stdout", "/stderr", "/raised", "/page", "/remarks", "/notes")
# A score as every version writes it, and any number.
SCORE = re.compile(r"(?<![\d.$])\d+\.\d\d(?!\d)")
# Of intervals and tests, which are made in another way since; scores for a dollar are now of the
# metric that decides, and judges are corrected leaf by leaf.
INTERVAL = re.compile(r"[-+]?\d+\.\d+ to [-+]?\d+\.\d+|for a dollar.*")
TESTS = (
    *("low", "high", "method", "test", "p_value", "p_holm", "headline", "per_dollar"),
    "corrected",
)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
SETTINGS = """
[data]
atomic = "data/atomic"
workflow = "data/workflow"
[scoring]
similarity = "exact-or-half"
[budget]
max_retries = 0
max_connections = 1
"""
MODEL = """
[models.{name}]
model = "openai-api/local/{name}"
base_url = "{url}"
key_env = "{key}"
input_price = 1000.0
output_price = 2000.0
"""


def gta(*arguments: str) -> Result:
    """The command in this process, with its output and its exit code."""
    return CliRunner().invoke(app, arguments)


def unpack(name: str, folder: Path) -> Path:
    """A stored archive, unpacked into the folder; rounds of a run have links to the first one."""
    with ZipFile(STORED / f"{name}.zip") as archive:
        for info in archive.infolist():
            if S_ISLNK(info.external_attr >> 16):
                (folder / info.filename).parent.mkdir(parents=True, exist_ok=True)
                (folder / info.filename).symlink_to(archive.read(info).decode())
            else:
                archive.extract(info, folder)
    return folder


def write_settings(url: str, extra: str = "") -> None:
    """The gta.toml of this folder; the models are behind the address."""
    models = [MODEL.format(name=name, url=url, key=KEY) for name in ("scripted", "strict", "kind")]
    Path("gta.toml").write_text("\n".join([SETTINGS, *models, extra]), encoding="utf-8")


class Bench:
    """A model and two judges that follow a script, behind HTTP.

    `silent` and `broken` hold a model and words of requests: those are never answered, these fail.
    `waiting` is set while somebody waits for an answer.
    """

    def __init__(self, server: ChatServer) -> None:
        self.server = server
        self.silent: set[tuple[str, str]] = set()
        self.broken: set[tuple[str, str]] = set()
        self.waiting = threading.Event()
        self.ended = threading.Event()
        server.reply = self._reply

    def _reply(self, request: dict[str, Any]) -> str | dict[str, Any]:
        text, model = _text(request), request["model"]
        if any(model == name and words in text for name, words in self.silent):
            self.waiting.set()
            self.ended.wait(600)
        if any(model == name and words in text for name, words in self.broken):
            raise ConnectionAbortedError("told to break off")
        if request["model"] != "scripted":
            return _verdicts(request)
        return _next_step(request)


@contextmanager
def open_bench() -> Iterator[Bench]:
    """The bench, while the server runs."""
    with chat_server() as server:
        bench = Bench(server)
        try:
            yield bench
        finally:
            bench.ended.set()


# The model


def _next_step(request: dict[str, Any]) -> str | dict[str, Any]:
    """The reference's next step; of what it cannot do, the model says so."""
    text = _text(request)
    if HARD in text:
        return _said("I do not know.", request)
    known = [*_plays(Path("data/atomic")), *_workflow_plays()]
    for words, steps in known:
        if words in text:
            done = sum(message["role"] == "assistant" for message in request["messages"])
            step = steps[min(done, len(steps) - 1)]
            return _said(step, request) if isinstance(step, str) else _called(step, request)
    raise AssertionError(f"no play for {text!r}")


def _plays(data: Path) -> Iterator[tuple[str, list[Any]]]:
    """The requests of GTA-Atomic with the steps of their references."""
    for task in json.loads((data / "dataset.json").read_text(encoding="utf-8")).values():
        first, *turns = task["dialogs"]
        steps = [turn for turn in turns if turn["role"] == "assistant"]
        yield (
            first["content"],
            [
                step["tool_calls"][0]["function"] if "tool_calls" in step else step["content"]
                for step in steps
            ],
        )


def _workflow_plays() -> Iterator[tuple[str, list[Any]]]:
    yield (
        "two animals",
        [
            _table("animals", ["quokka"], ["wombat"]),
            "The table is in animals.csv.",
            _table("animals", ["quokka"], ["wombat"], ["numbat"]),
            "The table is in animals.csv, with one more.",
        ],
    )
    yield (
        "sort the list",
        [
            {"name": "ReadCSV", "arguments": {"csv_file": "inputs/list.csv"}},
            _table("sorted", ["numbat"], ["quokka"]),
            "The table is in sorted.csv.",
        ],
    )


def _table(name: str, *rows: list[str]) -> dict[str, Any]:
    data = json.dumps([["name"], *rows])
    return {"name": "CsvFileGenerator", "arguments": {"filename": name, "data_str": data}}


def _called(function: Mapping[str, Any], request: dict[str, Any]) -> str | dict[str, Any]:
    arguments = json.dumps(function["arguments"]).replace('"image/', '"inputs/')
    if "tools" not in request:
        return f"Thought: A tool helps.\nAction: {function['name']}\nAction Input: {arguments}"
    call = {"name": function["name"], "arguments": arguments}
    calls = [{"id": "call-1", "type": "function", "function": call}]
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    return {"message": message, "finish_reason": "tool_calls"}


def _said(text: str, request: dict[str, Any]) -> str:
    return text if "tools" in request else f"Thought: That is all.\nFinal Answer: {text}"


# The judges


def _verdicts(request: dict[str, Any]) -> str:
    """A leaf passes if its word stands in the evidence; `kind` gives more to one that fails."""
    *shown, question = _parts(request)
    evidence = "\n".join(shown)
    leaves = re.findall(r"^leaf: (\S+)$", question, re.MULTILINE)
    missed = {"strict": 2, "kind": 6}[request["model"]]
    verdicts = [
        {
            "leaf": leaf,
            "used": [],
            "reason": f"The {word} was looked for.",
            "score": 10 if word in evidence else missed,
        }
        for leaf, word in ((leaf, WORDS.get(leaf.partition("~")[0], "quokka")) for leaf in leaves)
    ]
    return json.dumps({"verdicts": verdicts} if "verdicts" in question else verdicts[0])


def _parts(request: dict[str, Any]) -> list[str]:
    contents = [message.get("content") or "" for message in request["messages"]]
    return [
        part if isinstance(part, str) else part.get("text", "")
        for content in contents
        for part in ([content] if isinstance(content, str) else content)
    ]


def _text(request: dict[str, Any]) -> str:
    return "\n".join(_parts(request))


# What a version says of a run


class _Words(HTMLParser):
    """The text of a page that a reader sees."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = 0
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.words += data.split()


def page_text(file: Path) -> str:
    """What a reader sees of a page."""
    words = _Words()
    words.feed(file.read_text(encoding="utf-8"))
    return " ".join(words.words)


def rows(folder: Path) -> dict[str, list[dict[str, str]]]:
    """The tables of an export in CSV, by name."""
    found = {}
    for file in sorted(folder.rglob("*.csv")):
        text = io.StringIO(file.read_text(encoding="utf-8"))
        found[file.relative_to(folder).as_posix()] = list(csv.DictReader(text))
    return found


def said(*arguments: str) -> dict[str, Any]:
    """What a command says, in a form that JSON can hold; JSON is read."""
    result = gta(*arguments)
    if isinstance(result.exception, GtaError):
        return {"raised": str(result.exception)}
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    as_json = "--json" in arguments or "json" in arguments
    return {
        "exit": result.exit_code,
        "stdout": json.loads(result.stdout) if as_json else result.stdout,
        "stderr": result.stderr,
    }


def reported(*runs: str) -> dict[str, Any]:
    """What `gta report` says of the runs; their manifests are of each version's own form."""
    found = said("report", *runs, "--format", "json")
    for one in found.get("stdout", ()):
        del one["manifest"]
    return found


def observe(run: str) -> dict[str, Any]:
    """Everything that is said of one finished run, which is scored again first."""
    folder = Path(run)
    workflow = json.loads((folder / "run.json").read_bytes())["dataset"] == "workflow"
    found: dict[str, Any] = {
        "stored scores": _stored_scores(folder),
        "status": said("status", run),
        "status --json": said("status", run, "--json"),
        "score --json": said("score", run, "--json"),
        "scores": _stored_scores(folder),
        "report": said("report", run),
        "report --format markdown": said("report", run, "--format", "markdown"),
        "report --format json": reported(run),
    }
    if workflow:
        found["report --task all"] = said("report", run, "--task", "all")
        found["judge list"] = said("judge", "list", run, "--json")
    else:
        found["score --scoring compat"] = said("score", run, "--scoring", "compat", "--json")
    found["results export"] = said("results", "export", run, "--out", "table", "--format", "csv")
    found["rows"] = rows(Path("table"))
    found["export atif"] = said("export", "atif", run, "--out", "atif")
    found["trajectories"] = {
        file.name: json.loads(file.read_bytes()) for file in sorted(Path("atif").glob("*.json"))
    }
    found["report --html"] = said("report", run, "--html", "page.html")
    found["page"] = page_text(Path("page.html"))
    return found


def observe_boards() -> dict[str, Any]:
    """Everything that is said of runs of a board's size, of their bundles and their entries."""
    found: dict[str, Any] = {
        "compare": said("compare", "boards/end-to-end", "boards/other", "--json"),
        "report": reported(*BOARDS),
        "results": said("results", "export", *BOARDS, "--out", "table"),
        "exported": reported("table"),
    }
    for run in BOARDS:
        before = _stored_scores(Path(run))
        said("score", run)
        changed = differences(before, _stored_scores(Path(run)))
        found[f"{run} keeps its scores"] = changed == []
    for board, runs in BUNDLES.items():
        data = {"atomic": "data/atomic-229", "workflow": "data/workflow-132"}[board]
        entry = _entry(f"{board}.zip")
        Path(f"{board}.json").write_text(json.dumps(entry), encoding="utf-8")
        check = ("leaderboard", "check", f"{board}.zip", "--data", data)
        named = ("--system", str(entry["system"]), "--group", str(entry["group"]))
        again = ("--out", f"again-{board}.zip", "--key", "again.pem", "--data", data)
        found[f"check {board}"] = said(*check)
        found[f"entry of {board}"] = entry
        found[f"submit {board}"] = said("leaderboard", "submit", *runs, *named, *again)
    entries = [f"{board}.json" for board in BUNDLES]
    found["check entries"] = said("leaderboard", "check", *entries)
    found["build"] = said("leaderboard", "build", *entries, "--out", "site")
    return found


def _entry(bundle: str) -> dict[str, Any]:
    """The entry of a bundle, without the digest of files that each version packs in its own way."""
    with ZipFile(bundle) as archive:
        entry: dict[str, Any] = json.loads(archive.read("entry.json"))
    del entry["run_digest"]
    return entry


def _stored_scores(run: Path) -> Any:
    file = run / "scores.json"
    return json.loads(file.read_bytes()) if file.is_file() else None


def differences(expected: Any, found: Any, where: str = "") -> list[str]:
    """Where what is found differs from what is expected; a later version may say more.

    Words for people are each version's own, but the scores in them are not. Intervals and tests
    are made in another way since.
    """
    if where.endswith("/metrics") and isinstance(expected, list):
        expected, found = ({one["metric"]: one for one in side} for side in (expected, found))
    if where.endswith(WORDS_FOR_PEOPLE) and not isinstance(expected, dict):
        expected, found = _joined(expected), _joined(found)
        if isinstance(expected, str) and isinstance(found, str):
            return [
                f"{where}: {one} was expected in {found!r}"
                for one in dict.fromkeys(SCORE.findall(INTERVAL.sub("", expected)))
                if one not in _scores(found)
            ]
    if isinstance(expected, dict) and isinstance(found, dict):
        expected = {name: one for name, one in expected.items() if name not in TESTS}
        missing = [f"{where}/{name} is missing" for name in expected if name not in found]
        return missing + [
            one
            for name in expected
            if name in found
            for one in differences(expected[name], found[name], f"{where}/{name}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [one for at, pair in pairs for one in differences(*pair, f"{where}/{at}")]
    if _is_object(expected) and _is_object(found):
        return differences(json.loads(expected), json.loads(found), where)
    if isinstance(found, dict) and "estimate" in found:
        return [] if math.isclose(expected, found["estimate"], abs_tol=1e-9) else [where]
    if expected == found or (where.endswith("/cost_usd") and same_cost(expected, found)):
        return []
    versions = (str(BEFORE), str(SCORING_VERSION))
    if where.endswith("/scoring_version") and (str(expected), str(found)) == versions:
        return []
    return [f"{where}: {expected!r} was expected, not {found!r}"]


def _joined(said: Any) -> Any:
    """Several sentences as one text; data of a command as it is."""
    sentences = isinstance(said, list) and all(isinstance(one, str) for one in said)
    return "\n".join(said) if sentences else said


def _scores(words: str) -> set[str]:
    """Every number of a text, with two decimals."""
    return {f"{float(one):.2f}" for one in NUMBER.findall(words)}


def _is_object(value: Any) -> bool:
    """Whether a table's cell is an object as text: the order of its fields says nothing."""
    return isinstance(value, str) and value.startswith("{")


def same_cost(expected: Any, found: Any) -> bool:
    """Whether two sums of cost are equal but for rounding: the version before added in turn."""
    amounts = isinstance(expected, float) and isinstance(found, float)
    return amounts and math.isclose(expected, found, rel_tol=1e-12)


def without_clock(scores: Any) -> Any:
    """Scores without what a clock says, which two runs never share."""
    if isinstance(scores, dict):
        return {name: without_clock(value) for name, value in scores.items() if name != "seconds"}
    return [without_clock(one) for one in scores] if isinstance(scores, list) else scores


def resume(bench: Bench, run: str, *arguments: str) -> dict[str, Any]:
    """Give a command that works on the run; what it asks models for, and the scores after it."""
    before = bench.server.answered
    result = gta(*arguments)
    return {
        "exit": result.exit_code,
        "asked": bench.server.answered - before,
        "scores": [
            without_clock(_stored_scores(folder))
            for folder in (Path(run), *sorted(Path(run).glob("rounds/*")))
        ],
    }
