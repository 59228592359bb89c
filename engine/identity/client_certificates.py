"""Client certificates: sign requests (PKCS #10) by the local authority, and read the user and groups of a client."""

import datetime as dt
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from engine.identity import certificates
from engine.identity.certificates import CertificateError

_MALFORMED: Final = (
    ValueError,
    TypeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""Errors of ``cryptography`` for requests that it cannot read."""

_BEFORE: Final = dt.timedelta(minutes=5)
"""Certificates are valid from this long before their creation, since the clocks of servers may be behind."""


SCOPE_KEY: Final = "reballast.client"
"""Key in the ASGI scope of a request under which the ``Client`` of its connection is stored."""


class Client(Struct, frozen=True, kw_only=True):
    """User name and groups from the certificate of a connection, and its expiry in milliseconds since 1970.

    The name is empty if the certificate has none or several.
    """

    name: str
    groups: tuple[str, ...]
    until_ms: int


def client_of(certificate: Mapping[str, Any]) -> Client:
    """Return the client that a verified certificate names.

    ``certificate`` has the form that ``ssl.SSLSocket.getpeercert`` returns.
    """
    subject = [pair for names in certificate.get("subject", ()) for pair in names]
    names = [str(value) for kind, value in subject if kind == "commonName"]
    return Client(
        name=names[0] if len(names) == 1 else "",
        groups=tuple(str(value) for kind, value in subject if kind == "organizationName"),
        until_ms=int(ssl.cert_time_to_seconds(certificate["notAfter"])) * 1000,
    )


class Subject(Struct, frozen=True, kw_only=True):
    """User and groups in a certificate request, and whether it also has subject alternative names."""

    name: str
    groups: tuple[str, ...]
    has_other_names: bool


def subject_of(request: bytes) -> Subject:
    """Return the subject of a request (PEM); raises CertificateError if it is malformed or not signed by its key."""
    return _subject(_read(request))


def signed(directory: Path, request: bytes, now: dt.datetime, valid_for: dt.timedelta) -> bytes:
    """Return a client certificate (PEM) for a request's subject and key, signed by the authority of the directory.

    It expires with the authority at the latest. Raises CertificateError if the request is malformed or not signed by
    its key.
    """
    read = _read(request)
    # The server loaded the authority when it started and verifies clients with it. So use this authority until it
    # expires; a new one would not be known to the running server.
    authority, key = certificates.own_authority(directory, now, days=0)
    return (
        x509.CertificateBuilder()
        .subject_name(read.subject)
        .issuer_name(authority.subject)
        .public_key(read.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(min(now + valid_for, authority.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(certificates.key_usage(is_authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )


def _read(request: bytes) -> x509.CertificateSigningRequest:
    try:
        read = x509.load_pem_x509_csr(request)
        if not read.is_signature_valid:
            raise CertificateError("the request is not signed with its own key")
        # The attributes are parsed when they are read, so read them here to refuse malformed ones.
        _ = read.public_key(), read.subject, read.extensions
    except _MALFORMED as error:
        raise CertificateError(str(error) or "not a certificate signing request") from None
    return read


def _subject(read: x509.CertificateSigningRequest) -> Subject:
    names = [str(attribute.value) for attribute in read.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [
        str(attribute.value) for attribute in read.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    ]
    try:
        read.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        has_other_names = True
    except x509.ExtensionNotFound:
        has_other_names = False
    return Subject(
        name=names[0] if len(names) == 1 else "", groups=tuple(groups), has_other_names=has_other_names
    )
