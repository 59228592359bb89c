"""Addresses of logs on Kafka: what they mean, and which are refused."""

from pathlib import Path

import pytest

from engine.log.kafka import address
from engine.log.kafka.address import AddressError
from events.client.connection_options import Security

OWN = "a#b"
SET = "from the environment"


@pytest.mark.parametrize(
    ("text", "servers", "prefix"),
    [
        ("kafka://one", "one:9092", "reballast."),
        ("kafka://one:19092,two/", "one:19092,two:9092", "reballast."),
        ("kafka://[::1]:9092/shop", "[::1]:9092", "shop."),
        ("kafka://one,,two/a%20b/", "one:9092,two:9092", "a b."),
    ],
)
def test_address_names_servers_and_prefix(text: str, servers: str, prefix: str) -> None:
    parsed = address.parse(text)
    assert (parsed.servers, parsed.prefix, parsed.security) == (servers, prefix, Security())
    assert parsed.topic("specs") == f"{prefix}specs"


def test_options_of_an_address_secure_the_connection() -> None:
    text = "kafka://one?tls=true&ca_file=ca.pem&mechanism=SCRAM-SHA-512&username=shop&password=a%23b"
    assert address.parse(text).security == Security(
        tls=True, ca_file=Path("ca.pem"), mechanism="SCRAM-SHA-512", username="shop", password=OWN
    )


def test_password_of_the_environment_is_used_unless_the_address_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(address.PASSWORD_VARIABLE, SET)
    text = "kafka://one?mechanism=PLAIN&username=shop"
    assert address.parse(text).security.password == SET
    assert address.parse(f"{text}&password=a%23b").security.password == OWN
    assert address.parse("kafka://one").security.mechanism is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("one:9092", "is not a log address"),
        ("kafka:///shop", "is not a log address"),
        ("kafka://,", "is not a log address"),
        ("kafka://[::1", "is not a log address"),
        ("kafka://shop:secret@one", "credentials before the host"),
        ("kafka://one?user=shop", "unknown option 'user'"),
        ("kafka://one?tls=maybe", "invalid options"),
        ("kafka://one?mechanism=GSSAPI", "invalid options"),
        ("kafka://one?username=shop", "a username needs a mechanism"),
        ("kafka://one?mechanism=PLAIN&username=shop&password=a#b", "write # as %23"),
        ("kafka://one?ca_file=ca.pem", "need TLS"),
        ("kafka://one?tls=false&cert_file=client.pem", "need TLS"),
        ("kafka://one?key_file=client.key", "need TLS"),
        ("kafka://one?tls=true&key_file=client.key", "key_file needs cert_file"),
    ],
)
def test_other_addresses_are_refused(text: str, reason: str) -> None:
    with pytest.raises(AddressError, match=reason):
        address.parse(text)
