"""Owner references of objects in a member: owners are deleted after, or with, the objects that they own."""

from typing import Final

import msgspec
import pytest
from msgspec import structs

from engine.objects import owner_references
from engine.simulation import specs
from engine.simulation.state import MemberState
from events import clusters, shapes
from events.json_values import Json
from tests.builders import manifests
from tests.members import examples

_METADATA: Final[Json] = {"name": "owner", "namespace": "default"}
_OWNER: Final[Json] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _METADATA}
_ENDING: Final[Json] = {
    "deletionTimestamp": "2026-01-01T00:00:00Z",
    "finalizers": [owner_references.FOREGROUND],
}


async def _write(stage: examples.Stage, value: Json) -> MemberState:
    manifest = msgspec.Raw(msgspec.json.encode(value))
    await stage.members.write("member1", clusters.MemberObjectApplied(name="member1", manifest=manifest))
    await stage.settle()
    return stage.members.state_of("member1")


async def test_owner_of_an_object_that_the_control_plane_took_over_can_be_deleted() -> None:
    stage = examples.Stage()
    await stage.turn()
    (item,) = (await _write(stage, _OWNER)).unmanaged.values()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": item.uid}
    deployment = manifests.deployment("nginx", 2, "default")
    metadata = {"name": "nginx", "namespace": "default", "ownerReferences": [owner]}
    await _write(stage, {**deployment, "metadata": metadata})
    work = examples.applied("nginx", 2, offset=await stage.template("nginx", 2))
    await stage.work(structs.replace(work, overwrites=True))
    await stage.settle()
    state = await _write(stage, {**_OWNER, "metadata": {**_METADATA, **_ENDING}})
    assert (state.unmanaged, list(state.workloads)) == ({}, [examples.key_of("nginx")])


@pytest.mark.parametrize(("kind", "count"), [("ReplicaSet", 3), ("DaemonSet", 2), ("StatefulSet", 3)])
async def test_orphaned_pods_of_all_kinds_survive_a_restart(kind: str, count: int) -> None:
    nodes = (specs.NodeGroup(count=2, allocatable={"cpu": "1", "memory": "1Gi", "pods": "10"}),)
    stage = examples.Stage(structs.replace(examples.member(), nodes=nodes))
    await stage.turn()
    manifest = {**manifests.deployment("nginx", 3, "default"), "kind": kind}
    await _write(stage, manifest)
    ref = shapes.WorkloadRef(api_version="apps/v1", kind=kind, name="nginx", namespace="default")
    deleted = clusters.MemberObjectDeleted(name="member1", object=ref, orphans=True)
    await stage.members.write("member1", deleted)
    rebuilt = stage.restarted()
    for checked in (stage, rebuilt):
        await checked.settle()
        objects = checked.members.state_of("member1").unmanaged.values()
        assert [item.ref.kind for item in objects] == ["Pod"] * count


async def test_orphan_that_the_control_plane_took_over_is_not_adopted() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _write(stage, manifests.deployment("nginx", 2, "default"))
    deleted = clusters.MemberObjectDeleted(name="member1", object=examples.ref("nginx"), orphans=True)
    await stage.members.write("member1", deleted)
    await stage.settle()
    (orphan,) = stage.members.state_of("member1").unmanaged.values()
    key = orphan.ref.binding_key
    offset = await stage.submit_template(msgspec.json.decode(orphan.manifest), key)
    work = examples.applied(orphan.ref.name, 2, kind="ReplicaSet", offset=offset)
    await stage.work(structs.replace(work, template=orphan.ref, overwrites=True))
    await stage.settle()
    await _write(stage, manifests.deployment("nginx", 2, "default"))
    rebuilt = stage.restarted()
    await rebuilt.settle()
    for checked in (stage, rebuilt):
        shown = checked.members.state_of("member1").workloads.values()
        assert sorted((workload.ref.kind, workload.ready) for workload in shown) == [
            ("Deployment", 2),
            ("ReplicaSet", 2),
        ]
