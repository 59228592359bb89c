"""Ed25519 keys and signatures (RFC 8032) for checkpoints."""

import base64
import hashlib
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct

from events.json_values import DECODING_ERRORS

_FINGERPRINT_CHARS: Final = 16


class SigningError(Exception):
    """A key cannot be used, or a line is not signed by it; the message says why."""


class _Signed(Struct, frozen=True):
    """A line: the signed content as it was written, the fingerprint of the key, and the signature in base64."""

    content: msgspec.Raw
    key: str
    signature: str


def new_keys() -> tuple[bytes, bytes]:
    """Return a new private key and its public key, both as PEM."""
    private = Ed25519PrivateKey.generate()
    own = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return own, public


def private_key(pem: bytes) -> Ed25519PrivateKey:
    """Read a private key. Raises SigningError."""
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise SigningError(f"it is not a private key in PEM without a password: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningError("it is not an Ed25519 key")
    return key


def public_key(pem: bytes) -> Ed25519PublicKey:
    """Read a public key. Raises SigningError."""
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningError(f"it is not a public key in PEM: {error}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise SigningError("it is not an Ed25519 key")
    return key


def fingerprint(key: Ed25519PublicKey) -> str:
    """Return the first characters of the SHA-256 of a public key, to tell keys apart."""
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()[:_FINGERPRINT_CHARS]


def signed(content: bytes, key: Ed25519PrivateKey) -> bytes:
    """Return a line with JSON content and its signature, without a line end."""
    signature = base64.b64encode(key.sign(content)).decode()
    return msgspec.json.encode(_Signed(msgspec.Raw(content), fingerprint(key.public_key()), signature))


def content(line: bytes, key: Ed25519PublicKey) -> bytes:
    """Return the content of a line that this key signed. Raises SigningError."""
    try:
        signed = msgspec.json.decode(line, type=_Signed)
        signature = base64.b64decode(signed.signature, validate=True)
    except DECODING_ERRORS as error:
        raise SigningError(f"it is not a signed line: {error}") from None
    if signed.key != fingerprint(key):
        raise SigningError(f"it is signed with the key {signed.key}, not with {fingerprint(key)}")
    try:
        key.verify(signature, bytes(signed.content))
    except InvalidSignature:
        raise SigningError("its content was changed after it was signed") from None
    return bytes(signed.content)
