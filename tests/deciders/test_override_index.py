"""The index of override policies finds the same policies, in the same order, as a full scan."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.objects import clusters
from engine.overrides import policies as overrides_policies
from engine.overrides.selection import KnownOverride, Overrides
from engine.placement import fleet
from events.json_values import Json
from events.shapes import WorkloadRef


class Template(msgspec.Struct, frozen=True):
    ref: WorkloadRef
    labels: dict[str, str]


_KINDS = st.sampled_from([("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("v1", "ConfigMap")])
_NAMESPACES = st.sampled_from(["", "a", "b"])
_NAMES = st.sampled_from(["web", "db"])
_LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]), max_size=2)
_RULES: list[Json] = [{"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}}]


@st.composite
def selectors(draw: st.DrawFn) -> Json:
    api_version, kind = draw(_KINDS)
    selector: Json = {"apiVersion": api_version, "kind": kind}
    for field, values in (("namespace", _NAMESPACES), ("name", _NAMES)):
        if draw(st.booleans()):
            selector[field] = draw(values)
    if draw(st.booleans()):
        selector["labelSelector"] = {"matchLabels": draw(_LABELS)}
    return selector


@st.composite
def policies(draw: st.DrawFn) -> overrides_policies.OverridePolicy:
    namespace = draw(_NAMESPACES)
    manifest: Json = {
        "kind": overrides_policies.OVERRIDE_POLICY
        if namespace
        else overrides_policies.CLUSTER_OVERRIDE_POLICY,
        "metadata": {"name": draw(st.sampled_from(["o1", "o2", "o3"])), "namespace": namespace},
        "spec": {"resourceSelectors": draw(st.lists(selectors(), max_size=3)), "overrideRules": _RULES},
    }
    return overrides_policies.decode(msgspec.json.encode(manifest))


@st.composite
def templates(draw: st.DrawFn) -> Template:
    api_version, kind = draw(_KINDS)
    ref = WorkloadRef(api_version=api_version, kind=kind, namespace=draw(_NAMESPACES), name=draw(_NAMES))
    return Template(ref, draw(_LABELS))


def scanned(known: list[overrides_policies.OverridePolicy], template: Template) -> list[tuple[str, str]]:
    """Return each matching policy by kind and name, in order of application, by a full scan."""
    chosen: list[tuple[bool, int, str, str]] = []
    for policy in known:
        own, named = policy.metadata.namespace, policy.metadata.name
        if own not in ("", template.ref.namespace):
            continue
        close = 0 if policy.spec.resource_selectors else 1
        for selector in policy.spec.resource_selectors:
            meant = (selector.api_version, selector.kind) == (template.ref.api_version, template.ref.kind)
            labels = selector.label_selector
            if not meant or selector.namespace not in ("", template.ref.namespace):
                continue
            if selector.name:
                close = max(close, 3 if selector.name == template.ref.name else 0)
            elif labels is None:
                close = max(close, 1)
            elif labels.match_labels.items() <= template.labels.items():
                close = max(close, 2)
        if close:
            chosen.append((bool(own), close, named, policy.kind))
    return [(kind, name) for _, _, name, kind in sorted(chosen)]


@given(st.lists(st.tuples(policies(), st.booleans()), max_size=8), st.lists(templates(), max_size=4))
def test_index_finds_the_same_overrides_as_a_scan(
    changes: list[tuple[overrides_policies.OverridePolicy, bool]], searched: list[Template]
) -> None:
    index = Overrides()
    known: dict[object, overrides_policies.OverridePolicy] = {}
    for offset, (policy, comes) in enumerate(changes):
        ref = policy.ref
        if comes:
            index.put(KnownOverride(policy, offset))
            known[ref] = policy
        else:
            index.remove(ref)
            known.pop(ref, None)
    assert {known_override.policy.ref for known_override in index} == set(known)
    rebuilt = Overrides()
    for known_override in sorted(index, key=lambda known_override: known_override.offset):
        rebuilt.put(known_override)
    for template in searched:
        overrides = index.policies_for(template)
        assert [
            (known_override.policy.kind, known_override.policy.metadata.name) for known_override in overrides
        ] == scanned(list(known.values()), template)
        assert rebuilt.policies_for(template) == overrides
        refs = index.rules_for(overrides, "member1", _fleet())
        assert [ref.name for ref in refs] == [
            known_override.policy.metadata.name for known_override in overrides
        ]


def _fleet() -> fleet.Fleet:
    clusters_known = fleet.Fleet()
    clusters_known.put(clusters.ClusterManifest(metadata=clusters.ClusterMetadata(name="member1")))
    return clusters_known
