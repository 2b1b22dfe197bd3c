import json
import subprocess
import sys
from pathlib import Path

import pytest

from gta_bench.records.tools import ToolSpec
from gta_bench.settings import Settings
from gta_bench.tools.catalog import load_tool
from gta_bench.tools.contract import Available, Equipment, Unavailable
from gta_bench.tools.prompts import digests, render

TOOLS = (
    "OCR",
    "ImageDescription",
    "RegionAttributeDescription",
    "TextToBbox",
    "CountGivenObject",
    "MathOCR",
    "TextToImage",
    "ImageStylization",
)
# What toolmeta.json of GTA-Atomic lacks: an optional input of GTA-Workflow, and of 23 tasks.
MORE = {("gta_atomic", "CountGivenObject"): {"bbox"}}


def released(folder: Path) -> dict[str, ToolSpec]:
    raw = json.loads((folder / "toolmeta.json").read_text(encoding="utf-8"))
    entries = raw.values() if isinstance(raw, dict) else raw
    return {entry["name"]: ToolSpec.model_validate(entry) for entry in entries}


@pytest.mark.parametrize("dataset", ["gta_atomic", "gta_workflow"])
@pytest.mark.parametrize("name", TOOLS)
def test_a_spec_agrees_with_the_released_one(data_dir: Path, dataset: str, name: str) -> None:
    theirs = released(data_dir / dataset).get(name)
    if theirs is None:
        assert (dataset, name) == ("gta_workflow", "TextToBbox")
        return
    ours = load_tool(name).spec()
    more = MORE.get((dataset, name), set())
    assert {one.name for one in ours.inputs} - {one.name for one in theirs.inputs} == more
    for wanted in theirs.inputs:
        one = ours.input(str(wanted.name))
        assert one is not None
        assert (one.type, one.optional) == (wanted.type, wanted.optional)
        assert one.default == wanted.default
    assert [one.type for one in ours.outputs] == [one.type for one in theirs.outputs]


@pytest.mark.parametrize("name", TOOLS)
def test_descriptions_of_gta_atomic_are_kept(data_dir: Path, name: str) -> None:
    assert load_tool(name).spec().description == released(data_dir / "gta_atomic")[name].description


@pytest.mark.parametrize("name", TOOLS)
def test_without_weights_and_settings_a_tool_says_what_is_missing(
    name: str, tmp_path: Path
) -> None:
    tool = load_tool(name)(Equipment(Settings(), weights=tmp_path, key=lambda _: None))
    state = tool.check()
    if name == "OCR":
        assert isinstance(state, Available)
        return
    assert isinstance(state, Unavailable)
    assert f'In gta.toml: [tools.{name}] endpoint = "mine"' in state.fix
    if name in ("MathOCR", "TextToImage"):
        assert "gta tools fetch" not in state.fix
    else:
        assert "gta tools fetch " in state.fix


PROGRAM = """
import sys
from pathlib import Path

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"PIL", "numpy", "cv2", "onnxruntime", "rapidocr"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox
box = Toolbox(Equipment(Settings(), weights=Path("/nowhere"), key=lambda _: None))
for name in sys.argv[1:]:
    box.specs()[name], box.tool(name)
print("fine")
"""


def test_specs_and_tools_need_none_of_the_heavy_packages() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *TOOLS], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_checking_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from gta_bench.settings import Settings\n"
        "from gta_bench.tools.contract import Equipment\n"
        "from gta_bench.tools.toolbox import Toolbox\n"
        "box = Toolbox(Equipment(Settings()))\n"
        "for name in sys.argv[1:]: box.availability(name)\n"
        "heavy = {'PIL', 'numpy', 'cv2', 'onnxruntime', 'rapidocr', 'inspect_ai'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, *TOOLS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_prompts_take_exactly_their_fields() -> None:
    assert "white sheep" in render("count.md", text="white sheep")
    with pytest.raises(ValueError, match=r"has the fields \['text'\], but got \[\]"):
        render("count.md")
    with pytest.raises(ValueError, match="Unknown prompt"):
        render("sing.md")
    assert sorted(digests()) == ["count.md", "describe.md", "ground.md", "math.md", "region.md"]
