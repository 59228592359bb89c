"""Patch for aiokafka: connections that raise KafkaConnectionError when a write finds them broken.

uvloop raises RuntimeError on a write to a connection that has just broken, before the reader task notices.
aiokafka expects OSError there. Without this patch its metadata task, which has no supervisor, ends with the
RuntimeError, and every caller that waits for metadata then waits forever.
"""

# aiokafka has annotations but no py.typed marker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from types import CoroutineType
from typing import Any

from aiokafka import conn
from aiokafka.errors import KafkaConnectionError


class Connection(conn.AIOKafkaConnection):
    """A connection whose ``send`` raises only KafkaConnectionError when the connection is broken."""

    def send(self, request: Any, expect_response: bool = True) -> "CoroutineType[Any, Any, Any]":  # noqa: ANN401, FBT001, FBT002  # as the library has it
        try:
            return super().send(request, expect_response=expect_response)
        except RuntimeError as error:
            self.close(reason=conn.CloseReason.CONNECTION_BROKEN, exc=error)
            raise KafkaConnectionError(f"Connection at {self.host}:{self.port} broken: {error}") from error


def install() -> None:
    """Make all clients of aiokafka use ``Connection``.

    Replaces a module attribute, since aiokafka has no public hook for the connection class.
    """
    conn.AIOKafkaConnection = Connection
