"""A directory on a read-only medium."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

_NOBODY: Final = 65_534
"""Id of an unprivileged user: file permissions restrict this user, but not root."""


def is_read(write: Callable[[Path], object], read: Callable[[Path], bool]) -> bool:
    """Write to a directory, make it read-only, and return whether ``read`` returns True in another process then."""
    # Not ``tmp_path``, which other users may not enter. Permissions do not bind root, so a child gives them up.
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write(directory)
        for path in directory.iterdir():
            path.chmod(0o444)
        directory.chmod(0o555)
        child = os.fork()
        if not child:
            _exit_after(read, directory)
        _, status = os.waitpid(child, 0)
        directory.chmod(0o755)
    return os.waitstatus_to_exitcode(status) == 0


def _exit_after(read: Callable[[Path], bool], directory: Path) -> None:
    code = 1
    try:
        if not os.geteuid():
            os.setuid(_NOBODY)
        code = int(not read(directory))
    finally:
        os._exit(code)
