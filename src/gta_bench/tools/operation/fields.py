"""Arguments that several tools which make files take, in upstream's names and words."""

import json
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field

from gta_bench.confine.names import clean_name

OUTPUT_DIR: Final = (
    "Accepted for compatibility and ignored: every file is saved into the task's outputs."
)
IMAGE_PATHS: Final = (
    "A comma-separated string of file paths (e.g., path/1.jpg, path/2.png) that matches the "
    "numerical order of the placeholders in content parameter. An empty string for no picture."
)


def _as_json(value: Any) -> Any:
    """A list or an object where its JSON text was asked for: models write both."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _as_paths(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(path, str) for path in value):
        return ", ".join(value)
    return "" if value is None else value


def _usable(name: str | None) -> str | None:
    """A name that cannot be cleaned is refused before any work; ToolError says why."""
    if name:
        clean_name(name)
    return name


JsonText = Annotated[str, BeforeValidator(_as_json)]
ImagePaths = Annotated[str, BeforeValidator(_as_paths), Field(description=IMAGE_PATHS)]
FileName = Annotated[str, AfterValidator(_usable)]
ClipName = Annotated[
    str | None,
    AfterValidator(_usable),
    Field(description="Optional output filename (without extension)."),
]
OutputDir = Annotated[str | None, Field(description=OUTPUT_DIR)]
