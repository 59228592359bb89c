"""The command line interface."""

import time
from typing import Final

BEGAN_S: Final = time.monotonic()
"""Process start on the ``time.monotonic`` clock, taken before any other module of the project is loaded."""
