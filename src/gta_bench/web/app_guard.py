"""Checks of every request to the app: its host, its origin and its token; then safe headers.

The app listens on this machine only, but other users of the machine, and pages of other sites in
the same browser, can reach it there. The address that `gta view` prints has a token; a browser
that has followed it once has a cookie instead, which other sites cannot use.
"""

import hmac
import re
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs, quote, urlencode

from starlette.responses import PlainTextResponse, RedirectResponse, Response

from gta_bench.serving.gate import App, Receive, Scope, Send

HOSTS: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):[0-9]{1,5}")
TOKEN: Final = "token"
MAX_BODY: Final = 100_000
# A page loads nothing from other servers, whatever a deliverable contains.
POLICY: Final = (
    "default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
METHODS: Final = frozenset({"GET", "HEAD", "POST"})


class Guard:
    """An app behind these checks."""

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused; pass any other one on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        response = self._check(scope)
        if response is None:
            await self._app(scope, receive, _with_headers(send))
        else:
            await response(scope, receive, _with_headers(send))

    def _check(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is not passed on."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        host = headers.get("host", "")
        if not HOSTS.fullmatch(host):
            return _refuse(400, "This app answers on this machine only.")
        # Browsers send it with every form and script request; other sites have another one.
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return _refuse(403, "This request did not come from a page of this app.")
        if headers.get("sec-fetch-site") == "cross-site" and scope["method"] != "GET":
            return _refuse(403, "This request did not come from a page of this app.")
        if scope["method"] not in METHODS:
            return _refuse(405, "This app can only be read, except for labels.")
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if TOKEN in query and scope["method"] == "GET":
            return self._exchange(scope, host, query)
        if not self._is_known(_read_cookie(headers.get("cookie", ""), cookie_name(host))):
            return _refuse(401, "Open the address that `gta view` printed, which has a token.")
        return None

    def _exchange(self, scope: Scope, host: str, query: dict[str, list[str]]) -> Response:
        """Put a right token into a cookie, and remove it from the address."""
        if not self._is_known(query.pop(TOKEN)[-1]):
            return _refuse(401, "This token is not the one that `gta view` printed.")
        rest = urlencode(query, doseq=True)
        # More than one leading slash would name another server.
        place = "/" + quote(scope["path"].lstrip("/"))
        response = RedirectResponse(place + (f"?{rest}" if rest else ""), status_code=303)
        response.set_cookie(cookie_name(host), self._token, httponly=True, samesite="strict")
        return response

    def _is_known(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode())


def cookie_name(host: str) -> str:
    """Return the name of the cookie: all ports of a machine share their cookies."""
    return f"gta_view_{host.rpartition(':')[2]}"


def _read_cookie(text: str, name: str) -> str:
    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _refuse(status: int, message: str) -> Response:
    return PlainTextResponse(message, status_code=status)


def _with_headers(send: Send) -> Send:
    """Add the headers that every answer has, unless it has its own."""

    async def send_safely(message: Scope) -> None:
        if message["type"] == "http.response.start":
            given = [*message.get("headers", ())]
            known = {name.lower() for name, _ in given}
            own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message["headers"] = [*given, *(one for one in own if one[0] not in known)]
        await send(message)

    return send_safely
