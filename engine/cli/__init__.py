"""The command line."""

import time
from typing import Final

BEGAN_S: Final = time.monotonic()
"""When this process began, on the clock of ``time.monotonic``; nothing of ours is loaded before."""
