"""A new tool: a typed input, whether it works here, and the work itself."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, text

BACKEND = "gta-units 0.1.0"
# Meters, kilograms and liters in each unit.
LENGTHS = {"m": 1.0, "km": 1000.0, "mile": 1609.344, "foot": 0.3048}
MASSES = {"kg": 1.0, "g": 0.001, "pound": 0.45359237}
VOLUMES = {"l": 1.0, "ml": 0.001, "cup": 0.2365882365}


class UnitConverterInput(ToolInput):
    """A quantity, its unit and the wanted one."""

    value: float = Field(description="How many.")
    unit: str = Field(description="Of which unit: m, km, mile, foot, kg, g, pound, l, ml or cup.")
    to: str = Field(description="The unit that is wanted.")


class UnitConverter(Tool[UnitConverterInput]):
    """Converts lengths, masses and volumes."""

    name = "UnitConverter"
    category = "logic"
    description = "Converts a length, a mass or a volume from one unit to another."
    version = "1"
    input_type = UnitConverterInput

    def check(self) -> Availability:
        """It needs nothing but itself."""
        return Available(BACKEND)

    async def apply(self, workspace: Workspace, given: UnitConverterInput) -> Made:
        """Convert; what an agent can do better is a ToolError that says how."""
        for table in (LENGTHS, MASSES, VOLUMES):
            if given.unit in table and given.to in table:
                value = given.value * table[given.unit] / table[given.to]
                return Made((text(f"{value:g} {given.to}"),), BACKEND)
        known = ", ".join([*LENGTHS, *MASSES, *VOLUMES])
        raise ToolError(
            f"UnitConverter: {given.unit!r} does not convert to {given.to!r}. Known units: {known}."
        )
