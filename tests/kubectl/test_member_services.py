"""Services of simulated members: cluster IPs, addresses of load balancers, and the EndpointSlices of their pods."""

import ipaddress

from events.json_values import Json, list_at, object_at, objects_at
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
"""
PROPAGATED = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: services}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Service}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
"""
_INGRESS = "jsonpath={.status.loadBalancer.ingress[*].ip}"


def _endpoints(member: Kubectl) -> list[Json]:
    slices = objects_at(member.json("endpointslices", "-l", "kubernetes.io/service-name=web"), "items")
    return [endpoint for endpoint_slice in slices for endpoint in objects_at(endpoint_slice, "endpoints")]


def _addresses(member: Kubectl) -> list[str]:
    return sorted(
        str(address) for endpoint in _endpoints(member) for address in list_at(endpoint, "addresses")
    )


def test_propagated_load_balancer_has_the_addresses_of_its_members(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{SERVICE}---{PROPAGATED}")
    kubectl.until_true(
        lambda: len(kubectl("get", "svc", "web", "-o", _INGRESS).split()) == 2,
        lambda: kubectl("get", "svc,rb", "-o", "yaml"),
    )
    members = [kubectl.on(name) for name in ("member1", "member2")]
    own = [member("get", "svc", "web", "-o", _INGRESS) for member in members]
    assert sorted(kubectl("get", "svc", "web", "-o", _INGRESS).split()) == sorted(own)
    assert len(set(own)) == 2
    for member in members:
        ipaddress.ip_address(member("get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}"))
    ports = {member("get", "svc", "web", "-o", "jsonpath={.spec.ports[*].nodePort}") for member in members}
    assert len(ports) == 1
    assert ports != {""}


def test_endpoints_of_a_service_have_the_addresses_of_its_ready_pods(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    member = kubectl.on("member1")
    member.until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/2 2 2"], "deploy")
    member("apply", "-f", "-", stdin=SERVICE)
    pods = member("get", "pods", "-o", "jsonpath={.items[*].status.podIP}").split()
    assert len(pods) == 2
    assert _addresses(member) == sorted(pods)
    (endpoint_slice,) = objects_at(member.json("endpointslices"), "items")
    assert [port["port"] for port in objects_at(endpoint_slice, "ports")] == [8080]
    name = str(object_at(endpoint_slice, "metadata")["name"])
    member("delete", "endpointslice", name, code=1)
    assert "the simulation of member1 manages it" in member.errors
    addresses = member("get", "endpoints", "web", "-o", "jsonpath={.subsets[0].addresses[*].ip}").split()
    assert addresses == _addresses(member)
    member("delete", "endpoints", "web", code=1)
    assert "the simulation of member1 manages it" in member.errors
    kubectl("scale", "deploy", "web", "--replicas=6")
    kubectl.until_true(lambda: len(_addresses(member)) == 3, lambda: member("get", "endpointslices"))


def test_cluster_ip_stays_when_a_service_is_edited_and_may_not_be_changed(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    member = kubectl.on("member1")
    member.until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/2 2 2"], "deploy")
    member("apply", "-f", "-", stdin=SERVICE)
    address = member("get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}")
    member("patch", "svc", "web", "-p", '{"spec":{"type":"ClusterIP"}}')
    assert member("get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}") == address
    assert member("get", "svc", "web", "-o", _INGRESS) == ""
    member("patch", "svc", "web", "-p", '{"spec":{"clusterIP":"10.0.0.9"}}', code=1)
    assert "may not change once set" in member.errors
    member("apply", "-f", "-", stdin=SERVICE)
    assert member("get", "svc", "web", "-o", _INGRESS)


def test_ports_of_a_service_on_the_nodes_are_assigned_once(kubectl: Kubectl) -> None:
    member = kubectl.on("member1")
    member("create", "service", "nodeport", "open", "--tcp=80", "--node-port=30123")
    member("create", "service", "nodeport", "own", "--tcp=80", "--tcp=443")
    ports = "jsonpath={.spec.ports[*].nodePort}"
    assert member("get", "svc", "open", "-o", ports) == "30123"
    numbers = member("get", "svc", "own", "-o", ports)
    assert len(set(numbers.split())) == 2
    assert all(30_000 <= int(number) < 32_768 for number in numbers.split())
    member("patch", "svc", "own", "-p", '{"spec":{"type":"LoadBalancer"}}')
    assert member("get", "svc", "own", "-o", ports) == numbers
    member("delete", "svc", "open", "own")


def test_ingress_has_the_addresses_of_its_members(kubectl: Kubectl) -> None:
    kubectl("create", "ingress", "shop", "--rule=shop.example/=web:80")
    kubectl(
        "apply",
        "-f",
        "-",
        stdin=PROPAGATED.replace("v1, kind: Service", "networking.k8s.io/v1, kind: Ingress"),
    )
    kubectl.until_true(
        lambda: len(kubectl("get", "ingress", "shop", "-o", _INGRESS).split()) == 2,
        lambda: kubectl("get", "ingress,rb", "-o", "yaml"),
    )
