"""Verdicts on cluster events with values that the engine cannot compute with."""

import msgspec
import pytest

from engine.deciders.facts import Facts
from events import clusters, limits, shapes
from events.validation import verdicts
from tests.builders import log_records
from tests.builders.log_records import Partition

JOINED = clusters.ClusterJoined(name="member1")
NODES = clusters.Quantities(name="cpu", min="250m", max="2")


def joined(**changed: object) -> clusters.ClusterJoined:
    return msgspec.structs.replace(JOINED, **changed)


def conditions(*statuses: tuple[str, str]) -> clusters.ClusterConditionsReported:
    reported = tuple(clusters.ClusterCondition(type=kind, status=status) for kind, status in statuses)
    return clusters.ClusterConditionsReported(name="member1", conditions=reported)


def reported(**changed: object) -> clusters.CapacityReported:
    return msgspec.structs.replace(clusters.CapacityReported(name="member1", allocatable={}), **changed)


def members() -> Partition:
    partition = Partition("clusters")
    partition.taken(JOINED)
    return partition


def grade(quantity: str) -> tuple[clusters.ResourceGrade, ...]:
    return (clusters.ResourceGrade(grade=0, ranges=(msgspec.structs.replace(NODES, min=quantity),)),)


def taint(effect: str = "NoExecute", key: str = "k", value: str = "") -> clusters.Taint:
    return clusters.Taint(key=key, effect=effect, value=value)


REFUSED = [
    (joined(name="Member_1"), "name: 'Member_1' is no DNS name"),
    (joined(name=""), "name: '' is no DNS name"),
    (joined(labels={"a b": "c"}), "labels.a b: is not a label's name"),
    (joined(labels={"a": "c d"}), "labels.a: 'c d' is not a label's value"),
    (joined(zones=("z1", "")), "zones[1]: is empty"),
    (joined(taints=(taint("Never"),)), "taints[0].effect: is 'Never'"),
    (joined(resource_models=grade("lots")), "resourceModels[0].ranges[0].min: 'lots' is not a quantity"),
    (joined(resource_models=(clusters.ResourceGrade(grade=-1, ranges=(NODES,)),)), "resourceModels[0].grade: is -1"),
    (joined(sync_mode="Sometimes"), "syncMode: Invalid enum value 'Sometimes'"),
    (clusters.ClusterLabelled(name="member1", labels={"": ""}), "labels.: is not a label's name"),
    (clusters.ClusterDescribed(name="member1", zones=("",)), "zones[0]: is empty"),
    (conditions(("Ready", "True")), "conditions[0].type: 'Ready' is empty, repeated or derived by the engine"),
    (conditions(("Net", "True"), ("Net", "False")), "conditions[1].type: 'Net' is empty, repeated"),
    (conditions(("Net", "Yes")), "conditions[0].status: 'Yes' is not True, False or Unknown"),
    (clusters.ClusterTainted(name="member1", taint=taint("no")), "taint.effect: is 'no'"),
    (clusters.ClusterTainted(name="member1", taint=taint(key="")), "taint.key: is empty"),
    (clusters.ClusterTainted(name="member1", taint=taint(key="a b")), "taint.key: 'a b' is not a taint's key"),
    (clusters.ClusterTainted(name="member1", taint=taint(value="?")), "taint.value: '?' is not a label's value"),
    (reported(allocatable={"cpu": "8 cores"}), "allocatable.cpu: '8 cores' is not a quantity"),
    (reported(allocated={"cpu": ""}), "allocated.cpu: '' is not a quantity"),
    (reported(allocating={"pods": "1e99"}), "allocating.pods: '1e99' is not a quantity"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "reason"), REFUSED, ids=[message for _, message in REFUSED])
def test_malformed_cluster_event_is_refused(data: shapes.Event, reason: str) -> None:
    partition = members()
    key = log_records.key_of(data)
    heads = dict(partition.fold.state.heads)
    verdict = partition.take(log_records.record(data, key=key))
    assert log_records.words(verdict).startswith(f"refused: {reason}")
    assert partition.fold.state.heads == heads


@pytest.mark.parametrize(("data", "reason"), REFUSED, ids=[message for _, message in REFUSED])
def test_facts_of_the_engine_ignore_a_refused_event(data: shapes.Event, reason: str) -> None:
    partition = members()
    partition.take(log_records.record(data, key=log_records.key_of(data)))
    partition.taken(clusters.CapacityReported(name="member1", allocatable={"cpu": "1"}))
    facts = Facts()
    changes = [change for record in partition.records for change in facts.take(record)]
    assert len(changes) == 3, reason
    assert facts.fleet.names() == ("member1",)


@pytest.mark.parametrize(
    "data",
    [
        clusters.ClusterLabelled(name="member1", labels={}),
        clusters.ClusterDescribed(name="member1"),
        clusters.ClusterTainted(name="member1", taint=taint()),
        clusters.ClusterUntainted(name="member1", key="k"),
        clusters.CapacityReported(name="member1", allocatable={"cpu": "8"}),
        clusters.ClusterHealthChanged(name="member1", ready=True),
        conditions(("Net", "True")),
    ],
)
def test_facts_are_accepted_of_members_only(data: shapes.Event) -> None:
    partition = Partition("clusters")
    assert partition.refused(data) == "refused: name: the cluster is no member; join it first"
    partition.taken(JOINED)
    partition.taken(data)
    partition.taken(clusters.ClusterLeft(name="member1"))
    assert partition.refused(data) == "refused: name: the cluster is no member; join it first"


def test_each_write_is_a_version_and_a_report_is_none() -> None:
    partition = members()
    partition.taken(clusters.ClusterLabelled(name="member1", labels={"a": "b"}, expects=1))
    partition.taken(clusters.CapacityReported(name="member1", allocatable={"cpu": "8"}))
    partition.taken(clusters.ClusterHealthChanged(name="member1", ready=True))
    partition.taken(clusters.ClusterTainted(name="member1", taint=taint(), expects=2))
    head = partition.fold.state.heads["member1"]
    assert (head.version, head.generation) == (5, 3)
    refusal = partition.refused(clusters.ClusterUntainted(name="member1", key="k", expects=2))
    assert refusal == "late: expects: written for version 2, but version 5 stands"


def test_rejoining_cluster_keeps_its_uid_until_it_leaves() -> None:
    partition = members()
    first = partition.fold.state.heads["member1"]
    partition.taken(JOINED)
    again = partition.fold.state.heads["member1"]
    assert (again.uid, again.created_ms) == (first.uid, first.created_ms)
    partition.taken(clusters.ClusterLeft(name="member1"))
    partition.taken(JOINED)
    assert partition.fold.state.heads["member1"].uid != first.uid


def test_cluster_limit_is_enforced() -> None:
    partition = members()
    head = partition.fold.state.heads["member1"]
    partition.fold.state.heads.update({f"c{i}": head for i in range(limits.CLUSTERS_MAX - 1)})
    other = joined(name="member2")
    refusal = partition.refused(other)
    assert refusal == "refused: name: there are 65536 clusters; one has to leave first"
    partition.taken(JOINED)  # existing members may join again
    partition.taken(clusters.ClusterLeft(name="member1"))
    partition.taken(other)


def test_range_accepts_any_supported_quantity() -> None:
    partition = Partition("clusters")
    verdict = partition.submit(joined(resource_models=grade("1.5Gi")))
    assert isinstance(verdict, verdicts.Taken)
