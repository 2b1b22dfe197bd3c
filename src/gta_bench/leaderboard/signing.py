"""Signatures of bundles: Ed25519 by `cryptography`, keys as PEM files."""

import hashlib
import os
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from gta_bench.errors import UsageError
from gta_bench.records.leaderboard import Signature

# Every encoding of a point whose order divides 8, without the sign bit (as in libsodium).
SMALL_ORDER: Final = frozenset(
    bytes.fromhex(text)
    for text in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)


def read_key(file: Path) -> Ed25519PrivateKey:
    """The private key of a PEM file without password."""
    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except (ValueError, TypeError) as exc:
        raise UsageError(
            f"{file} is no private key in PEM without password; name a new file to have one made."
        ) from exc
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{file} holds a key of another kind; bundles are signed by Ed25519.")
    return key


def make_key(file: Path) -> Ed25519PrivateKey:
    """A new key, in a file that only its owner can read; an existing file is not touched."""
    key = Ed25519PrivateKey.generate()
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


def sign(data: bytes, key: Ed25519PrivateKey) -> Signature:
    """The signature of the bytes."""
    public = key.public_key().public_bytes_raw()
    return Signature(public_key=public.hex(), signature=key.sign(data).hex())


def has_small_order(signature: Signature) -> bool:
    """Whether the key is one of the few with which anybody can sign anything."""
    key = bytearray.fromhex(signature.public_key)
    key[-1] &= 0x7F  # the sign of x
    return bytes(key) in SMALL_ORDER


def holds(data: bytes, signature: Signature) -> bool:
    """Whether the signature is that of the bytes by the key that it names."""
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
    try:
        public.verify(bytes.fromhex(signature.signature), data)
    except InvalidSignature:
        return False
    return True


def fingerprint(signature: Signature) -> str:
    """The signer in 16 digits: bundles of one submitter have the same."""
    return hashlib.sha256(bytes.fromhex(signature.public_key)).hexdigest()[:16]
