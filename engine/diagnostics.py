"""Log of a process: one line per event on standard error, separate from a command's output.

Every module gets its logger here, so all processes log in the same form. Tracebacks never show local
variables, which hold tokens and the Secrets in request bodies.
"""

import logging
import os
import sys
from typing import Final

from engine import broken_pipes, optional_imports

# structlog would load rich, pygments and attrs, which only tracebacks with local variables need.
with optional_imports.without("rich"):
    import structlog
    from structlog.typing import FilteringBoundLogger, WrappedLogger

LEVEL_VARIABLE: Final = "REBALLAST_LOG_LEVEL"
"""Environment variable with the lowest level that is logged: debug, info, warning or error."""


def logger(name: str) -> FilteringBoundLogger:
    return structlog.get_logger(name)


class _Lines(structlog.PrintLogger):
    """Writes lines; one that cannot be written, to a full disk or a closed pipe, must not stop the process."""

    def msg(self, message: str) -> None:
        try:
            super().msg(message)
        except BrokenPipeError:
            broken_pipes.discard(sys.stderr)
        except OSError:
            return

    log = debug = info = warn = warning = failure = err = error = critical = fatal = exception = msg


def _to_stderr(*_args: object) -> WrappedLogger:
    # Evaluated for each logger: tests and commands may replace ``sys.stderr``.
    return _Lines(sys.stderr)


def _level() -> int:
    named = os.environ.get(LEVEL_VARIABLE, "info").upper()
    return logging.getLevelNamesMapping().get(named, logging.INFO)


structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.dev.set_exc_info,
        structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
        # The default formatter prints local variables.
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        ),
    ],
    wrapper_class=structlog.make_filtering_bound_logger(_level()),
    logger_factory=_to_stderr,
    cache_logger_on_first_use=False,
)
