"""How an agent is told of its files."""

from collections.abc import Sequence

from gta_bench.agents.prompts import render
from gta_bench.records.attachment import Attachment


def files_text(attachments: Sequence[Attachment]) -> str | None:
    """The message that tells the agent its files; None where a task has none."""
    if not attachments:
        return None
    return render("files.md", paths=", ".join(f"`{item.path}`" for item in attachments))
