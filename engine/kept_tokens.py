"""The token of a server, made at the first start and kept in its data directory, which only its owner may read.

So a kubeconfig, and the tokens of service accounts that are signed by it, outlast a restart. Whoever removes the file
makes all of them worthless.
"""

import secrets
from pathlib import Path
from typing import Final

from engine import private_files

FILE: Final = "server.token"
_BYTES: Final = 32
_CHARS_MIN: Final = 32


def kept(directory: Path) -> str:
    """The token of a directory; a new one where there is none, or what stands there is too short to be one."""
    path = directory / FILE
    try:
        found = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        found = ""
    if len(found) < _CHARS_MIN:
        found = secrets.token_urlsafe(_BYTES)
        keep(directory, found)
    return found


def keep(directory: Path, token: str) -> None:
    """Makes another token that of a directory."""
    private_files.write(directory / FILE, f"{token}\n".encode())
