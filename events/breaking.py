"""Connections to brokers that tell in the library's own words when they broke.

uvloop refuses to write where a connection has just broken, before its reader hears of that, with an error of its own.
The library reckons with OSError there: its keeper of metadata, whom nobody watches, would end with the other, and
whoever waits for metadata then waits for ever.
"""

# The library has annotations, but does not say so to type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from types import CoroutineType
from typing import Any

from aiokafka import conn
from aiokafka.errors import KafkaConnectionError


class Connection(conn.AIOKafkaConnection):
    """A connection; ``send`` raises KafkaConnectionError, whatever the event loop said."""

    def send(self, request: Any, expect_response: bool = True) -> "CoroutineType[Any, Any, Any]":  # noqa: ANN401, FBT001, FBT002  # as the library has it
        """Sends a request; what it gives can be waited for. Raises KafkaConnectionError where it broke."""
        try:
            return super().send(request, expect_response=expect_response)
        except RuntimeError as error:
            self.close(reason=conn.CloseReason.CONNECTION_BROKEN, exc=error)
            raise KafkaConnectionError(f"Connection at {self.host}:{self.port} broken: {error}") from error


def install() -> None:
    """Lets the library's clients make such connections; there is no public way to it."""
    conn.AIOKafkaConnection = Connection
