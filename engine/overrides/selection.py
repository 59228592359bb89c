"""Which override policies apply to a template in a cluster, and in which order (Karmada's rules).

ClusterOverridePolicies come first, then the OverridePolicies of the template's namespace. Within these, policies that
select the template by kind come first, then by labels, then by name; equal ones are ordered by the policy's name. Later
policies override earlier ones.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from engine.objects import selector_index
from engine.objects.selector_index import NO_SELECTION, Selection, Template
from engine.overrides import policies
from engine.overrides.policies import OverridePolicy
from engine.placement import fleet as fleets
from events import shapes

_CellKey = tuple[selector_index.Scope, selector_index.IndexKey]


class KnownOverride(Struct, frozen=True):
    """An override policy and the offset of its last write in the policies topic."""

    policy: OverridePolicy
    offset: int


class Overrides:
    """All override policies, indexed so that a template that no policy selects costs almost nothing."""

    def __init__(self) -> None:
        self._policies: dict[shapes.PolicyRef, KnownOverride] = {}
        self._selections: dict[shapes.PolicyRef, Selection] = {}
        self._cells: dict[_CellKey, dict[shapes.PolicyRef, selector_index.Cell]] = {}
        self._refs: dict[shapes.PolicyRef, dict[tuple[int, ...], shapes.OverrideRef]] = {}

    def __len__(self) -> int:
        return len(self._policies)

    def __contains__(self, ref: shapes.PolicyRef) -> bool:
        return ref in self._policies

    def __iter__(self) -> Iterator[KnownOverride]:
        return iter(self._policies.values())

    def put(self, override: KnownOverride) -> tuple[Selection, Selection]:
        """Add a policy or replace the one with the same reference; return the selections before and after."""
        ref = override.policy.ref
        before = self.remove(ref)
        self._policies[ref] = override
        selection = self._selections[ref] = Selection(override.policy.selectors)
        for scope, handle, cell in selection.cells():
            self._cells.setdefault((scope, handle), {})[ref] = cell
        return before, selection

    def remove(self, ref: shapes.PolicyRef) -> Selection:
        """Remove a policy and return its selection; an empty one if the policy does not exist."""
        self._policies.pop(ref, None)
        self._refs.pop(ref, None)
        selection = self._selections.pop(ref, NO_SELECTION)
        for scope, handle, _ in selection.cells():
            cell = self._cells[scope, handle]
            del cell[ref]
            if not cell:
                del self._cells[scope, handle]
        return selection

    def policies_for(self, template: Template) -> Sequence[KnownOverride]:
        """Return the policies that select a template, in the order of application."""
        if not self._policies:
            return ()
        selected = [
            (ref.kind == policies.OVERRIDE_POLICY, close, ref.name, self._policies[ref])
            for ref, close in self._closest(template).items()
        ]
        selected.sort(key=lambda entry: entry[:3])
        return [entry[3] for entry in selected]

    def rules_for(
        self, overrides: Sequence[KnownOverride], cluster: str, fleet: fleets.Fleet
    ) -> tuple[shapes.OverrideRef, ...]:
        """Return, for each policy with rules that apply in a cluster, a reference to these rules."""
        refs: list[shapes.OverrideRef] = []
        for override in overrides:
            rules = tuple(
                index
                for index, rule in enumerate(override.policy.rules)
                if not rule.is_empty and fleet.matches(rule.target_cluster, cluster)
            )
            if rules:
                refs.append(self._ref(override, rules))
        return tuple(refs)

    def _ref(self, override: KnownOverride, rules: tuple[int, ...]) -> shapes.OverrideRef:
        ref = override.policy.ref
        refs = self._refs.setdefault(ref, {})
        if rules not in refs:
            refs[rules] = shapes.OverrideRef(
                kind=ref.kind,
                name=ref.name,
                namespace=ref.namespace,
                offset=override.offset,
                digest=override.policy.digest(rules),
                rules=rules,
            )
        return refs[rules]

    def _closest(self, template: Template) -> dict[shapes.PolicyRef, int]:
        """Return the policies that select a template, each with the closeness of its closest matching selector."""
        closeness_of: dict[shapes.PolicyRef, int] = {}
        for scope in selector_index.scopes_of(template):
            for handle in selector_index.template_index_keys(template):
                for ref, cell in self._cells.get((scope, handle), {}).items():
                    if closeness_of.get(ref, selector_index.UNSELECTED) < handle[0] and selector_index.is_met(
                        cell, template
                    ):
                        closeness_of[ref] = handle[0]
        return closeness_of


def are_equal(refs: tuple[shapes.OverrideRef, ...], other: tuple[shapes.OverrideRef, ...]) -> bool:
    """Whether two works' overrides name the same rules with the same content; the policies' offsets are ignored."""
    return refs == other or list(map(_order_key, refs)) == list(map(_order_key, other))


def _order_key(ref: shapes.OverrideRef) -> tuple[str, str, str, tuple[int, ...], str]:
    return (ref.kind, ref.namespace, ref.name, ref.rules, ref.digest)
