"""Where the server of a data directory listens: the file that ``reballast up`` leaves there."""

from pathlib import Path
from typing import Final

import msgspec
import platformdirs
from msgspec import Struct

from engine.cli import failures

FILE: Final = "endpoint.json"
_APP: Final = "reballast"


class Endpoint(Struct, frozen=True, kw_only=True):
    """The server's address, the token that it asks for, and its process."""

    url: str
    token: str
    pid: int = 0


def default_directory() -> Path:
    """Where data is kept when nobody says where."""
    return Path(platformdirs.user_data_dir(_APP, appauthor=False))


def find(directory: Path) -> Endpoint:
    """The endpoint of the server of a directory; raises Failure where there is none."""
    path = directory / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Endpoint)
    except FileNotFoundError:
        raise _nobody(directory) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise failures.Failure(
            f"{path} can't be read: {error}",
            "start the server again, or name the right directory with --data",
            code=failures.NO_SERVER,
        ) from None


def _nobody(directory: Path) -> failures.Failure:
    return failures.Failure(
        f"no server runs on {directory}",
        f"start one with: reballast up --data {directory}",
        code=failures.NO_SERVER,
    )
