"""The authorities that HTTP clients trust."""

import ssl
from functools import cache

import httpx


@cache
def certificates() -> ssl.SSLContext:
    """Read once: it takes longer than many a request. The first call blocks."""
    return httpx.create_ssl_context()
