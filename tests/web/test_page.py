import base64
import hashlib
import html
import re
from importlib.metadata import version
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.records.evidence import FileEvidence, Picture
from gta_bench.records.files import Deliverable
from gta_bench.records.run import System
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictRow
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.running.evaluation import package_versions
from gta_bench.web.material import JudgedRun
from gta_bench.web.page import render_report
from gta_bench.web.sections import FILES_SHOWN, thumbnail
from tests.builders import manifest as build_manifest
from tests.metrics.workflow_units import SEVEN, rows, unit

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'"
DIGEST = "a" * 64
FILE = Deliverable(path="outputs/a.pdf", digest=DIGEST, size=2_500)


def picture(mode: str = "RGBA", size: tuple[int, int] = (800, 1000)) -> bytes:
    kept = BytesIO()
    Image.new(mode, size).save(kept, "PNG")
    return kept.getvalue()


def shown(**changes: Any) -> FileEvidence:
    page = Picture(digest=DIGEST, media_type="image/png", label="page 1", width=80, height=100)
    return FileEvidence.model_validate(
        {
            "path": "outputs/a.pdf",
            "digest": DIGEST,
            "size": 2_500,
            "claims": "pdf",
            "kind": "pdf",
            "pictures": (page,) * 5,
            **changes,
        }
    )


def page(one: WorkflowUnit, said: list[VerdictRow], **evidence: FileEvidence) -> str:
    manifest = build_manifest(
        dataset="workflow",
        dataset_digest="0",
        mode="workflow",
        system=System(model=f"m {HOSTILE}", agent="toolcalling"),
        tasks=(one.task.id,),
        packages=package_versions(),
    )
    scores = score_workflow([one], said, thresholds=SEVEN)
    run = JudgedRun(
        WorkflowSummary(f"runs/{HOSTILE}", manifest, scores),
        [one],
        {row.key: row for row in said},
        evidence=evidence,
        picture=lambda digest: picture(),
    )
    return render_report([run])


def test_what_systems_judges_and_files_say_is_text_and_never_markup() -> None:
    said = list(rows({"a1": 10, "a2": 2, "b": 5}))
    said[0] = said[0].model_copy(
        update={"verdict": Scored(value=10, reason=HOSTILE, used=(HOSTILE,))}
    )
    hostile = FILE.model_copy(update={"path": f"outputs/{HOSTILE}"})
    base = unit(deliverables=(hostile,), trace=(AnswerStep(content=HOSTILE),), strays=(HOSTILE,))
    task = base.task.model_copy(update={"request": HOSTILE, "category": HOSTILE})
    one = base.model_copy(update={"task": task})
    text = page(one, said, **{DIGEST: shown(findings=(HOSTILE,), cut=(HOSTILE,))})
    (script,) = re.findall(r"<script[^>]*>", text)
    assert script == "<script>" and "alert(" not in text.partition(script)[2]
    assert "<img src=x" not in text
    assert text.count("&lt;script&gt;") >= 10
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text


def test_a_page_needs_no_other_file_and_is_readable_without_its_script() -> None:
    text = page(unit(deliverables=(FILE,)), list(rows({"a1": 10, "a2": 2, "b": 5})))
    # What filters needs the script, and is hidden until it runs.
    assert re.findall(r"<form[^>]*>", text) == [
        '<form class="controls" hidden aria-label="Filter the tasks of run 1">'
    ]
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", text)
    assert "http" not in text.replace("http-equiv", "")
    assert "@import" not in text and "url(" not in text


def test_the_policy_of_a_page_allows_its_own_style_and_script_and_nothing_else() -> None:
    text = page(unit(), [])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html.unescape(text))
    for part in ("style", "script"):
        (own,) = re.findall(f"<{part}>(.*?)</{part}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert f"{part}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert " style=" not in text and not re.search(r"<[^>]* on\w+=", text.partition("<script>")[0])


def test_files_have_thumbnails_where_a_judge_was_shown_them() -> None:
    one = unit(deliverables=(FILE,), inputs=(FILE,))
    text = page(one, [], **{DIGEST: shown(unshown=("page 9: too large",))})
    assert text.count("data:image/webp;base64,") == 6
    assert "2 more pictures" in text
    assert "page 9: too large" in text
    assert "1 input file<" in text
    assert "not shown to any judge" in page(one, [])


def test_many_files_are_counted_and_not_all_shown() -> None:
    text = page(unit(deliverables=(FILE,) * (FILES_SHOWN + 2)), [])
    assert "And 2 more files." in text


@pytest.mark.parametrize(("size", "said"), [(10, "10 B"), (2_500, "2 kB"), (3_400_000, "3.4 MB")])
def test_sizes_are_short(size: int, said: str) -> None:
    assert said in page(unit(deliverables=(FILE.model_copy(update={"size": size}),)), [])


def test_a_unit_without_result_says_why_and_an_empty_one_too() -> None:
    assert "No result: HTTP 500" in page(unit(failure="HTTP 500"), [])
    empty = page(unit(epoch=2), [])
    assert "None." in empty
    assert "Nothing." in empty
    assert "<b>1, epoch 2</b>" in empty


@pytest.mark.parametrize("mode", ["RGBA", "L", "P", "RGB", "LA"])
def test_a_thumbnail_is_small_whatever_the_picture(mode: str) -> None:
    uri = thumbnail(picture(mode))
    assert uri.startswith("data:image/webp;base64,")
    assert len(uri) < 10_000


def test_leaves_have_their_first_cause_and_the_run_says_what_held() -> None:
    text = page(unit(deliverables=(FILE,)), list(rows({"a1": 10, "a2": 2, "b": 5})))
    assert "<dt>dataset</dt><dd>workflow 0</dd>" in text
    assert f"<dt>inspect_ai</dt><dd>{version('inspect_ai')}</dd>" in text
    assert "<small>wrong content</small>" in text
    assert '<a href="#run-1-task-1-1">task 1, a2: scored 2</a>' in text
    assert "By file extension of the deliverables</th>" in text
    assert "Not recorded." in text
