"""Files within a file: archives, mails, attachments. Each is shown like any file."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from gta_bench.content.identify import identify
from gta_bench.content.libreoffice import convert
from gta_bench.content.members import Member, read_members, read_zip, read_zip_members
from gta_bench.errors import GtaError
from gta_bench.judging.printing import checked_jail, document
from gta_bench.judging.showing.draft import (
    LISTED,
    Draft,
    ShowFailure,
    Subject,
    left_out,
    quoted_name,
    settled,
)
from gta_bench.judging.showing.others import show_bytes

DEEPEST: Final = 3
SHARE: Final = 2  # of the limits of a file: a member gets one part of so many

ShowAny = Callable[[Draft], Awaitable[None]]


async def show_zip(draft: Draft, show: ShowAny) -> None:
    """A zip archive: the list of its members, and each of them."""
    about = await settled(read_zip(draft.subject.data, skip_bad=True))
    if not isinstance(about, GtaError):
        draft.probe("unpacked bytes", about.unpacked_bytes)
        draft.hidden("the comment of the archive", about.comment, shown=False)
    await _show_all(draft, await settled(read_zip_members(draft.subject.data)), show)


async def show_packed(draft: Draft, show: ShowAny) -> None:
    """A tar archive, or one file that is packed."""
    subject = draft.subject
    found = await settled(
        read_members(subject.data, "packed", subject.jail, name=subject.identity.name)
    )
    await _show_all(draft, found, show)


async def show_mail(draft: Draft, show: ShowAny) -> None:
    """A mail: its headers, its bodies, its attachments."""
    subject = draft.subject
    found = await settled(read_members(subject.data, "mail", subject.jail, name=subject.path))
    await _show_all(draft, found, show)


async def _show_all(draft: Draft, members: Sequence[Member] | GtaError, show: ShowAny) -> None:
    if isinstance(members, GtaError):
        draft.missed("its members", members)
        show_bytes(draft)
        return
    most = draft.subject.limits.members
    draft.probe("files", len(members))
    lines = [f"{member.bytes:>12,}  {member.name}" for member in members[:most]]
    draft.text("\n".join(["[Members: bytes, name]", *lines, ""]), what="list of members")
    if len(members) > most:
        draft.cut.append(left_out("member", most + 1, len(members), how="listed"))
    problems = [(member.name, member.problem) for member in members if member.problem]
    for name, why in problems[:LISTED]:
        draft.leave_out(f"member {quoted_name(name)}", why)
    if len(problems) > LISTED:
        draft.unshown.append(f"{len(problems) - LISTED:,} more members that are broken or unsafe")
    await show_members(draft, members, show)


async def show_members(draft: Draft, members: Sequence[Member], show: ShowAny) -> None:
    """Each member like a file of its own, within the limits of the file that holds them."""
    limits = draft.subject.limits
    if draft.subject.depth >= DEEPEST:
        draft.cut.append(f"it lies {DEEPEST} archives deep: its members are only named")
        return
    opened = 0
    for member in members:
        if not draft.room or opened >= limits.opened or len(draft.pictures) >= limits.pages:
            break
        if member.data is not None:
            await show_member(draft, member, show, members)
            opened += 1
    if opened < len(members):
        rest = len(members) - opened
        draft.cut.append(f"of {rest:,} of {len(members):,} members only the name is shown")


async def show_member(
    draft: Draft, member: Member, show: ShowAny, others: Sequence[Member] = ()
) -> None:
    """One member, its text and pictures under its name."""
    subject = draft.subject
    assert member.data is not None
    most = subject.limits.pages
    limits = subject.limits.model_copy(
        update={
            "pages": max(1, min(most // SHARE, most - len(draft.pictures))),
            "characters": draft.room,
        }
    )
    inner = replace(
        subject,
        path=member.name,
        data=member.data,
        identity=identify(member.name, member.data),
        limits=limits,
        beside={one.name: one.data for one in others if one.data is not None and one is not member},
        lost=(),
        pdf=None,
        depth=subject.depth + 1,
    )
    inner.pdf = _print(inner)
    child = Draft(inner)
    await show(child)
    _merge(draft, child, member)


def _print(subject: Subject) -> Callable[[], Awaitable[bytes]] | None:
    one = document(0, "", subject.identity, subject.data)
    if one is None:
        return None

    async def get() -> bytes:
        jail = await checked_jail(one, subject.equipment)
        seconds = subject.limits.seconds
        return await convert(jail, one.name, one.data, to=one.target, seconds=seconds)

    return get


def _merge(draft: Draft, child: Draft, member: Member) -> None:
    kind, name = child.subject.identity.kind, quoted_name(member.name)
    facts = "".join(f"; {probe.name} {probe.value}" for probe in child.probes)
    head = f"\n[Member {name}: {kind}, {member.bytes:,} bytes{facts}]\n"
    draft.text(f"{head}{''.join(child.texts)}\n", what=f"member {name}")
    draft.pictures += [
        picture.model_copy(update={"label": f"{name}: {picture.label}"})
        for picture in child.pictures
    ]
    for mine, its in (
        (draft.cut, child.cut), (draft.unshown, child.unshown), (draft.findings, child.findings),
    ):  # fmt: skip
        mine += [f"{name}: {words}" for words in its]
    draft.failed += [ShowFailure(f"{name}, {what}", problem) for what, problem in child.failed]
    draft.doubtful |= child.doubtful | ({kind} if child.unshown else set())
    draft.late |= child.late
