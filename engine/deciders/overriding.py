"""Which override policies hold for a template in a cluster, and in which order (the reference's rules).

ClusterOverridePolicies come first, then the OverridePolicies of the template's namespace; of each kind those that
select the template less closely come first (all of a kind, by labels, by name), then by name. What comes later is
applied later, and so has the last word.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from engine.deciders.claims import Template
from engine.objects import overrides, placements
from engine.objects.overrides import OverridePolicy
from engine.objects.policies import ResourceSelector
from engine.placement import fleet as fleets
from events import shapes

_ANY: Final = ""

# Where a selector is filed: namespace, API version, kind and name, each empty for any.
_Handle = tuple[str, str, str, str]


class KnownOverride(Struct, frozen=True):
    """A policy, and where in its topic it was written last."""

    policy: OverridePolicy
    offset: int


def reference(policy: OverridePolicy) -> shapes.PolicyRef:
    """The policy's name among all policies."""
    return shapes.PolicyRef(kind=policy.kind, name=policy.metadata.name, namespace=policy.metadata.namespace)


def closeness(policy: OverridePolicy, template: Template) -> int:
    """How closely the best of the policy's selectors means the template; ``overrides.UNSELECTED`` for not at all."""
    return max(
        (overrides.priority(each) for each in policy.selectors if _means(each, template)),
        default=overrides.UNSELECTED,
    )


class Overrides:
    """All override policies, filed so that a template that none of them means costs next to nothing."""

    def __init__(self) -> None:
        self._known: dict[shapes.PolicyRef, KnownOverride] = {}
        self._cells: dict[_Handle, dict[shapes.PolicyRef, KnownOverride]] = {}
        self._digests: dict[tuple[shapes.PolicyRef, tuple[int, ...]], str] = {}
        self._matches: dict[tuple[shapes.PolicyRef, int, str], bool] = {}
        self._revision = -1

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[KnownOverride]:
        return iter(self._known.values())

    def put(self, known: KnownOverride) -> OverridePolicy | None:
        """Takes a policy in; gives the one that had its place."""
        ref = reference(known.policy)
        old = self.remove(ref)
        self._known[ref] = known
        for handle in _handles(known.policy):
            self._cells.setdefault(handle, {})[ref] = known
        return old

    def remove(self, ref: shapes.PolicyRef) -> OverridePolicy | None:
        """Forgets a policy, and gives it; one that is not there is gone already."""
        known = self._known.pop(ref, None)
        if known is None:
            return None
        for handle in _handles(known.policy):
            cell = self._cells[handle]
            cell.pop(ref)
            if not cell:
                del self._cells[handle]
        self._digests = {}
        self._matches = {}
        return known.policy

    def selecting(self, template: Template) -> Sequence[KnownOverride]:
        """The policies that mean a template, in the order in which they are applied."""
        if not self._known:
            return ()
        found: list[tuple[bool, int, str, KnownOverride]] = []
        for ref, known in self._candidates(template).items():
            close = closeness(known.policy, template)
            if close:
                found.append((ref.kind == overrides.OVERRIDE_POLICY, close, ref.name, known))
        found.sort(key=lambda each: each[:3])
        return [each[3] for each in found]

    def holding(
        self, selecting: Sequence[KnownOverride], cluster: str, fleet: fleets.Fleet
    ) -> tuple[shapes.OverrideRef, ...]:
        """What these policies say for a cluster; those of which no rule holds there are left out."""
        found: list[shapes.OverrideRef] = []
        for known in selecting:
            ref = reference(known.policy)
            rules = tuple(
                place
                for place, rule in enumerate(known.policy.rules)
                if not rule.is_empty and self._is_meant(ref, place, rule.target_cluster, cluster, fleet)
            )
            if rules:
                digest = self._digests.get((ref, rules))
                if digest is None:
                    digest = self._digests[ref, rules] = known.policy.digest(rules)
                found.append(
                    shapes.OverrideRef(
                        kind=ref.kind,
                        name=ref.name,
                        namespace=ref.namespace,
                        offset=known.offset,
                        digest=digest,
                        rules=rules,
                    )
                )
        return tuple(found)

    def _candidates(self, template: Template) -> dict[shapes.PolicyRef, KnownOverride]:
        ref = template.ref
        found: dict[shapes.PolicyRef, KnownOverride] = {}
        for namespace in {ref.namespace, _ANY}:
            for handle in (
                (namespace, _ANY, _ANY, _ANY),
                (namespace, ref.api_version, ref.kind, _ANY),
                (namespace, ref.api_version, ref.kind, ref.name),
            ):
                found.update(self._cells.get(handle, {}))
        return found

    def _is_meant(
        self,
        ref: shapes.PolicyRef,
        place: int,
        target: placements.ClusterAffinity | None,
        cluster: str,
        fleet: fleets.Fleet,
    ) -> bool:
        """Whether a rule's target means a cluster, kept until a cluster is another than before."""
        if target is None:
            return True
        if self._revision != fleet.revision:
            self._matches = {}
            self._revision = fleet.revision
        known = self._matches.get((ref, place, cluster))
        if known is None:
            known = self._matches[ref, place, cluster] = fleet.matches(target, cluster)
        return known


def same(one: tuple[shapes.OverrideRef, ...], other: tuple[shapes.OverrideRef, ...]) -> bool:
    """Whether they say the same; where the policies were written does not matter."""
    return one == other or list(map(_said, one)) == list(map(_said, other))


def _said(ref: shapes.OverrideRef) -> tuple[str, str, str, tuple[int, ...], str]:
    return (ref.kind, ref.namespace, ref.name, ref.rules, ref.digest)


def _handles(policy: OverridePolicy) -> frozenset[_Handle]:
    """Where a policy is filed, each place once, though several of its selectors may lead there."""
    return frozenset((each.namespace, each.api_version, each.kind, each.name) for each in policy.selectors)


def _means(selector: ResourceSelector, template: Template) -> bool:
    ref = template.ref
    if selector.namespace not in {_ANY, ref.namespace}:
        return False
    if selector.kind and (selector.api_version, selector.kind) != (ref.api_version, ref.kind):
        return False
    if selector.name:
        return selector.name == ref.name
    return selector.label_selector is None or selector.label_selector.matches(template.labels)
