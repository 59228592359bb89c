"""Which override policies hold for a template in a cluster, and in which order (the reference's rules).

ClusterOverridePolicies come first, then the OverridePolicies of the template's namespace; of each kind those that
select the template less closely come first (all of a kind, by labels, by name), then by name. What comes later is
applied later, and so has the last word.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from engine.deciders import selecting
from engine.deciders.selecting import Selection, Template
from engine.objects import overrides
from engine.objects.overrides import OverridePolicy
from engine.placement import fleet as fleets
from events import shapes

_Place = tuple[selecting.Scope, selecting.Handle]


class KnownOverride(Struct, frozen=True):
    """A policy, and where in its topic it was written last."""

    policy: OverridePolicy
    offset: int


def reference(policy: OverridePolicy) -> shapes.PolicyRef:
    """The policy's name among all policies."""
    return shapes.PolicyRef(kind=policy.kind, name=policy.metadata.name, namespace=policy.metadata.namespace)


class Overrides:
    """All override policies, filed so that a template that none of them means costs next to nothing."""

    def __init__(self) -> None:
        self._known: dict[shapes.PolicyRef, KnownOverride] = {}
        self._selections: dict[shapes.PolicyRef, Selection] = {}
        self._cells: dict[_Place, dict[shapes.PolicyRef, selecting.Cell]] = {}
        self._refs: dict[shapes.PolicyRef, dict[tuple[int, ...], shapes.OverrideRef]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[KnownOverride]:
        return iter(self._known.values())

    def put(self, known: KnownOverride) -> None:
        """Takes a policy in, in place of the one with its name."""
        ref = reference(known.policy)
        self.remove(ref)
        self._known[ref] = known
        selection = self._selections[ref] = Selection(known.policy.selectors)
        for scope, handle, cell in selection.cells():
            self._cells.setdefault((scope, handle), {})[ref] = cell

    def remove(self, ref: shapes.PolicyRef) -> None:
        """Forgets a policy; one that is not there is gone already."""
        known, selection = self._known.pop(ref, None), self._selections.pop(ref, None)
        if known is None or selection is None:
            return
        for scope, handle, _ in selection.cells():
            cell = self._cells[scope, handle]
            del cell[ref]
            if not cell:
                del self._cells[scope, handle]
        self._refs.pop(ref, None)

    def selection(self, ref: shapes.PolicyRef) -> Selection:
        """What a policy selects; nothing where there is no such policy."""
        return self._selections.get(ref, _NO_SELECTION)

    def selecting(self, template: Template) -> Sequence[KnownOverride]:
        """The policies that mean a template, in the order in which they are applied."""
        if not self._known:
            return ()
        found = [
            (ref.kind == overrides.OVERRIDE_POLICY, close, ref.name, self._known[ref])
            for ref, close in self._closest(template).items()
        ]
        found.sort(key=lambda each: each[:3])
        return [each[3] for each in found]

    def holding(
        self, chosen: Sequence[KnownOverride], cluster: str, fleet: fleets.Fleet
    ) -> tuple[shapes.OverrideRef, ...]:
        """What these policies say for a cluster; those of which no rule holds there are left out."""
        found: list[shapes.OverrideRef] = []
        for known in chosen:
            rules = tuple(
                place
                for place, rule in enumerate(known.policy.rules)
                if not rule.is_empty and fleet.matches(rule.target_cluster, cluster)
            )
            if rules:
                found.append(self._ref(known, rules))
        return tuple(found)

    def _ref(self, known: KnownOverride, rules: tuple[int, ...]) -> shapes.OverrideRef:
        ref = reference(known.policy)
        refs = self._refs.setdefault(ref, {})
        if rules not in refs:
            refs[rules] = shapes.OverrideRef(
                kind=ref.kind,
                name=ref.name,
                namespace=ref.namespace,
                offset=known.offset,
                digest=known.policy.digest(rules),
                rules=rules,
            )
        return refs[rules]

    def _closest(self, template: Template) -> dict[shapes.PolicyRef, int]:
        """How closely each policy that selects a template does so."""
        found: dict[shapes.PolicyRef, int] = {}
        for scope in selecting.scopes_of(template):
            for handle in selecting.handles_of(template):
                for ref, cell in self._cells.get((scope, handle), {}).items():
                    if found.get(ref, selecting.UNSELECTED) < handle[0] and selecting.is_met(cell, template):
                        found[ref] = handle[0]
        return found


_NO_SELECTION: Final = Selection(())


def same(one: tuple[shapes.OverrideRef, ...], other: tuple[shapes.OverrideRef, ...]) -> bool:
    """Whether they say the same; where the policies were written does not matter."""
    return one == other or list(map(_said, one)) == list(map(_said, other))


def _said(ref: shapes.OverrideRef) -> tuple[str, str, str, tuple[int, ...], str]:
    return (ref.kind, ref.namespace, ref.name, ref.rules, ref.digest)
