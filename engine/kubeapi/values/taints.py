"""Effects of taints."""

import enum


class Effect(enum.StrEnum):
    """The effects that Kubernetes defines. Fields have the type str, since a manifest may contain any text."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"
