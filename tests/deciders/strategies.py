"""Hypothesis strategies for policies, templates, taints and tolerations, with few values so that matches occur."""

from typing import Final

import msgspec
from hypothesis import strategies as st

from engine.kubeapi.values import selectors
from engine.objects import clusters, placements, policies
from events import shapes, times

_KINDS: Final = st.sampled_from([("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("v1", "ConfigMap")])
_NAMESPACES: Final = st.sampled_from(["default", "shop"])
_NAMES: Final = st.sampled_from(["api", "db", "web"])
_KEYS: Final = st.sampled_from(["app", "env", "tier"])
_VALUES: Final = st.sampled_from(["api", "db", "prod"])
_EPOCH_MS: Final = times.from_text("2026-01-01T00:00:00Z")

NOW_MS: Final = _EPOCH_MS + 3_600_000


class Template(msgspec.Struct, frozen=True):
    """The fields of a template that matching reads."""

    ref: shapes.WorkloadRef
    labels: dict[str, str]


@st.composite
def templates(draw: st.DrawFn) -> Template:
    """Templates of few kinds and names, some cluster-scoped."""
    api_version, kind = draw(_KINDS)
    ref = shapes.WorkloadRef(
        api_version=api_version, kind=kind, name=draw(_NAMES), namespace=draw(st.just("") | _NAMESPACES)
    )
    return Template(ref, draw(st.dictionaries(_KEYS, _VALUES)))


@st.composite
def _requirements(draw: st.DrawFn) -> selectors.Requirement:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    values = draw(st.lists(_VALUES, max_size=2)) if operator in {"In", "NotIn"} else []
    return selectors.Requirement(key=draw(_KEYS), operator=operator, values=tuple(values))


_LABEL_SELECTORS: Final = st.builds(
    selectors.LabelSelector,
    match_labels=st.dictionaries(_KEYS, _VALUES, max_size=2),
    match_expressions=st.lists(_requirements(), max_size=2).map(tuple),
)


@st.composite
def _resource_selectors(draw: st.DrawFn) -> policies.ResourceSelector:
    api_version, kind = draw(_KINDS)
    return policies.ResourceSelector(
        api_version=api_version,
        kind=kind,
        namespace=draw(st.just("") | _NAMESPACES),
        name=draw(st.just("") | _NAMES),
        label_selector=draw(st.none() | _LABEL_SELECTORS),
    )


@st.composite
def a_policy(draw: st.DrawFn) -> policies.Policy:
    """Policies of both kinds with few names, so that later ones often replace earlier ones."""
    is_clustered = draw(st.booleans())
    return policies.Policy(
        kind=policies.CLUSTER_PROPAGATION_POLICY if is_clustered else policies.PROPAGATION_POLICY,
        metadata=policies.Metadata(
            name=draw(st.sampled_from(["a", "b", "c"])),
            namespace="" if is_clustered else draw(_NAMESPACES),
            deletion_timestamp=draw(st.none() | st.none() | st.just("2026-01-01T00:00:00Z")),
        ),
        spec=policies.PolicySpec(
            resource_selectors=tuple(draw(st.lists(_resource_selectors(), min_size=1, max_size=2))),
            priority=draw(st.integers(-1, 2)),
            preemption=draw(st.sampled_from(["Always", "Never"])),
        ),
    )


def policy_lists() -> st.SearchStrategy[list[policies.Policy]]:
    """Lists of policies in write order."""
    return st.lists(a_policy(), max_size=5)


@st.composite
def _taint(draw: st.DrawFn) -> clusters.Taint:
    seconds = draw(st.none() | st.integers(0, 3600))
    return clusters.Taint(
        key=draw(_KEYS),
        value=draw(st.just("") | _VALUES),
        effect=draw(st.sampled_from(["NoExecute", "NoExecute", "NoSchedule"])),
        time_added=None if seconds is None else times.to_seconds_text(_EPOCH_MS + seconds * 1000),
    )


@st.composite
def _toleration(draw: st.DrawFn) -> placements.Toleration:
    return placements.Toleration(
        key=draw(st.just("") | _KEYS),
        operator=draw(st.sampled_from(["", "Equal", "Exists"])),
        value=draw(st.just("") | _VALUES),
        effect=draw(st.sampled_from(["", "NoExecute", "NoSchedule"])),
        toleration_seconds=draw(st.none() | st.integers(-10, 7200)),
    )


def taint_lists() -> st.SearchStrategy[list[clusters.Taint]]:
    return st.lists(_taint(), max_size=4)


def toleration_lists() -> st.SearchStrategy[list[placements.Toleration]]:
    return st.lists(_toleration(), max_size=5)
