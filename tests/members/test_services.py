"""Services of simulated members: assigned addresses and node ports, and the EndpointSlices of their pods."""

import ipaddress

import pytest

from engine.simulation import services
from events.json_values import Json
from events.kube_objects import KubeObject

PORT: Json = {"port": 80, "protocol": "TCP"}


def service(name: str = "web", **spec: object) -> KubeObject:
    metadata: Json = {"name": name, "namespace": "shop", "uid": f"uid-{name}"}
    head: Json = {"apiVersion": "v1", "kind": "Service", "metadata": metadata}
    return KubeObject({**head, "spec": {"ports": [PORT], "selector": {"app": "web"}, **spec}})


def pod(name: str, ip: str, namespace: str = "shop", app: str = "web", **ports: int) -> KubeObject:
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": {"app": app}}
    declared = [{"name": name, "containerPort": number} for name, number in ports.items()]
    spec: Json = {"nodeName": "node-1", "containers": [{"name": "main", "ports": declared}]}
    head: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    return KubeObject({**head, "spec": spec, "status": {"podIP": ip} if ip else {}})


def node_ports(
    *ports: Json, name: str = "web", cluster: str = "member1", type_name: str = "NodePort"
) -> Json:
    """Return the node port of each port of a Service, by the port's protocol and number."""
    shown = services.with_addresses(cluster, service(name, type=type_name, ports=list(ports)))
    return {
        f"{port.get('protocol')}/{port['port']}": port.get("nodePort")
        for port in shown.objects_at("spec", "ports")
    }


def slice_of(value: KubeObject, *pods: KubeObject) -> KubeObject:
    (only,) = services.endpoint_slices("member1", [value], [*pods])
    return only


def pods_of(endpoint_slice: KubeObject) -> list[object]:
    return [endpoint["addresses"] for endpoint in endpoint_slice.objects_at("endpoints")]


def test_service_has_an_address_of_its_own_in_each_cluster() -> None:
    shown = [services.with_addresses(cluster, service()) for cluster in ("member1", "member2")]
    first, second = (value.text_at("spec", "clusterIP") for value in shown)
    assert first != second
    assert ipaddress.ip_address(first) in ipaddress.ip_network("10.128.0.0/9")
    assert shown[0].at("spec", "clusterIPs") == [first]
    assert services.with_addresses("member1", service()) == shown[0]


@pytest.mark.parametrize("address", ["None", "10.96.0.7"])
def test_address_of_the_manifest_stays(address: str) -> None:
    spec = services.with_addresses("member1", service(clusterIP=address)).object_at("spec")
    assert (spec["clusterIP"], spec["clusterIPs"]) == (address, [address])


def test_external_service_has_neither_address_nor_endpoints() -> None:
    external = service(type="ExternalName", externalName="example.com")
    assert services.with_addresses("member1", external) == external
    assert services.endpoint_slices("member1", [external], [pod("a", "10.0.0.1")]) == []


def test_only_types_with_node_ports_have_them() -> None:
    assert node_ports(PORT, type_name="ClusterIP") == {"TCP/80": None}
    number = node_ports(PORT)["TCP/80"]
    assert isinstance(number, int)
    assert 30_000 <= number < 32_768
    assert (
        node_ports(PORT, type_name="LoadBalancer")
        == node_ports(PORT, cluster="member2")
        == {"TCP/80": number}
    )
    assert node_ports({**PORT, "nodePort": 30_123}) == {"TCP/80": 30_123}


def test_each_port_of_a_service_has_another_node_port() -> None:
    ports: list[Json] = [{"port": number, "protocol": "TCP"} for number in range(1, 301)]
    assert len(set(node_ports(*ports).values())) == 300
    free = node_ports(PORT)["TCP/80"]
    chosen: Json = {"port": 443, "protocol": "TCP", "nodePort": free}
    numbers = node_ports(PORT, chosen)
    assert numbers["TCP/443"] == free
    assert numbers["TCP/80"] not in {free, None}


def test_protocols_of_a_port_share_its_node_port() -> None:
    numbers = node_ports({"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"})
    assert len(set(numbers.values())) == 1


def test_more_ports_than_node_ports_are_shown() -> None:
    ports: list[Json] = [{"port": number, "protocol": "TCP"} for number in range(1, 3_001)]
    assert None not in node_ports(*ports).values()


def test_endpoints_are_the_pods_that_the_selector_selects_in_the_namespace() -> None:
    pods = [
        pod("a", "10.0.0.1"),
        pod("pending", ""),
        pod("b", "10.0.0.2", app="db"),
        pod("c", "10.0.0.3", namespace="other"),
    ]
    shown = slice_of(service(), *pods)
    assert pods_of(shown) == [["10.0.0.1"]]
    (endpoint,) = shown.objects_at("endpoints")
    assert endpoint["nodeName"] == "node-1"
    assert endpoint["targetRef"] == {"kind": "Pod", "name": "a", "namespace": "shop", "uid": "uid-a"}
    assert shown.labels["kubernetes.io/service-name"] == "web"


def test_service_without_a_selector_has_no_slice() -> None:
    assert services.endpoint_slices("member1", [service(selector=None)], [pod("a", "10.0.0.1")]) == []


def test_slice_has_at_most_a_thousand_endpoints() -> None:
    pods = [pod(f"p{number}", f"10.0.{number // 250}.{number % 250 + 1}") for number in range(1_001)]
    assert len(pods_of(slice_of(service(), *pods))) == 1_000


@pytest.mark.parametrize(
    ("port", "shown"),
    [
        ({"port": 80}, {"name": "", "protocol": "TCP", "port": 80}),
        ({"port": 80, "targetPort": 8080, "name": "a"}, {"name": "a", "protocol": "TCP", "port": 8080}),
        (
            {"port": 53, "targetPort": "dns", "protocol": "UDP"},
            {"name": "", "protocol": "UDP", "port": 5353},
        ),
        ({"port": 80, "targetPort": "web"}, {"name": "", "protocol": "TCP"}),
    ],
)
def test_ports_of_a_slice_are_those_of_the_pods(port: Json, shown: Json) -> None:
    pods = [pod("a", "10.0.0.1"), pod("b", "10.0.0.2", metrics=9090, dns=5353)]
    assert slice_of(service(ports=[port]), *pods).at("ports") == [shown]


def test_endpoints_have_the_addresses_and_ports_of_the_slice() -> None:
    filled = slice_of(service(), pod("a", "10.0.0.1"), pod("b", "10.0.0.2"))
    empty = slice_of(service("idle", selector={"app": "none"}), pod("a", "10.0.0.1"))
    first, second = services.endpoints("member1", [filled, empty])
    assert first.key == ("shop", "web")
    (subset,) = first.objects_at("subsets")
    assert subset["ports"] == filled.at("ports")
    assert [
        (address["ip"], address["nodeName"]) for address in KubeObject(subset).objects_at("addresses")
    ] == [("10.0.0.1", "node-1"), ("10.0.0.2", "node-1")]
    assert (second.name, second.at("subsets")) == ("idle", [])
