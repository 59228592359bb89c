"""The release of the rules: what a step names so that it can be computed again by the same ones."""

from typing import Final

RELEASE: Final = "0.5.0"
