"""The writes of one decision, and its Events, without an API server."""

import copy
from typing import cast

import msgspec
import pytest

from engine.bench.karmada_api import Json, binding, divided
from engine.domain import marks
from engine.kubeapi.patching import patches
from engine.observer.observed_bindings import ObservedBinding, read_binding
from engine.scheduler import writes
from events.observations import DecisionMade

TIME = "2026-11-01T10:00:00Z"
LATER = "2026-11-01T11:00:00Z"
PLACEMENT = '{"clusterAffinity": {"clusterNames": ["member1"]}}'

PLACED = DecisionMade(
    kind="ResourceBinding",
    name="web-deployment",
    namespace="default",
    uid="uid-1",
    generation=3,
    version=26,
    trigger="",
    clusters={"member1": 2},
    places=True,
    applied=PLACEMENT,
    affinity="near",
    status="True",
    reason="Success",
    message="Binding has been scheduled successfully.",
    time=LATER,
)
FAILED = msgspec.structs.replace(
    PLACED,
    fresh=True,
    clusters={},
    places=False,
    applied="",
    affinity="",
    status="False",
    reason="NoClusterFit",
)


def stored(status: Json | None = None, annotations: Json | None = None, clusters: object = None) -> Json:
    """A binding of generation 3 at version 26."""
    web = binding("web", 2, divided("member1"), clusters=clusters or [])
    head = {"uid": "uid-1", "generation": 3, "resourceVersion": "26", "annotations": annotations or {}}
    return {**web, "metadata": {**web["metadata"], **head}, "status": status or {}}


def scheduled_before() -> Json:
    """The same binding, scheduled before: its clusters, placement and affinity are others."""
    status = {
        "conditions": [scheduled()],
        "schedulerObservedGeneration": 2,
        "schedulerObservingAffinityName": "far",
        "lastScheduledTime": TIME,
    }
    return stored(status, {marks.APPLIED_PLACEMENT: "{}"}, [{"name": "member2", "replicas": 2}])


def observed(document: Json) -> ObservedBinding:
    return read_binding(msgspec.json.encode(document))


def scheduled(status: str = "True", reason: str = "Success") -> Json:
    return {
        "type": "Scheduled",
        "status": status,
        "reason": reason,
        "message": PLACED.message,
        "lastTransitionTime": TIME,
    }


def written(document: Json, decision: DecisionMade) -> list[Json]:
    """Make the writes of a decision as an API server would; return the binding after each."""
    versions: list[Json] = []
    while (write := writes.next_write(observed(document), decision)) is not None:
        before = document
        assert cast("Json", write.body["metadata"])["resourceVersion"] == _version(before)
        document = cast("Json", patches.merge_patched(copy.deepcopy(before), write.body))
        metadata = document["metadata"]
        metadata["resourceVersion"] = str(int(_version(before)) + 1)
        metadata["generation"] += document["spec"] != before["spec"]
        assert (document["status"] != before["status"]) == (write.subresource == "status")
        versions.append(document)
        assert len(versions) <= 2
    return versions


def _version(document: Json) -> str:
    return document["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("changes", "count", "time"),
    [
        ({}, 2, LATER),
        ({"applied": ""}, 2, LATER),
        ({"places": False}, 2, LATER),
        ({"places": False, "applied": "", "fresh": True}, 1, LATER),
        ({"places": False, "applied": ""}, 1, TIME),
    ],
)
@pytest.mark.parametrize("affinity", ["near", ""])
def test_placement_is_written_before_the_status_that_names_its_generation(
    affinity: str, changes: dict[str, object], count: int, time: str
) -> None:
    before = scheduled_before()
    decision = msgspec.structs.replace(PLACED, affinity=affinity, **changes)
    versions = written(before, decision)
    assert len(versions) == count
    last = versions[-1]
    assert last["spec"]["clusters"] == (
        [{"name": "member1", "replicas": 2}] if decision.places else before["spec"]["clusters"]
    )
    assert last["metadata"]["annotations"] == {marks.APPLIED_PLACEMENT: decision.applied or "{}"}
    assert last["status"] == {
        "conditions": [scheduled()],
        "schedulerObservedGeneration": last["metadata"]["generation"],
        **({"schedulerObservingAffinityName": affinity} if affinity else {}),
        "lastScheduledTime": time,
    }
    assert writes.is_shown(observed(last), decision)
    assert not any(writes.is_shown(observed(earlier), decision) for earlier in (before, *versions[:-1]))


@pytest.mark.parametrize(
    "stale",
    [
        {"schedulerObservedGeneration": 2},
        {"schedulerObservingAffinityName": "far"},
        {"lastScheduledTime": TIME},
    ],
)
def test_status_that_lacks_a_part_of_the_decision_is_written(stale: Json) -> None:
    last = written(scheduled_before(), PLACED)[-1]
    (again,) = written({**last, "status": {**last["status"], **stale}}, PLACED)
    assert again["status"] == last["status"]


def test_failure_writes_its_condition_only() -> None:
    before = scheduled_before()
    (last,) = written(before, FAILED)
    failed = {**scheduled("False", "NoClusterFit"), "lastTransitionTime": LATER}
    assert (last["spec"], last["status"]) == (before["spec"], {**before["status"], "conditions": [failed]})


@pytest.mark.parametrize(("status", "time"), [("True", TIME), ("False", LATER)])
def test_transition_time_is_that_of_the_last_change_of_the_status(status: str, time: str) -> None:
    last = written(stored({"conditions": [scheduled(status, "Other")]}), PLACED)[-1]
    assert last["status"]["conditions"] == [{**scheduled(), "lastTransitionTime": time}]


def test_conditions_of_other_controllers_are_kept_with_all_their_fields() -> None:
    applied = {
        "type": "FullyApplied",
        "status": "True",
        "reason": "",
        "message": "",
        "lastTransitionTime": TIME,
        "observedGeneration": 2,
    }
    other = {**scheduled(), "type": "Other", "message": ""}
    last = written(stored({"conditions": [applied, scheduled(), other]}), PLACED)[-1]
    assert last["status"]["conditions"] == [applied, scheduled(), other]


def test_clusters_are_written_without_zero_replicas_and_removed_if_there_are_none() -> None:
    clusters = [{"name": "member1", "replicas": 2}, {"name": "member2", "replicas": 1}]
    other = msgspec.structs.replace(PLACED, clusters={"member1": 0, "member3": 2})
    spec = written(stored(clusters=clusters), other)[0]["spec"]
    assert spec["clusters"] == [{"name": "member1"}, {"name": "member3", "replicas": 2}]
    none = msgspec.structs.replace(PLACED, clusters={})
    assert "clusters" not in written(stored(clusters=clusters), none)[0]["spec"]


@pytest.mark.parametrize(
    ("applied", "count"), [(' {"clusterAffinity":{"clusterNames":["member1"]}}', 1), ("{", 2)]
)
def test_equal_applied_placement_is_not_written_again(applied: str, count: int) -> None:
    decision = msgspec.structs.replace(PLACED, places=False, clusters={})
    assert len(written(stored(annotations={marks.APPLIED_PLACEMENT: applied}), decision)) == count


@pytest.mark.parametrize("decision", [PLACED, FAILED])
@pytest.mark.parametrize("changed", [{"generation": 4}, {"uid": "uid-2"}])
def test_binding_that_others_changed_or_replaced_is_not_written(
    decision: DecisionMade, changed: Json
) -> None:
    document = stored()
    document["metadata"] |= changed
    assert written(document, decision) == []


def test_status_of_a_decision_is_not_written_after_a_later_change_of_the_spec() -> None:
    document = written(stored(), PLACED)[0]
    document["metadata"]["generation"] += 1
    assert written(document, PLACED) == []


def test_events_are_about_the_binding_and_its_template() -> None:
    document = stored()
    document["metadata"]["namespace"] = document["spec"]["resource"]["namespace"] = "shop"
    succeeded = list(writes.events_of(observed(document), PLACED, "reballast"))
    assert [event.at("involvedObject", "kind") for event in succeeded] == ["ResourceBinding", "Deployment"]
    assert [(event.namespace, event.name) for event in succeeded] == [
        ("shop", "web-deployment.1a-uid-1"),
        ("shop", "web.1a-uid-1"),
    ]
    for event in succeeded:
        assert (event.at("involvedObject", "namespace"), event.at("count")) == ("shop", 1)
        assert (event.at("type"), event.at("reason")) == ("Normal", "ScheduleBindingSucceed")
        assert event.at("message") == f"{PLACED.message} Result: {{member1:2}}"
    for event in writes.events_of(observed(stored()), FAILED, "reballast"):
        assert (event.at("type"), event.at("reason")) == ("Warning", "ScheduleBindingFailed")
        assert event.at("message") == FAILED.message


def test_event_of_a_cluster_scoped_template_is_in_the_default_namespace() -> None:
    document = stored()
    del document["metadata"]["namespace"], document["spec"]["resource"]["namespace"]
    decision = msgspec.structs.replace(PLACED, namespace="", kind="ClusterResourceBinding")
    bound, template = writes.events_of(observed(document), decision, "reballast")
    assert "namespace" not in bound.object_at("involvedObject")
    assert bound.namespace == template.namespace == "default"
    assert bound.at("message") == f"{PLACED.message} Result {{member1:2}}"
