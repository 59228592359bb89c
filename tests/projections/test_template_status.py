"""Status of a template: replicas over all clusters, and fields aggregated by its kind's rules."""

from typing import cast

import msgspec
import pytest

from events import decisions, limits, shapes, status_values
from events.job_statuses import COMPLETE as COMPLETE_AT
from events.job_statuses import COMPLETED, FAILED, STARTED
from events.json_values import Json
from projections.bindings import Binding, Status
from projections.documents import bindings, member_statuses, objects

REF = shapes.WorkloadRef(api_version="flink.example.io/v1", kind="FlinkJob", name="job", namespace="default")


def binding(ref: shapes.WorkloadRef, replicas: int | None = None) -> Binding:
    return Binding(template=ref, template_uid="uid", uid="uid", created_ms=0, replicas=replicas)


def _binding(fields: dict[str, int | str], replicas: int | None = None) -> Binding:
    values = {"{.job.id}": "a1", ".replicas": "many", ".conditions[0].type": "Ready"}
    member = decisions.MemberStatus(cluster="member1", applied=True, replicas=2, ready=1, values=values)
    reported = binding(REF, replicas)
    reported.status = Status((member,), 3, fully_applied=True, since_ms=0, fields=fields)
    return reported


def test_aggregated_fields_keep_their_paths() -> None:
    fields: dict[str, int | str] = {
        "{.job.restarts}": 7,
        ".job.state": "RUNNING",
        ".list[0].name": "left out",
    }
    assert objects.template_status(_binding(fields)) == {
        "observedGeneration": 3,
        "job": {"restarts": 7, "state": "RUNNING"},
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"state":"up","observedGeneration":9}', {"state": "up", "observedGeneration": 3}),
        ('{"state":"up"}', {"state": "up"}),
        ("", {"observedGeneration": 3, "job": "x"}),
        ("[7]", {"observedGeneration": 3, "job": "x"}),
    ],
)
def test_template_has_the_whole_status_of_its_only_member(text: str, shown: Json) -> None:
    member = decisions.MemberStatus(cluster="member1", applied=True, values={".job": "x"}, status=text)
    reported = binding(REF)
    fields: dict[str, int | str] = {".job": "x"}
    reported.status = Status((member,), 3, fully_applied=True, since_ms=0, fields=fields, whole=True)
    assert objects.template_status(reported) == shown


def test_conditions_of_several_members_are_merged() -> None:
    def member(cluster: str, *conditions: object) -> decisions.MemberStatus:
        status = msgspec.json.encode({"conditions": conditions, "n": 1}).decode()
        return decisions.MemberStatus(cluster=cluster, applied=True, status=status)

    ready = {"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "since": "noon"}
    failed = {"type": "Ready", "status": "False", "reason": "Failed"}
    members = (member("a", ready), member("b", failed, 7), member("c", {**ready, "since": "late"}))
    reported = binding(REF)
    reported.status = Status(members, 3, fully_applied=True, since_ms=0, whole=True)
    assert objects.template_status(reported) == {
        "observedGeneration": 3,
        "conditions": [{**ready, "message": "a=stored, c=stored"}, {**failed, "message": "b="}],
    }
    reported.status = msgspec.structs.replace(reported.status, whole=False)
    assert objects.template_status(reported) == {}


def test_custom_kind_whose_members_report_no_counts_has_none() -> None:
    reported = _binding({".job": "x"}, replicas=2)
    member = decisions.MemberStatus(cluster="member1", applied=True)
    assert reported.status is not None
    reported.status = msgspec.structs.replace(reported.status, members=(member,))
    assert objects.template_status(reported) == {"observedGeneration": 3, "job": "x"}


def test_replicas_are_numbers_despite_other_fields() -> None:
    shown = objects.template_status(
        _binding({".replicas": "many", ".job": "x", ".job.state": "y"}, replicas=2)
    )
    assert (shown["replicas"], shown["readyReplicas"], shown["job"]) == (2, 1, "x")


def test_pods_of_a_deployment_that_are_not_available_are_counted() -> None:
    web = shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="web", namespace="default")
    reported = binding(web, 5)

    def report(*members: tuple[int, int]) -> tuple[Json, list[Json]]:
        statuses = tuple(
            decisions.MemberStatus(cluster=f"member{index}", applied=True, replicas=pods, available=available)
            for index, (pods, available) in enumerate(members)
        )
        reported.status = Status(statuses, 1, fully_applied=True, since_ms=0)
        return objects.template_status(reported), _shown_all(reported)

    template, (first, second) = report((3, 1), (2, 2))
    assert (template["unavailableReplicas"], first["unavailableReplicas"]) == (2, 2)
    assert "unavailableReplicas" not in second
    template, _ = report((3, 3), (2, 2))
    assert "unavailableReplicas" not in template


def test_replica_set_has_no_number_of_updated_replicas() -> None:
    api = shapes.WorkloadRef(api_version="apps/v1", kind="ReplicaSet", name="api", namespace="default")
    reported = binding(api, 2)
    member = decisions.MemberStatus(cluster="member1", applied=True, replicas=2, updated=2, available=1)
    reported.status = Status((member,), 1, fully_applied=True, since_ms=0)
    counts = {"availableReplicas": 1, "readyReplicas": 0, "replicas": 2}
    assert objects.template_status(reported) == {"observedGeneration": 1, **counts}
    assert _shown(reported) == counts


def test_kind_without_rules_keeps_its_own_status() -> None:
    assert objects.template_status(_binding({})) == {}


def job(*ends: dict[str, str]) -> Json:
    """Return the status of a Job whose members reported these values."""
    ref = shapes.WorkloadRef(api_version="batch/v1", kind="Job", name="sum", namespace="default")
    members = tuple(
        decisions.MemberStatus(cluster=f"member{index}", applied=True, replicas=1, values=values)
        for index, values in enumerate(ends, start=1)
    )
    reported = binding(ref, len(ends))
    fields: dict[str, int | str] = {".succeeded": 5}
    reported.status = Status(members, 3, fully_applied=True, since_ms=0, fields=fields)
    return objects.template_status(reported)


COMPLETE = {COMPLETE_AT: "True", COMPLETED: "2026-01-01T00:00:07Z"}
LATER = {COMPLETE_AT: "True", COMPLETED: "2026-01-01T00:00:09Z"}


def test_times_of_jobs_are_compared_as_times_and_other_texts_are_left_out() -> None:
    finer = {COMPLETE_AT: "True", COMPLETED: "2026-01-01T00:00:09.5Z"}
    odd = {COMPLETE_AT: "True", COMPLETED: "soon"}
    assert job(finer, LATER, odd)["completionTime"] == finer[COMPLETED]
    assert "completionTime" not in job(odd)
    assert "startTime" not in job({STARTED: "yesterday"})


def test_job_has_started_once_it_has_in_any_cluster() -> None:
    late, early = {STARTED: "2026-01-01T00:00:03Z"}, {STARTED: "2026-01-01T00:00:01Z"}
    assert job(late, {}, early)["startTime"] == "2026-01-01T00:00:01Z"


def test_job_is_complete_once_complete_in_all_clusters() -> None:
    assert job(COMPLETE, {}) == {"succeeded": 5}
    shown = job(COMPLETE, LATER)
    assert shown["completionTime"] == LATER[COMPLETED]
    (condition,) = cast("list[Json]", shown["conditions"])
    assert (condition["type"], condition["status"]) == ("Complete", "True")


def test_job_that_failed_in_one_cluster_has_failed() -> None:
    (condition,) = cast("list[Json]", job(COMPLETE, {FAILED: "True"})["conditions"])
    assert (condition["type"], condition["message"]) == ("Failed", "The Job failed in member2")
    assert "completionTime" not in job(COMPLETE, {FAILED: "True"})


def shown(kind: str, *reported: dict[str, str], replicas: int | None = None) -> Json:
    """Return the status of an object of a kind whose members reported these values."""
    api_version, _, name = kind.rpartition(" ")
    ref = shapes.WorkloadRef(api_version=api_version, kind=name, name="one", namespace="default")
    members = tuple(
        decisions.MemberStatus(cluster=f"member{index}", applied=True, values=values)
        for index, values in enumerate(reported, start=1)
    )
    template_binding = binding(ref, replicas)
    template_binding.status = Status(members, 3, fully_applied=True, since_ms=0)
    return objects.template_status(template_binding)


@pytest.mark.parametrize("kind", ["v1 Service", "networking.k8s.io/v1 Ingress"])
def test_distinct_addresses_of_all_members_are_listed_host_names_first(kind: str) -> None:
    addresses = {status_values.ADDRESSES: "10.0.0.1 10.0.0.2"}
    names = {status_values.HOST_NAMES: "a.example"}
    assert shown(kind, addresses, {}, names, addresses, {status_values.HOST_NAMES: "0.example"}) == {
        "loadBalancer": {
            "ingress": [
                {"hostname": "0.example"},
                {"hostname": "a.example"},
                {"ip": "10.0.0.1"},
                {"ip": "10.0.0.2"},
            ]
        }
    }
    both = {status_values.ADDRESSES: "10.0.0.1", status_values.HOST_NAMES: "a.example"}
    assert shown(kind, both) == {"loadBalancer": {"ingress": [{"ip": "10.0.0.1", "hostname": "a.example"}]}}
    assert shown(kind, {}) == {}, "who has no address says nothing of it"


def test_truncated_address_is_left_out() -> None:
    addresses = [f"10.100.100.{100 + index}" for index in range(20)]
    text = " ".join(addresses)[: limits.STATUS_VALUE_CHARS_MAX]
    balancer = shown("v1 Service", {status_values.ADDRESSES: text})["loadBalancer"]
    entries = cast("dict[str, list[dict[str, str]]]", balancer)["ingress"]
    assert [entry["ip"] for entry in entries] == addresses[: len(text.split()) - 1]


def test_cron_job_status_has_all_jobs_and_the_last_times() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"
    first = {status_values.ACTIVE: "cron-1 cron-2", status_values.LAST_SCHEDULED: early}
    second = {
        status_values.ACTIVE: "cron-1",
        status_values.LAST_SCHEDULED: late,
        status_values.LAST_SUCCESSFUL: early,
    }
    status = shown("batch/v1 CronJob", first, second, {status_values.LAST_SCHEDULED: "soon"})
    active = cast("list[dict[str, str]]", status["active"])
    assert [job_ref["name"] for job_ref in active] == ["cron-1", "cron-2", "cron-1"]
    assert active[0] == {"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "cron-1"}
    assert (status["lastScheduleTime"], status["lastSuccessfulTime"]) == (late, early)
    assert shown("batch/v1 CronJob", {}) == {}


@pytest.mark.parametrize(
    ("kind", "phases", "phase"),
    [
        ("v1 Pod", ["Running", "Failed"], "Failed"),
        ("v1 Pod", ["Running", ""], "Pending"),
        ("v1 Pod", ["Running", "Succeeded"], "Running"),
        ("v1 Pod", ["Succeeded"], "Succeeded"),
        ("v1 Pod", ["Odd"], ""),
        ("v1 PersistentVolume", ["Bound", "Released"], "Bound"),
        ("v1 PersistentVolume", ["Bound", "Available"], "Available"),
        ("v1 PersistentVolume", ["Bound", ""], "Pending"),
        ("v1 PersistentVolumeClaim", ["Bound", "Bound"], "Bound"),
        ("v1 PersistentVolumeClaim", ["Bound", "Pending"], "Pending"),
        ("v1 PersistentVolumeClaim", ["Lost", "Pending"], "Lost"),
        ("v1 PersistentVolumeClaim", ["Bound", ""], "Bound"),
        ("v1 PersistentVolumeClaim", [""], ""),
    ],
)
def test_most_severe_phase_is_shown(kind: str, phases: list[str], phase: str) -> None:
    values = [{status_values.PHASE: member_phase} if member_phase else {} for member_phase in phases]
    assert shown(kind, *values) == ({"phase": phase} if phase else {})
    assert shown(kind, *reversed(values)) == ({"phase": phase} if phase else {})


def test_pod_shows_its_containers_and_no_replica_counts() -> None:
    values = {status_values.PHASE: "Running", status_values.CONTAINERS_READY: "true false"}
    assert shown("v1 Pod", values, replicas=1) == {
        "phase": "Running",
        "containerStatuses": [{"ready": True, "state": {"running": {}}}, {"ready": False}],
    }


def test_member_values_are_shown_in_the_binding() -> None:
    assert _shown(_binding({})) == {"job": {"id": "a1"}, "replicas": "many"}
    assert _shown(_binding({}, 2))["replicas"] == 2


def test_member_values_of_a_builtin_kind_are_shown_in_its_fields() -> None:
    ref = shapes.WorkloadRef(api_version="v1", kind="Service", name="one", namespace="default")
    service = binding(ref)
    member = decisions.MemberStatus(
        cluster="member1", applied=True, values={status_values.ADDRESSES: "10.0.0.1"}
    )
    service.status = Status((member,), 1, fully_applied=True, since_ms=0)
    assert _shown(service) == {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}


def _shown(binding: Binding) -> Json:
    """Return the status of the binding's only member."""
    (status,) = _shown_all(binding)
    return status


def _shown_all(binding: Binding) -> list[Json]:
    """Return the statuses of the binding's members."""
    raw = msgspec.json.encode(bindings.binding_document(binding, None, None).document)
    document = msgspec.json.decode(raw, type=_Document)
    return [member.status for member in document.status.aggregated_status]


class _Member(msgspec.Struct):
    status: Json


class _Status(msgspec.Struct, rename="camel"):
    aggregated_status: list[_Member]


class _Document(msgspec.Struct):
    status: _Status


def test_counts_of_one_member_are_numbers_as_typed_clients_expect() -> None:
    ref = shapes.WorkloadRef(api_version="batch/v1", kind="Job", name="sum", namespace="default")
    values = {".active": "1", ".succeeded": "2", ".startTime": "2026-01-01T00:00:00Z", COMPLETE_AT: "True"}
    member = decisions.MemberStatus(cluster="member1", applied=True, replicas=3, values=values)
    assert member_statuses.member_status(member, ref, has_replicas=True) == {
        "active": 1,
        "succeeded": 2,
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Complete", "status": "True"}],
    }


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("apps/v1", "DaemonSet", ".numberReady"),
        ("apps/v1", "StatefulSet", ".currentReplicas"),
        ("autoscaling/v2", "HorizontalPodAutoscaler", ".desiredReplicas"),
        ("policy/v1", "PodDisruptionBudget", ".currentHealthy"),
    ],
)
def test_counts_of_built_in_kinds_are_numbers(api_version: str, kind: str, path: str) -> None:
    ref = shapes.WorkloadRef(api_version=api_version, kind=kind, name="one", namespace="default")
    member = decisions.MemberStatus(cluster="member1", applied=True, values={path: "3"})
    assert member_statuses.member_status(member, ref, has_replicas=False) == {path.removeprefix("."): 3}
