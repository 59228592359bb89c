"""Kinds of an aggregated API, which have resourceVersions of their own, and may have fields of any type."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Final, cast

from engine.agent.discovery import Resource
from engine.agent.member_api import Change, Listed, MemberApi
from engine.log import local
from engine.observer.observer import Observer
from events import observations
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.background import background
from tests.observer.observing import observed

CLUSTERS: Final = Resource(
    api_version="cluster.karmada.io/v1alpha1", kind="Cluster", plural="clusters", namespaced=False
)
POLICIES: Final = Resource(
    api_version="policy.karmada.io/v1alpha1",
    kind="PropagationPolicy",
    plural="propagationpolicies",
    namespaced=True,
)
GIZMOS: Final = Resource(api_version="aggregated.io/v1", kind="Gizmo", plural="gizmos", namespaced=True)
SELECTING: Final[Json] = {"resourceSelectors": [{"apiVersion": "aggregated.io/v1", "kind": "Gizmo"}]}


class _Api:
    """An API with one object of each kind; Gizmos have versions of their own."""

    def __init__(self, gizmo_uid: str | None = "3") -> None:
        self.watched: list[tuple[str, str]] = []
        self._objects = {
            CLUSTERS: _object(CLUSTERS, 7, {"syncMode": "Push"}, "1"),
            POLICIES: _object(POLICIES, 8, SELECTING, "2"),
            GIZMOS: _object(GIZMOS, 5_000, {}, gizmo_uid),
        }
        self.newest = {CLUSTERS: 8, POLICIES: 8, GIZMOS: 5_000}

    async def discover(self) -> list[Resource]:
        return list(self._objects)

    async def newest_version(self, resource: Resource) -> str:
        return str(self.newest[resource])

    async def list(self, resource: Resource, labels: str = "") -> Listed:
        assert not labels
        return Listed([self._objects[resource]], str(self.newest[resource]))

    async def watch(self, resource: Resource, version: str, labels: str = "") -> AsyncGenerator[Change]:
        assert not labels
        self.watched.append((resource.kind, version))
        await asyncio.Event().wait()
        yield Change("BOOKMARK", self._objects[resource])


def _object(resource: Resource, version: int, spec: Json, uid: str | None) -> KubeObject:
    metadata: Json = {"name": "one", "uid": uid, "resourceVersion": str(version)}
    metadata |= {"namespace": "shop"} if resource.namespaced else {}
    return KubeObject(
        {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    )


async def _watch_all(log: local.MemoryLog, api: _Api) -> None:
    """Observe until all kinds are watched and their objects are in the log."""
    observer = Observer(cast("MemberApi", api), log, "/observed/test", lambda: 1_000)
    async with background(observer.run()):
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                # Nothing signals the last watch.
                while min(len(await observed(log)), len(api.watched)) < len(api.newest):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)


async def test_restarted_observer_takes_versions_of_their_own_for_no_restore() -> None:
    log = local.MemoryLog()
    await _watch_all(log, _Api())
    before = await observed(log)
    api = _Api()
    await _watch_all(log, api)
    assert sorted(api.watched) == [("Cluster", "7"), ("Gizmo", "5000"), ("PropagationPolicy", "8")]
    assert await observed(log) == before
    assert not [event for event in before if isinstance(event, observations.ControlPlaneRestored)]


async def test_observer_restarts_after_an_object_without_a_valid_uid() -> None:
    log = local.MemoryLog()
    await _watch_all(log, _Api(None))
    before = await observed(log)
    await _watch_all(log, _Api(None))
    assert await observed(log) == before
