"""What a process logs of itself: one line for each event, to standard error, never mixed with a command's answer.

Every module that logs gets its logger here, so that no process can log in another way. Tracebacks never show local
variables: these hold tokens, and the Secrets in bodies of requests.
"""

import logging
import os
import sys
from typing import Final

import structlog
from structlog.typing import FilteringBoundLogger, WrappedLogger

LEVEL_VARIABLE: Final = "REBALLAST_LOG_LEVEL"
"""The environment names the lowest level that is logged: debug, info, warning, error."""


def logger(name: str) -> FilteringBoundLogger:
    """A logger for a module."""
    return structlog.get_logger(name)


def _to_stderr(*_args: object) -> WrappedLogger:
    # Looked up for each logger, since tests and commands may replace it.
    return structlog.PrintLogger(sys.stderr)


def _level() -> int:
    named = os.environ.get(LEVEL_VARIABLE, "info").upper()
    return logging.getLevelNamesMapping().get(named, logging.INFO)


structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.dev.set_exc_info,
        structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
        # The default formatter of tracebacks prints local variables.
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        ),
    ],
    wrapper_class=structlog.make_filtering_bound_logger(_level()),
    logger_factory=_to_stderr,
    cache_logger_on_first_use=False,
)
