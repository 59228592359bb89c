"""Table cells that depend on the status of an object equal those of a real API server."""

import pytest

from engine.kubeapi.schema import resources
from engine.kubeapi.tables import tables
from events.json_values import Json, list_at, object_at
from events.kube_objects import KubeObject

NOW_MS = 1_767_225_600_000
BEFORE_3_MINUTES = "2025-12-31T23:57:00Z"
BEFORE_1_MINUTE = "2025-12-31T23:59:00Z"
CPU: Json = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
MEMORY: Json = {
    "type": "ContainerResource",
    "containerResource": {
        "name": "memory",
        "container": "web",
        "target": {"type": "AverageValue", "averageValue": "1Gi"},
    },
}
PACKETS: Json = {
    "type": "Pods",
    "pods": {"metric": {"name": "packets"}, "target": {"type": "AverageValue", "averageValue": "1k"}},
}
HITS: Json = {
    "type": "Object",
    "object": {"metric": {"name": "hits"}, "target": {"type": "Value", "value": "2k"}},
}
QUEUE: Json = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "30"}},
}


def _cells(path: str, value: Json) -> dict[str, object]:
    group, version, plural = path.split("/")
    resource = resources.control_plane().resource(group, version, plural)
    assert resource
    answer = tables.table(resource, [KubeObject({"metadata": {"name": "one"}, **value})], NOW_MS, metadata={})
    names = [str(object_at(column)["name"]) for column in list_at(answer, "columnDefinitions")]
    return dict(zip(names, list_at(list_at(answer, "rows")[0], "cells"), strict=True))


def _is(*kinds: str) -> list[Json]:
    return [{"type": kind, "status": "True"} for kind in kinds]


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({}, "Running"),
        ({"conditions": _is("Suspended")}, "Suspended"),
        ({"conditions": _is("SuccessCriteriaMet")}, "SuccessCriteriaMet"),
        ({"conditions": _is("FailureTarget", "SuccessCriteriaMet")}, "FailureTarget"),
        ({"conditions": _is("FailureTarget", "Failed")}, "Failed"),
        ({"conditions": _is("SuccessCriteriaMet", "Complete")}, "Complete"),
        ({"conditions": [{"type": "Complete", "status": "False"}]}, "Running"),
    ],
)
def test_status_of_a_job(status: Json, shown: str) -> None:
    assert _cells("batch/v1/jobs", {"status": status})["Status"] == shown


def test_deleted_job_terminates_unless_it_ended() -> None:
    metadata: Json = {"name": "one", "deletionTimestamp": BEFORE_1_MINUTE}
    for status, shown in (
        ({"conditions": _is("Suspended")}, "Terminating"),
        ({"conditions": _is("Failed")}, "Failed"),
    ):
        assert _cells("batch/v1/jobs", {"metadata": metadata, "status": status})["Status"] == shown


@pytest.mark.parametrize(
    ("spec", "status", "completions", "duration"),
    [
        ({"completions": 3, "parallelism": 2}, {"succeeded": 1, "startTime": BEFORE_3_MINUTES}, "1/3", "3m"),
        (
            {"parallelism": 2},
            {"startTime": BEFORE_3_MINUTES, "completionTime": BEFORE_1_MINUTE},
            "0/1 of 2",
            "2m",
        ),
        ({"parallelism": 1}, {}, "0/1", ""),
    ],
)
def test_progress_of_a_job(spec: Json, status: Json, completions: str, duration: str) -> None:
    cells = _cells("batch/v1/jobs", {"spec": spec, "status": status})
    assert (cells["Completions"], cells["Duration"]) == (completions, duration)


@pytest.mark.parametrize(("suspend", "shown"), [(True, "True"), (False, "False"), (None, "<unset>")])
def test_runs_of_a_cron_job(suspend: bool | None, shown: str) -> None:
    spec: Json = {"schedule": "@hourly", "timeZone": "Europe/Berlin", "suspend": suspend}
    status: Json = {"active": [{"name": "a"}, {"name": "b"}], "lastScheduleTime": BEFORE_3_MINUTES}
    cells = _cells("batch/v1/cronjobs", {"spec": spec, "status": status})
    assert [cells[name] for name in ("Schedule", "Timezone", "Suspend", "Active", "Last Schedule")] == [
        "@hourly",
        "Europe/Berlin",
        shown,
        2,
        "3m",
    ]


@pytest.mark.parametrize(
    ("metrics", "currents", "shown"),
    [
        ([], [], "<none>"),
        ([CPU], [], "cpu: <unknown>/80%"),
        (
            [CPU],
            [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 12}}}],
            "cpu: 12%/80%",
        ),
        ([MEMORY, PACKETS], [], "memory: <unknown>/1Gi, <unknown>/1k"),
        (
            [HITS, QUEUE],
            [
                {"type": "Object", "object": {"current": {"value": "7"}}},
                {"type": "External", "external": {"current": {"averageValue": "5"}}},
            ],
            "7/2k, 5/30 (avg)",
        ),
        ([CPU, MEMORY, PACKETS, QUEUE], [], "cpu: <unknown>/80%, memory: <unknown>/1Gi + 2 more..."),
    ],
)
def test_targets_of_an_autoscaler(metrics: list[Json], currents: list[Json], shown: str) -> None:
    value: Json = {"spec": {"metrics": metrics}, "status": {"currentMetrics": currents}}
    assert _cells("autoscaling/v2/horizontalpodautoscalers", value)["Targets"] == shown


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({}, "Pending"),
        ({"conditions": _is("Approved"), "certificate": "MQ=="}, "Approved,Issued"),
        ({"conditions": _is("Approved", "Failed")}, "Approved,Failed"),
        ({"conditions": _is("Approved", "Denied")}, "Denied"),
    ],
)
def test_state_of_a_certificate_signing_request(status: Json, shown: str) -> None:
    spec: Json = {"signerName": "a.b/c", "username": "me", "expirationSeconds": 7_200}
    cells = _cells("certificates.k8s.io/v1/certificatesigningrequests", {"spec": spec, "status": status})
    assert [cells[name] for name in ("SignerName", "Requestor", "RequestedDuration", "Condition")] == [
        "a.b/c",
        "me",
        "120m",
        shown,
    ]


def test_readiness_gates_of_a_pod() -> None:
    gates = [{"conditionType": "balanced"}, {"conditionType": "checked"}]
    value: Json = {"spec": {"readinessGates": gates}, "status": {"conditions": _is("balanced")}}
    assert _cells("/v1/pods", value)["Readiness Gates"] == "1/2"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({}, "pending"),
        ({"status": {"allocation": {}}}, "allocated"),
        ({"status": {"allocation": {}, "reservedFor": [{"name": "pod"}]}}, "allocated,reserved"),
        ({"metadata": {"deletionTimestamp": BEFORE_1_MINUTE}}, "deleted"),
    ],
)
def test_state_of_a_claim_of_devices(value: Json, shown: str) -> None:
    assert _cells("resource.k8s.io/v1/resourceclaims", value)["State"] == shown


@pytest.mark.parametrize(("conditions", "shown"), [([], "?"), (_is("Dangling"), "True")])
def test_flow_schema_whose_priority_level_is_missing(conditions: list[Json], shown: str) -> None:
    cells = _cells("flowcontrol.apiserver.k8s.io/v1/flowschemas", {"status": {"conditions": conditions}})
    assert (cells["DistinguisherMethod"], cells["MissingPL"]) == ("<none>", shown)


def test_exempt_priority_level_has_no_queues() -> None:
    cells = _cells(
        "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", {"spec": {"type": "Exempt"}}
    )
    assert cells["NominalConcurrencyShares"] == cells["Queues"] == cells["HandSize"] == "<none>"
