"""The status that a template shows: replicas over all clusters, and what its kind's interpreter puts together."""

from typing import cast

import msgspec

from events import decisions, shapes
from events.job_statuses import COMPLETE as COMPLETE_AT
from events.job_statuses import COMPLETED, FAILED
from projections import binding_documents, documents
from projections.bindings import Binding, Status

REF = shapes.WorkloadRef(api_version="flink.example.io/v1", kind="FlinkJob", name="job", namespace="default")


def _binding(fields: dict[str, int | str], replicas: int | None = None) -> Binding:
    values = {"{.job.id}": "a1", ".replicas": "many", ".conditions[0].type": "Ready"}
    member = decisions.MemberStatus(cluster="member1", applied=True, replicas=2, ready=1, values=values)
    found = Binding(REF, "uid", "uid", 0, replicas=replicas)
    found.status = Status((member,), 3, fully_applied=True, since_ms=0, fields=fields)
    return found


def test_fields_stand_where_they_stood_in_the_members() -> None:
    fields: dict[str, int | str] = {
        "{.job.restarts}": 7,
        ".job.state": "RUNNING",
        ".list[0].name": "left out",
    }
    assert documents.template_status(_binding(fields)) == {
        "observedGeneration": 3,
        "job": {"restarts": 7, "state": "RUNNING"},
    }


def test_replicas_are_numbers_whatever_else_is_said() -> None:
    shown = documents.template_status(
        _binding({".replicas": "many", ".job": "x", ".job.state": "y"}, replicas=2)
    )
    assert (shown["replicas"], shown["readyReplicas"], shown["job"]) == (2, 1, "x")


def test_a_kind_of_which_nothing_is_declared_keeps_its_own_status() -> None:
    assert documents.template_status(_binding({})) == {}


def job(*ends: dict[str, str]) -> documents.Json:
    """The status of a Job whose members reported these values."""
    ref = shapes.WorkloadRef(api_version="batch/v1", kind="Job", name="sum", namespace="default")
    members = tuple(
        decisions.MemberStatus(cluster=f"member{place}", applied=True, replicas=1, values=values)
        for place, values in enumerate(ends, start=1)
    )
    found = Binding(ref, "uid", "uid", 0, replicas=len(ends))
    found.status = Status(members, 3, fully_applied=True, since_ms=0, fields={".succeeded": 5})
    return documents.template_status(found)


COMPLETE = {COMPLETE_AT: "True", COMPLETED: "2026-01-01T00:00:07Z"}
LATER = {COMPLETE_AT: "True", COMPLETED: "2026-01-01T00:00:09Z"}


def test_a_job_is_complete_where_it_is_so_in_all_its_clusters() -> None:
    assert job(COMPLETE, {}) == {"succeeded": 5}
    shown = job(COMPLETE, LATER)
    assert shown["completionTime"] == LATER[COMPLETED]
    (condition,) = cast("list[documents.Json]", shown["conditions"])
    assert (condition["type"], condition["status"]) == ("Complete", "True")


def test_a_job_that_failed_in_one_cluster_has_failed() -> None:
    (condition,) = cast("list[documents.Json]", job(COMPLETE, {FAILED: "True"})["conditions"])
    assert (condition["type"], condition["message"]) == ("Failed", "The Job failed in member2")
    assert "completionTime" not in job(COMPLETE, {FAILED: "True"})


def test_a_pod_shows_no_numbers_of_replicas() -> None:
    ref = shapes.WorkloadRef(api_version="v1", kind="Pod", name="one", namespace="default")
    found = Binding(ref, "uid", "uid", 0, replicas=1)
    member = decisions.MemberStatus(cluster="member1", applied=True, replicas=1, ready=1)
    found.status = Status((member,), 1, fully_applied=True, since_ms=0)
    assert documents.template_status(found) == {}


def test_what_a_member_reported_shows_in_the_binding() -> None:
    assert _shown(_binding({})) == {"job": {"id": "a1"}, "replicas": "many"}
    assert _shown(_binding({}, 2))["replicas"] == 2


def _shown(binding: Binding) -> documents.Json:
    """The status of the binding's one member."""
    raw = msgspec.json.encode(binding_documents.binding_document(binding, None, None))
    found = msgspec.json.decode(raw, type=_Document)
    return found.status.aggregated_status[0].status


class _Member(msgspec.Struct):
    status: documents.Json


class _Status(msgspec.Struct, rename="camel"):
    aggregated_status: list[_Member]


class _Document(msgspec.Struct):
    status: _Status
