"""Client certificates: what a signing request may be, and how long its certificate is valid."""

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
    signed = client_certificates.signed(
        tmp_path, request(serialization.Encoding.PEM), late, dt.timedelta(days=1)
    )
    x509.load_pem_x509_certificate(signed).verify_directly_issued_by(authority)
    assert certificates.own_authority(tmp_path, late)[0] != authority


def test_certificate_ends_with_its_validity_or_with_its_authority(tmp_path: Path) -> None:
    pem = request(serialization.Encoding.PEM)
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
