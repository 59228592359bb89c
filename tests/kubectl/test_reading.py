"""get, describe, explain and api-resources, as kubectl prints them."""

import json
import time

from engine.domain import marks
from events.json_values import object_at
from events.kube_objects import KubeObject
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH

READY = ["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"]


def test_propagated_deployment_its_binding_and_its_works_are_printed(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=BOTH).splitlines() == [
        "deployment.apps/web created",
        "propagationpolicy.policy.karmada.io/web created",
    ]
    kubectl.until(READY, "deploy")
    assert kubectl.table("deploy", "web", "-o", "wide") == [
        "NAME READY UP-TO-DATE AVAILABLE CONTAINERS IMAGES SELECTOR",
        "web 3/3 3 3 nginx,sidecar nginx,busybox app=web",
    ]
    assert kubectl.table("rb") == ["NAME SCHEDULED FULLYAPPLIED", "web-deployment True True"]
    assert kubectl.table("pp") == ["NAME CONFLICT-RESOLUTION PRIORITY", "web Abort 0"]
    chosen = kubectl("get", "rb", "web-deployment", "-o", "jsonpath={.spec.clusters}")
    assert json.loads(chosen) == [{"name": "member1", "replicas": 2}, {"name": "member2", "replicas": 1}]
    assert kubectl("get", "deploy", "-o", "name") == "deployment.apps/web\n"
    works = kubectl("get", "works", "-A", "-o", "custom-columns=NS:.metadata.namespace,N:.metadata.name")
    name = marks.work_name("Deployment", kubectl.namespace, "web")
    assert {line.split()[0] for line in works.splitlines() if line.endswith(f" {name}")} == {
        "karmada-es-member1",
        "karmada-es-member2",
    }


def test_get_filters_by_label_and_field_selectors(kubectl: Kubectl) -> None:
    for name, colour in (("one", "red"), ("two", "blue"), ("three", "red")):
        kubectl("create", "configmap", name, "--from-literal", "a=b")
        kubectl("label", "configmap", name, f"colour={colour}")
    assert kubectl("get", "cm", "-l", "colour in (red)", "-o", "name") == "configmap/one\nconfigmap/three\n"
    others = kubectl("get", "cm", "-l", "colour,colour!=red", "-o", "name")
    assert others == "configmap/two\n"
    chosen = kubectl("get", "cm", "--field-selector", "metadata.name=two", "-o", "name")
    assert chosen == "configmap/two\n"
    paged = kubectl("get", "cm", "--chunk-size", "1", "-o", "name")
    names = ["kube-root-ca.crt", "one", "three", "two"]
    assert paged.splitlines() == [f"configmap/{name}" for name in names]


def test_describe_prints_scheduling_events(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until(READY, "deploy")
    described = kubectl("describe", "deploy", "web")
    lines = [" ".join(line.split()) for line in described.splitlines()]
    assert "Replicas: 3 desired | 3 updated | 3 total | 3 available | 0 unavailable" in lines
    assert "RollingUpdateStrategy: 25% max unavailable, 25% max surge" in lines
    result = "Binding has been scheduled successfully. Result: {member1:2, member2:1}"
    for text in (described, kubectl("describe", "rb", "web-deployment")):
        line = next(line for line in text.splitlines() if "ScheduleBindingSucceed" in line)
        assert result in line
        assert "default-scheduler" in line
    events = kubectl("get", "events", "--field-selector", "involvedObject.kind=ResourceBinding")
    assert "resourcebinding/web-deployment" in events


def test_events_of_an_earlier_object_of_this_name_are_not_shown(kubectl: Kubectl) -> None:
    def rows() -> list[str]:
        listed = kubectl("get", "events", "--no-headers", "--field-selector", "involvedObject.name=web")
        return [line for line in listed.splitlines() if "ScheduleBindingSucceed" in line]

    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until(READY, "deploy")
    assert len(rows()) == 1
    kubectl("delete", "deploy", "web")
    kubectl.until_true(lambda: kubectl.table("rb") == [], lambda: kubectl("get", "rb"))
    kubectl("delete", "pp", "web")
    time.sleep(1)
    kubectl("create", "deployment", "web", "--image=nginx")
    assert rows() == []


def test_binding_has_the_fields_of_a_karmada_binding(kubectl: Kubectl) -> None:
    placement = """
    clusterAffinities:
    - {affinityName: first, clusterNames: [member1]}
    - {affinityName: second, clusterNames: [member2]}
"""
    start, _, rest = BOTH.partition("    clusterAffinity:\n")
    named = start + placement.lstrip("\n") + rest.partition("\n")[2]
    limited = named.replace("image: nginx", "image: nginx\n        resources: {requests: {cpu: 10m}}")
    kubectl("apply", "-f", "-", stdin=limited)
    kubectl.until(READY, "deploy")
    binding = kubectl.json("rb", "web-deployment")
    assert object_at(binding, "status")["schedulerObservingAffinityName"] == "first"
    assert object_at(binding, "spec")["schedulerName"] == "default-scheduler"
    assert object_at(binding, "spec", "replicaRequirements")["namespace"] == kubectl.namespace
    applied = KubeObject(binding).condition("FullyApplied")
    assert applied["message"] == "All works have been successfully applied"


def test_get_of_a_missing_object_reports_not_found(kubectl: Kubectl) -> None:
    kubectl("get", "deploy", "nobody", code=1)
    assert kubectl.errors == 'Error from server (NotFound): deployments.apps "nobody" not found\n'
    kubectl("get", "deploy")
    assert kubectl.errors == f"No resources found in {kubectl.namespace} namespace.\n"
    assert kubectl("get", "overridepolicies", "-A") == ""


def test_api_resources_and_explain_list_kinds_and_fields(kubectl: Kubectl) -> None:
    listed = [line.split() for line in kubectl("api-resources", "--no-headers").splitlines()]
    assert ["workloadrebalancers", "apps.karmada.io/v1alpha1", "false", "WorkloadRebalancer"] in listed
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in listed
    assert "replicaScheduling" in kubectl("explain", "propagationpolicy.spec.placement")
    assert "containers" in kubectl("explain", "deployment.spec.template.spec")


def test_clusters_and_builtin_namespaces_are_listed(kubectl: Kubectl) -> None:
    shown = kubectl.table("clusters", "-o", "wide")
    assert shown[0] == "NAME VERSION MODE READY ZONES REGION PROVIDER API-ENDPOINT PROXY-URL"
    assert [line.split()[0] for line in shown[1:]] == ["member1", "member2", "member3"]
    names = set(kubectl("get", "ns", "-o", "name").split())
    assert {"namespace/default", "namespace/karmada-es-member1", "namespace/kube-system"} <= names
    assert kubectl("auth", "can-i", "create", "deployments") == "yes\n"
    assert "reballast-admin" in kubectl("auth", "whoami")


def test_custom_kind_is_served_once_it_is_defined(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEFINITION)
    try:
        kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=60s")
        kubectl("apply", "-f", "-", stdin=WIDGET)
        assert kubectl.table("widgets") == ["NAME SIZE", "one 7"]
        assert kubectl("get", "wdg", "one", "-o", "jsonpath={.spec.size}") == "7"
    finally:
        kubectl("delete", "crd", "widgets.example.com")
    kubectl("get", "widgets", code=1)


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wdg]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
"""
WIDGET = """
apiVersion: example.com/v1
kind: Widget
metadata: {name: one}
spec: {size: 7}
"""
