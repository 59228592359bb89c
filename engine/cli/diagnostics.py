"""What a process logs of itself, for commands that run the engine: no part of their answer."""

import sys

import structlog


def to_stderr() -> None:
    """Everything that is logged from now on goes there."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
