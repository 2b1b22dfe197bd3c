import pytest

pytest.importorskip("PIL")

from hypothesis import given
from hypothesis import strategies as st

from gta_bench.errors import ToolError
from gta_bench.tools.operation.drawing import SMALLEST, Size, fit, upstream_size

ROOM = Size(300, 200)
words = st.text(alphabet="ab Wm,.-中文。、한글\n", min_size=1, max_size=300)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(text=words, width=st.integers(-5, 400), height=st.integers(-5, 300))
def test_what_fits_is_inside_its_room_and_complete(text: str, width: int, height: int) -> None:
    try:
        lettering = fit(text, letters=24, rooms=(Size(width, height),))
    except ToolError:
        return
    assert squeezed("".join(lettering.lines)) == squeezed(text)
    assert lettering.size.width <= width + 1
    assert lettering.size.height <= height
    assert SMALLEST <= lettering.letters <= 24


def test_lines_end_between_words() -> None:
    lines = fit("the quick brown fox jumps over the lazy dog", letters=40, rooms=(ROOM,)).lines
    assert len(lines) > 1
    assert " ".join(lines) == "the quick brown fox jumps over the lazy dog"


def test_lines_of_chinese_end_anywhere_but_before_a_closing_mark() -> None:
    lines = fit("春眠不觉晓。" * 12, letters=24, rooms=(ROOM,)).lines
    assert len(lines) > 1
    assert not any(line.startswith("。") for line in lines)


def test_a_word_longer_than_the_line_is_broken() -> None:
    lines = fit("W" * 100, letters=24, rooms=(ROOM,)).lines
    assert len(lines) > 1
    assert "".join(lines) == "W" * 100


def test_a_wider_room_is_preferred_to_smaller_letters() -> None:
    narrow = Size(40, 40)
    lettering = fit("Hello beautiful world", letters=24, rooms=(narrow, ROOM))
    assert lettering.letters == 24
    assert fit("Hello beautiful world", letters=24, rooms=(narrow,)).letters < 24


def test_empty_lines_are_kept_and_ends_are_not() -> None:
    assert fit("\n\none\n\ntwo\n", letters=20, rooms=(ROOM,)).lines == ("one", "", "two")


@pytest.mark.parametrize(
    ("height", "letters"), [(336, 18), (672, 36), (1, 10), (12, 10), (785, 42)]
)
def test_letters_have_upstreams_size_but_stay_legible(height: int, letters: int) -> None:
    assert upstream_size(height) == letters


@pytest.mark.parametrize("room", [Size(0, 0), Size(-3, 50), Size(50, -3), Size(3, 3)])
def test_a_room_without_space_is_refused(room: Size) -> None:
    with pytest.raises(ToolError, match="does not fit into"):
        fit("Hello", letters=20, rooms=(room,))


def test_a_very_long_text_is_refused_at_once() -> None:
    with pytest.raises(ToolError, match="1000000 characters does not fit"):
        fit("x" * 1_000_000, letters=20, rooms=(ROOM,))
