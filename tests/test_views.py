"""Results as a notebook shows them: a line of text, HTML, and data frames of both packages."""

import copy
import pickle
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import gta_bench
from gta_bench.demo import ATOMIC, WORKFLOW
from gta_bench.demo.script import make_scripted_judge, make_scripted_model
from gta_bench.records.comparison import Comparisons
from gta_bench.records.verdicts import Unscored
from gta_bench.records.views import Displayed, Tabular
from gta_bench.runs.rows import RunUnits, Verdicts
from gta_bench.runs.tables import TABLES
from gta_bench.settings import ScoringSettings, Settings

SETTINGS = Settings(scoring=ScoringSettings(similarity="exact-or-half"))
# The longest line of a single result; HTML is longer by its style.
LINE = 300
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
HOSTILE = "<script>alert('x')</script>&\"'"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for agent in ("gold", "silent"):
        gta_bench.run(
            "atomic", folder / agent, agent=agent, mode="step", data=ATOMIC, settings=SETTINGS
        )
    gta_bench.run(
        "workflow",
        folder / "judged",
        model=make_scripted_model(),
        data=WORKFLOW,
        tasks="sales",
        judges=[make_scripted_judge()],
        settings=SETTINGS,
    )
    return folder


@pytest.fixture(scope="module")
def results(runs: Path) -> dict[str, Displayed]:
    """One of each kind that the API returns."""
    compared = gta_bench.compare(runs / "gold", runs / "silent")
    return {
        "atomic": gta_bench.load(ATOMIC),
        "workflow": gta_bench.load(WORKFLOW),
        "manifest": gta_bench.manifest(runs / "gold"),
        "scores": gta_bench.score(runs / "gold", settings=SETTINGS),
        "workflow scores": gta_bench.score(runs / "judged", settings=SETTINGS),
        "units": gta_bench.units(runs / "gold"),
        "workflow units": gta_bench.units(runs / "judged"),
        "verdicts": gta_bench.verdicts(runs / "judged"),
        "comparisons": compared,
        "comparison": compared[0],
        "measured": gta_bench.measure(runs / "gold", lambda unit: float(len(unit.calls))),
    }


class _Text(HTMLParser):
    """The text of a page, and the tags that are open at its end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_result_prints_in_a_line(results: dict[str, Displayed], runs: Path) -> None:
    for name, one in results.items():
        text = repr(one).replace(str(runs), "runs")
        assert "\n" not in text and len(text) < LINE, name
        assert str(one) == repr(one)


def test_the_released_tasks_print_in_a_line(atomic_dir: Path) -> None:
    """They printed 773,736 characters."""
    assert repr(gta_bench.load(atomic_dir)) == (
        "<AtomicDataset gta_atomic: 229 tasks, 14 tools, 3 findings>"
    )


def test_results_are_what_they_were_before_they_had_frames(results: dict[str, Displayed]) -> None:
    units, verdicts, compared = (results[one] for one in ("units", "verdicts", "comparisons"))
    assert isinstance(units, tuple) and isinstance(verdicts, dict) and isinstance(compared, list)
    assert isinstance(units[:2], tuple) and units == tuple(units)
    assert verdicts == dict(verdicts) and {key.task for key in verdicts} == {"sales"}
    for name, one in results.items():
        assert copy.deepcopy(one) == one, name
        again = pickle.loads(pickle.dumps(one))
        assert again == one and repr(again) == repr(one), name


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_tables_become_frames_of_the_package_that_is_there(
    package: str, results: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"pandas": "polars", "polars": "pandas"}[package]
    monkeypatch.setitem(sys.modules, other, None)
    for name, one in results.items():
        if isinstance(one, Tabular):
            frame = one.to_frame()
            assert type(frame).__module__.partition(".")[0] == package, name
            assert frame.shape[0] == len(one.rows()) > 0, name
            assert {*frame.columns} == {*one.rows()[0]}, name
    assert results["units"].to_frame()["task"][0] == "receipt"
    assert list(results["verdicts"].to_frame()["value"]) == [10] * 6


def test_frames_have_the_columns_of_exported_tables(results: dict[str, Any]) -> None:
    columns = {name: {one.name for one in table} for name, table in TABLES.items()}
    for name in ("units", "workflow units", "scores"):
        assert {*results[name].rows()[0]} <= columns["samples"], name
    assert {*results["verdicts"].rows()[0]} <= columns["verdicts"]


def test_datasets_runs_scores_and_comparisons_are_shown_as_html(
    results: dict[str, Displayed], runs: Path
) -> None:
    words = {
        "atomic": "How much do I have to pay",
        "workflow": "umbrellas",
        "manifest": "scripted agent (gold)",
        "scores": "ToolAcc",
        "workflow scores": "scripted judge",
        "comparison": "Too few tasks to conclude anything",
        "comparisons": "5 tasks worse in B than in A",
    }
    for name, word in words.items():
        page = results[name]._repr_html_()
        assert page is not None and word in _Text(page).text, name
        assert _Text(page).open == [], name
        assert "script" not in _Text(page).seen, name
        assert len(page) < 10_000, name
    for name in results.keys() - words.keys():
        assert results[name]._repr_html_() is None, name


def test_the_style_applies_to_nothing_else_on_the_page(results: dict[str, Displayed]) -> None:
    """A notebook has one page for all cells; a rule for every table would change its tables."""
    page = results["scores"]._repr_html_() or ""
    (style,) = STYLE.findall(page)
    depth, outside = 0, ""
    for letter in re.sub(r"/\*.*?\*/", "", style.removeprefix("<style>").removesuffix("</style>")):
        depth += (letter == "{") - (letter == "}")
        outside += letter if depth == 0 else ""
    assert outside.replace("}", "").split() == [".gta-view.gta-view"]


def test_everything_that_is_filled_in_is_escaped(results: dict[str, Any]) -> None:
    dataset = results["atomic"]
    task = dataset.tasks["receipt"]
    turns = tuple(turn.model_copy(update={"content": HOSTILE}) for turn in task.dialogue[:1])
    bad = task.model_copy(update={"id": HOSTILE, "dialogue": turns})
    hostile = type(dataset)(Path(HOSTILE), "dataset.json", {HOSTILE: bad}, {}, ())
    system = results["manifest"].spec.system.model_copy(update={"agent": HOSTILE})
    names = {"first": HOSTILE, "second": HOSTILE, "cautions": (HOSTILE,)}
    for one in (
        hostile,
        results["manifest"].with_spec(system=system),
        results["scores"].model_copy(update={"similarity": HOSTILE}),
        Comparisons([results["comparison"].model_copy(update=names)]),
    ):
        page = one._repr_html_() or ""
        assert HOSTILE in _Text(page).text, type(one)
        assert "script" not in _Text(page).seen


def test_more_tasks_than_fit_are_counted(atomic_dir: Path) -> None:
    page = gta_bench.load(atomic_dir)._repr_html_() or ""
    assert "And 221 more." in page and page.count("<tr>") == 9


def test_without_scipy_scores_are_shown_as_text(
    results: dict[str, Displayed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert results["scores"]._repr_html_() is None
    assert results["workflow scores"]._repr_html_() is None
    assert results["manifest"]._repr_html_() is not None


def test_workflow_scores_without_a_judge_say_what_to_do(results: dict[str, Any]) -> None:
    page = results["workflow scores"].model_copy(update={"judges": ()})._repr_html_()
    assert "No judge was asked yet" in page


def test_what_is_missing_is_counted(results: dict[str, Any]) -> None:
    unit = results["units"][0].model_copy(update={"failure": "down", "trace": None})
    units = RunUnits((unit, results["units"][1]), "runs/x")
    assert repr(units) == "<RunUnits of runs/x: 2 units, 1 without a result>"
    key, row = next(iter(results["verdicts"].items()))
    lost = row.model_copy(update={"verdict": Unscored(cause="timeout")})
    assert repr(Verdicts({key: lost}, "runs/x")) == (
        "<Verdicts of runs/x: 1 verdict, 1 without a score, by mockllm/scripted-judge>"
    )
    assert repr(Verdicts({}, "runs/x")) == "<Verdicts of runs/x: 0 verdicts, by nobody>"
    cut = results["scores"].model_copy(update={"n": 4, "strict": _with_n(results["scores"], 4)})
    assert "not rankable" in (cut._repr_html_() or "")


def _with_n(scores: Any, n: int) -> Any:
    return scores.strict.model_copy(update={"n": n})
