"""Client certificates."""

import datetime as dt

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def client_certificate(name: str) -> tuple[str, str]:
    """A self-signed certificate and its key, in PEM."""
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    )
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - dt.timedelta(1))
    signed = builder.not_valid_after(now + dt.timedelta(1)).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return signed.public_bytes(pem).decode(), private.decode()
