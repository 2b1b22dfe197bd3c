"""ReadCSV: a CSV file in any usual encoding and with any usual separator."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.content.tables import read_csv
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Available, FilePath, Made, Tool, ToolInput
from gta_bench.tools.operation.reading import as_result

BACKEND = "python csv"


class ReadCSVInput(ToolInput):
    """A CSV file."""

    csv_file: FilePath = Field(description="The input CSV file.")


class ReadCSV(Tool[ReadCSVInput]):
    """The cells as they are; upstream guesses types, so that `007` becomes 7."""

    name = "ReadCSV"
    category = "operation"
    description = "This tool reads a CSV file and returns its content as a CSV string."
    version = "1"
    input_type = ReadCSVInput
    outputs = (Parameter(type="text", description="CSV content as a string."),)

    def check(self) -> Availability:
        return Available(BACKEND)

    async def apply(self, workspace: Workspace, given: ReadCSVInput) -> Made:
        data = await self.equipment.in_thread(workspace.read, given.csv_file)
        content = await self.equipment.in_thread(lambda: read_csv(data).as_text())
        return as_result(content, BACKEND)
