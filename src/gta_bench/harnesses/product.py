"""A product behind HTTP: a task is submitted with its files, asked after, and its files fetched.

The contract is `docs/reference/product-api.yaml`. The key goes to the product's own address only.
"""

import asyncio
import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gta_bench.confine.names import is_plain, shown
from gta_bench.errors import EnvironmentProblem
from gta_bench.harnesses.collecting import TOO_LARGE, TOO_MANY, Keeping
from gta_bench.records.finished import ResultMeta
from gta_bench.redaction import is_secret, secrets_in_address
from gta_bench.tools.backends.transport import Bounds, Request, Server, exchange

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
# About two minutes of pauses: products say "too many requests" for that long.
PATIENT = Bounds(attempts=8, total_seconds=600, longest_delay=60)
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9._~-]{1,128}$")]
Status = Literal["queued", "running", "done", "failed"]
ENDED: tuple[Status, ...] = ("done", "failed")


@dataclass(frozen=True, kw_only=True)
class Product:
    """Where a product is asked, how long it may take, and how patiently it is called."""

    url: str
    key: str | None = field(default=None, repr=False)
    seconds: float = 1800
    bounds: Bounds = PATIENT

    @property
    def secrets(self) -> dict[str, str]:
        """Its key, and what its address holds of secrets."""
        keys = {self.key: "product"} if self.key and is_secret(self.key) else {}
        return keys | secrets_in_address(self.url, "product")


class Wire(BaseModel):
    """A product's reply; what the contract does not name is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class About(Wire):
    """Who answers."""

    name: str
    version: str | None = None
    model: str | None = None


class Submitted(Wire):
    """A task that was taken."""

    id: Id


class ProductFile(Wire):
    """A file to fetch: `name` may have folders."""

    id: Id
    name: str
    size: Annotated[int, Field(ge=0)]


class State(Wire):
    """How far a task is; the text, the files and what they took are there when it is done."""

    status: Status
    final: str = ""
    files: tuple[ProductFile, ...] = ()
    meta: ResultMeta = ResultMeta()
    error: str = ""


Reply = TypeVar("Reply", bound=Wire)


class ProductClient:
    """One product."""

    def __init__(self, product: Product) -> None:
        self._product = product
        key = product.key
        mend = "Check --product and --product-key-env; start it and run the same command again."
        self._server = Server(f"The product at {product.url}", mend, (key,) if key else ())
        self._key_header = {"authorization": f"Bearer {key}"} if key else {}

    async def about(self) -> About:
        """Who answers; the first thing to ask."""
        return await self._ask(About, Request("GET", self._url("/v1/about")), attempts=2)

    async def work(self, prompt: str, files: Mapping[str, bytes], keeping: Keeping) -> State:
        """Submit a task, wait no longer than the product may take, and bring its files."""
        parts = [
            ("files", (name, data, "application/octet-stream")) for name, data in files.items()
        ]
        # Sent again where the reply was lost: the product knows it by this key.
        headers = {"idempotency-key": secrets.token_hex(16)}
        request = Request(
            "POST", self._url("/v1/tasks"), headers, form={"prompt": prompt}, files=parts
        )
        task = await self._ask(Submitted, request)
        state = await self._wait(task.id)
        await self._fetch(task.id, state, keeping)
        if state.status in ENDED:
            return state
        cancel = Request("DELETE", self._url(f"/v1/tasks/{task.id}"))
        await self._send(cancel, self._product.bounds)
        late = f"not done after {self._product.seconds:g} seconds"
        return state.model_copy(update={"status": "failed", "error": late})

    async def _fetch(self, task: str, state: State, keeping: Keeping) -> None:
        """Bring the files; those with unusable names, or too large, are left out."""
        for file in state.files:
            name = unicodedata.normalize("NFC", file.name)
            room = keeping.room
            if not all(is_plain(part) for part in name.split("/")):
                keeping.leave(shown(file.name)[1:-1], "is not a usable file name")
            elif room is None:
                keeping.leave(name, TOO_MANY)
            elif file.size > room:
                keeping.leave(name, TOO_LARGE)
            else:
                path = f"/v1/tasks/{task}/files/{file.id}"
                bounds = replace(self._product.bounds, reply_bytes=file.size)
                data = await self._send(Request("GET", self._url(path)), bounds)
                await asyncio.to_thread(keeping.keep, name, data)

    async def _wait(self, task: str) -> State:
        """The last state of a task: it has ended, or its time has."""
        clock = asyncio.get_running_loop().time
        end, pause = clock() + self._product.seconds, FIRST_PAUSE
        while True:
            state = await self._ask(State, Request("GET", self._url(f"/v1/tasks/{task}")))
            if state.status in ENDED or clock() + pause > end:
                return state
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, 1.5 * pause)

    async def _ask(
        self, kind: type[Reply], request: Request, *, attempts: int | None = None
    ) -> Reply:
        bounds = self._product.bounds
        data = await self._send(request, replace(bounds, attempts=attempts or bounds.attempts))
        try:
            return kind.model_validate_json(data)
        except ValidationError as exc:
            first = exc.errors()[0]
            field = ".".join(str(part) for part in first["loc"]) or "the reply"
            raise EnvironmentProblem(
                f"{self._server.name} does not keep the contract: {field}: {first['msg']}."
            ) from exc

    async def _send(self, request: Request, bounds: Bounds) -> bytes:
        headers = {**request.headers, **self._key_header}
        return await exchange(self._server, replace(request, headers=headers), bounds)

    def _url(self, path: str) -> str:
        return f"{self._product.url.rstrip('/')}{path}"
