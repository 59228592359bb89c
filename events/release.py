"""Release of the decision rules, recorded in every step so that a verifier can replay it with the same rules."""

from typing import Final

RELEASE: Final = "0.6.0"
