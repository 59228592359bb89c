"""Check the brokers' limit on transactions when a process starts.

An open transaction of another producer blocks all readers of its partitions until the brokers abort it, after
``transaction.max.timeout.ms`` at the latest (15 minutes by default).
"""

# aiokafka has annotations but no py.typed marker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Mapping
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from engine import diagnostics
from engine.log import port
from engine.log.kafka import clients

SETTING: Final = "transaction.max.timeout.ms"
FOREIGN_MS_MAX: Final = 60_000
"""Longer than any transaction of Reballast or of another healthy producer."""

_log = diagnostics.logger(__name__)


async def check(admin: AIOKafkaAdminClient) -> None:
    """Warn of brokers that let foreign transactions stay open for longer than a minute.

    Raises LogError for brokers whose limit is shorter than Reballast's own transactions may take.
    """
    try:
        limits = await _limits(admin)
    except KafkaError as error:
        _log.warning("transaction limit not checked", setting=SETTING, reason=type(error).__name__)
        return
    if not limits:
        return
    if (least := min(limits.values())) < clients.TRANSACTION_MS:
        raise port.LogError(
            f"the brokers allow transactions of {least} ms, and {clients.TRANSACTION_MS} are needed;"
            f" set {SETTING}={FOREIGN_MS_MAX} on each broker"
        )
    if loose := {broker: limit for broker, limit in limits.items() if limit > FOREIGN_MS_MAX}:
        _log.warning(
            "brokers allow long foreign transactions; an open one blocks all readers",
            brokers=sorted(loose),
            milliseconds=max(loose.values()),
            remedy=f"set {SETTING}={FOREIGN_MS_MAX} on each broker",
        )


async def _limits(admin: AIOKafkaAdminClient) -> Mapping[int, int]:
    """Return the limit of each broker in milliseconds; raises KafkaError."""
    cluster: dict[str, Any] = await admin.describe_cluster()
    resources = [
        ConfigResource(ConfigResourceType.BROKER, str(broker["node_id"])) for broker in cluster["brokers"]
    ]
    limits: dict[int, int] = {}
    for answer in await admin.describe_configs(resources):
        described: list[Any] = getattr(answer, "resources")  # noqa: B009
        for code, message, _kind, name, entries in described:
            if code:
                raise for_code(code)(message)
            limits |= {int(name): int(entry[1]) for entry in entries if entry[0] == SETTING}
    return limits
