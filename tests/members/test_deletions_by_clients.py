"""Objects that clients of a member delete or write again: what runs, what is reported, and which revisions are kept."""

from typing import Final

import msgspec
import pytest
from msgspec import structs

from engine.domain import marks
from engine.simulation import uids, unmanaged
from engine.simulation.state import MemberState, Unmanaged
from events import clusters, health, shapes
from events.json_values import Json
from tests.builders import manifests
from tests.members import examples

NGINX: Final = examples.key_of("nginx")


def _deployment(replicas: int, *, image: str = "nginx", labels: dict[str, str] | None = None) -> Json:
    value = manifests.deployment("nginx", replicas, "default", image=image)
    return {**value, "metadata": {"name": "nginx", "namespace": "default", "labels": labels or {}}}


async def _write(stage: examples.Stage, value: Json) -> None:
    manifest = msgspec.Raw(msgspec.json.encode(value))
    await stage.members.write("member1", clusters.MemberObjectApplied(name="member1", manifest=manifest))


async def _delete(stage: examples.Stage, *, orphans: bool = False) -> None:
    deleted = clusters.MemberObjectDeleted(name="member1", object=examples.ref("nginx"), orphans=orphans)
    await stage.members.write("member1", deleted)


async def _managed(replicas: int, labels: dict[str, str] | None = None) -> examples.Stage:
    """Return a member that runs a Deployment of the control plane."""
    stage = examples.Stage()
    await stage.turn()
    offset = await stage.submit_template(_deployment(replicas, labels=labels), NGINX)
    await stage.work(examples.applied("nginx", replicas, offset=offset))
    await stage.settle()
    return stage


def _state(stage: examples.Stage) -> MemberState:
    return stage.members.state_of("member1")


async def test_deletion_of_a_managed_object_is_reported_at_once() -> None:
    stage = await _managed(2)
    number = stage.log.last_number()
    await _delete(stage)
    await stage.turn()
    (report,) = examples.reports(await stage.events_since(number))
    assert isinstance(report, health.WorkloadReported)
    assert (report.replicas, report.ready) == (2, 0)


async def test_managed_object_that_is_deleted_without_its_pods_keeps_them() -> None:
    stage = await _managed(2)
    await _delete(stage, orphans=True)
    assert _state(stage).workloads[NGINX].ready == 2
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (2, 2)}


@pytest.mark.parametrize("orphans", [False, True])
async def test_object_that_is_created_again_has_the_replicas_of_its_work(orphans: bool) -> None:
    stage = await _managed(2, {marks.RETAIN_REPLICAS: "true"})
    generation = _state(stage).workloads[NGINX].generation
    await _write(stage, _deployment(4))
    await stage.settle()
    assert _state(stage).workloads[NGINX].generation == generation + 1
    assert examples.shown(stage) == {("member1", NGINX): (4, 4)}
    await _delete(stage, orphans=orphans)
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (2, 2)}


async def test_dependents_of_a_managed_object_that_a_client_deletes_are_deleted() -> None:
    stage = await _managed(2)
    uid = uids.of_object("member1", _state(stage).workloads[NGINX])
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx", "uid": uid}
    metadata = {"name": "owned", "namespace": "default", "ownerReferences": [owner]}
    await _write(stage, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await stage.settle()
    assert [item.ref.name for item in _state(stage).unmanaged.values()] == ["owned"]
    await _delete(stage)
    await stage.settle()
    assert _state(stage).unmanaged == {}


def _revised(*images: str) -> Unmanaged:
    """Return a Deployment after writes with these images, at 1 ms, 2 ms and so on."""
    item: Unmanaged | None = None
    for at_ms, image in enumerate(images, 1):
        manifest = msgspec.json.encode(_deployment(1, image=image))
        item = unmanaged.revised(item, manifest, f"uid-{at_ms}", at_ms)
    assert item is not None
    return item


@pytest.mark.parametrize(
    ("images", "revisions"),
    [
        ("a", [(1, 1)]),
        ("aa", [(1, 1)]),
        ("ab", [(1, 1), (2, 2)]),
        # The template that is used again gets a new number, and keeps its age.
        ("aba", [(2, 2), (3, 1)]),
        ("abab", [(3, 1), (4, 2)]),
    ],
)
def test_revisions_are_numbered_by_their_last_use(images: str, revisions: list[tuple[int, int]]) -> None:
    item = _revised(*images)
    assert [(revision.number, revision.created_ms) for revision in item.revisions] == revisions


def test_ten_revisions_are_kept_beside_the_current_one() -> None:
    item = _revised(*(f"image{number}" for number in range(20)))
    assert [revision.number for revision in item.revisions] == list(range(10, 21))


def test_written_object_keeps_its_identity_and_counts_changes_of_its_spec() -> None:
    item = _revised("a", "a", "b")
    assert (item.uid, item.created_ms, item.changed_ms, item.generation) == ("uid-1", 1, 3, 2)


def _in_namespace(namespace: str, kind: str, **fields: object) -> Json:
    return {**manifests.manifest("v1", kind, "own", namespace), **fields}


async def test_deleted_namespace_takes_only_its_own_objects_with_it() -> None:
    stage = examples.Stage()
    await stage.turn()
    for namespace in ("first", "second"):
        await _write(stage, manifests.manifest("v1", "Namespace", namespace))
        await _write(stage, _in_namespace(namespace, "ConfigMap"))
    ref = shapes.WorkloadRef(api_version="v1", kind="Namespace", name="first")
    await stage.members.write("member1", clusters.MemberObjectDeleted(name="member1", object=ref))
    left = [(item.ref.kind, item.ref.namespace) for item in _state(stage).unmanaged.values()]
    assert left == [("Namespace", ""), ("ConfigMap", "second")]


async def test_restarted_member_deletes_a_namespace_that_was_marked_as_deleted() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _write(stage, _in_namespace("first", "ConfigMap"))
    metadata = {"name": "first", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    await _write(stage, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    rebuilt = stage.restarted()
    await rebuilt.settle()
    assert not _state(rebuilt).unmanaged


async def test_object_without_replicas_leaves_no_orphans() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _write(stage, _in_namespace("default", "ConfigMap"))
    ref = shapes.WorkloadRef(api_version="v1", kind="ConfigMap", name="own", namespace="default")
    await stage.members.write(
        "member1", clusters.MemberObjectDeleted(name="member1", object=ref, orphans=True)
    )
    assert _state(stage).unmanaged == {}


async def test_deleted_quota_limits_nothing() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _write(stage, _in_namespace("default", "ResourceQuota", spec={"hard": {"pods": "1"}}))
    await _write(stage, _deployment(3))
    await stage.settle()
    workload = unmanaged.running(_state(stage), NGINX)
    assert workload is not None
    assert workload.ready == 1
    ref = shapes.WorkloadRef(api_version="v1", kind="ResourceQuota", name="own", namespace="default")
    await stage.members.write("member1", clusters.MemberObjectDeleted(name="member1", object=ref))
    for _ in range(30):
        await stage.turn(after_ms=1_000)
    assert workload.ready == 3


async def test_object_that_the_control_plane_takes_over_keeps_its_generation() -> None:
    stage = examples.Stage()
    await stage.turn()
    for replicas in (1, 2, 3):
        await _write(stage, _deployment(replicas))
    offset = await stage.submit_template(_deployment(3), NGINX)
    await stage.work(structs.replace(examples.applied("nginx", 3, offset=offset), overwrites=True))
    await stage.settle()
    assert _state(stage).workloads[NGINX].generation >= 3
