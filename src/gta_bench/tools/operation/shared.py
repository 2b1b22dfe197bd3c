"""What several tools share: arguments, as upstream describes them, and availability."""

import json
from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field

from gta_bench.confine.names import clean_name
from gta_bench.content.needs import Missing
from gta_bench.tools.contract import Availability, Available, Equipment, Unavailable

OUTPUT_DIR: Final = (
    "Accepted for compatibility and ignored: every file is saved into the task's outputs."
)
IMAGE_PATHS: Final = (
    "A comma-separated string of file paths (e.g., path/1.jpg, path/2.png) that matches the "
    "numerical order of the placeholders in content parameter. An empty string for no picture."
)


def _as_json(value: Any) -> Any:
    """Accept a list or an object instead of its JSON text: models write both."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _as_paths(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(path, str) for path in value):
        return ", ".join(value)
    return "" if value is None else value


def _check_name(name: str | None) -> str | None:
    """Raise ToolError before any work if the name cannot be made usable."""
    if name:
        clean_name(name)
    return name


def check_jailed(
    equipment: Equipment, missing: Missing | None, backend: Callable[[], str]
) -> Availability:
    """Return whether a tool that runs in the jail is available; `backend` names what runs."""
    if missing is not None:
        return Unavailable(missing.reason, missing.fix)
    if equipment.jail is None:
        return equipment.no_jail
    return Available(backend())


JsonText = Annotated[str, BeforeValidator(_as_json)]
ImagePaths = Annotated[str, BeforeValidator(_as_paths), Field(description=IMAGE_PATHS)]
FileName = Annotated[str, AfterValidator(_check_name)]
ClipName = Annotated[
    str | None,
    AfterValidator(_check_name),
    Field(description="Optional output filename (without extension)."),
]
StartTime = Annotated[float | None, Field(description="Start time of the clip in seconds.")]
EndTime = Annotated[
    float | None, Field(description="End time of the clip in seconds (must be > start_time).")
]
OutputDir = Annotated[str | None, Field(description=OUTPUT_DIR)]
