"""Pages as pictures, from a PDF that somebody made or that LibreOffice made."""

from collections.abc import Sequence

from gta_bench.content.pdf import PageImages, render_pdf
from gta_bench.errors import GtaError, ToolError
from gta_bench.judging.showing.draft import Draft, Subject, left_out, quoted

WHOLE = 0.999


async def page_images(subject: Subject, pdf: bytes) -> PageImages:
    """The first pages."""
    limits = subject.limits
    wanted = range(1, limits.pages + 1)
    return await render_pdf(pdf, subject.jail, wanted, longest_side=limits.picture_side)


async def office_pdf(subject: Subject) -> bytes:
    """The file as LibreOffice prints it."""
    if subject.pdf is None:
        raise ToolError("LibreOffice does not read this kind.")
    return await subject.pdf()


async def office_pages(subject: Subject) -> PageImages:
    """The first pages, as LibreOffice prints them."""
    return await page_images(subject, await office_pdf(subject))


def add_pages(
    draft: Draft, found: PageImages | GtaError, *, noun: str = "page", names: Sequence[str] = ()
) -> None:
    """Put pages into the evidence; `names` are used where there is one for each page."""
    if isinstance(found, GtaError):
        draft.missed(f"pictures of its {noun}s", found)
        return
    count = found.page_count
    draft.probe(f"{noun}s", count)
    named = len(names) == count
    for page in found.pages:
        label = (
            f"{noun} {quoted(names[page.number - 1])}"
            if named
            else f"{noun} {page.number} of {count}"
        )
        draft.picture(page.data, label)
        if page.part < WHOLE:
            draft.cut.append(f"the picture of {label} shows its first {page.part:.0%}")
    unseen = " ".join(page.unseen for page in found.pages if page.unseen)
    draft.hidden(f"words that its {noun}s do not show", unseen, shown=True)
    shown = len(found.pages)
    if shown < count:
        draft.cut.append(left_out(noun, shown + 1, count, how="shown as a picture"))
