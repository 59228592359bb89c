"""Tables, as the real kubectl prints them."""

import shutil
from pathlib import Path

import pytest
from msgspec import structs

from engine.http.kube import requests
from engine.kubeapi.conversion import kubernetes_events
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema import resources
from engine.kubeapi.tables import tables
from events.json_values import Json, list_at, object_at
from events.kube_objects import KubeObject
from tests.kube import recording

NOW_MS = 1_767_225_600_000
CREATED = "2025-12-31T23:56:46Z"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def _resource(group: str, version: str, plural: str) -> resources.Resource:
    resource = resources.control_plane().resource(group, version, plural)
    assert resource
    return resource


def _metadata(name: str) -> Json:
    return {"name": name, "namespace": "shop", "creationTimestamp": CREATED, "labels": {"app": "web"}}


def _cells(resource: resources.Resource, value: Json) -> dict[str, object]:
    answer = tables.table(resource, [KubeObject(value)], NOW_MS, metadata={})
    names = [str(object_at(column)["name"]) for column in list_at(answer, "columnDefinitions")]
    row = object_at(list_at(answer, "rows")[0])
    return dict(zip(names, list_at(row, "cells"), strict=True))


DEPLOYMENT: Json = {
    "metadata": _metadata("web"),
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "spec": {"containers": [{"name": "a", "image": "nginx"}, {"name": "b", "image": "redis"}]}
        },
    },
    "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2},
}
BINDING: Json = {
    "metadata": _metadata("web-deployment"),
    "status": {"conditions": [{"type": "Scheduled", "status": "True"}]},
}
CLUSTER: Json = {
    "metadata": _metadata("member1"),
    "spec": {"syncMode": "Push", "zones": ["a", "b"]},
    "status": {"kubernetesVersion": "v1.36.2", "conditions": [{"type": "Ready", "status": "True"}]},
}
EVENT: Json = {
    "metadata": _metadata("web.1"),
    "type": "Normal",
    "reason": "Created",
    "involvedObject": {"kind": "Deployment", "name": "web"},
    "message": " done \n",
    "lastTimestamp": CREATED,
    "source": {"component": "scheduler"},
    "count": 2,
}


def test_kubectl_prints_the_tables(tmp_path: Path) -> None:
    program = shutil.which("kubectl")
    if program is None:
        pytest.fail("no kubectl on the PATH")
    deployments = _resource("apps", "v1", "deployments")
    clusters = _resource("cluster.karmada.io", "v1alpha1", "clusters")
    answers = {
        "/apis/apps/v1/namespaces/shop/deployments": tables.table(
            deployments, [KubeObject(DEPLOYMENT)], NOW_MS, metadata={"resourceVersion": "7"}
        ),
        "/apis/cluster.karmada.io/v1alpha1/clusters/member1": tables.table(
            clusters, [KubeObject(CLUSTER)], NOW_MS, metadata={"resourceVersion": "7"}
        ),
    }
    with recording.kubectl(tmp_path, answers=answers) as kubectl:
        listed = kubectl.prints(program, "get", "deploy", "-n", "shop", "-o", "wide")
        plain = kubectl.prints(program, "get", "clusters", "member1")
        accept = kubectl.requests[-1].accept
    assert [line.split() for line in listed.splitlines()] == [
        ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"],
        ["web", "2/3", "3", "2", "3m14s", "a,b", "nginx,redis", "app=web"],
    ]
    assert [line.split() for line in plain.splitlines()] == [
        ["NAME", "VERSION", "MODE", "READY", "AGE"],
        ["member1", "v1.36.2", "Push", "True", "3m14s"],
    ]
    assert requests.form(accept).table == "v1"


def test_cluster_has_wide_columns() -> None:
    assert _cells(_resource("cluster.karmada.io", "v1alpha1", "clusters"), CLUSTER) == {
        "Name": "member1",
        "Version": "v1.36.2",
        "Mode": "Push",
        "Ready": "True",
        "Age": "3m14s",
        "Zones": "a,b",
        "Region": "<none>",
        "Provider": "<none>",
        "API-Endpoint": "",
        "Proxy-URL": "<none>",
    }


def test_missing_condition_is_empty() -> None:
    assert _cells(_resource("work.karmada.io", "v1alpha2", "resourcebindings"), BINDING) == {
        "Name": "web-deployment",
        "SCHEDULED": "True",
        "FULLYAPPLIED": None,
        "AGE": "3m14s",
    }


def test_custom_kinds_of_karmada_have_the_columns_of_their_definitions() -> None:
    quota: Json = {"overall": {"memory": "1Gi", "cpu": "2"}, "overallUsed": {}}
    assert _cells(
        _resource("policy.karmada.io", "v1alpha1", "federatedresourcequotas"),
        {"metadata": _metadata("one"), "status": quota},
    ) == {"Name": "one", "OVERALL": '{"cpu":"2","memory":"1Gi"}', "OVERALL_USED": "{}"}
    target: Json = {"apiVersion": "apps/v1", "kind": "Deployment"}
    assert _cells(
        _resource("config.karmada.io", "v1alpha1", "resourceinterpretercustomizations"),
        {"metadata": _metadata("one"), "spec": {"target": target}},
    ) == {
        "Name": "one",
        "TARGET-API-VERSION": "apps/v1",
        "TARGET-KIND": "Deployment",
        "AGE": "3m14s",
    }
    reference: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    assert _cells(
        _resource("autoscaling.karmada.io", "v1alpha1", "federatedhpas"),
        {
            "metadata": _metadata("one"),
            "spec": {"scaleTargetRef": reference, "minReplicas": 0, "maxReplicas": 5},
        },
    ) == {
        "Name": "one",
        "REFERENCE-KIND": "Deployment",
        "REFERENCE-NAME": "web",
        "MINPODS": 0,
        "MAXPODS": 5,
        "REPLICAS": None,
        "AGE": "3m14s",
    }


def test_event_columns_have_the_order_of_kubernetes() -> None:
    cells = _cells(_resource("", "v1", "events"), EVENT)
    assert list(cells) == [
        "Last Seen",
        "Type",
        "Reason",
        "Object",
        "Subobject",
        "Source",
        "Message",
        "First Seen",
        "Count",
        "Name",
    ]
    assert cells["Object"] == "deployment/web"
    assert cells["Message"] == "done"
    assert cells["Last Seen"] == "3m14s"


@pytest.mark.parametrize("group", ["", "events.k8s.io"])
def test_event_has_the_same_cells_in_both_versions(group: str) -> None:
    instance: Json = {"source": {}, "reportingComponent": "kubelet", "reportingInstance": "node-1"}
    series: Json = {"count": 5, "lastObservedTime": "2025-12-31T23:59:53.000000Z"}
    for fields, source, count, last in (
        ({}, "scheduler", 2, "3m14s"),
        ({"source": {"component": "scheduler", "host": "node-1"}}, "scheduler, node-1", 2, "3m14s"),
        ({**instance, "series": series}, "kubelet, node-1", 5, "7s"),
        ({"lastTimestamp": None, "count": None, "eventTime": CREATED}, "scheduler", 1, "3m14s"),
    ):
        event = KubeObject(
            {"apiVersion": "v1", **EVENT, "firstTimestamp": None, "eventTime": CREATED, **fields}
        )
        value = kubernetes_events.to_served(event, f"{group}/v1".removeprefix("/"))
        assert _cells(_resource(group, "v1", "events"), value.document) == {
            "Last Seen": last,
            "Type": "Normal",
            "Reason": "Created",
            "Object": "deployment/web",
            "Subobject": "",
            "Source": source,
            "Message": "done",
            "First Seen": "3m14s",
            "Count": count,
            "Name": "web.1",
        }


def test_pod_row_shows_ready_containers_and_restarts() -> None:
    pods = _resource("", "v1", "pods")
    pod: Json = {
        "metadata": _metadata("web-1"),
        "spec": {"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "n1"},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"ready": True, "restartCount": 2, "lastState": {"terminated": {"finishedAt": CREATED}}},
                {"ready": False, "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
            ],
        },
    }
    cells = _cells(pods, pod)
    assert cells["Ready"] == "1/2"
    assert cells["Status"] == "CrashLoopBackOff"
    assert cells["Restarts"] == "3 (3m14s ago)"
    assert cells["IP"] == "<none>"
    terminating: Json = {"metadata": {**_metadata("x"), "deletionTimestamp": CREATED}}
    assert _cells(pods, terminating)["Status"] == "Terminating"


@pytest.mark.parametrize(
    ("phase", "status"), [("Running", "Terminating"), ("Succeeded", "Completed"), ("Failed", "Completed")]
)
def test_pod_that_ended_is_not_terminating(phase: str, status: str) -> None:
    ended: Json = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    pod: Json = {
        "metadata": {**_metadata("web-1"), "deletionTimestamp": CREATED},
        "status": {"phase": phase, "containerStatuses": [ended]},
    }
    assert _cells(_resource("", "v1", "pods"), pod)["Status"] == status


def test_first_container_with_a_reason_sets_the_status_of_its_pod() -> None:
    statuses: list[Json] = [
        {"state": {"running": {}}},
        {"state": {"waiting": {"reason": "ErrImagePull"}}},
        {"state": {"terminated": {"exitCode": 1, "reason": "Error"}}},
    ]
    pod: Json = {
        "metadata": _metadata("web-1"),
        "status": {"phase": "Running", "containerStatuses": statuses},
    }
    assert _cells(_resource("", "v1", "pods"), pod)["Status"] == "ErrImagePull"


def test_other_kinds_show_name_and_age() -> None:
    rebalancers = _resource("apps.karmada.io", "v1alpha1", "workloadrebalancers")
    assert _cells(rebalancers, {"metadata": _metadata("one")}) == {"Name": "one", "Age": "3m14s"}


def test_every_kind_accepts_an_empty_object() -> None:
    for resource in resources.control_plane().resources:
        assert len(_cells(resource, {})) == len(tables.columns_of(resource))


def test_custom_kinds_declare_their_columns() -> None:
    columns = (
        resources.PrinterColumn(name="Size", path=".spec.size", type="integer"),
        resources.PrinterColumn(name="Kinds", path=".spec.list[*].kind"),
        resources.PrinterColumn(name="Since", path=".metadata.creationTimestamp", type="date", priority=1),
        resources.PrinterColumn(name="None", path=".spec.none"),
        resources.PrinterColumn(name="List", path=".spec.list"),
        resources.PrinterColumn(name="On", path=".spec.on"),
    )
    deployments = _resource("apps", "v1", "deployments")
    house = structs.replace(deployments, custom=True, columns=columns)
    spec: Json = {"size": 3, "list": [{"kind": "A"}, {"kind": "B"}], "on": True}
    assert _cells(house, {"metadata": _metadata("one"), "spec": spec}) == {
        "Name": "one",
        "Size": 3,
        "Kinds": "A B",
        "Since": "3m14s",
        "None": None,
        "List": '[{"kind":"A"},{"kind":"B"}]',
        "On": "true",
    }


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("integer", 3, 3),
        ("integer", 2.5, 2),
        ("integer", True, None),
        ("integer", "3", None),
        ("number", 2.5, 2.5),
        ("number", False, None),
        ("boolean", False, False),
        ("boolean", 0, None),
        ("date", CREATED, "3m14s"),
        ("date", "yesterday", "<invalid>"),
        ("date", 7, None),
        ("string", False, "false"),
        ("string", None, None),
    ],
)
def test_printer_column_shows_values_of_its_type(kind: str, value: object, cell: object) -> None:
    column = resources.PrinterColumn(name="Cell", path=".spec.value", type=kind)
    house = structs.replace(_resource("apps", "v1", "deployments"), custom=True, columns=(column,))
    cells = _cells(house, {"metadata": _metadata("one"), "spec": {"value": value}})
    assert cells["Cell"] == cell
    assert type(cells["Cell"]) is type(cell)


def test_rows_include_the_requested_object() -> None:
    deployments = _resource("apps", "v1", "deployments")
    answer = tables.table(deployments, [KubeObject(DEPLOYMENT)], NOW_MS, metadata={}, include="None")
    assert "object" not in object_at(list_at(answer, "rows")[0])
    answer = tables.table(deployments, [KubeObject(DEPLOYMENT)], NOW_MS, metadata={}, version="v1beta1")
    assert object_at(list_at(answer, "rows")[0])["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1beta1",
        "metadata": _metadata("web"),
    }


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (f"{TABLE},application/json", "v1"),
        ("application/json;as=Table;g=meta.k8s.io;v=v1beta1, application/json", "v1beta1"),
        (f"application/json, {TABLE}", ""),
        ("application/vnd.kubernetes.protobuf, application/json", ""),
        ("text/html, */*;q=0.8", ""),
        (f"application/json;as=Other;v=v1;g=meta.k8s.io, {TABLE}", "v1"),
        ("", ""),
    ],
)
def test_table_version_is_negotiated(accept: str, version: str) -> None:
    assert requests.form(accept).table == version


@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Other;v=v1;g=meta.k8s.io"])
def test_unsupported_format_is_not_acceptable(accept: str) -> None:
    with pytest.raises(StatusError, match=r"Not Acceptable|media types are accepted") as error:
        requests.form(accept)
    assert error.value.code == 406
