"""Encrypt a secret to one reader's public key, so that other readers of the log cannot read it.

Each text uses a fresh key agreement (X25519), a derived key (HKDF with SHA-256) and authenticated encryption
(ChaCha20-Poly1305). Each derived key is used once, so a fixed nonce is safe.
"""

from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_PUBLIC_BYTES: Final = 32
_NONCE: Final = bytes(12)


class SealError(ValueError):
    """The data was not sealed for this reader or with this label; or the reader's public key is malformed."""


def sealed(text: bytes, reader: bytes, label: bytes) -> bytes:
    """Encrypt a text to the public key ``reader``; decrypting the result requires the same label.

    Raises SealError if ``reader`` is not a public key.
    """
    fresh = X25519PrivateKey.generate()
    try:
        secret = fresh.exchange(X25519PublicKey.from_public_bytes(reader))
    except ValueError as error:
        raise SealError(f"not a public key: {error}") from None
    sender = fresh.public_key().public_bytes_raw()
    return sender + _cipher(secret, sender, reader).encrypt(_NONCE, text, label)


def opened(sealed: bytes, own: X25519PrivateKey, label: bytes) -> bytes:
    """Decrypt a text that was sealed for the key ``own``; raises SealError."""
    sender, text = sealed[:_PUBLIC_BYTES], sealed[_PUBLIC_BYTES:]
    try:
        secret = own.exchange(X25519PublicKey.from_public_bytes(sender))
        return _cipher(secret, sender, own.public_key().public_bytes_raw()).decrypt(_NONCE, text, label)
    except (ValueError, InvalidTag) as error:
        raise SealError(f"can't be decrypted: {error}") from None


def _cipher(secret: bytes, sender: bytes, reader: bytes) -> ChaCha20Poly1305:
    derived = HKDF(algorithm=hashes.SHA256(), length=32, salt=sender + reader, info=b"reballast keys")
    return ChaCha20Poly1305(derived.derive(secret))
