"""TLS and SASL settings of a Kafka client, converted to aiokafka's options."""

import ssl
from pathlib import Path
from typing import Literal

from msgspec import Struct

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class Security(Struct, frozen=True, kw_only=True):
    """Connection security: TLS if ``tls`` is set, SASL if ``mechanism`` is set; neither by default.

    ``ca_file`` holds the authorities to trust instead of the system's. ``cert_file`` and ``key_file`` are the
    client's own certificate (PEM), for brokers that require one. Raises ValueError for settings without effect: a user
    who sets a file of certificates must not get a connection without TLS.
    """

    tls: bool = False
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    mechanism: Mechanism | None = None
    username: str = ""
    password: str = ""

    def __post_init__(self) -> None:
        if not self.tls and (self.ca_file or self.cert_file or self.key_file):
            raise ValueError("ca_file, cert_file and key_file need TLS: set tls to true")
        if self.key_file and not self.cert_file:
            raise ValueError("key_file needs cert_file")
        if self.username and self.mechanism is None:
            raise ValueError("a username needs a mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")

    def __repr__(self) -> str:
        return f"Security(tls={self.tls}, mechanism={self.mechanism!r}, username={self.username!r})"

    def options(self) -> dict[str, object]:
        """Return aiokafka's options; reads the certificate files.

        Raises OSError for a file that cannot be read.
        """
        options: dict[str, object] = {"security_protocol": self._protocol()}
        if self.tls:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.cert_file is not None:
                context.load_cert_chain(self.cert_file, self.key_file)
            options["ssl_context"] = context
        if self.mechanism is not None:
            options["sasl_mechanism"] = self.mechanism
            options["sasl_plain_username"] = self.username
            options["sasl_plain_password"] = self.password
        return options

    def _protocol(self) -> str:
        if self.mechanism is None:
            return "SSL" if self.tls else "PLAINTEXT"
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"


NO_SECURITY = Security()
