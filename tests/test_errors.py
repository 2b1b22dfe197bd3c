import pytest

from gta_bench import errors
from gta_bench.errors import DatasetError, GtaError, format_count


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"file": "a.json"}, "a.json: is odd."),
        ({"file": "a.json", "task": "3"}, "a.json, task '3': is odd."),
        ({"file": "a.json", "field": "x.y"}, "a.json, field 'x.y': is odd."),
        ({"file": "a.json", "task": "3", "field": "x"}, "a.json, task '3', field 'x': is odd."),
    ],
)
def test_a_dataset_error_names_as_much_of_its_place_as_is_known(
    place: dict[str, str], said: str
) -> None:
    assert str(DatasetError("is odd.", **place)) == said


@pytest.mark.parametrize(
    ("number", "nouns", "said"),
    [
        (0, ("task",), "0 tasks"),
        (1, ("task",), "1 task"),
        (2290, ("task",), "2,290 tasks"),
        (1, ("leaf", "leaves"), "1 leaf"),
        (2, ("leaf", "leaves"), "2 leaves"),
    ],
)
def test_a_number_stands_with_its_noun(number: int, nouns: tuple[str, ...], said: str) -> None:
    """`gta report` said "1 tasks"."""
    assert format_count(number, *nouns) == said


def test_the_drawn_tree_names_every_exception_with_its_exit_code() -> None:
    drawn = errors.__doc__ or ""
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, GtaError):
            line = next(line for line in drawn.splitlines() if name in line)
            assert kind is GtaError or f"exit {kind.exit_code}:" in line
