"""ResourceQuotas in members, as kubectl meets them."""

from tests.kubectl.commands import Kubectl


def test_quota_of_a_member_refuses_pods_and_objects_and_shows_its_use(kubectl: Kubectl) -> None:
    member = kubectl.on("member2")
    member.until_true(lambda: kubectl.namespace in member("get", "ns"), lambda: member("get", "ns"))
    member("create", "quota", "small", "--hard=pods=2,requests.cpu=1,configmaps=1,count/deployments.apps=2")
    member("create", "configmap", "one")
    member("create", "configmap", "two", code=1)
    assert "exceeded quota: small, requested: configmaps=1, used: configmaps=1, limited: configmaps=1" in (
        member.errors
    )
    member("run", "alone", "--image=nginx", code=1)
    assert (
        'pods "alone" is forbidden: failed quota: small: must specify requests.cpu for: alone'
        in member.errors
    )
    member("create", "deployment", "web", "--image=nginx", "--replicas=3")
    member("set", "resources", "deploy", "web", "--requests=cpu=100m")
    member.until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/3 2 2"], "deploy", "web")
    reason = '{.status.conditions[?(@.type=="ReplicaFailure")].reason}'
    assert member("get", "deploy", "web", "-o", f"jsonpath={reason}") == "FailedCreate"
    assert "exceeded quota: small" in member("describe", "replicasets")
    assert member("get", "quota", "small", "-o", "jsonpath={.status.used.pods}") == "2"
    assert "requests.cpu: 200m/1" in member("get", "quota", "small")
    member("patch", "quota", "small", "-p", '{"spec":{"hard":{"pods":"5"}}}')
    member("rollout", "status", "deploy", "web", "--timeout=60s")
    member("delete", "deploy", "web")
    assert member("get", "quota", "small", "-o", "jsonpath={.status.used.pods}") == "0"
