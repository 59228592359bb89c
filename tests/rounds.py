"""How often a test plays a fault, or tries a chance: few times in the suite, many by hand.

``REBALLAST_TEST_ROUNDS=20 pytest tests/scaleout`` is a long run. Each test says how many of its own repetitions make a
round.
"""

import os
from typing import Final

ROUNDS: Final = int(os.environ.get("REBALLAST_TEST_ROUNDS", "4"))
