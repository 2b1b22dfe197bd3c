"""Speech, vision and video servers in the OpenAI protocol, for the tools on audio and video.

The rest of the toolbox talks to such servers through `tools/backends`; what is here can move there.
"""

import asyncio
import base64
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from gta_bench.errors import ToolError
from gta_bench.tools.contract import Equipment, Unavailable

REQUEST_SECONDS = 120.0
VIDEO_SECONDS = 900.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
MOST_VIDEO_BYTES = 64 << 20
SHOWN_REPLY = 200


@dataclass(frozen=True)
class Endpoint:
    """A server that one tool may ask."""

    url: str
    model: str | None
    key: str | None

    @property
    def backend(self) -> str:
        """How results name it; the address may be private, the model is what matters."""
        return f"endpoint {self.model or 'default model'}"


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


Reply = TypeVar("Reply", bound=_Reply)


class _Transcript(_Reply):
    text: str


class _Message(_Reply):
    content: str


class _Choice(_Reply):
    message: _Message


class _Chat(_Reply):
    choices: tuple[_Choice, ...]


class _Failure(_Reply):
    message: str = "no reason given"


class _VideoJob(_Reply):
    id: str
    status: str
    error: _Failure | None = None


def configured(equipment: Equipment, tool: str) -> Endpoint | Unavailable | None:
    """The endpoint that `[tools.NAME]` names; None where it names none."""
    chosen = equipment.settings.tools.get(tool)
    if chosen is None or chosen.endpoint is None:
        return None
    entry = equipment.settings.endpoints[chosen.endpoint]
    key = None if entry.key_env is None else equipment.key(entry.key_env)
    if entry.key_env is not None and key is None:
        reason = f"The key of the endpoint {chosen.endpoint!r} is not set."
        return Unavailable(reason, f"export {entry.key_env}=…")
    return Endpoint(entry.url.rstrip("/"), entry.model, key)


async def transcribe(endpoint: Endpoint, wav: bytes) -> str:
    """`/audio/transcriptions`: the words of a recording."""
    data = {} if endpoint.model is None else {"model": endpoint.model}
    files = {"file": ("speech.wav", wav, "audio/wav")}
    async with _client(endpoint) as client:
        reply = await _send(client, "POST", "/audio/transcriptions", data=data, files=files)
    return _read(_Transcript, reply).text.strip()


async def describe(endpoint: Endpoint, png: bytes, prompt: str) -> str:
    """`/chat/completions` with one picture."""
    picture = f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
    content = [
        {"type": "text", "text": prompt},
        {"type": "image_url", "image_url": {"url": picture}},
    ]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 300}
    if endpoint.model is not None:
        body["model"] = endpoint.model
    async with _client(endpoint) as client:
        reply = await _send(client, "POST", "/chat/completions", json=body)
    choices = _read(_Chat, reply).choices
    if not choices:
        raise ToolError("The endpoint gave no description.")
    return choices[0].message.content.strip()


async def make_video(endpoint: Endpoint, prompt: str, *, first_pause: float = FIRST_PAUSE) -> bytes:
    """`/videos`: start a job, wait for its end, take the file."""
    body = {"prompt": prompt}
    if endpoint.model is not None:
        body["model"] = endpoint.model
    async with _client(endpoint) as client:
        job = _read(_VideoJob, await _send(client, "POST", "/videos", json=body))
        try:
            async with asyncio.timeout(VIDEO_SECONDS):
                await _finished(client, job, first_pause)
        except TimeoutError as exc:
            raise ToolError(f"The video was not ready after {VIDEO_SECONDS:g} s.") from exc
        reply = await _send(client, "GET", f"/videos/{job.id}/content")
    if len(reply.content) > MOST_VIDEO_BYTES:
        raise ToolError(f"The video is larger than {MOST_VIDEO_BYTES} bytes.")
    return reply.content


async def _finished(client: httpx.AsyncClient, job: _VideoJob, pause: float) -> None:
    while job.status != "completed":
        if job.status not in ("queued", "in_progress"):
            reason = job.error.message if job.error else job.status
            raise ToolError(f"The endpoint made no video: {reason[:SHOWN_REPLY]}")
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE, 2 * pause)
        job = _read(_VideoJob, await _send(client, "GET", f"/videos/{job.id}"))


def _client(endpoint: Endpoint) -> httpx.AsyncClient:
    headers = {} if endpoint.key is None else {"Authorization": f"Bearer {endpoint.key}"}
    return httpx.AsyncClient(base_url=endpoint.url, headers=headers, timeout=REQUEST_SECONDS)


async def _send(
    client: httpx.AsyncClient, method: str, path: str, **content: Any
) -> httpx.Response:
    try:
        reply = await client.request(method, path, **content)
    except httpx.HTTPError as exc:
        raise ToolError(f"The endpoint did not answer: {type(exc).__name__}.") from exc
    if reply.is_error:
        said = reply.text[:SHOWN_REPLY]
        raise ToolError(f"The endpoint answered {reply.status_code}: {said}")
    return reply


def _read(kind: type[Reply], reply: httpx.Response) -> Reply:
    try:
        return kind.model_validate_json(reply.content)
    except ValidationError as exc:
        said = reply.text[:SHOWN_REPLY]
        raise ToolError(f"The endpoint's answer makes no sense: {said}") from exc
