"""Calls to OpenAI-compatible endpoints through openai's client: chat, images, speech, videos."""

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

from pydantic import BaseModel, ValidationError

from gta_bench.confine.limits import MIB
from gta_bench.errors import GtaError, ToolError
from gta_bench.tools.contract import Equipment, Unavailable
from gta_bench.tools.http import EXCERPT, RemoteServer, certificates

if TYPE_CHECKING:
    # Imported when first needed: openai takes a second to load.
    import httpx2
    from openai import APIConnectionError, AsyncOpenAI, Omit
    from openai.types.chat import ChatCompletionContentPartParam

# These models always answer with base64 and refuse the field that asks for it.
ALWAYS_BASE64 = "gpt-image"

VIDEO_SECONDS = 900.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0  # seconds between two looks at a video job
# openai's client adds what it finds in the environment: other keys, an organization, any header.
SENT_HEADERS = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "host"}
    | {"authorization", "user-agent"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointLimits:
    """Limits: `seconds` between two pieces of a reply, `total_seconds` for all attempts."""

    retries: int = 3
    seconds: float = 120
    total_seconds: float = 300
    connect_seconds: float = 10
    reply_bytes: int = 4 * MIB
    image_bytes: int = 48 * MIB
    video_bytes: int = 64 * MIB


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server of `[endpoints]` with its key, which is never printed."""

    name: str
    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    key_env: str | None = None

    @property
    def host(self) -> str:
        """Host and port, without a path, a password or the usual port."""
        _, host, port = _origin(self.url)
        return host if port is None else f"{host}:{port}"

    def label(self, model: str | None = None) -> str:
        """Return what results record: the model, as the server names it, and the host."""
        return f"{model or self.model} at {self.host} (endpoint {self.name})"


class EncodedImage(NamedTuple):
    """An encoded image and its media type."""

    data: bytes
    media_type: str

    @property
    def data_uri(self) -> str:
        """Return the image as a data URI."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode('ascii')}"


class ModelAnswer(NamedTuple):
    """The text of a model, and the model's name in the reply."""

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
    """Return the endpoint that gta.toml sets for a tool, with its key."""
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
    """Return the lines of gta.toml that set an endpoint for a tool."""
    return (
        f'In gta.toml: [tools.{tool}] endpoint = "mine" and '
        '[endpoints.mine] url = "https://…/v1", model = "…", key_env = "…".'
    )


class Client:
    """Calls one endpoint. It keeps nothing between calls, so concurrent calls may share it."""

    def __init__(self, endpoint: Endpoint, limits: EndpointLimits | None = None) -> None:
        self.endpoint = endpoint
        self._limits = limits or EndpointLimits()
        key = f" and the key in {endpoint.key_env}" if endpoint.key_env else ""
        fix = f"Check `url` and `model` of [endpoints.{endpoint.name}] in gta.toml{key}."
        secrets = (endpoint.key,) if endpoint.key else ()
        self._server = RemoteServer(f"Endpoint {endpoint.name!r}", fix, secrets)

    async def chat(self, prompt: str, pictures: Sequence[EncodedImage] = ()) -> ModelAnswer:
        """Return the model's answer to a question about pictures."""
        content: list[ChatCompletionContentPartParam] = [
            {"type": "image_url", "image_url": {"url": picture.data_uri}} for picture in pictures
        ]
        content.append({"type": "text", "text": prompt})
        body = await self._call(
            lambda client: client.chat.completions.with_raw_response.create(
                model=self.endpoint.model, messages=[{"role": "user", "content": content}]
            )
        )
        reply = self._parse(_ChatReply, body)
        if not reply.choices:
            raise ToolError(f"{self._server.name} sent no answer: `choices` is empty.")
        message = reply.choices[0].message
        if not (message.content or "").strip():
            reason = f": {self._server.redact(message.refusal)}" if message.refusal else "."
            raise ToolError(f"{self._server.name} sent no text{reason}")
        return ModelAnswer(str(message.content).strip(), reply.model)

    async def generate_image(self, prompt: str) -> bytes:
        """Return an image made from a description."""
        body = await self._call(
            lambda client: client.images.with_raw_response.generate(
                model=self.endpoint.model,
                prompt=prompt,
                n=1,
                response_format=self._image_format(),
            ),
            most_bytes=self._limits.image_bytes,
        )
        return await self._read_image(body)

    async def edit_image(self, prompt: str, picture: EncodedImage) -> bytes:
        """Return an image changed as an instruction says."""
        suffix = picture.media_type.rpartition("/")[2]
        body = await self._call(
            lambda client: client.images.with_raw_response.edit(
                model=self.endpoint.model,
                prompt=prompt,
                image=(f"image.{suffix}", picture.data, picture.media_type),
                n=1,
                response_format=self._image_format(),
            ),
            most_bytes=self._limits.image_bytes,
        )
        return await self._read_image(body)

    async def transcribe(self, wav: bytes) -> str:
        """Return the text of a recording."""
        body = await self._call(
            lambda client: client.audio.transcriptions.with_raw_response.create(
                model=self.endpoint.model, file=("speech.wav", wav, "audio/wav")
            )
        )
        return self._parse(_Transcript, body).text.strip()

    async def make_video(self, prompt: str) -> bytes:
        """Return a video made from a description: start a job, wait for it, download the file."""
        # Not through `client.videos`, which openai has deprecated with its own service.
        # Sent once: a second request would start, and bill, a second video.
        request = {"model": self.endpoint.model, "prompt": prompt}
        body = await self._call(
            lambda client: client.post("/videos", body=request, cast_to=_response()), retries=0
        )
        job = self._parse(_VideoJob, body)
        try:
            async with asyncio.timeout(VIDEO_SECONDS):
                await self._wait_for_video(job)
        except TimeoutError as exc:
            raise ToolError(f"The video was not ready after {VIDEO_SECONDS:g} seconds.") from exc
        return await self._get(f"/videos/{job.id}/content", self._limits.video_bytes)

    async def _wait_for_video(self, job: _VideoJob) -> None:
        pause = FIRST_PAUSE
        while job.status != "completed":
            if job.status not in ("queued", "in_progress"):
                reason = self._server.redact(job.error.message if job.error else job.status)
                raise ToolError(f"{self._server.name} made no video: {reason[:EXCERPT]}")
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)
            body = await self._get(f"/videos/{job.id}", self._limits.reply_bytes)
            job = self._parse(_VideoJob, body)

    async def _get(self, path: str, most_bytes: int) -> bytes:
        return await self._call(
            lambda client: client.get(path, cast_to=_response()), most_bytes=most_bytes
        )

    def _image_format(self) -> "Literal['b64_json'] | Omit":
        from openai import omit

        return omit if self.endpoint.model.startswith(ALWAYS_BASE64) else "b64_json"

    async def _call(
        self,
        send: "Callable[[AsyncOpenAI], Awaitable[Any]]",
        *,
        most_bytes: int | None = None,
        retries: int | None = None,
    ) -> bytes:
        """Return the body of a reply. Raises ToolError, or ToolUnavailable for wrong settings."""
        limits = self._limits
        client = await asyncio.to_thread(
            self._open,
            limits.reply_bytes if most_bytes is None else most_bytes,
            limits.retries if retries is None else retries,
        )
        from httpx2 import InvalidURL
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        try:
            async with asyncio.timeout(limits.total_seconds), client:
                return bytes((await send(client)).content)
        except InvalidURL:
            raise ToolError(f"{self._server.name} sent an invalid address.") from None
        except TimeoutError:
            seconds = limits.total_seconds
        except APITimeoutError:
            seconds = limits.seconds
        except APIConnectionError as exc:
            raise self._explain_connection(exc) from None
        except APIStatusError as exc:
            raise self._server.explain_status(exc.status_code, exc.response.content) from None
        raise self._server.explain_outage(f"did not answer within {seconds:g} seconds.")

    def _open(self, most_bytes: int, retries: int) -> "AsyncOpenAI":
        """Return a client of openai that sends only our headers and reads bounded replies."""
        import httpx2
        import openai

        limits, key = self._limits, self.endpoint.key

        async def clean_headers(request: httpx2.Request) -> None:
            for name in list(request.headers):
                if name not in SENT_HEADERS and not name.startswith("x-stainless-"):
                    del request.headers[name]
            if urlsplit(self.endpoint.url).username is not None:
                return  # the HTTP client has set Basic authentication from the address
            request.headers.pop("authorization", None)
            if key is not None:
                request.headers["authorization"] = f"Bearer {key}"

        async def read_bounded(response: httpx2.Response) -> None:
            body = bytearray()
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            async for chunk in response.stream:
                body += chunk
                if len(body) > most_bytes:
                    raise self._server.explain_size(most_bytes)
            await response.stream.aclose()
            response.stream = httpx2.ByteStream(bytes(body))
            # We asked for none: a small reply could grow without a limit when it is unpacked.
            response.headers.pop("content-encoding", None)

        timeout = httpx2.Timeout(limits.seconds, connect=limits.connect_seconds)
        try:
            return openai.AsyncOpenAI(
                api_key=key or "none",
                base_url=self.endpoint.url,
                max_retries=retries,
                timeout=timeout,
                default_headers={"accept-encoding": "identity"},
                http_client=openai.DefaultAsyncHttpxClient(
                    verify=certificates(),
                    timeout=timeout,
                    follow_redirects=False,
                    event_hooks={"request": [clean_headers], "response": [read_bounded]},
                ),
            )
        except httpx2.InvalidURL:
            raise self._server.explain_settings("has an invalid address.") from None

    def _explain_connection(self, exc: "APIConnectionError") -> GtaError:
        import httpx2

        if isinstance(exc.__cause__, httpx2.ConnectError):
            return self._server.explain_settings("cannot be reached.")
        cause = type(exc.__cause__).__name__
        return self._server.explain_outage(f"closed the connection ({cause}).")

    def _parse(self, kind: type[ReplyModel], body: bytes) -> ReplyModel:
        # Not openai's own types: they accept any reply, and strictly read they demand fields that
        # compatible servers leave out.
        try:
            return kind.model_validate_json(body)
        except ValidationError as exc:
            first = exc.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the body"
            raise ToolError(
                f"{self._server.name} sent a malformed reply: {where}: {first['type']}."
            ) from None  # the whole reply would be in the traceback

    async def _read_image(self, body: bytes) -> bytes:
        """Return the image of a reply: inline, or at an address of the endpoint itself.

        No other host is contacted, because the endpoint could point us to any.
        """
        reply = self._parse(_ImagesReply, body)
        image = reply.data[0] if reply.data else _Image()
        encoded, address = image.b64_json, image.url or ""
        if address.startswith("data:"):
            encoded = address.partition(",")[2]
        if encoded:
            try:
                return base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                message = f"{self._server.name} sent an image that is not base64."
                raise ToolError(message) from None
        if not address:
            raise ToolError(f"{self._server.name} sent no image.")
        try:
            url = urljoin(f"{self.endpoint.url}/", address)
            base, target = _origin(self.endpoint.url), _origin(url)
        except ValueError:
            message = f"{self._server.name} sent an image with an invalid address."
            raise ToolError(message) from None
        if target != base:
            raise ToolError(f"{self._server.name} keeps its image on another host, {target[1]!r}.")
        return await self._get(url, self._limits.image_bytes)


def _origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of an address; the port is None if it is the usual one."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname or "", None if parts.port == usual else parts.port


def _response() -> "type[httpx2.Response]":
    import httpx2

    return httpx2.Response
