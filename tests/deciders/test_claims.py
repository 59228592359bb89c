"""Claims: which policy places a template, the index against a plain scan, and how long a claim lasts."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.deciders import claims
from engine.kubeapi.values import selectors
from engine.objects import policies
from engine.objects.selector_index import Selection
from events import shapes
from tests.deciders import strategies
from tests.deciders.strategies import Template

_WEB = Template(
    shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="web", namespace="shop"),
    {"app": "web", "tier": "1"},
)


def _policy(
    name: str, *, of: str = "", priority: int = 0, preemption: str = "Never", by_labels: bool = False
) -> policies.Policy:
    """A policy for one Deployment (``of``), for Deployments with certain labels, or for all."""
    resource = policies.ResourceSelector(
        api_version="apps/v1",
        kind="Deployment",
        namespace="shop",
        name=of,
        label_selector=selectors.LabelSelector() if by_labels else None,
    )
    return policies.Policy(
        kind="PropagationPolicy",
        metadata=policies.Metadata(name=name, namespace="shop"),
        spec=policies.PolicySpec(resource_selectors=(resource,), priority=priority, preemption=preemption),
    )


def _index(*known: policies.Policy) -> claims.PolicyIndex:
    index = claims.PolicyIndex()
    for policy in known:
        index.put(policy)
    return index


def _scanned(known: list[policies.Policy], template: Template) -> policies.Policy | None:
    """Return the best policy by a full scan of the documented rule."""

    def means(selector: policies.ResourceSelector) -> bool:
        ref = template.ref
        if (selector.api_version, selector.kind) != (ref.api_version, ref.kind):
            return False
        if selector.namespace not in {"", ref.namespace}:
            return False
        if selector.name:
            return selector.name == ref.name
        return selector.label_selector is None or selector.label_selector.matches(template.labels)

    def implicit(policy: policies.Policy) -> int:
        matching = [s for s in policy.spec.resource_selectors if means(s)]
        return max(3 if s.name else 2 if s.label_selector is not None else 1 for s in matching)

    matching = [
        policy
        for policy in known
        if not policy.is_deleting
        and any(means(selector) for selector in policy.spec.resource_selectors)
        and (policy.kind == "ClusterPropagationPolicy" or policy.metadata.namespace == template.ref.namespace)
    ]
    matching.sort(
        key=lambda p: (
            p.kind == "ClusterPropagationPolicy",
            -p.spec.priority,
            -implicit(p),
            p.metadata.name,
        )
    )
    return matching[0] if matching else None


@pytest.mark.slow
@given(strategies.policy_lists(), strategies.policy_lists(), strategies.templates())
def test_index_finds_the_same_policy_as_a_scan(
    written: list[policies.Policy], removed: list[policies.Policy], template: Template
) -> None:
    index = _index(*written)
    known = {policy.ref: policy for policy in written}
    for policy in removed:
        ref = policy.ref
        index.remove(ref)
        known.pop(ref, None)
    assert index.best(template) == _scanned(list(known.values()), template)
    assert len(index) == len(known)


@given(strategies.policy_lists(), strategies.templates(), st.randoms(use_true_random=False))
def test_order_of_writes_does_not_matter(
    written: list[policies.Policy], template: Template, chance: random.Random
) -> None:
    newest = list({policy.ref: policy for policy in written}.values())
    shuffled = list(newest)
    chance.shuffle(shuffled)
    assert _index(*shuffled).best(template) == _index(*newest).best(template)


@pytest.mark.slow
@given(strategies.policy_lists(), strategies.a_policy(), strategies.templates())
def test_claim_is_kept_despite_other_policies(
    others: list[policies.Policy], holder: policies.Policy, template: Template
) -> None:
    ref = holder.ref
    verdict = claims.claim(_index(*others, holder), template, ref)
    assert verdict.policy == holder
    assert (verdict.outcome == claims.Outcome.HELD) == (
        Selection(holder.selectors).selects(template) and not holder.is_deleting
    )


@pytest.mark.slow
@given(strategies.policy_lists(), strategies.a_policy(), strategies.templates())
def test_preempting_policy_is_not_preempted_in_turn(
    others: list[policies.Policy], holder: policies.Policy, template: Template
) -> None:
    index = _index(*others, holder)
    taken = claims.claim(index, template, holder.ref, preemption=True)
    if taken.outcome != claims.Outcome.PREEMPTED or taken.policy is None:
        assert taken.policy in (holder, None)
        return
    assert Selection(taken.policy.selectors).selects(template)
    kept = claims.claim(index, template, taken.policy.ref, preemption=True)
    assert (kept.outcome, kept.policy) == (claims.Outcome.HELD, taken.policy)


def test_name_outranks_labels_and_labels_outrank_kind() -> None:
    by_kind, by_labels, by_name = _policy("a"), _policy("b", by_labels=True), _policy("c", of="web")
    index = _index(by_kind, by_labels, by_name)
    assert index.best(_WEB) == by_name
    index.remove(shapes.PolicyRef(kind="PropagationPolicy", namespace="shop", name="c"))
    assert index.best(_WEB) == by_labels
    index.remove(shapes.PolicyRef(kind="PropagationPolicy", namespace="shop", name="b"))
    assert index.best(_WEB) == by_kind


def test_rewritten_policy_replaces_itself() -> None:
    index = _index(_policy("a", of="web"), _policy("b", of="web", priority=1))
    index.put(_policy("b", of="db", priority=1))
    assert index.best(_WEB) == _policy("a", of="web")


def test_preemption_needs_the_feature_the_field_a_match_by_name_and_a_higher_priority() -> None:
    holder = _policy("holder", priority=1)
    claimed = holder.ref
    wishing = _policy("wishing", of="web", priority=2, preemption="Always")
    assert claims.claim(_index(holder, wishing), _WEB, claimed).outcome == claims.Outcome.HELD
    assert claims.claim(_index(holder, wishing), _WEB, claimed, preemption=True).policy == wishing
    for weaker in (
        _policy("wishing", of="web", priority=1, preemption="Always"),
        _policy("wishing", of="web", priority=2),
        _policy("wishing", priority=2, preemption="Always"),
    ):
        assert (
            claims.claim(_index(holder, weaker), _WEB, claimed, preemption=True).outcome
            == claims.Outcome.HELD
        )


def test_claim_lapses_when_its_policy_no_longer_selects_the_template() -> None:
    lapsed, other = _policy("lapsed", of="db"), _policy("other")
    verdict = claims.claim(_index(lapsed, other), _WEB, lapsed.ref)
    assert verdict == claims.Verdict(claims.Outcome.LAPSED, lapsed)


def test_claim_of_a_deleted_policy_is_void() -> None:
    deleted, other = _policy("gone"), _policy("other")
    assert claims.claim(_index(other), _WEB, deleted.ref) == claims.Verdict(claims.Outcome.WON, other)
    assert claims.claim(_index(), _WEB, deleted.ref).outcome == claims.Outcome.UNMATCHED
