"""Signatures of bundles: Ed25519 by `cryptography`, keys as PEM files."""

import hashlib
import os
from pathlib import Path

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
