"""Log of a process: one line per event on standard error, separate from a command's output.

Every module gets its logger here, so all processes log in the same form; warnings of libraries are logged in it too.
Tracebacks never show local variables, because these contain tokens and the Secrets in request bodies.
"""

import logging
import os
import sys
from typing import Final

from engine import broken_pipes, optional_imports

# structlog would load rich, pygments and attrs, which only tracebacks with local variables need.
with optional_imports.without("rich"):
    import structlog
    from structlog.typing import FilteringBoundLogger, Processor, WrappedLogger

LEVEL_VARIABLE: Final = "REBALLAST_LOG_LEVEL"
"""Environment variable with the lowest level that is logged: debug, info, warning or error."""

FORMAT_VARIABLE: Final = "REBALLAST_LOG_FORMAT"
"""Environment variable with the form of log lines: ``json`` for a JSON object with times in UTC, else text."""


def logger(name: str) -> FilteringBoundLogger:
    return structlog.get_logger(name)


class _Lines(structlog.PrintLogger):
    """Prints log lines; ignores write errors (full disk, closed pipe), which must not stop the process."""

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


def _renderers() -> list[Processor]:
    if os.environ.get(FORMAT_VARIABLE, "").lower() == "json":
        return [
            structlog.processors.TimeStamper(fmt="iso", key="time"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ]
    # The default formatter prints local variables.
    plain = structlog.dev.plain_traceback
    return [
        structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain),
    ]


class _OfLibraries(logging.Handler):
    """Logs the messages that libraries write with Python's ``logging``, such as uvicorn's warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        logger(record.name).log(record.levelno, record.getMessage(), exc_info=record.exc_info)


structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.dev.set_exc_info,
        *_renderers(),
    ],
    wrapper_class=structlog.make_filtering_bound_logger(_level()),
    logger_factory=_to_stderr,
    cache_logger_on_first_use=False,
)
logging.getLogger().addHandler(_OfLibraries(logging.WARNING))
