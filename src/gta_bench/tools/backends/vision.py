"""Vision models behind an endpoint: what the tools that ask them have in common."""

from typing import TYPE_CHECKING

from gta_bench.errors import ToolUnavailable
from gta_bench.tools.backends.choice import ENDPOINT, ToolBackend
from gta_bench.tools.backends.client import Client, Endpoint, find_endpoint
from gta_bench.tools.backends.local import lacking
from gta_bench.tools.backends.pictures import to_send
from gta_bench.tools.contract import Availability, Available, Input, Made, Unavailable, text

if TYPE_CHECKING:
    from PIL.Image import Image


class EndpointBackend(ToolBackend[Input]):
    """The endpoint that gta.toml gives to the tool; a subclass says what to ask it."""

    name = ENDPOINT

    def check(self) -> Availability:
        """Whether an endpoint is set, with its key."""
        found = lacking("PIL") or find_endpoint(self.equipment, self.tool)
        return Available(found.label()) if isinstance(found, Endpoint) else found

    def client(self) -> Client:
        """A client of the endpoint."""
        found = find_endpoint(self.equipment, self.tool)
        if isinstance(found, Unavailable):
            raise ToolUnavailable(found.reason, mend=found.mend)
        return Client(found)

    async def ask(self, prompt: str, picture: "Image") -> Made:
        """The model's words about a picture, as they are."""
        client = self.client()
        sent = await self.equipment.in_thread(to_send, picture)
        answer = await client.chat(prompt, [sent.picture])
        return Made((text(answer.text),), backend=client.endpoint.label(answer.model))
