"""Grant rights to users of a broker, and wait until they are in force."""

import time
from collections.abc import Sequence
from typing import Final

from tests.brokers.processes import BrokerError, LocalBrokers

IN_FORCE_S: Final = 30.0
_TOOL: Final = "org.apache.kafka.tools.AclCommand"
_ENTRY: Final = "(principal="
_POLL_S: Final = 0.1


def grant(brokers: LocalBrokers, commands: Sequence[str]) -> None:
    """Run ``kafka-acls`` with the arguments of each command; each adds one entry, and there were none before.

    The tool returns when the controller has stored the entry; brokers apply it later and refuse until then.
    """
    for command in commands:
        brokers.run_tool(_TOOL, *command.replace("localhost:9092", brokers.servers).split())
    until_s = time.monotonic() + IN_FORCE_S
    while brokers.run_tool(_TOOL, "--bootstrap-server", brokers.servers, "--list").count(_ENTRY) < len(
        commands
    ):
        if time.monotonic() > until_s:
            raise BrokerError("the rights are not in force")
        time.sleep(_POLL_S)
