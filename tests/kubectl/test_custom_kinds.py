"""A custom kind with kubectl: definition, replica interpreter, division of replicas and aggregated status."""

import json
from collections.abc import Iterator
from typing import Any, Final, cast

import pytest

from tests.kubectl.commands import Kubectl

DEFINITION: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.io}
spec:
  group: sea.example.io
  names: {plural: ships, kind: Ship}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.crew.size, statusReplicasPath: .status.replicas}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
INTERPRETER: Final = """
apiVersion: config.reballast.io/v1alpha1
kind: ReplicaInterpreter
metadata: {name: ships}
spec:
  target: {apiVersion: sea.example.io/v1, kind: Ship}
  replicasPath: spec.crew.size
  health: {jsonPath: .phase, values: [Sailing]}
  statusFields:
  - {jsonPath: .miles, aggregate: Sum}
  - {jsonPath: .phase}
"""
POLICY: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: ships}
spec:
  resourceSelectors: [{apiVersion: sea.example.io/v1, kind: Ship}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [member1]}, weight: 2}
        - {targetCluster: {clusterNames: [member2]}, weight: 1}
"""
SHIP: Final = """
apiVersion: sea.example.io/v1
kind: Ship
metadata:
  name: argo
  annotations: {simulation.reballast.io/status: '{"phase": "%s", "miles": 7}'}
spec: {crew: {size: 6, captain: Jason}}
"""
MEMBERS: Final = ("member1", "member2")


DEFINITION_POLICY: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: boats}
spec:
  resourceSelectors:
  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: boats.lake.example.io}
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
"""


def test_propagated_definition_makes_members_serve_its_kind(kubectl: Kubectl) -> None:
    """The objects of the kind are scheduled to these members only, and shown there."""
    renamed = (("sea.example.io", "lake.example.io"), ("ships", "boats"), ("Ship", "Boat"))

    def boats(text: str) -> str:
        for old, new in renamed:
            text = text.replace(old, new)
        return text

    def served(name: str) -> bool:
        enabled = _status(kubectl, "cluster", name)["apiEnablements"]
        kind = {"groupVersion": "lake.example.io/v1", "resources": [{"kind": "Boat", "name": "boats"}]}
        return kind in cast("list[object]", enabled)

    everywhere = boats(POLICY).replace(
        "clusterAffinity: {clusterNames: [member1, member2]}", "clusterAffinity: {}"
    )
    kubectl("apply", "-f", "-", stdin=boats(DEFINITION))
    try:
        kubectl.until_true(lambda: "boats" in kubectl("api-resources", "-o", "name"), lambda: "no boats")
        kubectl("apply", "-f", "-", stdin=everywhere.partition("    replicaScheduling")[0])
        kubectl("apply", "-f", "-", stdin=boats(SHIP) % "Sailing")
        assert "boats" not in kubectl.on("member1")("api-resources", "-o", "name")
        kubectl("apply", "-f", "-", stdin=DEFINITION_POLICY)
        kubectl.until_true(lambda: served("member1") and served("member2"), lambda: "not served")
        assert not served("member3")
        for name in MEMBERS:
            member = kubectl.on(name)
            member("wait", "--for=condition=Established", "crd/boats.lake.example.io", "--timeout=60s")
            kubectl.until_true(
                lambda member=member: "argo" in member("get", "boats", code=None), lambda: "no boat"
            )
        scheduled = kubectl("get", "rb", "argo-boat", "-o", "jsonpath={.spec.clusters[*].name}")
        assert scheduled.split() == list(MEMBERS)
        # Without an interpreter the binding shows the whole status of each member, and the template has none.
        whole = {"phase": "Sailing", "miles": 7}
        kubectl.until_true(lambda: _member_statuses(kubectl) == [whole, whole], lambda: "no statuses")
        patch = '{"status":{"phase":"Sunk","crew":{"saved":[1,2]}}}'
        words = ("--type=merge", "--subresource=status", "-p", patch)
        kubectl.on("member1")("patch", "boat", "argo", *words)
        sunk = {"phase": "Sunk", "miles": 7, "crew": {"saved": [1, 2]}}
        kubectl.until_true(lambda: _member_statuses(kubectl) == [sunk, whole], lambda: "no status")
        assert _status(kubectl, "boat", "argo") == {}
    finally:
        kubectl("delete", "clusterpropagationpolicy", "boats", "--ignore-not-found")
        kubectl("delete", "boat", "argo", "--ignore-not-found")
        kubectl("delete", "crd", "boats.lake.example.io")
    kubectl.until_true(lambda: not served("member1"), lambda: "still served")


def test_custom_kind_in_a_group_below_karmadas_domain_is_writable(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEFINITION.replace("sea.example.io", "sea.example.karmada.io"))
    try:
        kubectl.until_true(
            lambda: "ships.sea.example.karmada.io" in kubectl("api-resources", "-o", "name"),
            lambda: "no ships",
        )
        ship = SHIP.replace("sea.example.io", "sea.example.karmada.io") % "Sailing"
        assert "created" in kubectl("apply", "-f", "-", stdin=ship)
        kubectl("get", "ships.sea.example.karmada.io", "argo")
    finally:
        kubectl("delete", "crd", "ships.sea.example.karmada.io")


@pytest.fixture
def ships(kubectl: Kubectl) -> Iterator[Kubectl]:
    """Enable the kind in two members during the test."""
    kubectl("apply", "-f", "-", stdin=DEFINITION)
    kubectl.until_true(lambda: "ships" in kubectl("api-resources", "-o", "name"), lambda: "no ships")
    served = {name: _status(kubectl, "cluster", name)["apiEnablements"] for name in MEMBERS}
    for name, before in served.items():
        added = {"groupVersion": "sea.example.io/v1", "resources": [{"name": "ships", "kind": "Ship"}]}
        _enable(kubectl, name, [*before, added])
    yield kubectl
    for name, before in served.items():
        _enable(kubectl, name, before)
    kubectl("delete", "replicainterpreters", "ships", "--ignore-not-found", code=None)
    kubectl("delete", "crd", "ships.sea.example.io", code=None)


def _enable(kubectl: Kubectl, cluster: str, enabled: list[object]) -> None:
    words = ("patch", "cluster", cluster, "--subresource=status", "--type=merge", "-p")
    kubectl(*words, json.dumps({"status": {"apiEnablements": enabled}}))


def _status(kubectl: Kubectl, kind: str, name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", kubectl.json(kind, name).get("status", {}))


def _member_statuses(kubectl: Kubectl) -> list[object]:
    items = _status(kubectl, "rb", "argo-boat").get("aggregatedStatus", [])
    return [member.get("status") for member in items]


CLONE_SET: Final = """
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: argo}
spec:
  replicas: 6
  selector: {matchLabels: {app: argo}}
  template:
    metadata: {labels: {app: argo}}
    spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 10m}}}]}
"""


def test_kind_of_another_project_is_divided_and_judged_by_built_in_rules(kubectl: Kubectl) -> None:
    def kruise(text: str) -> str:
        names = (("sea.example.io", "apps.kruise.io"), ("ships", "clonesets"), ("Ship", "CloneSet"))
        for old, new in (
            *names,
            ("name: v1", "name: v1alpha1"),
            ("/v1,", "/v1alpha1,"),
            (".crew.size", ".replicas"),
        ):
            text = text.replace(old, new)
        return text

    def health() -> list[str]:
        items = _status(kubectl, "rb", "argo-cloneset").get("aggregatedStatus", [])
        return [member.get("health") for member in items]

    def bindings() -> str:
        return kubectl("get", "rb", "-o", "yaml")

    kubectl("apply", "-f", "-", stdin=kruise(DEFINITION))
    try:
        kubectl.until_true(lambda: "clonesets" in kubectl("api-resources", "-o", "name"), lambda: "no kind")
        kubectl(
            "apply",
            "-f",
            "-",
            stdin=DEFINITION_POLICY.replace("boats.lake.example.io", "clonesets.apps.kruise.io"),
        )
        kubectl("apply", "-f", "-", stdin=kruise(POLICY))
        kubectl("apply", "-f", "-", stdin=CLONE_SET)
        kubectl.until_true(lambda: health() == ["Healthy"] * 2, bindings)
        binding = cast("dict[str, Any]", kubectl.json("rb", "argo-cloneset"))
        assert [target["replicas"] for target in binding["spec"]["clusters"]] == [4, 2]
        assert binding["spec"]["replicaRequirements"]["resourceRequest"] == {"cpu": "10m"}
        assert kubectl.on("member1")("get", "cloneset", "argo", "-o", "jsonpath={.spec.replicas}") == "4"
        kubectl.until_true(lambda: _status(kubectl, "cloneset", "argo").get("readyReplicas") == 6, bindings)
    finally:
        kubectl("delete", "clusterpropagationpolicy", "boats", "--ignore-not-found")
        kubectl("delete", "cloneset", "argo", "--ignore-not-found")
        kubectl("delete", "crd", "clonesets.apps.kruise.io")


def _crew_by_boat(kubectl: Kubectl) -> dict[str, dict[str, object]]:
    """Return the crew field of the object that each member received."""
    crews: dict[str, dict[str, object]] = {}
    for name in MEMBERS:
        works = cast("dict[str, Any]", kubectl.json("work", "-n", f"karmada-es-{name}"))
        for work in works["items"]:
            (manifest,) = work["spec"]["workload"]["manifests"]
            if manifest["kind"] == "Ship" and manifest["metadata"]["namespace"] == kubectl.namespace:
                crews[name] = manifest["spec"]["crew"]
    return crews


def test_custom_kind_is_divided_and_its_status_is_aggregated(ships: Kubectl) -> None:
    kubectl = ships
    kubectl("apply", "-f", "-", stdin=INTERPRETER)
    kubectl("apply", "-f", "-", stdin=POLICY)
    kubectl("apply", "-f", "-", stdin=SHIP % "Sailing")

    def bindings() -> str:
        return kubectl("get", "rb", "-o", "yaml")

    kubectl.until_true(lambda: len(_crew_by_boat(kubectl)) == len(MEMBERS), bindings)
    assert _crew_by_boat(kubectl) == {
        "member1": {"size": 4, "captain": "Jason"},
        "member2": {"size": 2, "captain": "Jason"},
    }

    def health() -> set[str]:
        items = _status(kubectl, "rb", "argo-ship").get("aggregatedStatus", [])
        return {member.get("health") for member in items}

    kubectl.until_true(lambda: _status(kubectl, "ships", "argo").get("miles") == 14, bindings)
    assert _status(kubectl, "ships", "argo")["phase"] == "Sailing"
    kubectl.until_true(lambda: health() == {"Healthy"}, bindings)
    # The scale subresource writes the interpreter's field, and the members are updated.
    kubectl("scale", "ships", "argo", "--replicas", "3")
    kubectl.until_true(lambda: [crew["size"] for crew in _crew_by_boat(kubectl).values()] == [2, 1], bindings)
    kubectl("apply", "-f", "-", stdin=SHIP % "Sunk")
    kubectl.until_true(lambda: health() == {"Unhealthy"}, bindings)
    kubectl("delete", "ships", "argo")
    kubectl.until_true(lambda: _crew_by_boat(kubectl) == {}, bindings)
