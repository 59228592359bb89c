"""ClusterTaintPolicy (policy.karmada.io/v1alpha1), which turns conditions of clusters into taints.

Field names on the wire are Karmada's; unknown fields are ignored.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from engine.kubeapi.values.selectors import Operator
from engine.objects import clusters, placements
from events import kube_objects

KIND: Final = "ClusterTaintPolicy"


class MatchCondition(Struct, frozen=True, kw_only=True, rename="camel"):
    """The statuses that a type of condition must have (In) or must not have (NotIn)."""

    condition_type: str
    operator: str = Operator.IN
    status_values: tuple[str, ...] = ()


class TaintPolicySpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """Selected clusters, conditions and taints; ``target_clusters`` None selects all."""

    target_clusters: placements.ClusterAffinity | None = None
    add_on_conditions: tuple[MatchCondition, ...] = ()
    remove_on_conditions: tuple[MatchCondition, ...] = ()
    taints: tuple[clusters.Taint, ...] = ()


class Metadata(Struct, frozen=True, kw_only=True):
    name: str = ""


class TaintPolicy(Struct, frozen=True, kw_only=True):
    """A ClusterTaintPolicy."""

    metadata: Metadata = Metadata()
    spec: TaintPolicySpec = TaintPolicySpec()

    def adds(self, conditions: Mapping[str, str]) -> bool:
        """Return whether a cluster with these conditions (status by type) gets the taints."""
        return _all_match(self.spec.add_on_conditions, conditions)

    def removes(self, conditions: Mapping[str, str]) -> bool:
        """Return whether a cluster with these conditions (status by type) loses the taints."""
        return _all_match(self.spec.remove_on_conditions, conditions)


_DECODER: Final = msgspec.json.Decoder(TaintPolicy)


def decode(manifest: msgspec.Raw | bytes) -> TaintPolicy:
    """Decode a manifest. Raises `msgspec.ValidationError` with the path of the invalid field."""
    return kube_objects.decoded(_DECODER.decode, manifest)


def _all_match(match_conditions: tuple[MatchCondition, ...], conditions: Mapping[str, str]) -> bool:
    """Whether all conditions match; an empty list never does, nor does a condition that is not reported."""
    return bool(match_conditions) and all(
        condition.condition_type in conditions
        and (conditions[condition.condition_type] in condition.status_values)
        == (condition.operator == Operator.IN)
        for condition in match_conditions
    )
