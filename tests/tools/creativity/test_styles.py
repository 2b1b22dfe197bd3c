import pytest

from gta_bench.errors import ToolError
from gta_bench.tools.backends.local_models import PAINTED_STYLES
from gta_bench.tools.creativity.image_stylization import FILLING, STYLES, Style, find_style


def test_every_style_is_in_the_network_and_every_word_asks_for_one() -> None:
    words = [word for style in STYLES for word in style.words]
    assert len(words) == len(set(words))
    assert not set(words) & set(FILLING.split())
    assert all(0 <= style.number < PAINTED_STYLES for style in STYLES)


@pytest.mark.parametrize(
    ("instruction", "number"),
    [
        ("convert to ukiyo-e style", 24),
        ("Convert the photo to Monet style.", 12),
        ("convert the photo to a sketch style", 8),
        ("Convert to a traditional Chinese painting style", 14),
        ("apply an oil painting effect", 5),
        ("convert to impressionist style", 12),
        ("convert to cartoon style", 1),
        ("convert into watercolor style", 14),
        ("Water colour, please", 14),  # codespell:ignore
        ("convert to Picasso style", 21),
        ("Convert to Van Gogh style", 19),
        ("make it look like Van Gogh's Starry Night", None),
        ("in the style of Vincent van Gogh", 19),
        ("VAN GOGH", 19),
    ],
)
def test_an_instruction_names_a_style(instruction: str, number: int | None) -> None:
    if number is None:
        with pytest.raises(ToolError, match="asks for more"):
            find_style(instruction)
    else:
        assert find_style(instruction).number == number


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.words[0])
def test_every_word_of_a_style_asks_for_it(style: Style) -> None:
    for word in style.words:
        assert find_style(f"Convert the image to {word} style.") == style


@pytest.mark.parametrize(
    "instruction",
    ["turn him into cyborg", "convert to realism style", "convert to an Cyberpunk style", ""],
)
def test_what_is_no_style_is_refused_with_the_styles_there_are(instruction: str) -> None:
    with pytest.raises(ToolError, match=r"No offline style fits .* Styles: cartoon, .*ukiyo-e"):
        find_style(instruction)


@pytest.mark.parametrize(
    "instruction",
    ["add a sketch on the wall", "remove the oil from the sea", "cartoon dog with a red hat"],
)
def test_an_instruction_that_asks_for_more_than_a_style_is_refused(instruction: str) -> None:
    with pytest.raises(ToolError, match="a style and nothing more"):
        find_style(instruction)
