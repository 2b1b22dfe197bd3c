"""The client of OpenAI-compatible endpoints: pictures seen, made and edited, speech, videos."""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import httpx
from pydantic import BaseModel, JsonValue, ValidationError

from gta_bench.errors import ToolError
from gta_bench.tools.backends.transport import EXCERPT, HttpRequest, RetryPolicy, Server, exchange
from gta_bench.tools.contract import Equipment, Unavailable

# These models always answer with base64 and refuse the field that asks for it.
ALWAYS_BASE64 = "gpt-image"

VIDEO_SECONDS = 900.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server of `[endpoints]` with its key, which never shows."""

    name: str
    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    key_env: str | None = None

    @property
    def host(self) -> str:
        """Where it is, without a path or a password."""
        url = httpx.URL(self.url)
        return url.host if url.port is None else f"{url.host}:{url.port}"

    def label(self, model: str | None = None) -> str:
        """What results record: the model, as the server names it if it does, and the place."""
        return f"{model or self.model} at {self.host} (endpoint {self.name})"


class EncodedImage(NamedTuple):
    """An encoded image and its media type."""

    data: bytes
    media_type: str

    @property
    def data_uri(self) -> str:
        """The image inside an address."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode('ascii')}"


class ModelAnswer(NamedTuple):
    """Text from a model, and the name by which it answered."""

    text: str
    model: str | None


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message


class _ChatReply(BaseModel):
    choices: list[_Choice]
    model: str | None = None


class _Image(BaseModel):
    b64_json: str | None = None
    url: str | None = None


class _ImagesReply(BaseModel):
    data: list[_Image]


class _Transcript(BaseModel):
    text: str


class _Failure(BaseModel):
    message: str = "no reason given"


class _VideoJob(BaseModel):
    id: str
    status: str
    error: _Failure | None = None


ReplyModel = TypeVar("ReplyModel", bound=BaseModel)


def find_endpoint(equipment: Equipment, tool: str) -> Endpoint | Unavailable:
    """The endpoint that gta.toml gives to a tool, with its key."""
    chosen = equipment.settings.tools.get(tool)
    if chosen is None or chosen.endpoint is None:
        return Unavailable(f"no endpoint is set for {tool}.", endpoint_lines(tool))
    name = chosen.endpoint
    found = equipment.settings.endpoints[name]
    if found.model is None:
        return Unavailable(
            f"endpoint {name!r} names no model.", f'Write `model = "…"` under [endpoints.{name}].'
        )
    key = None
    if found.key_env is not None:
        key = (equipment.key(found.key_env) or "").strip()
        if not key:
            return Unavailable(f"{found.key_env} is not set.", f"export {found.key_env}=…")
        if not (key.isascii() and key.isprintable()):
            return Unavailable(f"{found.key_env} is not a key.", f"export {found.key_env}=…")
    return Endpoint(name, found.url.rstrip("/"), found.model, key, found.key_env)


def endpoint_lines(tool: str) -> str:
    """The lines of gta.toml that give a tool an endpoint."""
    return (
        f'In gta.toml: [tools.{tool}] endpoint = "mine" and '
        '[endpoints.mine] url = "https://…/v1", model = "…", key_env = "…".'
    )


class Client:
    """Calls one endpoint; it keeps nothing between calls and may be used by many at once."""

    def __init__(self, endpoint: Endpoint, bounds: RetryPolicy | None = None) -> None:
        self.endpoint = endpoint
        self._bounds = bounds or RetryPolicy()
        secrets = (endpoint.key,) if endpoint.key else ()
        self._server = Server(f"Endpoint {endpoint.name!r}", _mend(endpoint), secrets)

    async def chat(self, prompt: str, pictures: Sequence[EncodedImage] = ()) -> ModelAnswer:
        """The model's answer to a question about pictures."""
        content: list[JsonValue] = [
            {"type": "image_url", "image_url": {"url": picture.data_uri}} for picture in pictures
        ]
        content.append({"type": "text", "text": prompt})
        messages: list[JsonValue] = [{"role": "user", "content": content}]
        fields: dict[str, JsonValue] = {"messages": messages}
        body = await self._post("chat/completions", fields, self._bounds.reply_bytes)
        reply = self._parse(_ChatReply, body)
        if not reply.choices:
            raise ToolError(f"{self._server.name} gave no answer: `choices` is empty.")
        message = reply.choices[0].message
        if not (message.content or "").strip():
            said = f": {self._server.safe(message.refusal)}" if message.refusal else "."
            raise ToolError(f"{self._server.name} gave no text{said}")
        return ModelAnswer(str(message.content).strip(), reply.model)

    async def generate_image(self, prompt: str) -> bytes:
        """An image made after a description."""
        fields: dict[str, JsonValue] = {"prompt": prompt, "n": 1, **self._base64_wish()}
        most = self._bounds.image_bytes
        return await self._image(await self._post("images/generations", fields, most))

    async def edit_image(self, prompt: str, picture: EncodedImage) -> bytes:
        """An image changed after an instruction."""
        suffix = picture.media_type.rpartition("/")[2]
        request = HttpRequest(
            "POST",
            f"{self.endpoint.url}/images/edits",
            self._headers(),
            form={"model": self.endpoint.model, "prompt": prompt, "n": "1", **self._base64_wish()},
            files={"image": (f"image.{suffix}", picture.data, picture.media_type)},
        )
        return await self._image(await self._exchange(request, self._bounds.image_bytes))

    async def transcribe(self, wav: bytes) -> str:
        """The words of a recording."""
        request = HttpRequest(
            "POST",
            f"{self.endpoint.url}/audio/transcriptions",
            self._headers(),
            form={"model": self.endpoint.model},
            files={"file": ("speech.wav", wav, "audio/wav")},
        )
        body = await self._exchange(request, self._bounds.reply_bytes)
        return self._parse(_Transcript, body).text.strip()

    async def make_video(self, prompt: str, *, first_pause: float = FIRST_PAUSE) -> bytes:
        """A video made after a description: start a job, wait for its end, take the file."""
        # Asked once: a second request would start, and bill, a second video.
        once = replace(self._bounds, attempts=1)
        body: JsonValue = {"model": self.endpoint.model, "prompt": prompt}
        start = HttpRequest("POST", f"{self.endpoint.url}/videos", self._headers(), json=body)
        job = self._parse(_VideoJob, await exchange(self._server, start, once))
        try:
            async with asyncio.timeout(VIDEO_SECONDS):
                await self._finished(job, first_pause)
        except TimeoutError as exc:
            raise ToolError(f"The video was not ready after {VIDEO_SECONDS:g} s.") from exc
        return await self._get(f"videos/{job.id}/content", self._bounds.video_bytes)

    async def _finished(self, job: _VideoJob, pause: float) -> None:
        while job.status != "completed":
            if job.status not in ("queued", "in_progress"):
                reason = self._server.safe(job.error.message if job.error else job.status)
                raise ToolError(f"{self._server.name} made no video: {reason[:EXCERPT]}")
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)
            body = await self._get(f"videos/{job.id}", self._bounds.reply_bytes)
            job = self._parse(_VideoJob, body)

    async def _get(self, path: str, most_bytes: int) -> bytes:
        request = HttpRequest("GET", f"{self.endpoint.url}/{path}", self._headers())
        return await self._exchange(request, most_bytes)

    def _base64_wish(self) -> dict[str, str]:
        if self.endpoint.model.startswith(ALWAYS_BASE64):
            return {}
        return {"response_format": "b64_json"}

    async def _post(self, path: str, fields: dict[str, JsonValue], most_bytes: int) -> bytes:
        body = {"model": self.endpoint.model, **fields}
        request = HttpRequest("POST", f"{self.endpoint.url}/{path}", self._headers(), json=body)
        return await self._exchange(request, most_bytes)

    async def _exchange(self, request: HttpRequest, most_bytes: int) -> bytes:
        return await exchange(self._server, request, replace(self._bounds, reply_bytes=most_bytes))

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.endpoint.key}"} if self.endpoint.key else {}

    def _parse(self, kind: type[ReplyModel], body: bytes) -> ReplyModel:
        try:
            return kind.model_validate_json(body)
        except ValidationError as exc:
            first = exc.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the body"
            raise ToolError(
                f"{self._server.name} gave a malformed reply: {where}: {first['type']}."
            ) from None  # the whole reply would be in the traceback

    async def _image(self, body: bytes) -> bytes:
        reply = self._parse(_ImagesReply, body)
        image = reply.data[0] if reply.data else _Image()
        if image.b64_json:
            return self._decoded(image.b64_json)
        if image.url and image.url.startswith("data:"):
            return self._decoded(image.url.partition(",")[2])
        if image.url:
            return await self._fetch(image.url)
        raise ToolError(f"{self._server.name} gave no image.")

    def _decoded(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise ToolError(f"{self._server.name} gave an image that is not base64.") from None

    async def _fetch(self, address: str) -> bytes:
        """An image that the endpoint keeps itself; no other host is asked, lest we be led there."""
        base = httpx.URL(f"{self.endpoint.url}/")
        try:
            url = base.join(address)
        except httpx.InvalidURL:
            raise ToolError(f"{self._server.name} gave an image without an address.") from None
        if (url.scheme, url.host, url.port) != (base.scheme, base.host, base.port):
            raise ToolError(f"{self._server.name} keeps its image elsewhere, at {url.host!r}.")
        request = HttpRequest("GET", str(url), self._headers())
        return await self._exchange(request, self._bounds.image_bytes)


def _mend(endpoint: Endpoint) -> str:
    key = f" and the key in {endpoint.key_env}" if endpoint.key_env else ""
    return f"Check `url` and `model` of [endpoints.{endpoint.name}] in gta.toml{key}."
