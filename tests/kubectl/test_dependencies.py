"""``propagateDeps`` with kubectl: dependencies of a Deployment follow it, and are removed with it."""

import json
from typing import Final, cast

from events.json_values import at, object_at, objects_at
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import DEPLOYMENT

SETTINGS: Final = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data: {colour: blue}
"""
KEYS: Final = """
apiVersion: v1
kind: Secret
metadata:
  name: keys
stringData: {password: secret}
"""
_IMAGE: Final = "        image: nginx\n"
WITH_SETTINGS: Final = DEPLOYMENT.replace(
    _IMAGE,
    f"""{_IMAGE}        envFrom:
        - configMapRef: {{name: settings}}
""",
)
WEB: Final = WITH_SETTINGS.replace(
    _IMAGE,
    f"""{_IMAGE}        env:
        - name: PASSWORD
          valueFrom:
            secretKeyRef: {{name: keys, key: password}}
""",
)
POLICY: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: web
spec:
  propagateDeps: true
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
    name: web
  placement:
    clusterAffinity:
      clusterNames: [CLUSTERS]
"""
OBJECTS: Final = ("configmap/settings", "secret/keys")


def placed_on(*clusters: str) -> str:
    return POLICY.replace("CLUSTERS", ", ".join(clusters))


def run_in(kubectl: Kubectl, thing: str) -> list[str]:
    """Return the members that have an object."""
    members = ("member1", "member2", "member3")
    return [
        member
        for member in members
        if kubectl.on(member)("get", thing, "-o", "name", "--ignore-not-found", code=None)
    ]


def until_in(kubectl: Kubectl, members: list[str], *things: str) -> None:
    """Wait until exactly these members have the objects."""

    def placements() -> dict[str, list[str]]:
        return {thing: run_in(kubectl, thing) for thing in things}

    kubectl.until_true(lambda: placements() == dict.fromkeys(things, members), lambda: str(placements()))


def required_by(kubectl: Kubectl, binding: str) -> list[tuple[str, list[str]]]:
    spec = cast("dict[str, list[dict[str, object]]]", kubectl.json("rb", binding)["spec"])
    return [
        (
            str(snapshot["name"]),
            [target["name"] for target in cast("list[dict[str, str]]", snapshot["clusters"])],
        )
        for snapshot in spec.get("requiredBy", [])
    ]


def test_dependencies_follow_their_workload(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{SETTINGS}---{WEB}---{placed_on('member1', 'member2')}")
    until_in(kubectl, ["member1", "member2"], "deploy/web", "configmap/settings")
    kubectl("apply", "-f", "-", stdin=KEYS)  # the workload waits for this secret
    until_in(kubectl, ["member1", "member2"], "secret/keys")

    web = kubectl.json("rb", "web-deployment")
    assert cast("dict[str, object]", web["spec"])["propagateDeps"] is True
    marks = cast("dict[str, dict[str, str]]", web["metadata"])["annotations"]
    finalizers = cast("dict[str, list[str]]", web["metadata"])["finalizers"]
    assert finalizers == ["karmada.io/binding-controller", "karmada.io/binding-dependencies-distributor"]
    sent = json.loads(marks["resourcebinding.karmada.io/dependencies"])
    assert [(dependency["kind"], dependency["name"]) for dependency in sent] == [
        ("ConfigMap", "settings"),
        ("Secret", "keys"),
    ]
    assert required_by(kubectl, "settings-configmap") == [("web-deployment", ["member1", "member2"])]
    settings = kubectl.json("rb", "settings-configmap")
    (needed,) = objects_at(settings, "spec", "requiredBy")
    assert needed["clusters"] == at(web, "spec", "clusters")
    (label,) = (name for name in object_at(settings, "metadata", "labels") if "depended-by-" in name)
    bindings = kubectl("get", "rb", "-l", f"{label}={at(web, 'metadata', 'uid')}", "-o", "name").split()
    assert bindings == [
        f"resourcebinding.work.karmada.io/{name}" for name in ("keys-secret", "settings-configmap")
    ]
    fully = (
        "rb",
        "settings-configmap",
        "-o",
        'jsonpath={.status.conditions[?(@.type=="FullyApplied")].status}',
    )
    kubectl.until_true(lambda: kubectl("get", *fully) == "True", lambda: kubectl("describe", "rb"))

    described = kubectl("describe", "deploy", "web")
    assert "GetDependenciesSucceed" in described
    assert f"Kind:Secret Namespace:{kubectl.namespace} Name:keys" in described
    assert "SyncScheduleResultToDependenciesSucceed" in kubectl("describe", "rb", "web-deployment")

    kubectl("patch", "configmap", "settings", "--type=merge", "-p", '{"data":{"colour":"green"}}')
    colour = ("get", "configmap", "settings", "-o", "jsonpath={.data.colour}")
    member2 = kubectl.on("member2")
    kubectl.until_true(lambda: member2(*colour) == "green", lambda: member2(*colour))

    kubectl("apply", "-f", "-", stdin=placed_on("member3"))
    until_in(kubectl, ["member3"], "deploy/web", *OBJECTS)
    assert required_by(kubectl, "keys-secret") == [("web-deployment", ["member3"])]


def test_policies_that_disagree_about_a_shared_dependency_are_merged_and_reported(kubectl: Kubectl) -> None:
    web, api = WITH_SETTINGS, WITH_SETTINGS.replace("name: web", "name: api", 1)
    keeps = f"{placed_on('member1')}  conflictResolution: Overwrite\n  preserveResourcesOnDeletion: true\n"
    plain = placed_on("member1").replace("name: web", "name: api")
    kubectl("apply", "-f", "-", stdin=f"{SETTINGS}---{web}---{api}---{keeps}---{plain}")
    until_in(kubectl, ["member1"], "configmap/settings", "deploy/web", "deploy/api")

    def conflict_settings() -> tuple[object, object]:
        spec = cast("dict[str, object]", kubectl.json("rb", "settings-configmap")["spec"])
        return spec["conflictResolution"], spec["preserveResourcesOnDeletion"]

    kubectl.until_true(lambda: conflict_settings() == ("Overwrite", True), lambda: str(conflict_settings()))
    text = (
        "Dependency policy conflict detected: ConflictResolution conflicted (Overwrite vs Abort);"
        " PreserveResourcesOnDeletion conflicted (true vs false)."
    )
    described = " ".join(kubectl("describe", "rb", "settings-configmap").split())
    assert "Warning DependencyPolicyConflict" in described
    assert f"dependencies-distributor {text}" in described

    kubectl("apply", "-f", "-", stdin=placed_on("member1") + "  conflictResolution: Abort\n")
    kubectl("patch", "pp", "web", "--type=merge", "-p", '{"spec":{"preserveResourcesOnDeletion":false}}')
    kubectl.until_true(lambda: conflict_settings() == ("Abort", False), lambda: str(conflict_settings()))

    # An explicit false differs from an absent field.
    def keeping(name: str) -> object:
        return cast("dict[str, object]", kubectl.json("rb", name)["spec"]).get("preserveResourcesOnDeletion")

    assert [keeping("web-deployment"), keeping("api-deployment")] == [False, None]


def test_dependencies_are_removed_with_their_last_dependent(kubectl: Kubectl) -> None:
    api = WEB.replace("name: web", "name: api", 1)
    policies = f"{placed_on('member1')}---{placed_on('member2').replace('name: web', 'name: api')}"
    kubectl("apply", "-f", "-", stdin=f"{SETTINGS}---{KEYS}---{WEB}---{api}---{policies}")
    until_in(kubectl, ["member1", "member2"], *OBJECTS)
    kubectl("apply", "-f", "-", stdin=WITH_SETTINGS)
    until_in(kubectl, ["member2"], "secret/keys")
    assert run_in(kubectl, "configmap/settings") == ["member1", "member2"]
    kubectl("delete", "deploy", "api")
    until_in(kubectl, [], "secret/keys")
    until_in(kubectl, ["member1"], "configmap/settings")
    assert kubectl("get", "rb", "keys-secret", "-o", "name", "--ignore-not-found") == ""
    assert kubectl("get", "secret", "keys", "-o", "name") == "secret/keys\n"
    kubectl("delete", "deploy", "web")
    until_in(kubectl, [], *OBJECTS)
