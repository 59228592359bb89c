"""Which policy places a template: matching, precedence, claims and preemption (Karmada's rules).

A claim holds as long as its policy exists and selects the template. A better policy takes the claim over only if the
engine permits preemption and that policy has it enabled. For an unclaimed template, any matching PropagationPolicy of
its namespace comes before all ClusterPropagationPolicies. Within one kind the order is: explicit priority, highest
first; implicit priority (by name, then by labels, then all of a kind); name.

Nothing here changes a binding; ``propagation`` decides what follows from a verdict.
"""

import enum
from bisect import bisect_left, insort
from collections.abc import Iterator
from operator import itemgetter

from msgspec import Struct

from engine.domain import namespaces
from engine.objects import policies, selector_index
from engine.objects.policies import Policy
from engine.objects.selector_index import NO_SELECTION, Selection, Template
from engine.overrides import policies as overrides
from events import shapes


class Outcome(enum.Enum):
    """Result of checking the claim on a template.

    - HELD: the policy keeps its claim.
    - LAPSED: the policy exists but does not select the template, or is being deleted; release the claim.
    - PREEMPTED: the verdict's policy takes the claim over. WON: it claims an unclaimed template.
    - UNMATCHED: no policy selects the template; the verdict has none.
    """

    HELD = enum.auto()
    LAPSED = enum.auto()
    PREEMPTED = enum.auto()
    WON = enum.auto()
    UNMATCHED = enum.auto()


class Verdict(Struct, frozen=True, gc=False):
    outcome: Outcome
    policy: Policy | None


# Kind of the policy and scope of a selector.
_Scope = tuple[str, selector_index.Scope]

# (-explicit priority, -implicit priority, policy name): the smallest rank wins.
_Rank = tuple[int, int, str]
_Entry = tuple[_Rank, selector_index.Cell, Policy]
_Cells = dict[selector_index.IndexKey, list[_Entry]]

_rank_of = itemgetter(0)


def preempts(newcomer: Policy, holder: Policy) -> bool:
    """Whether policy ``newcomer`` may take a template from policy ``holder``.

    ``newcomer`` must have preemption enabled. A PropagationPolicy may take from any ClusterPropagationPolicy, never the
    other way round; within one kind the explicit priority of ``newcomer`` must be strictly higher.
    """
    if not newcomer.spec.may_preempt or newcomer.is_deleting:
        return False
    if newcomer.kind != holder.kind:
        return newcomer.kind == policies.PROPAGATION_POLICY
    return newcomer.spec.priority > holder.spec.priority


class PolicyIndex:
    """All policies, indexed so that the best policy for a template is found without a walk over all of them.

    Each selector is stored under its scope and its index key (``selector_index``). A lookup visits only the entries
    under the template's scopes and index keys; these are sorted by rank.
    """

    def __init__(self) -> None:
        self._policies: dict[shapes.PolicyRef, Policy] = {}
        self._selections: dict[shapes.PolicyRef, Selection] = {}
        self._scopes: dict[_Scope, _Cells] = {}
        self._dependents: dict[shapes.PolicyRef, set[shapes.PolicyRef]] = {}

    def __len__(self) -> int:
        return len(self._policies)

    def put(self, policy: Policy) -> tuple[Selection, Selection]:
        """Add a policy or replace the one with the same reference; return the selections before and after."""
        ref = policy.ref
        before = self.remove(ref)
        self._policies[ref] = policy
        for override in overrides.required_overrides(policy):
            self._dependents.setdefault(override, set()).add(ref)
        selection = self._selections[ref] = Selection(policy.selectors)
        for scope, index_key, cell in () if policy.is_deleting else selection.cells():
            cells = self._scopes.setdefault((policy.kind, scope), {})
            insort(cells.setdefault(index_key, []), (_rank(policy, index_key), cell, policy), key=_rank_of)
        return before, selection

    def remove(self, ref: shapes.PolicyRef) -> Selection:
        """Remove a policy and return its selection; an empty one if the policy does not exist."""
        policy, selection = self._policies.pop(ref, None), self._selections.pop(ref, NO_SELECTION)
        if policy is None:
            return selection
        for override in set(overrides.required_overrides(policy)):
            self._dependents[override].discard(ref)
            if not self._dependents[override]:
                del self._dependents[override]
        if policy.is_deleting:
            return selection
        for scope, index_key, cell in selection.cells():
            cells = self._scopes[policy.kind, scope]
            entries = cells[index_key]
            index = bisect_left(entries, _rank(policy, index_key), key=_rank_of)
            # Several selectors of one policy may have the same rank: find the entry by the identity of its cell.
            while entries[index][1] is not cell:
                index += 1
            del entries[index]
            if not entries:
                del cells[index_key]
            if not cells:
                del self._scopes[policy.kind, scope]
        return selection

    def selects(self, policy: Policy, template: Template) -> bool:
        """Whether a policy of the index selects a template."""
        return self._selections[policy.ref].selects(template)

    def get(self, ref: shapes.PolicyRef) -> Policy | None:
        return self._policies.get(ref)

    def dependents(self, override: shapes.PolicyRef) -> Iterator[tuple[shapes.PolicyRef, Selection]]:
        """Yield the policies that need an override policy, each with its selection."""
        for ref in sorted(self._dependents.get(override, ()), key=lambda ref: ref.name):
            yield ref, self._selections[ref]

    def best(self, template: Template) -> Policy | None:
        """Return the best policy that selects the template, without regard to its claim; None if no policy does."""
        for kind in _kinds(template):
            policy = self._first(kind, template)
            if policy is not None:
                return policy
        return None

    def preemptor(self, template: Template, holder: Policy) -> Policy | None:
        """Return the best policy that may take the template from its holder, or None.

        Only selectors that name the template and its namespace preempt.
        """
        ref = template.ref
        for kind in _kinds(template):
            cells = self._scopes.get((kind, selector_index.scope_of(ref.namespace, ref)), {})
            for _, _, policy in cells.get((selector_index.BY_NAME, ref.name, ""), ()):
                if preempts(policy, holder):
                    return policy
        return None

    def _first(self, kind: str, template: Template) -> Policy | None:
        best: _Entry | None = None
        for entries in self._entries(kind, template):
            for entry in entries:
                # Entries are sorted by rank: stop at the first match, which is the best one of its list, or at the
                # first entry that is no better than ``best``.
                if best is not None and entry[0] >= best[0]:
                    break
                if selector_index.is_met(entry[1], template):
                    best = entry
                    break
        return best[2] if best else None

    def _entries(self, kind: str, template: Template) -> Iterator[list[_Entry]]:
        """Yield the sorted entries of each (scope, index_key) that matches the template."""
        ref = template.ref
        for namespace in (ref.namespace, selector_index.ANY) if ref.namespace else (selector_index.ANY,):
            cells = self._scopes.get((kind, selector_index.scope_of(namespace, ref)))
            if cells is not None:
                for index_key in selector_index.template_index_keys(template):
                    if index_key in cells:
                        yield cells[index_key]


def claim(
    index: PolicyIndex,
    template: Template,
    claimed_by: shapes.PolicyRef | None,
    *,
    preemption: bool = False,
) -> Verdict:
    """Return the verdict on the claim that policy ``claimed_by`` has on a template.

    If that policy was deleted, the template is unclaimed. ``preemption`` is an engine switch, off by default as in
    Karmada. Templates in namespaces of the control plane are never claimed.
    """
    if namespaces.is_reserved(template.ref.namespace):
        return Verdict(Outcome.UNMATCHED, None)
    holder = None if claimed_by is None else index.get(claimed_by)
    if holder is None:
        best = index.best(template)
        return Verdict(Outcome.WON if best else Outcome.UNMATCHED, best)
    preemptor = index.preemptor(template, holder) if preemption else None
    if preemptor is not None:
        return Verdict(Outcome.PREEMPTED, preemptor)
    if holder.is_deleting or not index.selects(holder, template):
        return Verdict(Outcome.LAPSED, holder)
    return Verdict(Outcome.HELD, holder)


def _kinds(template: Template) -> tuple[str, ...]:
    if template.ref.namespace:
        return (policies.PROPAGATION_POLICY, policies.CLUSTER_PROPAGATION_POLICY)
    return (policies.CLUSTER_PROPAGATION_POLICY,)


def _rank(policy: Policy, index_key: selector_index.IndexKey) -> _Rank:
    return (-policy.spec.priority, -index_key[0], policy.metadata.name)
