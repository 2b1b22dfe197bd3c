"""One file over HTTP: resumed where it stopped, and refused when it is not the same file."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import httpx

from gta_bench.errors import FetchError

ATTEMPTS = 5
TIMEOUT = httpx.Timeout(30.0)
FORBIDDEN_TO_RESUME = httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE


class Progress(Protocol):
    """Told how far a download is, in bytes; the total is None where the server does not say."""

    def __call__(self, done: int, total: int | None) -> None: ...


ProgressFor = Callable[[str], AbstractContextManager[Progress]]


def download(client: httpx.Client, url: str, target: Path, progress: Progress) -> None:
    """Fetch `url` to `target`; a part left by an interrupted download is continued."""
    part = target.with_name(f"{target.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, ATTEMPTS + 1):  # pragma: no branch (the last one ends or raises)
        try:
            _continue(client, url, part, progress)
            break
        except httpx.HTTPStatusError as exc:
            status = exc.response.status_code
            if status < 500 or attempt == ATTEMPTS:
                raise FetchError(f"{url}: the server answered {status}.") from exc
        except httpx.TransportError as exc:
            if attempt == ATTEMPTS:
                raise FetchError(
                    f"{url}: {exc or type(exc).__name__}. The same command continues the download."
                ) from exc
    part.replace(target)
    _tag_file(part).unlink(missing_ok=True)


def _continue(client: httpx.Client, url: str, part: Path, progress: Progress) -> None:
    have = part.stat().st_size if part.exists() else 0
    with client.stream("GET", url, headers=_range_headers(part, have)) as response:
        if response.status_code == FORBIDDEN_TO_RESUME:
            part.unlink()
            raise httpx.RemoteProtocolError("the kept part does not fit the file")
        response.raise_for_status()
        resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
        done = have if resumed else 0
        length = response.headers.get("content-length")
        total = done + int(length) if length is not None else None
        _tag_file(part).write_text(response.headers.get("etag", ""), encoding="utf-8")
        with part.open("ab" if resumed else "wb") as stream:
            for chunk in response.iter_raw():
                stream.write(chunk)
                done += len(chunk)
                progress(done, total)


def _range_headers(part: Path, have: int) -> dict[str, str]:
    """Ask for the rest, but only of the very file that the part belongs to."""
    plain = {"accept-encoding": "identity"}
    tag = _tag_file(part).read_text(encoding="utf-8") if _tag_file(part).exists() else ""
    if not have or not tag or tag.startswith("W/"):
        return plain
    return {**plain, "range": f"bytes={have}-", "if-range": tag}


def _tag_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")
