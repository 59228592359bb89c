"""Defaults of Kubernetes that a server adds to an object."""

from typing import cast

import pytest

from engine.kubeapi.admission import built_in_shapes
from engine.kubeapi.admission.built_in_defaults import same, with_defaults
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders.manifests import definition, manifest


def workload(api_version: str, kind: str, **spec: object) -> Json:
    pod = {"containers": [{"name": "web", "image": "nginx", "ports": [{"containerPort": 80}]}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": {"template": template, **spec}}


def shown(value: Json) -> dict[str, object]:
    return with_defaults(KubeObject(value)).object_at("spec")


def test_deployment_gets_defaults() -> None:
    spec = shown(workload("apps/v1", "Deployment"))
    assert {name: spec[name] for name in spec if name != "template"} == {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
    }
    pod = cast("dict[str, dict[str, object]]", spec["template"])["spec"]
    assert pod == {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "containers": [
            {
                "name": "web",
                "image": "nginx",
                "imagePullPolicy": "Always",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.25", "IfNotPresent"),
        ("registry:5000/nginx", "Always"),
        ("registry:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:aa", "IfNotPresent"),
    ],
)
def test_image_pull_policy_depends_on_the_tag(image: str, policy: str) -> None:
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": image}]}}
    containers = cast("list[dict[str, object]]", shown(pod)["containers"])
    assert containers[0]["imagePullPolicy"] == policy


def test_definition_of_a_custom_kind_gets_its_other_names() -> None:
    spec = shown(definition("trials", "Trial"))
    assert spec["names"] == {
        "plural": "trials",
        "kind": "Trial",
        "singular": "trial",
        "listKind": "TrialList",
    }
    assert spec["conversion"] == {"strategy": "None"}


def test_other_workloads_get_defaults() -> None:
    assert shown(workload("apps/v1", "StatefulSet"))["podManagementPolicy"] == "OrderedReady"
    ordered = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert shown(workload("apps/v1", "StatefulSet"))["updateStrategy"] == ordered
    typed = {"type": "RollingUpdate"}
    assert shown(workload("apps/v1", "StatefulSet", updateStrategy=typed))["updateStrategy"] == typed
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    assert shown(workload("apps/v1", "DaemonSet"))["updateStrategy"] == rolling
    job = shown(workload("batch/v1", "Job"))
    assert (job["completions"], job["parallelism"], job["backoffLimit"]) == (1, 1, 6)
    assert "completions" not in shown(workload("batch/v1", "Job", parallelism=3))
    recreated = shown(workload("apps/v1", "Deployment", strategy={"type": "Recreate"}))
    assert recreated["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize(
    ("spec", "backoff", "replacement"),
    [
        ({}, 6, "TerminatingOrFailed"),
        ({"backoffLimitPerIndex": 1}, 2**31 - 1, "TerminatingOrFailed"),
        ({"podFailurePolicy": {"rules": []}}, 6, "Failed"),
        ({"backoffLimitPerIndex": 1, "backoffLimit": 2, "podFailurePolicy": {}}, 2, "Failed"),
    ],
)
def test_defaults_of_a_job_fit_its_other_fields(spec: Json, backoff: int, replacement: str) -> None:
    """Else members refuse or end a Job that a client wrote back as it had read it."""
    job = shown(workload("batch/v1", "Job", **spec))
    assert (job["backoffLimit"], job["podReplacementPolicy"]) == (backoff, replacement)


def test_claims_of_a_stateful_set_get_defaults_in_each_part() -> None:
    claim: Json = {"metadata": {"name": "data"}, "spec": {}}
    bare = workload("apps/v1", "StatefulSet", volumeClaimTemplates=[claim])
    # Typed clients write the empty status.
    written: Json = {**claim, "status": {}}
    typed = workload("apps/v1", "StatefulSet", volumeClaimTemplates=[written])
    assert cast("list[Json]", shown(typed)["volumeClaimTemplates"])[0]["status"] == {"phase": "Pending"}
    assert same(KubeObject(bare), KubeObject(typed))
    kept = {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}
    assert shown(workload("apps/v1", "StatefulSet", **kept))["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Delete",
        "whenScaled": "Retain",
    }


def test_service_gets_defaults() -> None:
    value: Json = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}}
    assert shown(value) == {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
    }


def test_replication_controller_selects_the_labels_of_its_template() -> None:
    spec = shown(workload("v1", "ReplicationController"))
    assert (spec["replicas"], spec["selector"]) == (1, {"app": "web"})
    assert shown(workload("v1", "ReplicationController", selector={"a": "b"}))["selector"] == {"a": "b"}


def test_pod_template_gets_defaults() -> None:
    template = workload("v1", "PodTemplate")["spec"]
    value = KubeObject({"apiVersion": "v1", "kind": "PodTemplate", **cast("Json", template)})
    assert with_defaults(value).at("template", "spec", "restartPolicy") == "Always"


def test_network_policy_types_depend_on_its_rules() -> None:
    value: Json = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    assert shown({**value, "spec": {"podSelector": {}}})["policyTypes"] == ["Ingress"]
    assert shown({**value, "spec": {"egress": [{}]}})["policyTypes"] == ["Ingress", "Egress"]
    assert shown({**value, "spec": {"policyTypes": ["Egress"]}})["policyTypes"] == ["Egress"]


def test_ports_of_network_policies_have_a_protocol() -> None:
    value: Json = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    rules: list[Json] = [{"ports": [{"port": 53, "protocol": "UDP"}, {"port": 80}]}, {"from": []}]
    assert shown({**value, "spec": {"ingress": rules}})["ingress"] == [
        {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 80, "protocol": "TCP"}]},
        {"from": []},
    ]


def test_sticky_sessions_of_services_end_after_three_hours() -> None:
    value: Json = {"apiVersion": "v1", "kind": "Service"}
    sticky = {"clientIP": {"timeoutSeconds": 10_800}}
    assert shown({**value, "spec": {"sessionAffinity": "ClientIP"}})["sessionAffinityConfig"] == sticky
    own: Json = {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}}
    assert shown({**value, "spec": own})["sessionAffinityConfig"] == own["sessionAffinityConfig"]
    # A client that sets only the affinity to None sends back the config that it has read.
    former = {"sessionAffinity": "None", "sessionAffinityConfig": sticky}
    assert "sessionAffinityConfig" not in shown({**value, "spec": former})


def test_limit_range_requests_default_to_limits_or_minimum() -> None:
    value: Json = {"apiVersion": "v1", "kind": "LimitRange"}
    limit = {"type": "Container", "default": {"cpu": "1"}, "max": {"memory": "2Gi"}, "min": {"storage": "1"}}
    assert shown({**value, "spec": {"limits": [limit, {"type": "Pod", "max": {"cpu": "1"}}]}})["limits"] == [
        {
            **limit,
            "default": {"cpu": "1", "memory": "2Gi"},
            "defaultRequest": {"cpu": "1", "memory": "2Gi", "storage": "1"},
        },
        {"type": "Pod", "max": {"cpu": "1"}},
    ]


def test_volumes_and_csi_drivers_get_defaults() -> None:
    volume: Json = {"apiVersion": "v1", "kind": "PersistentVolume", "spec": {"hostPath": {"path": "/x"}}}
    assert shown(volume) == {
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem",
        "hostPath": {"path": "/x", "type": ""},
    }
    driver: Json = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "spec": {"attachRequired": False}}
    assert shown(driver)["attachRequired"] is False
    assert shown(driver)["volumeLifecycleModes"] == ["Persistent"]


def test_endpoint_ports_default_to_tcp() -> None:
    value: Json = {"apiVersion": "v1", "kind": "Endpoints", "subsets": [{"ports": [{"port": 80}]}]}
    assert with_defaults(KubeObject(value)).at("subsets") == [{"ports": [{"port": 80, "protocol": "TCP"}]}]


def test_probes_volumes_and_requests_get_defaults() -> None:
    container = {
        "name": "a",
        "livenessProbe": {"httpGet": {"port": 80}},
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
        "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }
    volumes: list[Json] = [{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}]
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container], "volumes": volumes}}
    spec = shown(pod)
    defaulted = cast("list[dict[str, dict[str, object]]]", spec["containers"])[0]
    assert defaulted["livenessProbe"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
    assert defaulted["livenessProbe"]["failureThreshold"] == 3
    assert defaulted["resources"]["requests"] == {"cpu": "100m", "memory": "1Gi"}
    assert cast("list[dict[str, object]]", spec["volumes"])[0]["configMap"] == {
        "name": "c",
        "defaultMode": 420,
    }


def test_limits_of_a_pod_template_are_no_requests() -> None:
    """Else a patch would store them, and a later patch to lower limits would be refused."""
    limited: Json = {"name": "web", "image": "nginx", "resources": {"limits": {"cpu": "1"}}}
    template: Json = {"spec": {"containers": [limited], "initContainers": [limited]}}
    pod = cast("dict[str, Json]", shown(workload("apps/v1", "Deployment", template=template))["template"])[
        "spec"
    ]
    single = shown({"apiVersion": "v1", "kind": "Pod", **template})
    for field in ("containers", "initContainers"):
        assert cast("list[Json]", pod[field])[0]["resources"] == {"limits": {"cpu": "1"}}
        resources = cast("list[Json]", single[field])[0]["resources"]
        assert resources == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}


def test_defaulted_object_written_back_is_unchanged() -> None:
    value = KubeObject(workload("apps/v1", "Deployment"))
    again = with_defaults(value)
    assert with_defaults(again) == again
    assert same(value, again.with_fields({"metadata": {"labels": {"a": "b"}}, "status": {"replicas": 1}}))
    assert not same(value, KubeObject(workload("apps/v1", "Deployment", replicas=2)))


@pytest.mark.parametrize(
    "spec", [None, 7, [], {"template": 3}, {"template": {"spec": {"containers": [None, 3]}}}]
)
def test_malformed_spec_is_left_unchanged(spec: object) -> None:
    value = KubeObject({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec})
    assert isinstance(with_defaults(value), KubeObject)


@pytest.mark.parametrize(
    ("api_version", "kind", "status"),
    [
        ("v1", "Pod", {"phase": "Pending", "qosClass": "BestEffort"}),
        ("v1", "PersistentVolume", {"phase": "Pending"}),
        ("v1", "PersistentVolumeClaim", {"phase": "Pending"}),
        ("v1", "ReplicationController", {"replicas": 0}),
        ("storage.k8s.io/v1", "VolumeAttachment", {"attached": False}),
        ("v1", "ConfigMap", None),
    ],
)
def test_new_object_has_the_status_of_its_kind(api_version: str, kind: str, status: Json | None) -> None:
    value = KubeObject(manifest(api_version, kind, "one"))
    assert built_in_shapes.shown(value).at("status") == status


def test_reported_status_replaces_the_initial_one() -> None:
    reported: Json = {"phase": "Running", "podIP": "10.0.0.1", "qosClass": "Burstable"}
    value = KubeObject(manifest("v1", "Pod", "one", status=reported))
    assert built_in_shapes.shown(value).at("status") == reported


_NONE: Json = {}
_FULL: Json = {"limits": {"cpu": "500m", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("containers", "quality"),
    [
        ([_NONE], "BestEffort"),
        ([{"requests": {"cpu": "0", "ephemeral-storage": "1Gi"}}], "BestEffort"),
        ([{"requests": {"cpu": "100m"}}], "Burstable"),
        ([{"limits": {"memory": "1Gi"}}], "Burstable"),
        ([_FULL], "Guaranteed"),
        ([{**_FULL, "requests": {"cpu": "0.5", "memory": "1024Mi"}}], "Guaranteed"),
        ([{**_FULL, "requests": {"cpu": "100m"}}], "Burstable"),
        ([_FULL, _NONE], "Burstable"),
        ([_FULL, _FULL], "Guaranteed"),
    ],
)
def test_pod_shows_its_quality_of_service(containers: list[Json], quality: str) -> None:
    named: list[Json] = [
        {"name": f"c{order}", "image": "i", "resources": resources}
        for order, resources in enumerate(containers)
    ]
    pod = KubeObject(manifest("v1", "Pod", "one", spec={"containers": named}))
    assert built_in_shapes.shown(pod).at("status", "qosClass") == quality
    first, *rest = named
    started = KubeObject(manifest("v1", "Pod", "one", spec={"initContainers": [first], "containers": rest}))
    assert built_in_shapes.shown(started).at("status", "qosClass") == quality


def test_resources_of_a_whole_pod_determine_its_quality_of_service() -> None:
    spec: Json = {"resources": _FULL, "containers": [{"name": "c", "image": "i"}]}
    pod = KubeObject(manifest("v1", "Pod", "one", spec=spec))
    assert built_in_shapes.shown(pod).at("status", "qosClass") == "Guaranteed"


def test_event_has_the_fields_that_typed_clients_require() -> None:
    event = KubeObject({"apiVersion": "v1", "kind": "Event", "reportingComponent": "kubelet"})
    assert built_in_shapes.shown(event).document == {
        **event.document,
        "source": {},
        "reportingInstance": "",
        "eventTime": None,
        "firstTimestamp": None,
        "lastTimestamp": None,
    }
