"""The label page over HTTP: blind, resumed, settled, exported; and judges against its labels."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from gta_bench.cli import app as gta
from gta_bench.metrics.labels import (
    find_disputed_leaves,
    label_chances,
    settle_scores,
    shuffle_units,
)
from gta_bench.records.labels import Label, Labels
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.runs.labels import read_adjudication, read_labels, read_labels_of, write_labels
from gta_bench.runs.verdicts import append_verdicts
from gta_bench.settings import Settings
from gta_bench.tasks.judging import find_judgeable_units
from gta_bench.web.app import ViewApp, queue_id
from gta_bench.web.labeling import people_agreement
from tests.judging.builders import task
from tests.judging.stored import stored_run

TOKEN = "a-token-that-nobody-guesses"
SITE = "http://127.0.0.1:8000"
BASE = f"/label/{queue_id('run')}"
HOSTILE = b"# Report\n\n<script>alert(1)</script>\n"
TASKS = tuple(task(str(number), leaves=2, category="Plans") for number in range(1, 9))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return stored_run(tmp_path / "run", TASKS, {"report.md": HOSTILE})


@pytest.fixture
def app(run: Path) -> Iterator[ViewApp]:
    app = ViewApp(run, token=TOKEN, settings=Settings())
    app.prepare_queue(queue_id("run"), count=2)
    app.wait_for_queue(queue_id("run"))
    yield app
    app.close()


@pytest.fixture
def page(app: ViewApp) -> "Page":
    return Page(app)


class Page:
    """A browser without a screen: one request after the other, redirects followed."""

    def __init__(self, app: ViewApp) -> None:
        self.app = app

    def get(self, path: str, **headers: str) -> httpx.Response:
        return asyncio.run(self._ask("GET", path, None, headers))

    def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        """The page's form, with what it hides; `place` in the fields is another one."""
        hidden = re.search(r'name="place" value="([^"]*)"', self.get(path).text)
        place = {} if hidden is None else {"place": hidden[1]}
        return asyncio.run(self._ask("POST", path, {**place, **fields}, headers))

    async def _ask(
        self, method: str, path: str, fields: dict[str, str] | None, headers: dict[str, str]
    ) -> httpx.Response:
        transport = httpx.ASGITransport(self.app.asgi)
        cookies = {"gta_view_8000": TOKEN}
        # A page that was redirected to has the whole path already.
        place = path if path.startswith(BASE) else BASE + path
        async with httpx.AsyncClient(
            transport=transport, base_url=SITE, cookies=cookies, follow_redirects=True
        ) as client:
            return await client.request(method, place, data=fields, headers=headers)


def test_a_leaf_is_shown_blind_and_deliverables_are_text(page: Page, run: Path) -> None:
    append_verdicts(run, [verdict("1", "cp1-1", 3)])
    shown = page.post("/", {"rater": "ada"})
    assert str(shown.url) == f"{SITE}{BASE}/as/ada/1"
    assert "&lt;script&gt;alert(1)" in shown.text
    assert "<script>alert" not in shown.text
    assert "is right" in shown.text, "the requirement"
    for hidden in ("some/model", "toolcalling", "A secret reason", "run/"):
        assert hidden not in shown.text
    assert "default-src 'none'" in shown.headers["content-security-policy"]


def test_a_queue_is_prepared_when_somebody_wants_it(run: Path) -> None:
    app = ViewApp(run, token=TOKEN, settings=Settings())
    page = Page(app)
    assert "Prepare the queue" in asyncio.run(page._ask("GET", "/../../label", None, {})).text
    waiting = asyncio.run(page._ask("POST", "/", {}, {}))
    assert waiting.status_code in (200, 202)
    app.wait_for_queue(queue_id("run"))
    assert "Label 16 leaves" in page.get("/").text
    assert "Open the queue" in asyncio.run(page._ask("GET", "/../../label", None, {})).text
    app.close()


def test_labelling_goes_on_where_it_stopped_and_ends_with_an_export(page: Page, run: Path) -> None:
    at = page.get("/as/ada")
    for number in (1, 2):
        assert str(at.url).endswith(f"/as/ada/{number}")
        at = page.post(at.url.path, {"score": str(8 + number), "reason": 'fine, "mostly"'})
    assert str(page.get("/as/ada").url).endswith("/as/ada/3")
    assert str(page.get("/as/bob").url).endswith("/as/bob/1")
    page.post("/as/ada/1", {"score": "2"})
    assert [label.value for label in read_labels_of(run, "ada").labels] == [10, 2]
    for number in (3, 4):
        at = page.post(f"/as/ada/{number}", {"score": "7"})
    assert at.url.path == f"{BASE}/"
    assert "finished" in at.text
    export = page.get("/labels.csv").text.splitlines()
    assert len(export) == 5
    assert {line.rsplit(",", 1)[1] for line in export[1:]} == {"0.25"}, "how likely it was drawn"
    assert 'fine, ""mostly""' in export[1]


@pytest.mark.parametrize("score", ["", "11", "-1", "nan", "eight"])
def test_a_label_without_a_fit_score_is_asked_for_again_and_keeps_the_reason(
    page: Page, run: Path, score: str
) -> None:
    again = page.post("/as/ada/1", {"score": score, "reason": "My words."})
    assert "Choose a score from 0 to 10." in again.text
    assert "My words." in again.text
    assert read_labels(run) == []


@pytest.mark.parametrize("path", ["/as/a%20b/1", "/as/ada/99", "/as/ada/0", "/settle/1"])
def test_what_is_not_there_leads_to_the_start(page: Page, path: str) -> None:
    assert page.get(path).url.path == f"{BASE}/"


def test_forms_from_elsewhere_other_hosts_and_long_ones_are_refused(page: Page, run: Path) -> None:
    sent = {"score": "10"}
    assert page.post("/as/ada/1", sent, Origin="http://evil.test").status_code == 403
    assert page.get("/", Host="evil.test").status_code == 400
    assert page.post("/", {"rater": "x" * 200_000}).status_code == 403
    assert page.post("/as/ada/1", {"reason": "x" * 200_000}).status_code == 403
    assert read_labels(run) == []
    assert page.get("/picture/" + "0" * 64).status_code == 404
    assert "Use up to 40 letters" in page.post("/", {"rater": "../x"}).text


def test_two_raters_disagree_and_somebody_has_the_last_word(page: Page, run: Path) -> None:
    for number, (ada, bob) in enumerate(((9, 9), (8, 4), (2, 2), (1, 5)), start=1):
        page.post(f"/as/ada/{number}", {"score": str(ada), "reason": "Ada's reason"})
        page.post(f"/as/bob/{number}", {"score": str(bob)})
    raters = read_labels(run)
    assert len(find_disputed_leaves(raters, 7)) == 2
    assert people_agreement(raters, threshold=7).leaves == 4
    start = page.get("/").text
    assert "2 disputed, 0 settled" in start
    shown = page.get("/settle")
    assert "A: 8</strong> Ada&#39;s reason" in shown.text
    assert "B: 4</strong> no reason given" in shown.text
    assert "bob" not in shown.text
    assert len(settle_scores(raters, None, 7)) == 2
    again = page.post("/settle/1", {"score": "x"})
    assert "Choose a score" in again.text
    page.post("/settle/1", {"score": "6", "reason": "In between."})
    assert page.get("/settle").url.path == f"{BASE}/settle/2"
    page.post("/settle/2", {"score": "3"})
    assert page.get("/settle").url.path == f"{BASE}/"
    assert "2 disputed, 2 settled" in page.get("/").text
    assert sorted(settle_scores(raters, read_adjudication(run), 7).values()) == [2, 3, 6, 9]
    assert page.post("/settle/1", {"score": "6"}, Origin="null").status_code == 403
    exported = CliRunner().invoke(gta, ["judge", "label", str(run), "--export", str(run / "l.csv")])
    assert exported.exit_code == 0, exported.output
    assert "8 labels of 2 people" in exported.stderr
    assert (run / "l.csv").read_text(encoding="utf-8").count("true") == 2


def test_a_broken_file_of_labels_is_named(page: Page, run: Path) -> None:
    (run / "labels").mkdir()
    (run / "labels" / "ada.json").write_text("{}", encoding="utf-8")
    result = CliRunner().invoke(gta, ["judge", "calibrate", str(run)])
    assert result.exit_code != 0
    assert "ada.json" in str(result.exception)


def verdict(name: str, leaf: str, value: float, judge: str = "j") -> VerdictRow:
    key = VerdictKey(task=name, leaf=leaf, judge=judge)
    return VerdictRow(key=key, verdict=Scored(value=value, reason="A secret reason"))


def people(run: Path, count: int) -> None:
    """Labels of the first tasks: even ones are passed, odd ones are not."""
    labels = tuple(
        Label(task=one.id, leaf=leaf.id, value=9 if int(one.id) % 2 else 3)
        for one in TASKS[:count]
        for leaf in one.leaves()
    )
    write_labels(run, Labels(rater="ada", labels=labels))


def test_a_judge_is_set_against_people(run: Path) -> None:
    people(run, 6)
    lenient = {"2": 8.0, "4": 8.0, "6": 9.0}
    append_verdicts(
        run,
        [
            verdict(one.id, leaf.id, lenient.get(one.id, 9.0 if int(one.id) % 2 else 2.0))
            for one in TASKS
            for leaf in one.leaves()
        ],
    )
    result = CliRunner().invoke(gta, ["judge", "calibrate", str(run), "--json"])
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)
    assert (found["judge"], found["leaves"], found["tasks"]) == ("j", 12, 6)
    assert found["accuracy"]["estimate"] == pytest.approx(0.5)
    assert (found["precision"], found["recall"]) == (0.5, 1.0)
    assert found["f1"]["estimate"] == pytest.approx(2 / 3)
    assert found["kappa"]["estimate"] == pytest.approx(0)
    # The judge passes all and people half: 3/8 would agree by chance, and 1/2 do.
    assert found["ac1"]["estimate"] == pytest.approx(0.2)
    assert found["bias"]["estimate"] == pytest.approx((5 + 5 + 6) / 6)
    assert {(group["by"], group["name"]) for group in found["groups"]} == {
        ("category", "Plans"),
        ("delivered", "md"),
    }
    scores = {score["name"]: score for score in found["scores"]}
    assert set(scores) == {"Root SR", "Leaf SR", "Root"}
    assert scores["Root SR"]["raw"] == pytest.approx(100 * 7 / 8)
    assert scores["Root SR"]["corrected"]["estimate"] < 60
    # The judge passes nearly all, whatever people say: labels alone are surer.
    assert {score["corrected"]["method"] for score in scores.values()} == {"labels-only"}
    said = CliRunner().invoke(gta, ["judge", "calibrate", str(run), "--judge", "j"])
    assert "corrected by people" in said.stdout
    other = CliRunner().invoke(gta, ["judge", "calibrate", str(run), "--judge", "x"])
    assert "Known judges: j" in str(other.exception)


def test_a_difference_of_two_runs_is_corrected_for_a_judge_that_favors_one(tmp_path: Path) -> None:
    """People pass every other task of both; the judge passes three of four tasks of the first."""
    tasks = tuple(task(str(number), leaves=1, category="Plans") for number in range(1, 13))
    runs = [stored_run(tmp_path / name, tasks, {"report.md": HOSTILE}) for name in ("a", "b")]
    for run, wrong in zip(runs, ((2, 6, 10), ()), strict=True):
        labels = tuple(
            Label(task=str(n), leaf="cp1-1", value=9 if n % 2 else 3, chance=0.5)
            for n in range(1, 13)
            if n not in (3, 4)
        )
        write_labels(run, Labels(rater="ada", labels=labels))
        seen = {n: 9.0 if n % 2 or n in wrong else 3.0 for n in range(1, 13)}
        append_verdicts(run, [verdict(str(n), "cp1-1", value) for n, value in seen.items()])
    asked = ["judge", "calibrate", str(runs[0]), "--against", str(runs[1])]
    result = CliRunner().invoke(gta, [*asked, "--json"])
    assert result.exit_code == 0, result.output
    scores = {score["name"]: score for score in json.loads(result.stdout)["j"]}
    assert scores["Root SR"]["raw"] == pytest.approx(25)
    assert scores["Root SR"]["corrected"]["estimate"] == pytest.approx(0, abs=3)
    assert scores["Root SR"]["corrected"]["low"] < 0 < scores["Root SR"]["corrected"]["high"]
    said = CliRunner().invoke(gta, asked)
    assert "raw and corrected by people" in said.stdout
    write_labels(runs[1], Labels(rater="ada", labels=(Label(task="1", leaf="none", value=1),)))
    nothing = CliRunner().invoke(gta, asked)
    assert "No judge has scored labeled leaves of the same tasks in both" in str(nothing.exception)


def test_a_wider_draw_holds_for_what_was_labelled_before(run: Path) -> None:
    labels = tuple(
        Label(task=name, leaf="cp1-1", value=5, chance=chance)
        for name, chance in (("1", 0.25), ("2", 0.25), ("3", None))
    )
    again = Labels(rater="ada", labels=labels).drawn_again({("1", 1), ("3", 1)}, 0.5)
    assert [label.chance for label in again.labels] == [0.5, 0.25, 0.5]
    assert set(label_chances([again]).values()) == {0.5, 0.25}
    assert set(label_chances([Labels(rater="bob", labels=labels)]).values()) == {1.0}


def test_without_labels_or_verdicts_it_is_said_what_to_do(run: Path) -> None:
    for command in (["calibrate"], ["label", "--export", "x.csv"]):
        result = CliRunner().invoke(gta, ["judge", command[0], str(run), *command[1:]])
        assert "has no labels yet" in str(result.exception)
    people(run, 1)
    append_verdicts(run, [verdict("8", "cp1-1", 3)])
    result = CliRunner().invoke(gta, ["judge", "calibrate", str(run)])
    assert "No judge of" in str(result.exception)


def test_a_unit_with_an_open_leaf_corrects_leaf_sr_only_and_disputes_are_told(run: Path) -> None:
    write_labels(run, Labels(rater="ada", labels=(Label(task="1", leaf="cp1-1", value=3),)))
    write_labels(
        run,
        Labels(
            rater="bob",
            labels=(
                Label(task="1", leaf="cp1-1", value=9),
                Label(task="1", leaf="cp1-2", value=9),
            ),
        ),
    )
    append_verdicts(run, [verdict("1", "cp1-1", 8), verdict("1", "cp1-2", 8)])
    result = CliRunner().invoke(gta, ["judge", "calibrate", str(run), "--json"])
    assert result.exit_code == 0, result.output
    (score,) = json.loads(result.stdout)[0]["scores"]
    assert (score["name"], score["corrected"]["estimate"]) == ("Leaf SR", 100)
    assert "1 disputed leaf left out" in result.stderr


def test_labels_that_are_all_disputed_are_settled_and_not_judged_again(run: Path) -> None:
    for rater, value in (("ada", 3), ("bob", 9)):
        write_labels(run, Labels(rater=rater, labels=(Label(task="1", leaf="cp1-1", value=value),)))
    append_verdicts(run, [verdict("1", "cp1-1", 8)])
    result = CliRunner().invoke(gta, ["judge", "calibrate", str(run)])
    assert "has no usable label: run `gta judge label" in str(result.exception)


def test_leaves_that_a_judge_left_unscored_are_told(run: Path) -> None:
    people(run, 2)
    scored = [verdict(one.id, "cp1-1", 8) for one in TASKS]
    key = VerdictKey(task="1", leaf="cp1-2", judge="j")
    append_verdicts(run, [*scored, VerdictRow(key=key, verdict=Unscored(cause="refused"))])
    for asked in ([], ["--against", str(run)]):
        result = CliRunner().invoke(gta, ["judge", "calibrate", str(run), *asked])
        assert result.exit_code == 0, result.output
        assert f"j has no score for 8 of 16 leaves of {run}, 2 of them labeled" in result.stderr


def test_the_order_is_random_but_the_same(run: Path) -> None:
    units = list(find_judgeable_units(run).values())
    first = [unit.task.id for unit in shuffle_units(units, seed=0)]
    assert first == [unit.task.id for unit in shuffle_units(units[::-1], seed=0)]
    assert first != [unit.task.id for unit in shuffle_units(units, seed=1)]
    assert sorted(first) == [str(number) for number in range(1, 9)]


def test_a_form_that_is_another_leafs_by_now_settles_nothing(page: Page, run: Path) -> None:
    for number in (1, 2):
        page.post(f"/as/ada/{number}", {"score": "9"})
        page.post(f"/as/bob/{number}", {"score": "1"})
    stale = page.post("/settle/1", {"score": "5", "place": "7 1 other"})
    assert stale.status_code == 403
    assert "the leaf has changed" in stale.text
    assert read_adjudication(run) is None
