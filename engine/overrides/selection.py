"""Which override policies apply to a template in a cluster, and in which order (the reference's rules).

ClusterOverridePolicies come first, then the OverridePolicies of the template's namespace. Within a kind,
policies that select less closely come first (by kind, by labels, by name), then the order is by name. Later
policies override earlier ones.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from engine.objects import selector_index
from engine.objects.selector_index import Selection, Template
from engine.overrides import policies
from engine.overrides.policies import OverridePolicy
from engine.placement import fleet as fleets
from events import shapes

_Place = tuple[selector_index.Scope, selector_index.Handle]


class KnownOverride(Struct, frozen=True):
    """An override policy and the offset of its last write in the policies topic."""

    policy: OverridePolicy
    offset: int


def reference(policy: OverridePolicy) -> shapes.PolicyRef:
    return shapes.PolicyRef(kind=policy.kind, name=policy.metadata.name, namespace=policy.metadata.namespace)


class Overrides:
    """All override policies, indexed so that a template that no policy selects costs almost nothing."""

    def __init__(self) -> None:
        self._known: dict[shapes.PolicyRef, KnownOverride] = {}
        self._selections: dict[shapes.PolicyRef, Selection] = {}
        self._cells: dict[_Place, dict[shapes.PolicyRef, selector_index.Cell]] = {}
        self._refs: dict[shapes.PolicyRef, dict[tuple[int, ...], shapes.OverrideRef]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[KnownOverride]:
        return iter(self._known.values())

    def put(self, known: KnownOverride) -> None:
        """Add a policy, replacing the one with the same reference."""
        ref = reference(known.policy)
        self.remove(ref)
        self._known[ref] = known
        selection = self._selections[ref] = Selection(known.policy.selectors)
        for scope, handle, cell in selection.cells():
            self._cells.setdefault((scope, handle), {})[ref] = cell

    def remove(self, ref: shapes.PolicyRef) -> None:
        """Remove a policy; do nothing if it does not exist."""
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
        """Return what a policy selects; an empty selection if it does not exist."""
        return self._selections.get(ref, _NO_SELECTION)

    def selecting(self, template: Template) -> Sequence[KnownOverride]:
        """Return the policies that select a template, in the order of application."""
        if not self._known:
            return ()
        found = [
            (ref.kind == policies.OVERRIDE_POLICY, close, ref.name, self._known[ref])
            for ref, close in self._closest(template).items()
        ]
        found.sort(key=lambda each: each[:3])
        return [each[3] for each in found]

    def holding(
        self, chosen: Sequence[KnownOverride], cluster: str, fleet: fleets.Fleet
    ) -> tuple[shapes.OverrideRef, ...]:
        """Return references to those rules of the policies that apply in a cluster; omit policies without any."""
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
        """Return the policies that select a template, with the closeness of their best selector."""
        found: dict[shapes.PolicyRef, int] = {}
        for scope in selector_index.scopes_of(template):
            for handle in selector_index.handles_of(template):
                for ref, cell in self._cells.get((scope, handle), {}).items():
                    if found.get(ref, selector_index.UNSELECTED) < handle[0] and selector_index.is_met(
                        cell, template
                    ):
                        found[ref] = handle[0]
        return found


_NO_SELECTION: Final = Selection(())


def same(one: tuple[shapes.OverrideRef, ...], other: tuple[shapes.OverrideRef, ...]) -> bool:
    """Whether both name the same rules with the same content; the policies' offsets are ignored."""
    return one == other or list(map(_order_key, one)) == list(map(_order_key, other))


def _order_key(ref: shapes.OverrideRef) -> tuple[str, str, str, tuple[int, ...], str]:
    return (ref.kind, ref.namespace, ref.name, ref.rules, ref.digest)
