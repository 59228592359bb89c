"""A change of a Service's type drops the fields of its former type, unless the same request changes them."""

import pytest

from engine.kubeapi.admission import built_in_defaults
from engine.kubeapi.admission.rules.core import without_former_type
from events.json_values import Json
from events.kube_objects import KubeObject


def service(**spec: object) -> KubeObject:
    value: Json = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}
    return built_in_defaults.with_defaults(KubeObject(value))


BALANCED = service(
    type="LoadBalancer",
    clusterIP="10.96.0.1",
    clusterIPs=["10.96.0.1"],
    loadBalancerClass="example.com/lb",
    ports=[{"port": 80, "nodePort": 30_080}],
)


def changed(**spec: object) -> Json:
    """The spec of the balanced Service after a patch."""
    new = BALANCED.with_fields({"spec": {**BALANCED.object_at("spec"), **spec}})
    return without_former_type(BALANCED, new).object_at("spec")


def test_balanced_service_that_becomes_internal_has_no_external_fields() -> None:
    spec = changed(type="ClusterIP")
    assert "externalTrafficPolicy" not in spec
    assert "loadBalancerClass" not in spec
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert spec["clusterIP"] == "10.96.0.1"


def test_balanced_service_that_stays_on_node_ports_keeps_them() -> None:
    spec = changed(type="NodePort")
    assert spec["externalTrafficPolicy"] == "Cluster"
    assert spec["ports"] == [{"port": 80, "nodePort": 30_080, "protocol": "TCP", "targetPort": 80}]
    assert "loadBalancerClass" not in spec


def test_service_that_becomes_external_has_no_address() -> None:
    spec = changed(type="ExternalName", externalName="example.com")
    assert not spec.keys() & {"clusterIP", "clusterIPs", "internalTrafficPolicy"}


def test_field_that_the_request_changes_stays() -> None:
    assert changed(type="ClusterIP", externalTrafficPolicy="Local")["externalTrafficPolicy"] == "Local"
    assert changed(type="ClusterIP", ports=[{"port": 80, "nodePort": 30_081}])["ports"] == [
        {"port": 80, "nodePort": 30_081}
    ]


@pytest.mark.parametrize("spec", [{}, {"externalTrafficPolicy": "Cluster"}])
def test_other_changes_drop_nothing(spec: Json) -> None:
    assert changed(**spec) == {**BALANCED.object_at("spec"), **spec}
    assert without_former_type(None, BALANCED) == BALANCED


class _Port(int):
    """A port that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        _Port.comparisons += 1
        return int.__eq__(self, other)

    __hash__ = int.__hash__


def test_assigned_ports_are_looked_up() -> None:
    numbers = [_Port(30_000 + index) for index in range(100)]
    ports: list[Json] = [
        {"port": 1 + index, "nodePort": node_port} for index, node_port in enumerate(numbers)
    ]
    before = BALANCED.with_fields({"spec": {**BALANCED.object_at("spec"), "ports": ports}})
    after = before.with_fields(
        {"spec": {**before.object_at("spec"), "type": "ClusterIP", "ports": ports[::-1]}}
    )
    changed_ports = without_former_type(before, after).list_at("spec", "ports")
    comparisons = _Port.comparisons
    assert changed_ports == [{"port": 100 - index} for index in range(100)]
    assert comparisons < 1_000
