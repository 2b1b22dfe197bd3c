import struct
from collections.abc import Mapping

import pytest

pytest.importorskip("matplotlib")

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.atomic import AtomicTask
from gta_bench.tools.contract import Available, Equipment
from gta_bench.tools.logic.plot import Plot
from tests.tools.calling import PLAIN, call, error

LINE = """
import matplotlib.pyplot as plt
def solution():
    figure = plt.figure(figsize=(4, 3), dpi=50)
    plt.plot([1, 3, 2])
    return figure
"""
# Where a glyph is missing matplotlib warns; the warnings become the failure of the code.
STRICT = "import warnings\nwarnings.simplefilter('error')\n"


def size(picture: bytes) -> tuple[int, ...]:
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", picture[16:24])


def needs_cjk(equipment: Equipment, workspace: Workspace) -> None:
    if "no CJK font" in call("Plot", workspace, equipment, command=LINE).backend:
        pytest.skip("no Noto Sans CJK here: apt install fonts-noto-cjk")


@pytest.mark.measure
def test_reference_calls_give_nine_pictures_and_six_syntax_errors(
    atomic_tasks: Mapping[str, AtomicTask], equipment: Equipment, workspace: Workspace
) -> None:
    drawn, refused = [], []
    for task in atomic_tasks.values():
        for turn in task.calls:
            if turn.call.name == "Plot":
                try:
                    result = call("Plot", workspace, equipment, **turn.call.arguments)
                except ToolError as exc:
                    assert "SyntaxError: " in str(exc) or "IndentationError: " in str(exc)
                    assert "(line " in str(exc)
                    refused.append(task.id)
                else:
                    drawn.append(size(workspace.read(result.parts[0].content)))
    assert len(drawn) == 9
    assert all(width >= 400 and height >= 300 for width, height in drawn)
    assert refused == ["12", "14", "75", "76", "175", "176"]


def test_a_figure_becomes_a_png_among_the_outputs(
    equipment: Equipment, workspace: Workspace
) -> None:
    result = call("Plot", workspace, equipment, command=LINE)
    assert result.text == "[image](outputs/plot.png)"
    assert result.backend.startswith("matplotlib 3.")
    assert size(workspace.read("outputs/plot.png")) == (200, 150)


def test_a_second_figure_keeps_the_first(equipment: Equipment, workspace: Workspace) -> None:
    for _ in range(2):
        call("Plot", workspace, equipment, command=LINE)
    paths = [output.path for output in workspace.outputs().files]
    assert paths == ["outputs/plot-2.png", "outputs/plot.png"]


@pytest.mark.parametrize(
    "settings",
    [
        "",
        "plt.rcParams['font.sans-serif'] = ['SimHei']\n",
        "plt.rcParams['font.family'] = 'SimHei'\n",
        "plt.rcParams['font.family'] = ['Microsoft YaHei']\n",
    ],
)
def test_chinese_japanese_and_korean_are_drawn_however_the_font_is_named(
    equipment: Equipment, workspace: Workspace, settings: str
) -> None:
    needs_cjk(equipment, workspace)
    title = "    plt.title('销量 2024 \\u2212 売上 매출')\n    return figure"
    command = STRICT + settings + LINE.replace("    return figure", title)
    assert call("Plot", workspace, equipment, command=command).parts[0].type == "image"


@pytest.mark.parametrize(
    ("returned", "kind"), [("None", "NoneType"), ("'outputs/x.png'", "str"), ("plt.gca()", "Axes")]
)
def test_what_is_not_a_figure_is_refused_by_its_type(
    equipment: Equipment, workspace: Workspace, returned: str, kind: str
) -> None:
    said = error("Plot", workspace, equipment, command=f"def solution(): return {returned}")
    assert said.startswith(
        "Plot: the code failed: TypeError: `solution()` must return a matplotlib"
    )
    assert f"Figure, not {kind}" in said
    assert workspace.outputs().files == ()


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        ("b'no picture'", "did not return a picture"),
        (r"b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR' + b'\xff' * 16", "4294967295 x 4294967295 pixels"),
    ],
)
def test_a_forged_picture_is_refused(
    equipment: Equipment, workspace: Workspace, forged: str, said: str
) -> None:
    command = f"""
from matplotlib.figure import Figure
class Forged(Figure):
    def savefig(self, target, **options):
        target.write({forged})
def solution():
    return Forged()
"""
    assert said in error("Plot", workspace, equipment, command=command)
    assert workspace.outputs().files == ()


def test_a_figure_of_a_billion_pixels_is_stopped(
    equipment: Equipment, workspace: Workspace
) -> None:
    said = error("Plot", workspace, equipment, command=LINE.replace("(4, 3)", "(900, 900)"))
    assert "memory" in said or "Error" in said
    assert workspace.outputs().files == ()


def test_without_a_jail_it_is_unavailable(equipment: Equipment) -> None:
    assert Plot(PLAIN).check() == PLAIN.no_jail
    assert isinstance(Plot(equipment).check(), Available)
