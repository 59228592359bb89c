"""Number of repetitions of randomised and fault tests: one in the suite, many by hand.

``REBALLAST_TEST_ROUNDS=20 pytest tests/scaleout`` is a long run. Each test defines how many of its
repetitions make a round.
"""

import os
from typing import Final

ROUNDS: Final = int(os.environ.get("REBALLAST_TEST_ROUNDS", "1"))
