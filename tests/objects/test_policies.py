"""Decoding of policies as users and API servers write them."""

import msgspec
import pytest

from engine.objects import policies


def _decode(**spec: object) -> policies.Policy:
    return policies.decode(msgspec.json.encode({"kind": "PropagationPolicy", "spec": spec}))


def test_null_means_absent() -> None:
    spec = _decode(priority=None, suspension=None, placement={"clusterTolerations": None}).spec
    assert spec.priority == 0
    assert spec.suspension is None
    assert bytes(spec.placement) == b"{}"


def test_placement_is_kept_byte_for_byte() -> None:
    policy = policies.decode(b'{"kind":"PropagationPolicy","spec":{"placement":{ "b" : 1,"a":2}}}')
    assert bytes(policy.spec.placement) == b'{ "b" : 1,"a":2}'


@pytest.mark.parametrize(
    ("failover", "mode"),
    [
        (None, ""),
        ({}, ""),
        ({"cluster": {}}, "Gracefully"),
        ({"cluster": {"purgeMode": ""}}, "Gracefully"),
        ({"cluster": {"purgeMode": "Directly"}}, "Directly"),
    ],
)
def test_default_purge_mode_of_cluster_failover_is_gracefully(failover: object, mode: str) -> None:
    assert _decode(failover=failover).spec.purge_mode == mode


def test_selectors_of_a_propagation_policy_are_limited_to_its_namespace() -> None:
    selectors = [
        {"kind": "Secret"},
        {"kind": "Service", "namespace": "shop"},
        {"kind": "Job", "namespace": "x"},
    ]
    policy = msgspec.structs.replace(
        _decode(resourceSelectors=selectors), metadata=policies.Metadata(name="p", namespace="shop")
    )
    assert [(selected.kind, selected.namespace) for selected in policy.selectors] == [
        ("Secret", "shop"),
        ("Service", "shop"),
    ]


def test_policy_with_a_deletion_timestamp_of_any_type_is_being_deleted() -> None:
    for text in (b'"2026-01-01T00:00:00Z"', b"5", b"{}"):
        manifest = b'{"kind":"PropagationPolicy","metadata":{"deletionTimestamp":' + text + b"}}"
        assert policies.decode(manifest).is_deleting


def test_value_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="priority"):
        _decode(priority="high")
