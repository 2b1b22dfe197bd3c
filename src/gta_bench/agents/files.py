"""How an agent is told of its files."""

from collections.abc import Sequence

from gta_bench.agents.prompts import render
from gta_bench.agents.published import PublishedTexts
from gta_bench.records.attachment import Attachment


def files_text(
    attachments: Sequence[Attachment], published: PublishedTexts | None = None
) -> str | None:
    """The message that tells the agent its files; None where a task has none."""
    if not attachments:
        return None
    paths = ", ".join(f"`{item.path}`" for item in attachments)
    return render("files.md", paths=paths) if published is None else f"{published.files}{paths}"
