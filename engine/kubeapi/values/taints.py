"""Effects of taints."""

import enum


class Effect(enum.StrEnum):
    """Manifests may contain any text as effect, so fields have the type str."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"
