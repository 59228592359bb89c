"""A broker's certificate for TLS on the loopback, signed by itself, made by Java's own tool."""

import secrets
import subprocess
from pathlib import Path
from typing import Final

from tests.brokers import java

_ALIAS: Final = "broker"


def make(directory: Path) -> tuple[dict[str, str], Path]:
    """The broker's properties, and the file (PEM) that its clients have to trust."""
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


def _run(*arguments: str) -> str:
    return subprocess.run([java.keytool(), *arguments], capture_output=True, text=True, check=True).stdout
