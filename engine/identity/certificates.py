"""TLS certificates: a local authority, created at the first start, and a new server certificate at each start.

The authority's key stays in the data directory, which only its owner may read. Clients find the authority's
certificate in the kubeconfig and trust no other authority.
"""

import datetime as dt
import ipaddress
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from engine import private_files

_AUTHORITY: Final = "kube-ca"
_SERVER: Final = "kube-server"
_AUTHORITY_DAYS: Final = 3_650
_SERVER_DAYS: Final = 397
"""Validity of a server certificate in days: the longest that clients accept."""

_BEFORE: Final = dt.timedelta(days=1)
"""Certificates are valid from this long before their creation, since the clocks of clients may be behind."""


class Certificates(Struct, frozen=True, kw_only=True):
    """Paths of the server's certificate and key, and the authority's certificate as bytes, all PEM.

    ``clients`` is the path of the CA certificate that verifies client certificates; None if these are not used.
    """

    certificate: Path
    key: Path
    authority: bytes
    clients: Path | None = None


class CertificateError(ValueError):
    """The files are not a certificate with its key; the message contains the reason."""


def from_files(certificate: Path, key: Path) -> Certificates:
    """Return the certificate and key in these files; clients trust the certificate itself instead of an authority.

    Raises CertificateError if they are unreadable, do not match or have expired.
    """
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
        own = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CertificateError(f"{certificate} with {key}: {reason}") from None
    if own.not_valid_after_utc < dt.datetime.now(dt.UTC):
        raise CertificateError(f"{certificate}: expired at {own.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}")
    return Certificates(
        certificate=certificate, key=key, authority=own.public_bytes(serialization.Encoding.PEM)
    )


def make(directory: Path, now: dt.datetime, hosts: Iterable[str]) -> Certificates:
    """Create a certificate for a server with these names and addresses, signed by the authority of the directory."""
    authority, authority_key = own_authority(directory, now)
    key = ec.generate_private_key(ec.SECP256R1())
    names = [_general_name(host) for host in sorted({"localhost", *hosts})]
    certificate = (
        _builder("reballast", authority.subject, now, _SERVER_DAYS, key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(is_authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    made = Certificates(
        certificate=directory / f"{_SERVER}.pem",
        key=directory / f"{_SERVER}.key",
        authority=authority.public_bytes(serialization.Encoding.PEM),
        clients=directory / f"{_AUTHORITY}.pem",
    )
    private_files.write(made.key, _key_bytes(key))
    private_files.write(made.certificate, pem)
    return made


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def authority(directory: Path, now: dt.datetime) -> tuple[bytes, bytes]:
    """Return the certificate and key (PEM) of the directory's authority; create it if missing."""
    certificate, key = own_authority(directory, now)
    return certificate.public_bytes(serialization.Encoding.PEM), _key_bytes(key)


def write_authority(directory: Path, certificate: bytes, key: bytes) -> None:
    """Replace the certificate and key (PEM) of the authority of the directory."""
    private_files.write(directory / f"{_AUTHORITY}.key", key)
    private_files.write(directory / f"{_AUTHORITY}.pem", certificate)


def own_authority(
    directory: Path, now: dt.datetime, days: int = _SERVER_DAYS
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Load the authority of the directory; create one if it is missing, damaged or expires too soon.

    An authority expires too soon if it is valid for less than ``days`` days. The default is the validity of a new
    server certificate. An authority of an earlier release, without key usage, gets a new certificate for its key:
    clients that trust the old certificate also accept what the key signs. Raises OSError.
    """
    certificate_path, key_path = directory / f"{_AUTHORITY}.pem", directory / f"{_AUTHORITY}.key"
    try:
        certificate = x509.load_pem_x509_certificate(certificate_path.read_bytes())
        key = serialization.load_pem_private_key(key_path.read_bytes(), None)
    except (FileNotFoundError, ValueError):
        # Do not catch other OSErrors: files that are unreadable now may contain the authority that all clients trust.
        certificate, key = None, None
    lasting = now + dt.timedelta(days=days)
    if (
        certificate is None
        or not isinstance(key, ec.EllipticCurvePrivateKey)
        or certificate.not_valid_after_utc <= lasting
        or certificate.public_key() != key.public_key()
    ):
        key = ec.generate_private_key(ec.SECP256R1())
    elif _has_key_usage(certificate):
        return certificate, key
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "reballast-ca")])
    certificate = (
        _builder("reballast-ca", name, now, _AUTHORITY_DAYS, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(is_authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private_files.write(key_path, _key_bytes(key))
    private_files.write(certificate_path, certificate.public_bytes(serialization.Encoding.PEM))
    return certificate, key


def key_usage(*, is_authority: bool) -> x509.KeyUsage:
    """Return the key usage of an authority, or of a server or client.

    Clients with strict checks (RFC 5280), such as Python since 3.13, refuse an authority without key usage.
    """
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _has_key_usage(certificate: x509.Certificate) -> bool:
    return any(isinstance(extension.value, x509.KeyUsage) for extension in certificate.extensions)


def _builder(
    subject: str, issuer: x509.Name, now: dt.datetime, days: int, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + dt.timedelta(days=days))
    )


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
