"""Reading policies as people and API servers write them."""

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


def test_the_placement_is_kept_as_it_was_written() -> None:
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
def test_who_names_no_purge_mode_for_failed_clusters_means_gracefully(failover: object, mode: str) -> None:
    assert _decode(failover=failover).spec.purge_mode == mode


def test_selectors_of_a_propagation_policy_mean_its_own_namespace() -> None:
    selectors = [
        {"kind": "Secret"},
        {"kind": "Service", "namespace": "shop"},
        {"kind": "Job", "namespace": "x"},
    ]
    policy = msgspec.structs.replace(
        _decode(resourceSelectors=selectors), metadata=policies.Metadata(name="p", namespace="shop")
    )
    assert [(each.kind, each.namespace) for each in policy.selectors] == [
        ("Secret", "shop"),
        ("Service", "shop"),
    ]


def test_another_shape_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="priority"):
        _decode(priority="high")
