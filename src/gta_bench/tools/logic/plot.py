"""Plot: figures by matplotlib, in Python that the agent writes and the jail runs."""

import struct
from typing import NamedTuple

from pydantic import Field

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import JailLimits
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.base import Record
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Made, Tool, ToolInput, file_part
from gta_bench.tools.logic.snippets import LIMITS, check_jailed, python_code, read_driver
from gta_bench.tools.packages import name_and_version

PACKAGE = "matplotlib"
PNG_START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
MOST_PIXELS = 50_000_000

# As a family, fonts are tried for each glyph; as `font.sans-serif`, only the first one is.
WITH_CJK = b"font.family: DejaVu Sans, Noto Sans CJK SC\n"

DESCRIPTION = """\
This tool can execute Python code to plot diagrams. The code should include a function named \
'solution'. The function should return the matplotlib figure directly. Avoid printing the answer. \
The code instance format is as follows:

```python
# import packages
import matplotlib.pyplot as plt
def solution():
    # labels and data
    cars = ['AUDI', 'BMW', 'FORD', 'TESLA', 'JAGUAR', 'MERCEDES']
    data = [23, 17, 35, 29, 12, 41]

    # draw diagrams
    figure = plt.figure(figsize=(8, 6))
    plt.pie(data, labels=cars, autopct='%1.1f%%', startangle=140)
    plt.axis('equal')
    plt.title('Car Distribution')
    return figure
```"""


class PlotInput(ToolInput):
    """Python with a function `solution()`."""

    command: str = Field(description="Markdown format Python code")


class FontList(Record):
    """matplotlib's list of fonts as a file, and whether one of them has CJK."""

    name: str
    content: str
    cjk: bool


class Fonts(NamedTuple):
    """Configuration files of matplotlib's fonts."""

    files: dict[str, bytes]
    cjk: bool


class Plot(Tool[PlotInput]):
    """Runs the code in the jail; the result is the figure that `solution()` returns, as PNG."""

    name = "Plot"
    category = "logic"
    description = DESCRIPTION
    version = "1"
    input_type = PlotInput
    outputs = (Parameter(type="image"),)

    _fonts: Fonts | None = None

    def check(self) -> Availability:
        """matplotlib and a jail."""
        return check_jailed(self.equipment, PACKAGE, "matplotlib")

    async def apply(self, workspace: Workspace, given: PlotInput) -> Made:
        """Run the code and keep the picture."""
        jail = self.equipment.need_jail()
        fonts = await self._list_fonts(jail)
        result = await jail.run_snippet(
            python_code(given.command),
            driver=read_driver("plot"),
            files=fonts.files,
            limits=LIMITS,
            label="Plot: the code",
        )
        picture = _check_picture(result.value)
        output = await self.equipment.in_thread(workspace.write, "plot.png", picture)
        backend = name_and_version(PACKAGE) + ("" if fonts.cjk else ", no CJK font here")
        return Made((file_part("image", output),), backend=backend, jail=result.report.jail)

    async def _list_fonts(self, jail: Jail) -> Fonts:
        """Make the list in the first call; concurrent calls may each make the same list."""
        if self._fonts is None:
            self._fonts = await list_fonts(jail)
        return self._fonts


async def list_fonts(jail: Jail) -> Fonts:
    """Return the fonts that matplotlib finds in the jail."""
    limits = JailLimits(wall_seconds=60.0, cpu_seconds=60)
    result = await jail.run_snippet("", driver=read_driver("plot_fonts"), limits=limits)
    made = FontList.model_validate_json(result.value)
    files = {f".cache/matplotlib/{made.name}": made.content.encode()}
    if made.cjk:
        files[".config/matplotlib/matplotlibrc"] = WITH_CJK
    return Fonts(files, made.cjk)


def _check_picture(reply: str | bytes) -> bytes:
    """Check that the reply is a picture of a reasonable size: the code can send anything."""
    if not isinstance(reply, bytes) or not reply.startswith(PNG_START) or len(reply) < 24:
        raise ToolError("Plot: the code did not return a picture.")
    width, height = struct.unpack(">II", reply[16:24])
    if width * height > MOST_PIXELS:
        raise ToolError(f"Plot: the figure has {width} x {height} pixels; make it smaller.")
    return reply
