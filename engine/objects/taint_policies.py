"""ClusterTaintPolicy as Karmada has it (policy.karmada.io/v1alpha1): conditions of clusters that become taints.

Field names on the wire are Karmada's; unknown fields are ignored.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from engine.objects import clusters, placements

API_VERSION: Final = "policy.karmada.io/v1alpha1"
KIND: Final = "ClusterTaintPolicy"
_IN: Final = "In"


class MatchCondition(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the status of one type of condition must be, or must not be."""

    condition_type: str
    operator: str = _IN
    status_values: tuple[str, ...] = ()


class TaintPolicySpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """Which clusters, on which conditions, which taints; no ``target_clusters`` means all."""

    target_clusters: placements.ClusterAffinity | None = None
    add_on_conditions: tuple[MatchCondition, ...] = ()
    remove_on_conditions: tuple[MatchCondition, ...] = ()
    taints: tuple[clusters.Taint, ...] = ()


class Metadata(Struct, frozen=True, kw_only=True):
    """The policy's name."""

    name: str = ""


class TaintPolicy(Struct, frozen=True, kw_only=True):
    """One policy."""

    metadata: Metadata = Metadata()
    spec: TaintPolicySpec = TaintPolicySpec()

    def adds(self, conditions: Mapping[str, str]) -> bool:
        """Whether a cluster with these conditions (status by type) gets the taints."""
        return _all_match(self.spec.add_on_conditions, conditions)

    def removes(self, conditions: Mapping[str, str]) -> bool:
        """Whether a cluster with these conditions loses them."""
        return _all_match(self.spec.remove_on_conditions, conditions)


_DECODER: Final = msgspec.json.Decoder(TaintPolicy)


def decode(manifest: msgspec.Raw | bytes) -> TaintPolicy:
    """A policy's manifest. Raises `msgspec.ValidationError` with the path of the field that is wrong."""
    return _DECODER.decode(manifest)


def _all_match(wanted: tuple[MatchCondition, ...], conditions: Mapping[str, str]) -> bool:
    """Who names no conditions never means it; a condition that is not known meets nothing."""
    return bool(wanted) and all(
        each.condition_type in conditions
        and (conditions[each.condition_type] in each.status_values) == (each.operator == _IN)
        for each in wanted
    )
