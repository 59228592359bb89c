"""Interpreters of kinds of other projects, which are in use without any ReplicaInterpreter."""

from importlib import resources
from typing import Final

import msgspec
import pytest
from msgspec import structs

from engine.agent import statuses
from engine.objects import interpreters
from engine.works import manifests as rendering
from events import clusters, decisions, health, policies, shapes, works
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders import manifests
from tests.builders.inputs import joined, key, policy, template
from tests.builders.manifests import CONFIG_MAP, EVEN, Kind, on, raw, selector
from tests.deciders.story import Story

CLONE_SET: Final = ("apps.kruise.io/v1alpha1", "CloneSet")
WEB: Final = key("web", CLONE_SET)
MEMBERS: Final = ("member1", "member2")
WRITTEN: Final = msgspec.yaml.decode(
    resources.files("engine.objects").joinpath("built_in_interpreters.yaml").read_bytes(), type=list[Json]
)
POD: Final[Json] = {
    "containers": [
        {
            "name": "main",
            "envFrom": [{"configMapRef": {"name": "settings"}}],
            "resources": {"requests": {"cpu": "250m"}},
        }
    ]
}


def declared(spec: Json, name: str = "own") -> policies.InterpreterApplied:
    api_version, kind = "config.reballast.io/v1alpha1", "ReplicaInterpreter"
    return policies.InterpreterApplied(manifest=raw(manifests.manifest(api_version, kind, name, spec=spec)))


def serving(name: str, kind: Kind) -> clusters.ClusterJoined:
    """A cluster that joins and serves a kind beside the usual ones."""
    cluster = joined(name)
    served = clusters.ApiKind(group_version=kind[0], kinds=(kind[1],))
    return structs.replace(cluster, apis=(*cluster.apis, served))


def clone_set(replicas: int) -> Json:
    return {"spec": {"replicas": replicas, "template": {"spec": POD}}}


async def report(
    story: Story, cluster: str, object_key: str, rendered: Json, status: Json
) -> statuses.ObjectState:
    """Report an object as an agent does whose controllers wrote this status."""
    work = (await story.running(object_key))[cluster]
    reading = story.binding(object_key).works[cluster].reading
    live = KubeObject({**rendered, "metadata": {"generation": 1}, "status": status})
    state = statuses.object_state(live, reading)
    await story.submit(
        health.WorkloadReported(
            cluster=cluster,
            key=object_key,
            term=work.term,
            step=work.step,
            replicas=state.replicas,
            updated=state.updated,
            ready=state.ready,
            available=state.available,
            healthy=state.healthy,
            values=state.values,
            status=state.status,
        )
    )
    return state


async def test_clone_set_is_divided_rendered_judged_and_aggregated_and_its_config_maps_follow(
    story: Story,
) -> None:
    await story.submit(
        *(serving(name, CLONE_SET) for name in MEMBERS),
        template("settings", CONFIG_MAP, fields={"data": {}}),
        policy("p", on(*MEMBERS, scheduling=EVEN), selector("web", CLONE_SET), propagateDeps=True),
        template("web", CLONE_SET, fields=clone_set(4)),
    )
    assert await story.replicas(WEB) == dict.fromkeys(MEMBERS, 2)
    assert (await story.recorded(decisions.BindingDeclared, WEB))[-1].requests == {"cpu": "250m"}
    assert set(await story.running(key("settings", CONFIG_MAP))) == set(MEMBERS)
    work = (await story.recorded(works.WorkApplied, WEB))[-1]
    rendered = await rendering.Renderer(story.log).render(rendering.input_of(work))
    manifest = msgspec.json.decode(rendered.manifest, type=Json)
    assert manifest["spec"] == clone_set(2)["spec"]
    counts: Json = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    ready: Json = {**counts, "observedGeneration": 1, "updatedReadyReplicas": 2, "updateRevision": "web-1"}
    assert not (await report(story, "member1", WEB, manifest, {**ready, "availableReplicas": 1})).healthy
    for name in MEMBERS:
        assert (await report(story, name, WEB, manifest, {**ready, "updateRevision": f"web-{name}"})).healthy
    status = (await story.recorded(decisions.StatusAggregated, WEB))[-1]
    assert [(member.health, member.ready) for member in status.members] == [("Healthy", 2)] * 2
    assert status.fields == {".updatedReadyReplicas": 4, ".updateRevision": "web-member2"}
    await story.restart()


async def test_interpreter_of_a_user_replaces_the_built_in_one_until_it_is_deleted(story: Story) -> None:
    await story.submit(
        *(serving(name, CLONE_SET) for name in MEMBERS),
        policy("p", on(*MEMBERS, scheduling=EVEN), selector("web", CLONE_SET)),
        template("web", CLONE_SET, fields=clone_set(4)),
    )
    built_in = story.binding(WEB).works["member1"].reading
    assert built_in is not None
    await story.submit(declared({"target": selector(kind=CLONE_SET)}))
    assert await story.replicas(WEB) == dict.fromkeys(MEMBERS)
    assert story.binding(WEB).works["member1"].reading is None
    await story.restart()
    await story.submit(policies.InterpreterDeleted(name="own"))
    assert await story.replicas(WEB) == dict.fromkeys(MEMBERS, 2)
    assert story.binding(WEB).works["member1"].reading == built_in


@pytest.mark.parametrize("spec", WRITTEN, ids=lambda spec: f"{spec['target']['kind']}")
async def test_built_in_interpreter_is_valid_as_that_of_a_user(story: Story, spec: Json) -> None:
    await story.submit(declared(spec))
    (target,) = (interpreter.spec for interpreter in story.worker.facts.interpreters)
    assert target == msgspec.convert(spec, interpreters.Interpretation)
    assert interpreters.built_in()[target.target.api_version, target.target.kind] == target
    assert set(msgspec.to_builtins(target)) >= set(spec), "a field is misspelled"


def test_each_kind_has_one_built_in_interpreter() -> None:
    assert len(interpreters.built_in()) == len(WRITTEN)


REFUSED: Final[Json] = {
    "ready": False,
    "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded"}],
}
READY: Final[Json] = {"type": "Ready", "status": "True"}


def conditions(*items: Json) -> Json:
    return {"conditions": list(items)}


def reason(text: str, status: str = "True") -> Json:
    return conditions({**READY, "status": status, "reason": text})


def because(kind: str, status: str = "True") -> Json:
    return {"type": kind, "status": status}


TRAINING: Final[list[tuple[Json, bool]]] = [
    (conditions(because("Created"), because("Failed", "False")), True),
    (conditions(because("Created"), because("Failed")), False),
    ({"startTime": "now"}, False),
]
ADMITTING: Final[list[tuple[Json, bool]]] = [
    ({"ready": True}, True),
    (REFUSED, False),
    (reason("Succeeded"), True),
    (reason("Failed"), False),
]
NO_CONDITION: Final[Json] = {"conditions": [], "startTime": "now"}
SOURCES: Final = ("Bucket", "HelmRepository", "OCIRepository")
HEALTH: Final[list[tuple[str, Json, bool]]] = [
    ("apps.kruise.io/v1alpha1 DaemonSet", {"observedGeneration": 0}, False),
    (
        "apps.kruise.io/v1alpha1 DaemonSet",
        {"observedGeneration": 1, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2},
        False,
    ),
    (
        "apps.kruise.io/v1alpha1 DaemonSet",
        {
            "observedGeneration": 1,
            "desiredNumberScheduled": 2,
            "updatedNumberScheduled": 2,
            "numberAvailable": 2,
        },
        True,
    ),
    (
        "apps.kruise.io/v1beta1 StatefulSet",
        {"observedGeneration": 1, "updatedReplicas": 1, "availableReplicas": 2},
        False,
    ),
    (
        "apps.kruise.io/v1beta1 StatefulSet",
        {"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2},
        True,
    ),
    (
        "apps.kruise.io/v1alpha1 UnitedDeployment",
        {"observedGeneration": 1, "updatedReplicas": 2, "readyReplicas": 2},
        True,
    ),
    (
        "apps.kruise.io/v1alpha1 UnitedDeployment",
        {"observedGeneration": 1, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 1},
        False,
    ),
    ("apps.kruise.io/v1alpha1 BroadcastJob", {"desired": 2, "active": 0, "succeeded": 2, "failed": 0}, True),
    ("apps.kruise.io/v1alpha1 BroadcastJob", {"desired": 2, "active": 1, "succeeded": 0, "failed": 0}, True),
    ("apps.kruise.io/v1alpha1 BroadcastJob", {"desired": 2, "active": 1, "succeeded": 0, "failed": 1}, False),
    ("apps.kruise.io/v1alpha1 BroadcastJob", {"desired": 2, "active": 0, "succeeded": 0, "failed": 0}, False),
    ("apps.kruise.io/v1alpha1 SidecarSet", {"matchedPods": 0, "updatedPods": 0}, True),
    ("apps.kruise.io/v1alpha1 SidecarSet", {"matchedPods": 3, "updatedPods": 2}, False),
    ("apps.kruise.io/v1alpha1 AdvancedCronJob", {"type": "Job"}, True),
    ("argoproj.io/v1alpha1 Workflow", {"phase": "Running"}, True),
    ("argoproj.io/v1alpha1 Workflow", {"phase": ""}, False),
    ("argoproj.io/v1alpha1 Workflow", {"phase": "Error"}, False),
    ("flink.apache.org/v1beta1 FlinkDeployment", {"jobStatus": {"state": "RUNNING"}}, True),
    ("flink.apache.org/v1beta1 FlinkDeployment", {"jobStatus": {"state": "CREATED"}}, False),
    (
        "flink.apache.org/v1beta1 FlinkDeployment",
        {"jobManagerDeploymentStatus": "READY", "lifecycleState": "STABLE"},
        True,
    ),
    ("kustomize.toolkit.fluxcd.io/v1 Kustomization", reason("ReconciliationSucceeded"), True),
    ("kustomize.toolkit.fluxcd.io/v1 Kustomization", reason("Progressing", "Unknown"), False),
    ("helm.toolkit.fluxcd.io/v2beta1 HelmRelease", reason("ReconciliationSucceeded"), True),
    ("helm.toolkit.fluxcd.io/v2beta1 HelmRelease", reason("InstallFailed", "False"), False),
    ("source.toolkit.fluxcd.io/v1 GitRepository", reason("Succeeded"), True),
    ("source.toolkit.fluxcd.io/v1 GitRepository", reason("GitOperationFailed", "False"), False),
    *((f"source.toolkit.fluxcd.io/v1beta2 {kind}", reason("Succeeded"), True) for kind in SOURCES),
    *((f"source.toolkit.fluxcd.io/v1beta2 {kind}", reason("Succeeded", "False"), False) for kind in SOURCES),
    ("source.toolkit.fluxcd.io/v1beta2 HelmChart", reason("ChartPullSucceeded"), True),
    ("source.toolkit.fluxcd.io/v1beta2 HelmChart", conditions(), False),
    ("kubeflow.org/v1 Notebook", {"containerState": {"running": {"startedAt": "now"}}}, True),
    ("kubeflow.org/v1 Notebook", {"containerState": {"waiting": {"reason": "ContainerCreating"}}}, True),
    ("kubeflow.org/v1 Notebook", {"containerState": {"waiting": {"reason": "ImagePullBackOff"}}}, False),
    (
        "kubeflow.org/v1 Notebook",
        {"containerState": {"terminated": {"reason": "Completed", "exitCode": 0}}},
        True,
    ),
    (
        "kubeflow.org/v1 Notebook",
        {"containerState": {"terminated": {"reason": "Error", "exitCode": 0}}},
        False,
    ),
    ("kubeflow.org/v1 Notebook", {"containerState": {"terminated": {"exitCode": 1}}}, False),
    *(
        (f"kubeflow.org/{kind}", status, is_healthy)
        for kind in ("v1 PyTorchJob", "v1 TFJob", "v2beta1 MPIJob")
        for status, is_healthy in TRAINING
    ),
    ("kubeflow.org/v2beta1 MPIJob", NO_CONDITION, False),
    ("kubeflow.org/v1 TFJob", NO_CONDITION, True),
    *(
        (f"kyverno.io/v1 {kind}", status, is_healthy)
        for kind in ("ClusterPolicy", "Policy")
        for status, is_healthy in ADMITTING
    ),
    ("ray.io/v1 RayCluster", conditions(because("HeadPodReady"), because("RayClusterProvisioned")), True),
    ("ray.io/v1 RayCluster", conditions(because("RayClusterProvisioned")), False),
    (
        "ray.io/v1 RayCluster",
        conditions(
            because("HeadPodReady"), because("RayClusterProvisioned"), because("RayClusterReplicaFailure")
        ),
        False,
    ),
    ("ray.io/v1 RayJob", {"jobDeploymentStatus": "Running"}, True),
    ("ray.io/v1 RayJob", {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}, True),
    ("ray.io/v1 RayJob", {"jobDeploymentStatus": "Complete", "jobStatus": "FAILED"}, False),
    ("ray.io/v1 RayJob", {"jobDeploymentStatus": "Initializing"}, False),
    ("ray.io/v1 RayService", conditions(READY), True),
    ("ray.io/v1 RayService", conditions(because("Ready", "False")), False),
    ("sparkoperator.k8s.io/v1beta2 SparkApplication", {"applicationState": {"state": "RUNNING"}}, True),
    ("sparkoperator.k8s.io/v1beta2 SparkApplication", {"applicationState": {"state": "FAILED"}}, False),
    ("sparkoperator.k8s.io/v1beta2 SparkApplication", {"submissionAttempts": 1}, False),
    ("batch.volcano.sh/v1alpha1 Job", {"state": {"phase": "Running"}}, True),
    ("batch.volcano.sh/v1alpha1 Job", {"state": {"phase": "Failed"}}, False),
]


@pytest.mark.parametrize(("kind", "status", "healthy"), HEALTH)
async def test_health_follows_the_rules_of_karmada(
    story: Story, kind: str, status: Json, *, healthy: bool
) -> None:
    api_version, _, name = kind.partition(" ")
    interpreter = story.worker.facts.interpreter(
        shapes.WorkloadRef(api_version=api_version, kind=name, name="x", namespace="default")
    )
    assert interpreter is not None
    value: Json = {"metadata": {"generation": 1}, "spec": {"replicas": 2}, "status": status}
    live = KubeObject({"apiVersion": api_version, "kind": name, **value})
    assert statuses.object_state(live, interpreter.reading).healthy is healthy
    nothing = KubeObject({**live.document, "status": {}})
    assert statuses.object_state(nothing, interpreter.reading).healthy is (name == "AdvancedCronJob")


def test_each_kind_with_a_health_rule_is_judged_above() -> None:
    judged = {kind for kind, _, _ in HEALTH} | {"apps.kruise.io/v1alpha1 CloneSet"}
    assert judged == {" ".join(kind) for kind in interpreters.built_in()}


CREDENTIALS: Final[Json] = {"secretRef": {"name": "s"}, "serviceAccountName": "a", "suspend": False}
IN_TEMPLATE: Final[Json] = {"template": {"spec": POD}}
SIZES: Final[list[tuple[Kind, Json, int | None, set[str]]]] = [
    (("apps.kruise.io/v1alpha1", "BroadcastJob"), IN_TEMPLATE, 1, {"settings"}),
    (("apps.kruise.io/v1alpha1", "BroadcastJob"), {**IN_TEMPLATE, "parallelism": "10%"}, None, {"settings"}),
    (("apps.kruise.io/v1alpha1", "DaemonSet"), IN_TEMPLATE, None, {"settings"}),
    (
        ("apps.kruise.io/v1alpha1", "AdvancedCronJob"),
        {"template": {"jobTemplate": {"spec": IN_TEMPLATE}}},
        None,
        {"settings"},
    ),
    (
        ("apps.kruise.io/v1alpha1", "UnitedDeployment"),
        {"replicas": 3, "template": {"cloneSetTemplate": {"metadata": {}, "spec": IN_TEMPLATE}}},
        3,
        {"settings"},
    ),
    (("apps.kruise.io/v1beta1", "StatefulSet"), {**IN_TEMPLATE, "replicas": 3}, 3, {"settings"}),
    (
        ("argoproj.io/v1alpha1", "Workflow"),
        {"serviceAccountName": "a", "executor": {"serviceAccountName": "b"}},
        1,
        {"a", "b"},
    ),
    (
        ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
        {**CREDENTIALS, "decryption": {"secretRef": {"name": "d"}}},
        None,
        {"a", "d"},
    ),
    (
        ("helm.toolkit.fluxcd.io/v2beta1", "HelmRelease"),
        {"valuesFrom": [{"kind": "Secret", "name": "v"}, {"kind": "ConfigMap", "name": "w"}]},
        None,
        {"v", "w"},
    ),
    (("source.toolkit.fluxcd.io/v1", "GitRepository"), CREDENTIALS, None, {"s"}),
    (("source.toolkit.fluxcd.io/v1beta2", "OCIRepository"), CREDENTIALS, None, {"s", "a"}),
    (("kubeflow.org/v1", "Notebook"), IN_TEMPLATE, 1, {"settings"}),
    (("kubeflow.org/v1", "TFJob"), {"tfReplicaSpecs": {"PS": IN_TEMPLATE}}, None, {"settings"}),
    (("kubeflow.org/v1", "PyTorchJob"), {"pytorchReplicaSpecs": {"Master": IN_TEMPLATE}}, None, {"settings"}),
    (
        ("ray.io/v1", "RayJob"),
        {"rayClusterSpec": {"workerGroupSpecs": [IN_TEMPLATE]}},
        None,
        {"settings"},
    ),
    (
        ("ray.io/v1", "RayService"),
        {"rayClusterConfig": {"headGroupSpec": IN_TEMPLATE}},
        None,
        {"settings"},
    ),
]


@pytest.mark.parametrize(("kind", "spec", "replicas", "names"), SIZES)
async def test_replicas_requests_and_dependencies_are_read(
    story: Story, kind: Kind, spec: Json, replicas: int | None, names: set[str]
) -> None:
    await story.submit(
        serving("member1", kind),
        policy("p", on("member1"), selector("web", kind), propagateDeps=True),
        template("web", kind, fields={"spec": spec}),
    )
    size = (await story.recorded(decisions.BindingDeclared))[-1]
    has_pods = replicas is not None and names == {"settings"}
    assert (size.replicas, size.requests) == (replicas, {"cpu": "250m"} if has_pods else None)
    distributed = (await story.recorded(decisions.DependenciesDistributed))[-1]
    assert {ref.name for ref in distributed.dependencies} == names
