"""Certificates for TLS on the loopback: a self-signed one for a broker (by keytool), and client certificates."""

import datetime as dt
import secrets
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct

from tests.brokers import java

_ALIAS: Final = "broker"


def make(directory: Path) -> tuple[dict[str, str], Path]:
    """Return the broker's properties, and the CA file (PEM) for its clients."""
    store, authority, password = directory / "broker.p12", directory / "ca.pem", secrets.token_hex()
    common = ("-keystore", str(store), "-storetype", "PKCS12", "-storepass", password, "-alias", _ALIAS)
    key = (
        "-genkeypair",
        "-keyalg",
        "EC",
        "-dname",
        "CN=broker",
        "-ext",
        "san=ip:127.0.0.1",
        "-ext",
        "bc=ca:true",
    )
    _run(*key, *common)
    authority.write_text(_run("-exportcert", "-rfc", *common))
    properties = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": password,
        "ssl.keystore.type": "PKCS12",
    }
    return properties, authority


class Client(Struct, frozen=True):
    """Certificate and key files (PEM) of a client."""

    certificate: Path
    key: Path


def clients(directory: Path, names: Sequence[str]) -> tuple[dict[str, str], list[Client]]:
    """Return properties of brokers that require client certificates, and a certificate for each user."""
    directory.mkdir()
    authority_key = ec.generate_private_key(ec.SECP256R1())
    subject = _named("clients")
    authority = (
        _builder(subject, subject, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    trusted = directory / "clients.pem"
    trusted.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    issued: list[Client] = []
    for name in names:
        key = ec.generate_private_key(ec.SECP256R1())
        client = Client(directory / f"{name}.pem", directory / f"{name}.key")
        certificate = _builder(_named(name), subject, key).sign(authority_key, hashes.SHA256())
        client.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        client.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        issued.append(client)
    properties = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SSL",
        "listener.name.secured.ssl.client.auth": "required",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
    }
    return properties, issued


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now, day = dt.datetime.now(dt.UTC), dt.timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _run(*arguments: str) -> str:
    return subprocess.run([java.keytool(), *arguments], capture_output=True, text=True, check=True).stdout
