"""Certificates of a cluster: authority, server, administrator, and the key that signs service account tokens."""

import base64
import datetime as dt
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from engine import private_files
from engine.identity import certificates

_DAY: Final = dt.timedelta(days=1)
_ADMINISTRATORS: Final = "system:masters"
_LOOPBACK: Final = "127.0.0.1"


class Files(Struct, frozen=True):
    """PEM files of the authority, the server and the token keys; and the administrator's kubeconfig."""

    authority: Path
    authority_key: Path
    certificate: Path
    key: Path
    tokens_key: Path
    tokens_public: Path
    kubeconfig: Path


def make(directory: Path, url: str) -> Files:
    """Create all files, for a server at a URL."""
    now = dt.datetime.now(dt.UTC)
    server = certificates.make(directory, now, (_LOOPBACK,))
    files = Files(
        directory / "ca.pem",
        directory / "kube-ca.key",
        server.certificate,
        server.key,
        directory / "tokens.key",
        directory / "tokens.pub",
        directory / "kubeconfig",
    )
    files.authority.write_bytes(server.authority)
    key = ec.generate_private_key(ec.SECP256R1())
    private_files.write(files.tokens_key, _key_bytes(key))
    files.tokens_public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    own, own_key = client(directory, "administrator", group=_ADMINISTRATORS)
    user = {"client-certificate-data": base64_of(own), "client-key-data": base64_of(own_key)}
    private_files.write(files.kubeconfig, _kubeconfig(url, server.authority, user))
    return files


def client(directory: Path, name: str, *, group: str = "") -> tuple[bytes, bytes]:
    """Return a new client certificate of the authority in ``directory``, and its key, as PEM."""
    now = dt.datetime.now(dt.UTC)
    authority, authority_key = certificates.authority(directory, now)
    issuer = x509.load_pem_x509_certificate(authority)
    signing = serialization.load_pem_private_key(authority_key, None)
    assert isinstance(signing, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if group:
        names.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(names))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(signing, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), _key_bytes(key)


def _kubeconfig(url: str, authority: bytes, user: dict[str, str]) -> bytes:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "real", "cluster": {"server": url, "certificate-authority-data": base64_of(authority)}}
        ],
        "users": [{"name": "administrator", "user": user}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "administrator"}}],
        "current-context": "real",
    }
    return yaml.safe_dump(config).encode()


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def base64_of(content: bytes) -> str:
    """Return bytes as Kubernetes writes them into JSON."""
    return base64.b64encode(content).decode()
