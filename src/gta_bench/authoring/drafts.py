"""`draft.toml`: which fields of a task a trace has shown, and which its author must still write.

A task folder with this file is a draft until `gta task pilot` passes, and it cannot pass while a
field is missing.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, Self, get_args

from pydantic import Field, JsonValue, ValidationError, model_validator

from gta_bench.datasets.files import Location
from gta_bench.datasets.folders import TaskTable
from gta_bench.errors import DatasetError

DRAFT_FILE: Final = "draft.toml"
# How a text begins that the author must replace.
OPEN: Final = "TODO (author): "
DraftFieldName = Literal[
    "request", "tools", "inputs", "deliverables", "tape", "tree", "gold", "wrong", "category",
    "license",
]  # fmt: skip
FIELDS: Final[tuple[DraftFieldName, ...]] = get_args(DraftFieldName)
# `observed`: the trace has it. `inferred`: it follows from what the trace has, or a model proposed
# it. `missing`: the author must write it. `written`: the author did.
DraftState = Literal["observed", "inferred", "missing", "written"]


class DraftField(TaskTable):
    """Where a field of the task comes from."""

    state: DraftState = Field(description="`observed`, `inferred`, `missing` or `written`.")
    note: str = Field("", description="Why, or what the author is asked.")


class DraftSource(TaskTable):
    """The trace that a draft was made from."""

    file: str = Field(description="The name of the file.")
    sha256: str = Field(description="The digest of the file.")
    format: str = Field(description="The format of the trace.")
    trace: str = Field(description="The id of the trace.")


class DraftFile(TaskTable):
    """`draft.toml`: every field of the task with its state."""

    format: Literal[1] = Field(description="The version of this format.")
    source: DraftSource = Field(description="The trace.")
    model: str | None = Field(None, description="The model that proposed the tree.")
    prompts: str | None = Field(None, description="The digest of the prompt that it got.")
    fields: dict[DraftFieldName, DraftField] = Field(description="Every field of the task.")

    @model_validator(mode="after")
    def _check_all(self) -> Self:
        lacking = [name for name in FIELDS if name not in self.fields]
        if lacking:
            raise ValueError(f"[fields.{lacking[0]}] is missing")
        return self

    def select(self, state: DraftState) -> Iterator[tuple[DraftFieldName, DraftField]]:
        """Yield the fields in this state, in order."""
        yield from (
            (name, self.fields[name]) for name in FIELDS if self.fields[name].state == state
        )


def is_draft(folder: Path) -> bool:
    """Whether a task folder says that it is a draft."""
    return (folder / DRAFT_FILE).is_file()


def try_draft_file(folder: Path) -> DraftFile | list[DatasetError]:
    """Read `draft.toml`; return every mistake in it."""
    where = Location(f"{folder.name}/{DRAFT_FILE}")
    try:
        raw = tomllib.loads((folder / DRAFT_FILE).read_bytes().decode("utf-8-sig"))
        return DraftFile.model_validate_json(json.dumps(raw, default=str))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        return [where.error(f"is not valid TOML: {exc}.")]
    except OSError as exc:
        return [where.error(f"cannot be read: {exc.strerror}.")]
    except ValidationError as exc:
        return [
            where.error(
                f"{one['msg'].removeprefix('Value error, ')}.",
                ".".join(map(str, one["loc"])) or None,
            )
            for one in exc.errors(include_url=False)
        ]


def format_draft_file(draft: DraftFile) -> str:
    """Return the text of `draft.toml`."""
    head = {"format": 1, "model": draft.model, "prompts": draft.prompts}
    lines = [
        "# Where each field of this task comes from. Write what is missing, read what is inferred,",
        '# and set both to "written".',
        *(f"{key} = {_quote(value)}" for key, value in head.items() if value is not None),
        "",
        "[source]",
        *(f"{key} = {_quote(value)}" for key, value in draft.source.model_dump().items()),
    ]
    for name in FIELDS:
        field = draft.fields[name]
        lines += ["", f"[fields.{name}]", f"state = {_quote(field.state)}"]
        lines += [f"note = {_quote(field.note)}"] if field.note else []
    return "\n".join(lines) + "\n"


def _quote(value: JsonValue) -> str:
    """Return a text or a number in TOML; JSON's escapes are TOML's, which also escapes DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
