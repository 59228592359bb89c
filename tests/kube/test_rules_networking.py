"""Validation of NetworkPolicies, Ingresses, and the ports of Services."""

import pytest

from engine.kubeapi.admission.rules.core import service
from engine.kubeapi.admission.rules.networking import ingress, network_policy
from events.json_values import Json
from events.kube_objects import KubeObject

CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
SUBSET = "must be a strict subset of `cidr`"


def wrong(**rule: object) -> list[str]:
    spec: Json = {"podSelector": {}, "ingress": [rule]}
    causes = network_policy(KubeObject({"spec": spec}), None)
    return [cause.text.removeprefix("spec.ingress[0].") for cause in causes]


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16", "10.2.3.4/32"]}, []),
        ({"cidr": "2001:db8::/32", "except": ["2001:db8:1::/48"]}, []),
        ({"cidr": "10.9.8.7"}, [f'cidr: Invalid value: "10.9.8.7": {CIDR}']),
        ({"cidr": "10.0.0.0/255.0.0.0"}, [f'cidr: Invalid value: "10.0.0.0/255.0.0.0": {CIDR}']),
        ({"cidr": "10.0.0.0/8", "except": ["x"]}, [f'except[0]: Invalid value: "x": {CIDR}']),
        (
            {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]},
            [f'except[0]: Invalid value: "11.0.0.0/16": {SUBSET}'],
        ),
        (
            {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]},
            [f'except[0]: Invalid value: "10.0.0.0/8": {SUBSET}'],
        ),
        (
            {"cidr": "10.0.0.0/8", "except": ["2001:db8::/64"]},
            [f'except[0]: Invalid value: "2001:db8::/64": {SUBSET}'],
        ),
    ],
)
def test_blocks_have_lengths_and_contain_their_exceptions(block: Json, words: list[str]) -> None:
    assert wrong(**{"from": [{"ipBlock": block}]}) == [f"from[0].ipBlock.{word}" for word in words]


@pytest.mark.parametrize(
    ("port", "words"),
    [
        ({"port": 80, "endPort": 90}, []),
        ({"port": 80, "endPort": 80}, []),
        (
            {"port": 80, "endPort": 79},
            ["endPort: Invalid value: 79: must be greater than or equal to `port`"],
        ),
        (
            {"port": 80, "endPort": 65536},
            ["endPort: Invalid value: 65536: must be between 1 and 65535, inclusive"],
        ),
        ({"endPort": 80}, ["endPort: Invalid value: 80: must be specified when `port` is specified"]),
    ],
)
def test_ranges_of_ports_do_not_run_backwards(port: Json, words: list[str]) -> None:
    assert wrong(ports=[port]) == [f"ports[0].{word}" for word in words]


@pytest.mark.parametrize("name", ["podSelector", "namespaceSelector"])
def test_selectors_of_peers_are_valid(name: str) -> None:
    everything: Json = {}
    assert wrong(**{"from": [{name: {"matchLabels": {"a": "b"}}}, {name: everything}]}) == []
    term: Json = {"key": "a", "operator": "Near"}
    detail = 'operator: Invalid value: "Near": not a valid selector operator'
    expected = f"from[0].{name}.matchExpressions[0].{detail}"
    assert wrong(**{"from": [{name: {"matchExpressions": [term]}}]}) == [expected]


def test_protocols_of_ports_are_known() -> None:
    assert wrong(ports=[{"protocol": "SCTP", "port": 80}]) == []
    detail = 'Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"'
    assert wrong(ports=[{"protocol": "ICMP", "port": 80}]) == [f"ports[0].protocol: {detail}"]


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}, []),
        ({"defaultBackend": {"service": {"name": "web"}}}, ["spec.defaultBackend"]),
        ({"rules": [{"host": "*.example.com"}]}, []),
        ({"rules": [{"host": "*.Example.com"}]}, ["spec.rules[0].host"]),
        ({"rules": [{"host": "a.*.example.com"}]}, ["spec.rules[0].host"]),
    ],
)
def test_ingress_has_valid_hosts_and_backends(spec: Json, fields: list[str]) -> None:
    assert [cause.field for cause in ingress(KubeObject({"spec": spec}), None)] == fields


def node_ports(*numbers: int, type_name: str = "NodePort", protocols: str = "TCP TCP") -> KubeObject:
    ports = [
        {"name": f"p{index}", "port": 80 + index, "protocol": protocol, "nodePort": number}
        for index, (number, protocol) in enumerate(zip(numbers, protocols.split(), strict=False))
    ]
    return KubeObject({"spec": {"type": type_name, "ports": ports}})


def wrong_ports(value: KubeObject) -> list[str]:
    return [cause.text.removeprefix("spec.ports") for cause in service(value, None)]


OUTSIDE = "provided port is not in the valid range. The range of valid ports is 30000-32767"


@pytest.mark.parametrize("type_name", ["NodePort", "LoadBalancer"])
def test_node_ports_are_in_the_range_of_the_api_server(type_name: str) -> None:
    for number in (0, 30_000, 32_767):
        assert wrong_ports(node_ports(number, type_name=type_name)) == []
    for number in (80, 29_999, 32_768):
        assert wrong_ports(node_ports(number, type_name=type_name)) == [
            f"[0].nodePort: Invalid value: {number}: {OUTSIDE}"
        ]


def test_node_port_occurs_once_for_each_protocol() -> None:
    assert wrong_ports(node_ports(30_000, 30_000)) == ["[1].nodePort: Duplicate value: 30000"]
    assert wrong_ports(node_ports(30_000, 30_000, protocols="TCP UDP")) == []
    assert wrong_ports(node_ports(0, 0)) == []


def test_service_with_a_cluster_ip_only_has_no_node_ports() -> None:
    words = "Forbidden: may not be used when `type` is 'ClusterIP'"
    assert wrong_ports(node_ports(80, type_name="ClusterIP")) == [f"[0].nodePort: {words}"]
    assert wrong_ports(node_ports(0, type_name="ClusterIP")) == []


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"type": "ClusterIP"}, [": Required value"]),
        ({"type": "ClusterIP", "clusterIP": "None"}, []),
        ({"type": "ExternalName", "externalName": "example.com"}, []),
    ],
)
def test_only_headless_and_external_services_need_no_ports(spec: Json, words: list[str]) -> None:
    assert wrong_ports(KubeObject({"spec": spec})) == words


def test_address_of_a_service_is_assigned_once() -> None:
    live = KubeObject({"spec": {"type": "ClusterIP", "clusterIP": "10.96.0.7", "ports": [{"port": 80}]}})

    def wrong_change(**spec: object) -> list[str]:
        return [
            cause.text for cause in service(KubeObject({"spec": {"ports": [{"port": 80}], **spec}}), live)
        ]

    assert wrong_change(type="ClusterIP") == wrong_change(type="ClusterIP", clusterIP="10.96.0.7") == []
    assert wrong_change(type="ClusterIP", clusterIP="10.96.0.8") == [
        'spec.clusterIPs[0]: Invalid value: ["10.96.0.8"]: may not change once set'
    ]


@pytest.mark.parametrize(
    ("spec", "is_valid"),
    [
        ({"type": "ClusterIP"}, False),
        ({"type": "ClusterIP", "externalIPs": ["192.0.2.7"]}, True),
        ({"type": "NodePort"}, True),
        ({"type": "LoadBalancer"}, True),
    ],
)
def test_only_external_services_have_a_policy_for_external_traffic(spec: Json, *, is_valid: bool) -> None:
    value = KubeObject({"spec": {"ports": [{"port": 80}], "externalTrafficPolicy": "Local", **spec}})
    assert (list(service(value, None)) == []) == is_valid


@pytest.mark.parametrize(
    ("seconds", "is_valid"),
    [(-1, False), (0, False), (1, True), (86_400, True), (86_401, False), (None, True)],
)
def test_affinity_to_clients_lasts_for_a_day_at_most(seconds: int | None, *, is_valid: bool) -> None:
    client = {} if seconds is None else {"timeoutSeconds": seconds}
    spec = {"ports": [{"port": 80}], "sessionAffinityConfig": {"clientIP": client}}
    assert list(service(KubeObject({"spec": {**spec, "sessionAffinity": "None"}}), None)) == []
    causes = list(service(KubeObject({"spec": {**spec, "sessionAffinity": "ClientIP"}}), None))
    assert (causes == []) == is_valid
