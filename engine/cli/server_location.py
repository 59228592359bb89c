"""Location of the server: the endpoint file that ``reballast up`` writes, or environment variables."""

import os
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
import platformdirs

from engine.cli import failures, next_commands
from engine.identity.endpoint import FILE, Endpoint

_APP: Final = "reballast"
_EXAMPLE: Final = "https://reballast.example"
SERVER_VARIABLE: Final = "REBALLAST_SERVER"
"""Address of a remote server, such as https://reballast.example; ``--data`` takes precedence over it."""

TOKEN_VARIABLE: Final = "REBALLAST_TOKEN"  # noqa: S105  # the name of a variable, no token

AUTHORITY_VARIABLE: Final = "REBALLAST_CA"
"""Path of a PEM file with the remote server's certificate or CA; by default the system's CAs apply."""


def default_directory() -> Path:
    """The data directory that is used without ``--data``."""
    return Path(platformdirs.user_data_dir(_APP, appauthor=False))


def is_named() -> bool:
    """Whether the environment names a server."""
    return bool(os.environ.get(SERVER_VARIABLE))


def find(directory: Path | None) -> Endpoint:
    """The server's endpoint: of ``directory``, else the one that the environment names, else of the default directory.

    Raises Failure if there is none.
    """
    if directory is None and (server := os.environ.get(SERVER_VARIABLE)):
        return Endpoint(url=_address(server), token=_token(), authority=_authority())
    directory = directory or default_directory()
    path = directory / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Endpoint)
    except FileNotFoundError:
        raise _no_server(directory) from None
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise failures.Failure(
            f"{path} can't be read: {error}",
            "restart the server, or set the right directory with --data",
            code=failures.NO_SERVER,
        ) from None


def _address(server: str) -> str:
    """The address that the environment names. Raises Failure if it is not a URL."""
    try:
        parts = urlsplit(server)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or not server.isprintable():
        raise failures.Failure(
            f"{SERVER_VARIABLE}: {server!r} is not the address of a server",
            f"set it to an address such as {_EXAMPLE}, or unset it",
            code=failures.NO_SERVER,
        )
    return server.rstrip("/")


def _token() -> str:
    """The token that the environment names. Raises Failure if it is not set, or cannot be a token."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        raise failures.Failure(f"{TOKEN_VARIABLE} is not set", f"set it to the token in the server's {FILE}")
    if not token.isascii() or not token.isprintable():
        raise failures.Failure(
            f"{TOKEN_VARIABLE} is not a token: it has characters that no token has", "copy the token again"
        )
    return token


def _authority() -> str:
    """The CA certificate that the environment names, empty if none. Raises Failure if the file is not valid."""
    if not (named := os.environ.get(AUTHORITY_VARIABLE)):
        return ""
    remedy = f"set {AUTHORITY_VARIABLE} to a file with a certificate (PEM)"
    with failures.convert((OSError, ValueError), remedy, where=named):
        text = Path(named).read_text("ascii")
        ssl.create_default_context(cadata=text)
    return text


def _no_server(directory: Path) -> failures.Failure:
    return failures.Failure(
        f"no server runs on {directory}",
        f"start one with: {next_commands.up(directory)}",
        code=failures.NO_SERVER,
    )
