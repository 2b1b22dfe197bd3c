"""Keys and passwords: what counts as one, and how it is taken out of whatever is kept."""

from gta_bench.redaction.recognition import (
    ADDRESS,
    PLAIN_NAME,
    SECRET_NAME,
    is_secret,
    mask_text,
    secrets_in_address,
    secrets_in_text,
)
from gta_bench.redaction.redactor import (
    Redactor,
    current_redactor,
    forget_secrets,
    free_name,
    protect,
)

__all__ = [
    "ADDRESS",
    "PLAIN_NAME",
    "SECRET_NAME",
    "Redactor",
    "current_redactor",
    "forget_secrets",
    "free_name",
    "is_secret",
    "mask_text",
    "protect",
    "secrets_in_address",
    "secrets_in_text",
]
