"""The server's token, created at the first start and stored in its data directory, which only its owner may read.

A restart does not change the token, so the kubeconfig, which contains it, and the service account tokens, which are
signed with it, stay valid. Deleting the file invalidates all of them.
"""

import secrets
from pathlib import Path
from typing import Final

from engine import private_files

FILE: Final = "server.token"
_BYTES: Final = 32
_CHARS_MIN: Final = 32


def load_or_create(directory: Path) -> str:
    """Return the token of a directory; create one if it is missing or too short. Raises OSError."""
    path = directory / FILE
    try:
        token = path.read_text("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        # Do not catch other OSErrors: a file that is unreadable now may contain the token that all clients use.
        token = ""
    if len(token) < _CHARS_MIN:
        token = secrets.token_urlsafe(_BYTES)
        write(directory, token)
    return token


def write(directory: Path, token: str) -> None:
    """Replace the token of a directory."""
    private_files.write(directory / FILE, f"{token}\n".encode())
