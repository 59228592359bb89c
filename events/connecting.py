"""How a client of Kafka proves who it is, and what it trusts: TLS and SASL, as the client library takes them."""

import ssl
from pathlib import Path
from typing import Literal

from msgspec import Struct

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class Security(Struct, frozen=True, kw_only=True):
    """TLS where ``tls`` is set, SASL where ``mechanism`` is; neither by default.

    ``ca_file`` holds the authorities to trust instead of the system's, ``cert_file`` and ``key_file`` the client's
    own certificate (PEM), where the brokers ask for one.
    """

    tls: bool = False
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    mechanism: Mechanism | None = None
    username: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Security(tls={self.tls}, mechanism={self.mechanism!r}, username={self.username!r})"

    def options(self) -> dict[str, object]:
        """The options of the client library; reads the files. Raises OSError for one that can't be read."""
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
