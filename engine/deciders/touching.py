"""Which keys of a shard a change of facts touches.

It follows from the change (what was, what is) and from the shard's own state alone, so it does not matter in how
many portions the facts were folded.
"""

from collections.abc import Iterable

from engine.deciders import claims, facts, intake
from engine.deciders import state as states
from engine.deciders.indexes import Indexes
from engine.deciders.placing import Placements
from engine.deciders.state import Cause, ShardState
from engine.objects import clusters as manifests
from engine.objects import policies as policy_objects
from engine.placement import fleet


def touch(shard: ShardState, indexes: Indexes, placements: Placements, changed: facts.Changed) -> None:
    """Makes the keys wait that a change concerns."""
    cause = Cause(f"{changed.topic}/0/{changed.offset}", changed.story, changed.trace, changed.at_ms)
    match changed.change:
        case facts.ClusterChanged() as change:
            for key in _of_cluster(change, indexes, placements):
                intake.touch_by(shard, key, states.CLUSTER, cause)
        case facts.RoomGrew():
            for key in indexes.blocked:
                binding = shard.bindings[key]
                # Who is ready waits for its time only: further news change nothing.
                if not binding.ready_to_retry:
                    binding.ready_to_retry = True
                    intake.touch_by(shard, key, states.ROOM, cause)
        case facts.PolicyChanged() as change:
            for key in _of_policy(change, shard, indexes):
                intake.touch_by(shard, key, states.POLICY, cause)
        case facts.InterpreterChanged(api_version=api_version, kind=kind):
            for key in indexes.by_kind.get((api_version, kind), ()):
                intake.touch_by(shard, key, states.SPEC, cause)
        case facts.FactRefused():
            return


def _of_cluster(change: facts.ClusterChanged, indexes: Indexes, placements: Placements) -> set[str]:
    """What runs there, what could, and what is blocked."""
    found = set(indexes.by_cluster.get(change.name, ())) | indexes.blocked
    versions = [_alone(manifest) for manifest in (change.old, change.new) if manifest]
    for (digest, affinity_name), group in indexes.by_group.items():
        affinity = placements.affinity(digest, affinity_name)
        if any(version.matches(affinity, change.name) for version in versions):
            found |= group
    return found


def _alone(manifest: manifests.ClusterManifest) -> fleet.Fleet:
    alone = fleet.Fleet()
    alone.put(manifest)
    return alone


def _of_policy(change: facts.PolicyChanged, shard: ShardState, indexes: Indexes) -> set[str]:
    """What it has claimed, and every template that it selects or selected."""
    found = set(indexes.by_policy.get(change.policy, ()))
    for policy in (change.old, change.new):
        if policy is not None:
            found.update(_selected(policy, shard, indexes))
    return found


def _selected(policy: policy_objects.Policy, shard: ShardState, indexes: Indexes) -> Iterable[str]:
    for selector in policy.selectors:
        for key in indexes.by_kind.get((selector.api_version, selector.kind), ()):
            template = shard.bindings[key].template
            if template is not None and claims.selects(policy, template):
                yield key
