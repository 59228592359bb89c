"""Certificates of a server, its authority and its clients."""

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from engine.identity import certificates, client_certificates

NAME = "localhost"
PEM = serialization.Encoding.PEM


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def client_files(directory: Path) -> tuple[Path, Path]:
    """A client certificate that the authority of the directory signed, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "joe")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    signed = client_certificates.signed(directory, request.public_bytes(PEM), now(), dt.timedelta(days=1))
    paths = directory / "client.pem", directory / "client.key"
    paths[0].write_bytes(signed)
    paths[1].write_bytes(
        key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Shake hands in memory; raises ssl.SSLCertVerificationError if one side refuses the other's certificate."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server, server_hostname=NAME),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    unfinished = list(sides)
    for _ in range(6):
        for side in list(unfinished):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            unfinished.remove(side)
    assert not unfinished


def contexts(
    made: certificates.Certificates, *, is_strict: bool, trusted: bytes = b""
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The TLS contexts of a client that trusts this authority, by default the server's, and of the server."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=(trusted or made.authority).decode())
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made.certificate, made.key)
    server.load_verify_locations(made.clients)
    server.verify_mode = ssl.CERT_REQUIRED
    for context in (client, server):
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if is_strict:
            context.verify_flags |= ssl.VERIFY_X509_STRICT
    return client, server


def test_certificates_pass_strict_checks(tmp_path: Path) -> None:
    made = certificates.make(tmp_path, now(), (NAME,))
    client, server = contexts(made, is_strict=True)
    client.load_cert_chain(*client_files(tmp_path))
    shake_hands(client, server)


def test_authority_of_an_earlier_release_gets_a_new_certificate_for_its_key(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "reballast-ca")])
    former = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now() - dt.timedelta(days=9))
        .not_valid_after(now() + dt.timedelta(days=3_000))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(PEM)
    )
    private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    certificates.keep_authority(tmp_path, former, private)

    made = certificates.make(tmp_path, now(), (NAME,))

    assert x509.load_pem_x509_certificate(made.authority).public_key() == key.public_key()
    client, server = contexts(made, is_strict=True)
    client.load_cert_chain(*client_files(tmp_path))
    shake_hands(client, server)
    client, server = contexts(made, is_strict=False, trusted=former)
    client.load_cert_chain(*client_files(tmp_path))
    shake_hands(client, server)
    strict, server = contexts(made, is_strict=True, trusted=former)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(strict, server)
    assert certificates.make(tmp_path, now(), (NAME,)).authority == made.authority, "renewed once"
