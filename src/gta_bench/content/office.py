"""What all three Office kinds share: they are zips, and may be bombs or something else."""

from gta_bench.content.archive import ZipContent, read_zip
from gta_bench.content.driver import check_size
from gta_bench.content.identify import require_form


async def open_office(data: bytes, form: str) -> ZipContent:
    """The parts of a docx, pptx or xlsx file that is safe to unpack; ToolError if it is not."""
    check_size(data, label=f"The {form} reader")
    if data.startswith(b"PK"):
        parts = await read_zip(data)  # first, because a broken zip is told best by what is broken
        require_form(data, form)
        return parts
    require_form(data, form)
    raise AssertionError("a form of Office that is no zip")


def count_parts(parts: ZipContent, folder: str) -> int:
    """How many files lie in a folder of the package, such as its pictures."""
    return sum(member.name.startswith(folder) for member in parts.members)
