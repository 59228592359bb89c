"""Configuration of an agent: one file per cluster, readable by its owner only.

``reballast join`` writes it. It contains the agent's token and the path of the member's kubeconfig.
"""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from engine import private_files


class ConfigurationError(ValueError):
    """The file is not a valid configuration; the message says why."""


class Configuration(Struct, frozen=True, kw_only=True, rename="camel"):
    """The cluster, the gateway with the agent's token, and access to the member.

    ``authority`` is the CA certificate (PEM) of the gateway, empty if the system's CAs apply. ``kubeconfig``
    is a path, empty to use the service account of the agent's pod.
    """

    cluster: Annotated[str, Meta(min_length=1)]
    server: Annotated[str, Meta(pattern="^https?://")]
    token: str
    kubeconfig: str = ""
    context: str = ""
    authority: str = ""


def read(path: Path) -> Configuration:
    """Read a configuration file; raises ConfigurationError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Configuration)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ConfigurationError(f"{path}: {error}") from None


def write(path: Path, configuration: Configuration) -> None:
    """Write the file atomically."""
    private_files.write(path, msgspec.json.format(msgspec.json.encode(configuration)) + b"\n")
