import pytest

from gta_bench.errors import ToolError
from gta_bench.tools.backends.detection import CLASSES, KINDS, SYNONYMS, Match, find_class, match


def test_there_are_80_classes_and_every_table_speaks_of_them() -> None:
    assert len(CLASSES) == len(set(CLASSES)) == 80
    assert set(SYNONYMS) | set(KINDS) <= set(CLASSES)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_itself_in_singular_and_plural(name: str) -> None:
    assert match(name) == match(f"The {name.upper()}s") == match(f"{name}.") == Match(name)


@pytest.mark.parametrize(
    ("description", "label"),
    [
        ("people", "person"),
        ("a bike", "bicycle"),
        ("smartphones", "cell phone"),
        ("phone", "cell phone"),
        ("knives", "knife"),
        ("knief", "knife"),
        ("TV set", "tv"),
        ("sofas", "couch"),
        ("teddy bears", "teddy bear"),
        ("hot dog", "hot dog"),
        ("buses", "bus"),
        ("kittens", "cat"),
        ("all of the sheep", "sheep"),
    ],
)
def test_other_words_for_a_class_are_known(description: str, label: str) -> None:
    assert match(description) == Match(label)


@pytest.mark.parametrize(
    ("description", "label", "unseen"),
    [
        ("white sheep", "sheep", "white"),
        ("people wearing black shirt", "person", "wearing black shirt"),
        ("toy car", "car", "toy"),
        ("woman", "person", "woman"),
        ("men", "person", "men"),
        ("belly of the kitten", "cat", "belly"),
        ("man sitting in the front", "person", "man sitting in front"),
    ],
)
def test_what_narrows_a_class_is_named_as_unseen(description: str, label: str, unseen: str) -> None:
    assert match(description) == Match(label, unseen)


OTHERS = "pear goat house lion tiger glass egg beer plate hat door coca-cola ??? the god tac 苹果"


@pytest.mark.parametrize("description", [*OTHERS.split(), "", "  "])
def test_other_objects_are_no_class(description: str) -> None:
    """Among them names that look like a class, and names in the model's list it never learnt."""
    assert match(description) is None


def test_an_unknown_object_is_refused_with_all_that_is_known() -> None:
    with pytest.raises(ToolError, match=r"does not know 'pear'. It knows: person, .*toothbrush"):
        find_class("pear")


def test_a_narrowed_object_is_refused_with_what_to_ask_for() -> None:
    with pytest.raises(ToolError, match=r"cannot tell 'white' from others. Ask for 'sheep'"):
        find_class("white sheep")


def test_a_description_of_many_words_is_read_at_once() -> None:
    assert match("../etc/" * 20_000) is None
    assert match(f"{'red ' * 20_000}cats") == Match("cat", " ".join(["red"] * 20_000))
