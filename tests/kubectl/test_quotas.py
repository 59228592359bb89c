"""ResourceQuotas in members, as kubectl meets them."""

import json

from events.json_values import Json
from tests.builders.manifests import deployment, manifest, on, policy
from tests.kubectl.commands import Kubectl

REASONS = "jsonpath={.items[*].reason}"


def test_federated_quota_limits_the_clusters_that_it_assigns_to_and_shows_their_use(kubectl: Kubectl) -> None:
    assigned = [
        {"clusterName": "member1", "hard": {"pods": "1"}},
        {"clusterName": "member2", "hard": {"pods": "2"}},
    ]
    spec: Json = {"overall": {"pods": "9"}, "staticAssignments": assigned}
    quota = manifest("policy.karmada.io/v1alpha1", "FederatedResourceQuota", "all", spec=spec)
    kubectl("apply", "-f", "-", stdin=json.dumps(quota))
    assert "Warning" not in kubectl.errors

    def status() -> str:
        path = "{.status.aggregatedStatus[*].hard.pods}; {.status.overallUsed.pods} of {.status.overall.pods}"
        return kubectl("get", "federatedresourcequota", "all", "-o", f"jsonpath={path}")

    kubectl.until_true(lambda: status() == "1 2; 0 of 9", status)
    member = kubectl.on("member2")
    assert member("get", "quota", "all", "-o", "jsonpath={.spec.hard.pods}") == "2"
    member("create", "deployment", "web", "--image=nginx", "--replicas=3")
    kubectl.until_true(lambda: status() == "1 2; 2 of 9", status)
    label = f"federatedresourcequota.karmada.io/namespace={kubectl.namespace}"
    assert kubectl("get", "work", "-n", "karmada-es-member2", "-l", label).count("ResourceQuota") == 1
    reasons = {"SyncWorkSucceed", "AggregateStatusSucceed", "CollectOverallStatusSucceed"}
    query = ("get", "events", "--field-selector=involvedObject.name=all", "-o", REASONS)
    kubectl.until_true(lambda: set(kubectl(*query).split()) == reasons, lambda: kubectl(*query))
    described = kubectl("describe", "federatedresourcequota", "all")
    assert all(reason in described for reason in reasons)
    kubectl("delete", "federatedresourcequota", "all")
    member.until_true(lambda: member("get", "quota") == "", lambda: member("get", "quota"))
    member("delete", "deployment", "web")


def test_overall_quota_refuses_more_replicas_and_greater_requests_until_it_grows(kubectl: Kubectl) -> None:
    quota = manifest(
        "policy.karmada.io/v1alpha1", "FederatedResourceQuota", "all", spec={"overall": {"cpu": "10m"}}
    )
    web_policy = policy("web", on("member1"))
    kubectl(
        "apply",
        "-f",
        "-",
        stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [quota, web_policy]}),
    )
    web = deployment("web", requests={"cpu": "10m"})
    kubectl("apply", "-f", "-", stdin=json.dumps(web))

    def used() -> str:
        path = "{.status.overallUsed.cpu} of {.status.overall.cpu}"
        return kubectl("get", "federatedresourcequota", "all", "-o", f"jsonpath={path}")

    def scheduled() -> str:
        path = '{.spec.clusters[*].replicas} {.status.conditions[?(@.type=="Scheduled")].reason}'
        return kubectl("get", "rb", "web-deployment", "-o", f"jsonpath={path}")

    def described() -> str:
        return kubectl("describe", "deployment", "web")

    kubectl.until_true(lambda: used() == "10m of 10m", used)
    kubectl("scale", "deployment", "web", "--replicas=2")
    kubectl.until_true(lambda: scheduled() == "1 QuotaExceeded", scheduled)
    denied = 'admission webhook "resourcebinding.karmada.io" denied the request'
    kubectl.until_true(
        lambda: f"{denied}: FederatedResourceQuota({kubectl.namespace}/all) exceeded" in described(),
        described,
    )
    kubectl("set", "resources", "deployment", "web", "--requests=cpu=20m")
    kubectl.until_true(lambda: "ApplyPolicyFailed" in described(), described)
    kubectl(
        "patch", "federatedresourcequota", "all", "--type=merge", "-p", '{"spec":{"overall":{"cpu":"1"}}}'
    )
    kubectl.until_true(lambda: (scheduled(), used()) == ("2 Success", "40m of 1"), scheduled)


def test_workload_that_exceeds_the_quota_of_its_cluster_waits(kubectl: Kubectl) -> None:
    member = kubectl.on("member1")
    member.until_true(lambda: kubectl.namespace in member("get", "ns"), lambda: member("get", "ns"))
    member("create", "quota", "few", "--hard=pods=2")
    division = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    spec: Json = {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
        "placement": {"clusterAffinity": {"clusterNames": ["member1"]}, "replicaScheduling": division},
    }
    few = manifest("policy.karmada.io/v1alpha1", "PropagationPolicy", "web", spec=spec)
    kubectl("apply", "-f", "-", stdin=json.dumps(few))
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
    path = '{.status.conditions[?(@.type=="Scheduled")].reason}'

    def reason() -> str:
        return kubectl("get", "rb", "web-deployment", "-o", f"jsonpath={path}", code=None)

    kubectl.until_true(lambda: reason() == "Unschedulable", reason)
    assert member.table("deploy") == []
    member("patch", "quota", "few", "-p", '{"spec":{"hard":{"pods":"3"}}}')
    member.until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy")


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
