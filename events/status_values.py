"""Where statuses of built-in kinds have what members report of them, and views put together. Paths are JSON paths."""

from typing import Final

PHASE: Final = ".phase"
"""Of Pods, PersistentVolumes and PersistentVolumeClaims."""

CONTAINERS_READY: Final = ".containerStatuses[*].ready"

ADDRESSES: Final = ".loadBalancer.ingress[*].ip"
"""Of Services and Ingresses, as the host names."""

HOST_NAMES: Final = ".loadBalancer.ingress[*].hostname"

ACTIVE: Final = ".active[*].name"
"""The Jobs of a CronJob that run now."""

LAST_SCHEDULED: Final = ".lastScheduleTime"
LAST_SUCCESSFUL: Final = ".lastSuccessfulTime"
