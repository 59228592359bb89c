"""What an agent must know to serve one cluster: one file for each, which only its owner may read.

``reballast join`` writes it; it holds the agent's token, and names the kubeconfig of the member, not its contents.
"""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from engine import private_files


class ConfigurationError(ValueError):
    """A file that is no configuration of an agent; the message says what is wrong with it."""


class Configuration(Struct, frozen=True, kw_only=True, rename="camel"):
    """The cluster, the gateway with the agent's token, and how the member is reached.

    ``authority`` is the certificate (PEM) by which a gateway with TLS is known; empty for one that the machine's own
    authorities vouch for. ``kubeconfig`` is a path; empty for the service account of the pod that the agent runs in.
    """

    cluster: Annotated[str, Meta(min_length=1)]
    server: Annotated[str, Meta(pattern="^https?://")]
    token: str
    kubeconfig: str = ""
    context: str = ""
    authority: str = ""


def read(path: Path) -> Configuration:
    """The configuration in a file; raises ConfigurationError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Configuration)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ConfigurationError(f"{path}: {error}") from None


def write(path: Path, configuration: Configuration) -> None:
    """Writes the file, whole or not at all."""
    private_files.write(path, msgspec.json.format(msgspec.json.encode(configuration)) + b"\n")
