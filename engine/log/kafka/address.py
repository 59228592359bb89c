"""Address of a log on Kafka: ``kafka://host:port,host:port/prefix?tls=true&mechanism=PLAIN&username=…``."""

import os
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec import Struct

from events import topics
from events.client.connection_options import NO_SECURITY, Security

SCHEME: Final = "kafka"
PASSWORD_VARIABLE: Final = "REBALLAST_KAFKA_PASSWORD"  # noqa: S105  # the name of a variable, no password
_PORT: Final = 9092


class AddressError(ValueError):
    """The text is not an address of a log; the message contains the reason and an example."""


class Address(Struct, frozen=True, kw_only=True):
    """A parsed address. ``servers`` is a comma-separated list of host:port; ``prefix`` begins all topic names."""

    servers: str
    prefix: str = topics.PREFIX
    security: Security = NO_SECURITY

    def topic(self, name: str) -> str:
        """Return the full name of a topic, group or transactional id on Kafka: with the log's prefix."""
        return self.prefix + name


def parse(text: str) -> Address:
    """Parse an address; the password may be set in REBALLAST_KAFKA_PASSWORD instead. Raises AddressError."""
    try:
        parts = urlsplit(text)
    except ValueError:  # an unmatched bracket
        parts = urlsplit("")
    if parts.scheme != SCHEME or not parts.netloc.strip(","):
        raise AddressError(f"{text!r} is not a log address; write kafka://host:port,host:port")
    if parts.fragment:
        raise AddressError("an address has no fragment; in a password write # as %23")
    if "@" in parts.netloc:
        raise AddressError("credentials before the host are not supported; write ?mechanism=…&username=…")
    hosts = (host if ":" in host else f"{host}:{_PORT}" for host in parts.netloc.split(",") if host)
    prefix = unquote(parts.path.strip("/"))
    return Address(
        servers=",".join(hosts),
        prefix=f"{prefix}." if prefix else topics.PREFIX,
        security=_security(dict(parse_qsl(parts.query, keep_blank_values=True))),
    )


def _security(options: dict[str, str]) -> Security:
    password = os.environ.get(PASSWORD_VARIABLE)
    if password is not None:
        options.setdefault("password", password)
    known = Security.__struct_fields__
    for name in options:
        if name not in known:
            raise AddressError(f"unknown option {name!r}; options are: {', '.join(known)}")
    try:
        return msgspec.convert(options, Security, strict=False, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        raise AddressError(f"invalid options: {error}") from None


def _decoded(kind: type, value: object) -> object:
    return kind(str(value)) if kind is Path else value
