"""Snapshots of members' objects: numbers, and the memory that they share."""

import asyncio
from collections.abc import Iterable

from engine.http.kube.members.snapshots import SnapshotPlane
from engine.kubeapi.schema.resources import Resource, control_plane
from events.kube_objects import KubeObject
from tests.builders.manifests import config_map


class Plane(SnapshotPlane):
    """ConfigMaps, decoded for each snapshot; the objects of a member are decoded for each snapshot too."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = {"a": "1", "b": "1"}

    async def _objects(self, resource: Resource) -> Iterable[KubeObject]:
        del resource
        await asyncio.sleep(0)
        return [KubeObject({**config_map(name), "data": {"text": text}}) for name, text in self.texts.items()]


def config_maps() -> Resource:
    return next(kind for kind in control_plane().resources if kind.qualified == "configmaps")


async def test_snapshots_share_objects_that_did_not_change() -> None:
    plane, kind = Plane(), config_maps()
    first, before = await plane.snapshot(kind)
    plane.texts["b"] = "2"
    second, after = await plane.snapshot(kind)

    assert after.items["", "a"] is before.items["", "a"]
    versions = {key: value.resource_version for key, (_, value) in after.items.items()}
    assert versions == {("", "a"): str(first), ("", "b"): str(second)}


async def test_snapshots_taken_at_once_have_different_numbers() -> None:
    plane, kind = Plane(), config_maps()
    taken = await asyncio.gather(*(plane.snapshot(kind) for _ in range(5)))

    numbers = [number for number, _ in taken]
    assert sorted(set(numbers)) == numbers
    assert plane.last_number() == numbers[-1]
    assert all(plane.remembered(kind, number) is look for number, look in taken)
