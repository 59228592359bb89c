"""The wire contract for foreign producers is up to date."""

import ssl
from pathlib import Path

import pytest

from events.client import connection_options
from tests.events import wire_tables


def test_tables_of_the_wire_contract_are_up_to_date() -> None:
    text = wire_tables.DOCUMENT.read_text()
    assert wire_tables.written(text) == text, "update the tables: python -m tests.events.wire_tables"


def test_wrong_table_is_corrected() -> None:
    text = wire_tables.DOCUMENT.read_text()
    false = text.replace("| `reballast.specs` | 12 |", "| `reballast.specs` | 6 |")
    assert false != text
    assert wire_tables.written(false) == text


@pytest.mark.parametrize(
    ("security", "protocol"),
    [
        (connection_options.NO_SECURITY, "PLAINTEXT"),
        (connection_options.Security(tls=True), "SSL"),
        (connection_options.Security(mechanism="PLAIN", username="shop"), "SASL_PLAINTEXT"),
        (connection_options.Security(tls=True, mechanism="SCRAM-SHA-512", username="shop"), "SASL_SSL"),
    ],
)
def test_tls_and_credentials_become_client_options(
    security: connection_options.Security, protocol: str
) -> None:
    options = security.options()
    assert options["security_protocol"] == protocol
    assert options.get("sasl_mechanism") == security.mechanism
    context = options.get("ssl_context")
    assert (context is not None) == security.tls
    assert not isinstance(context, ssl.SSLContext) or context.verify_mode is ssl.CERT_REQUIRED


def test_password_is_not_in_the_repr() -> None:
    assert "open-sesame" not in repr(connection_options.Security(mechanism="PLAIN", password="open-sesame"))  # noqa: S106


def test_missing_ca_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        connection_options.Security(tls=True, ca_file=tmp_path / "ca.pem").options()
