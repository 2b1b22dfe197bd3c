"""MathOCR: the formulas on an image as LaTeX."""

import re

from pydantic import BaseModel, ValidationError

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.tools.backends.choice import BackedTool, EndpointBackend, ToolBackend
from gta_bench.tools.contract import (
    Availability,
    Available,
    ImagePath,
    Made,
    ToolInput,
    Unavailable,
    text,
)
from gta_bench.tools.http import EXCERPT, RemoteServer, fetch_body
from gta_bench.tools.packages import find_missing
from gta_bench.tools.pictures import load_picture, to_send
from gta_bench.tools.prompts import render

MATHPIX = "https://api.mathpix.com/v3"
KEYS = ("MATHPIX_APP_ID", "MATHPIX_APP_KEY")
CHECK_KEYS = f"Check {' and '.join(KEYS)}."
FENCE = re.compile(r"^```\w*\s*|\s*```$")
NOTHING = "No mathematics was recognized on the image."


class MathOCRInput(ToolInput):
    """The image to read."""

    image: ImagePath


class _VisionBackend(EndpointBackend[MathOCRInput]):
    """A vision model transcribes the formulas."""

    async def run(self, workspace: Workspace, given: MathOCRInput) -> Made:
        """Ask the model for LaTeX."""
        picture = await load_picture(self.equipment, workspace, given.image)
        made = await self.ask(render("math.md"), picture)
        latex = FENCE.sub("", made.parts[0].content).strip().strip("$").strip()
        if latex.casefold().rstrip(".") in ("", "none"):
            raise ToolError(NOTHING)
        return Made((text(latex),), backend=made.backend)


class _MathpixReply(BaseModel):
    text: str | None = None
    latex_styled: str | None = None
    error: str | None = None
    version: str | None = None


class MathpixBackend(ToolBackend[MathOCRInput]):
    """Mathpix, as in the paper; `endpoint` may name another address of the same protocol."""

    name = "mathpix"

    def check(self) -> Availability:
        """Return whether both keys are set."""
        if missing := find_missing("PIL"):
            return missing
        unset = [name for name in KEYS if not self.equipment.key(name)]
        if unset:
            exports = " ".join(f"{name}=…" for name in unset)
            return Unavailable(f"{' and '.join(unset)} not set.", f"export {exports}")
        return Available("Mathpix v3/text")

    async def run(self, workspace: Workspace, given: MathOCRInput) -> Made:
        """Send the image and return the formula."""
        keys = self._keys()
        picture = await load_picture(self.equipment, workspace, given.image)
        sent = (await self.equipment.in_thread(to_send, picture)).picture
        server = RemoteServer("Mathpix", CHECK_KEYS, keys)
        body = await fetch_body(
            server,
            seconds=60,
            attempts=4,
            longest_delay=30,
            method="POST",
            url=f"{self._address()}/text",
            headers={"app_id": keys[0], "app_key": keys[1]},
            files={"file": ("image.png", sent.data, sent.media_type)},
        )
        try:
            reply = _MathpixReply.model_validate_json(body)
        except ValidationError:
            raise ToolError("Mathpix sent a malformed reply.") from None
        if reply.error:
            reason = server.redact(reply.error)[:EXCERPT]
            raise ToolError(f"Mathpix did not read the image: {reason}.")
        latex = (reply.latex_styled or reply.text or "").strip()
        if not latex:
            raise ToolError(NOTHING)
        version = f" ({reply.version})" if reply.version else ""
        return Made((text(latex),), backend=f"{self.label}{version}")

    def _keys(self) -> tuple[str, str]:
        app_id, app_key = ((self.equipment.key(name) or "").strip() for name in KEYS)
        if not ((app_id + app_key).isascii() and (app_id + app_key).isprintable()):
            reason = "A key of Mathpix has characters that no key has."
            raise ToolUnavailable(reason, fix=CHECK_KEYS)
        return app_id, app_key

    def _address(self) -> str:
        chosen = self.equipment.settings.tools.get(self.tool)
        if chosen is None or chosen.endpoint is None:
            return MATHPIX
        return self.equipment.settings.endpoints[chosen.endpoint].url.rstrip("/")


class MathOCR(BackedTool[MathOCRInput]):
    """Reads formulas as LaTeX."""

    name = "MathOCR"
    category = "logic"
    description = (
        "This tool can recognize math expressions from an image and return the latex style "
        "expression."
    )
    version = "1"
    input_type = MathOCRInput
    backends = (_VisionBackend, MathpixBackend)
