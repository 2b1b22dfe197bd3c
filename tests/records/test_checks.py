from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gta_bench.records.checks import CHECKS, LeafCheck, PackageCheck, TextContains, split_path

CHECK: TypeAdapter[Any] = TypeAdapter(LeafCheck)


@pytest.mark.parametrize(
    ("kind", "parameters", "problem"),
    [
        ("text.contains", {}, "give at least one of `all`, `any`, `none`"),
        ("text.contains", {"all": []}, "at least 1 item"),
        ("doc.size", {}, "give at least one of `pages`, `words`"),
        ("doc.size", {"pages": {}}, "give `min`, `max` or both"),
        ("doc.size", {"pages": {"min": 2, "max": 1}}, "`min` is larger than `max`"),
        ("doc.parts", {}, "give at least one of `pictures`, `charts`, `tables`, `notes`"),
        ("table.shape", {}, "give at least one of `rows`, `columns`, `head`"),
        ("xlsx.cell", {"at": "A1"}, "give at least one of `equals`, `formula`"),
        ("xlsx.cell", {"at": "1A", "equals": 1}, "String should match pattern"),
        ("xlsx.cell", {"at": "A1", "formula": True, "change": {"A!B1": 1.0}}, "give at least one"),
        ("xlsx.cell", {"at": "A1", "equals": 1, "change": {"B1": 1.0}}, "String should match"),
        ("table.keys", {"column": "a"}, "give at least one of `all`, `only`, `once`"),
        ("table.value", {"row": "a", "column": "b", "equals": 1, "exact": True}, "needs a text"),
        ("image.facts", {}, "give at least one of `width`, `height`, `not_blank`"),
        ("media.facts", {}, "one of `seconds`, `width`, `height`, `video`, `audio`, `silence`"),
        ("zip.members", {}, "give at least one of `all`, `none`"),
        ("text.regex", {"pattern": "a", "min": "1"}, "valid integer"),
        ("text.language", {"language": "xx"}, "Input should be 'ar'"),
        ("image.text", {"all": ["x"], "least": 2}, "more than the number of texts in `all`"),
        ("media.shows", {"at": 1, "all": ["x"], "least": 2}, "more than the number of texts"),
        ("media.shows", {"at": -1, "all": ["x"]}, "greater than or equal to 0"),
        ("media.says", {}, "give at least one of `all`, `none`"),
        ("media.says", {"none": ["x"], "least": 1}, "more than the number of texts in `all`"),
        ("json.path", {"path": "a"}, "String should match pattern"),
        ("json.path", {"path": "$..id"}, "'\\$..id' is not a path: write it as"),
        ("json.path", {"path": "$.a[?@.b]"}, "is not a path"),
        ("json.path", {"path": "$.a[1:2]"}, "is not a path"),
        ("text.contians", {"all": ["x"]}, "does not match any of the expected tags"),
        ("nothing", {}, "does not match any of the expected tags"),
    ],
)
def test_a_check_that_would_hold_for_anything_is_refused(
    kind: str, parameters: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem):
        CHECK.validate_python({"is": kind, "file": "a", **parameters})


def test_a_path_has_names_indexes_and_stars() -> None:
    assert split_path("$") == ()
    assert split_path("$.a[-1]['b c'][*].*") == ("a", "-1", "b c", "*", "*")


def test_the_answer_needs_something_to_look_for() -> None:
    with pytest.raises(ValidationError, match="give at least one of `all`, `any`, `number`"):
        CHECK.validate_python({"is": "answer.contains"})


def test_a_check_survives_logs_which_have_lists() -> None:
    check = CHECK.validate_python(
        {"is": "text.contains", "file": "a.md", "all": ["x"], "none": ("y",)}
    )
    assert isinstance(check, TextContains) and check.label == "text.contains"
    assert CHECK.validate_python(check.model_dump(mode="json")) == check
    assert CHECK.validate_json(check.model_dump_json()) == check


def test_every_kind_says_when_it_holds() -> None:
    assert len(CHECKS) == 34
    for kind in CHECKS.values():
        assert (kind.__doc__ or "").startswith("Holds if")


@pytest.mark.parametrize(
    "check",
    [
        {"is": "xlsx.cell", "file": "a", "at": "A1", "formula": True},
        {"is": "media.facts", "file": "a", "audio": False},
        {"is": "answer.contains", "number": 0},
        {"is": "doc.size", "file": "a", "pages": {"min": 1, "max": 1}},
    ],
)
def test_one_parameter_is_enough(check: dict[str, Any]) -> None:
    assert CHECK.validate_python(check).label == check["is"]


def test_the_check_of_a_package_is_kept_as_it_was_written() -> None:
    check = CHECK.validate_python({"is": "acme.total", "file": "a.csv", "most": [1, {"x": None}]})
    assert isinstance(check, PackageCheck) and check.label == "acme.total"
    assert check.parameters == {"file": "a.csv", "most": [1, {"x": None}]}
    assert CHECK.validate_python(check) == check
    assert CHECK.validate_json(check.model_dump_json()) == check
    assert check.model_dump(mode="json") == {"is": "acme.total", **check.parameters}


@pytest.mark.parametrize("check", [5, "text", {}, {"is": 3}])
def test_what_is_no_check_is_refused(check: object) -> None:
    with pytest.raises(ValidationError):
        CHECK.validate_python(check)
