"""Certificates of a server and its authority, of clients, and the requests to sign these."""

import datetime as dt
import ssl
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.types import Receive, Scope, Send

from engine.http.kube import app as kube_app
from engine.identity import certificates, client_certificates
from engine.identity.certificates import CertificateError
from tests.api.servers import NOW_MS, serving

HOST = "localhost"
PEM = serialization.Encoding.PEM
KEY = ec.generate_private_key(ec.SECP256R1())
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def request(encoding: serialization.Encoding) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "joe")])
    return (
        x509.CertificateSigningRequestBuilder()
        .subject_name(name)
        .sign(KEY, hashes.SHA256())
        .public_bytes(encoding)
    )


@pytest.mark.parametrize(
    "changed", [(b"\x02\x01\x00", b"\x02\x01\x07"), (b"joe", b"jim"), (b"joe", b"\xff\xff\xff")]
)
def test_malformed_or_changed_request_is_refused(changed: tuple[bytes, bytes]) -> None:
    der = request(serialization.Encoding.DER).replace(*changed, 1)
    text = ssl.DER_cert_to_PEM_cert(der).replace(" CERTIFICATE-", " CERTIFICATE REQUEST-").encode()
    with pytest.raises(CertificateError):
        client_certificates.subject_of(text)


def test_authority_signs_until_its_end(tmp_path: Path) -> None:
    authority, _ = certificates.own_authority(tmp_path, NOW)
    late = authority.not_valid_after_utc - dt.timedelta(days=30)
    signed = client_certificates.signed(tmp_path, request(PEM), late, dt.timedelta(days=1))
    x509.load_pem_x509_certificate(signed).verify_directly_issued_by(authority)
    assert certificates.own_authority(tmp_path, late)[0] != authority


def test_certificate_ends_with_its_validity_or_with_its_authority(tmp_path: Path) -> None:
    pem = request(PEM)
    authority, _ = certificates.own_authority(tmp_path, NOW)
    for valid_for, until in (
        (dt.timedelta(hours=1), NOW + dt.timedelta(hours=1)),
        (dt.timedelta(days=36_500), authority.not_valid_after_utc),
    ):
        signed = client_certificates.signed(tmp_path, pem, NOW, valid_for)
        certificate = x509.load_pem_x509_certificate(signed)
        certificate.verify_directly_issued_by(authority)
        assert certificate.not_valid_after_utc == until


@pytest.mark.parametrize(("seconds", "code"), [(0, 401), (1, 403)])
async def test_open_connection_is_unauthorized_once_its_certificate_has_ended(
    seconds: int, code: int
) -> None:
    until = dt.datetime.fromtimestamp(NOW_MS // 1_000 + seconds, dt.UTC)
    named = {"subject": ((("commonName", "joe"),),), "notAfter": until.strftime("%b %d %H:%M:%S %Y GMT")}
    async with serving() as services:
        application = kube_app.create_app(services, lambda: NOW_MS)

        async def certified(scope: Scope, receive: Receive, send: Send) -> None:
            scope[client_certificates.SCOPE_KEY] = client_certificates.client_of(named)
            await application(scope, receive, send)

        transport = httpx.ASGITransport(certified)
        async with httpx.AsyncClient(transport=transport, base_url="http://kube") as client:
            answer = await client.get("/api/v1/namespaces/default/pods")
    assert answer.status_code == code


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def private(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as PEM."""
    return key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def client_files(directory: Path) -> tuple[Path, Path]:
    """A client certificate that the authority of the directory signed, and its key."""
    paths = directory / "client.pem", directory / "client.key"
    paths[0].write_bytes(client_certificates.signed(directory, request(PEM), now(), dt.timedelta(days=1)))
    paths[1].write_bytes(private(KEY))
    return paths


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Shake hands in memory; raises ssl.SSLCertVerificationError if one side refuses the other's certificate."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server, server_hostname=HOST),
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
    made = certificates.make(tmp_path, now(), (HOST,))
    client, server = contexts(made, is_strict=True)
    client.load_cert_chain(*client_files(tmp_path))
    shake_hands(client, server)


def test_authority_of_an_earlier_release_gets_a_new_certificate_for_its_key(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "reballast-ca")])
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
    certificates.write_authority(tmp_path, former, private(key))

    made = certificates.make(tmp_path, now(), (HOST,))

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
    assert certificates.make(tmp_path, now(), (HOST,)).authority == made.authority, "renewed once"
