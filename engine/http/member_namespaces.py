"""Namespaces that the control plane propagates to clusters, with ClusterOverridePolicies applied.

``NamespaceChanges`` has the sequence number of the last change of any namespace.
"""

from typing import Final

import anyio

from engine.deciders import member_facts
from engine.domain import namespaces
from engine.objects import selector_index
from engine.overrides import application, policies, selection
from engine.placement.fleet import Fleet
from engine.writing.read_side import ReadSide
from events.kube_objects import KubeObject
from events.validation.known_kinds import POLICY_GROUP
from projections import agent_queries, changes, clusters, objects
from projections.port import Rows


def of(rows: Rows, cluster: str) -> list[namespaces.PropagatedNamespace]:
    """Return the namespaces of a cluster, ordered by name; one whose overrides fail is returned without overrides."""
    result = agent_queries.namespaces_of(rows, cluster)
    overrides = selection.Overrides()
    for policy in objects.manifests(rows, POLICY_GROUP, "ClusterOverridePolicy") if result else ():
        overrides.put(selection.KnownOverride(policies.decode(policy.manifest), 0))
    member = clusters.stored(rows, cluster)
    if not overrides or member is None:
        return result
    fleet = Fleet()
    fleet.put(member_facts.manifest(cluster, member))
    return [item._replace(manifest=_overridden(item.manifest, overrides, fleet, cluster)) for item in result]


def _overridden(
    manifest: KubeObject, overrides: selection.Overrides, fleet: Fleet, cluster: str
) -> KubeObject:
    selected = overrides.policies_for(selector_index.template_of(manifest))
    if not selected:
        return manifest
    applied = application.OverrideApplication(manifest)
    try:
        for known in selected:
            for rule in known.policy.rules:
                if not rule.is_empty and fleet.matches(rule.target_cluster, cluster):
                    applied.apply(application.read(rule.overriders))
    except application.OverrideError:
        return manifest
    return applied.value


_KIND: Final = changes.kind_of(*namespaces.KIND)


class NamespaceChanges:
    """Track the sequence number of the last change of any namespace.

    The first value after a start is an upper bound: the number up to which the views are folded.
    """

    def __init__(self, reads: ReadSide) -> None:
        self._reads = reads
        self._lock = anyio.Lock()
        self._seen = -1
        self._last = 0

    async def last(self) -> int:
        """Return the sequence number of the last folded change of any namespace."""
        async with self._lock:
            folded = self._reads.views.folded
            if self._seen < 0:
                self._last = folded
            elif folded > self._seen:
                start = self._seen
                try:
                    changed = await self._reads.peek(lambda rows: changes.between(rows, start, folded, _KIND))
                    self._last = changed[-1].number if changed else self._last
                except changes.DroppedError:
                    self._last = folded
            self._seen = folded
        return self._last
