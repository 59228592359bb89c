"""Groups of workloads that share all their clusters, or none (``workloadAffinity`` of a placement)."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec


class GroupLabel(NamedTuple):
    """The label and value that form a group; ``is_apart``: its workloads share no clusters, otherwise all."""

    label: str
    value: str
    is_apart: bool


class WorkloadAffinityTerm(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True
):
    """Groups the workloads of a namespace by the value of a label."""

    group_by_label_key: str = ""


class WorkloadAffinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Groups of workloads that share all their clusters, or none."""

    affinity: WorkloadAffinityTerm | None = None
    anti_affinity: WorkloadAffinityTerm | None = None

    def groups(self, labels: Mapping[str, str]) -> list[GroupLabel]:
        """Return the groups of a workload with these labels."""
        terms = ((self.affinity, False), (self.anti_affinity, True))
        return [
            GroupLabel(term.group_by_label_key, labels[term.group_by_label_key], is_apart)
            for term, is_apart in terms
            if term is not None and term.group_by_label_key in labels
        ]
