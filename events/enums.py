"""Values of event fields with a fixed choice.

msgspec omits a field whose value *is* the default object. A field with a non-empty default therefore needs equal
values to be the same object, as members of an enum are: msgspec decodes to them, and a call such as
``SyncMode("Push")`` returns them. A plain ``str`` would be written or omitted depending on where it was made, and a
recomputed step would differ from the recorded one.
"""

from enum import StrEnum


class ConflictResolution(StrEnum):
    """Treatment of an object that already exists in a member cluster; UNSET is read as ABORT."""

    ABORT = "Abort"
    OVERWRITE = "Overwrite"
    UNSET = ""


class Health(StrEnum):
    """Health of a workload in one cluster."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


class HealthOperator(StrEnum):
    """How a health rule compares a value with its ``values``; as in label selectors, an absent value fulfils NOT_IN."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class PreemptionPolicy(StrEnum):
    """Whether a PriorityClass evicts workloads of lower priority."""

    PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
    NEVER = "Never"


class SyncMode(StrEnum):
    """The side that applies works: the control plane (PUSH) or an agent in the cluster (PULL)."""

    PUSH = "Push"
    PULL = "Pull"
