"""A door over a log in memory, with the views that it reads: what the tests of the door stand on."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from engine.gateway import door_views, door_wishes
from engine.gateway.door import Door
from engine.gateway.door_results import Result
from engine.log.memory import MemoryLog
from events import codec, forms, shapes, topics
from projections.runner import Projector
from projections.store import Store

NOW_MS = 1_716_630_591_120
DEPLOYMENT = b"""
apiVersion: apps/v1
kind: Deployment
metadata:
  name: foo
  labels: {app: test}
spec:
  replicas: 3
  template: {spec: {containers: [{image: nginx, name: foo}]}}
"""
POLICY = b"""
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: default-pp}
spec:
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment, name: foo}
"""
FOO = door_wishes.Target(api_version="apps/v1", kind="Deployment", namespace="default", name="foo")


class House:
    """The door and what is behind it."""

    def __init__(self, log: MemoryLog, door: Door) -> None:
        self.log = log
        self.door = door

    async def events(self, topic: str) -> list[shapes.Event]:
        """What stands in a topic, in the order of all writes."""
        found = [
            codec.decode(record) for record in await self.log.read_all(0, 100_000) if record.topic == topic
        ]
        assert all(isinstance(entry, codec.Decoded) for entry in found)
        return [entry.data for entry in found if isinstance(entry, codec.Decoded)]

    async def written(self) -> list[shapes.Event]:
        """All inputs in the log."""
        inputs = (topics.SPECS, topics.POLICIES, topics.CLUSTERS)
        return [event for topic in inputs for event in await self.events(topic)]


@asynccontextmanager
async def open_house(directory: Path) -> AsyncGenerator[House]:
    """A door that is open while its views follow the log."""
    log = MemoryLog()
    # The disk is kept off the event loop, as the server does it.
    store = await asyncio.to_thread(Store, directory / "views.sqlite")
    projector = await asyncio.to_thread(Projector, log, store, forms.check)
    following = asyncio.create_task(projector.run())
    ids = (f"id-{count}" for count in itertools.count())
    try:
        yield House(log, Door(log, door_views.StoredViews(projector), lambda: NOW_MS, lambda: next(ids)))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        projector.close()
        await asyncio.to_thread(store.close)


def manifest_of(event: shapes.Event) -> dict[str, object]:
    """The manifest that an event carries."""
    raw = getattr(event, "manifest", None)
    assert isinstance(raw, msgspec.Raw)
    return msgspec.json.decode(raw, type=dict[str, object])


def said(results: list[Result]) -> list[str]:
    """What kubectl would print."""
    return [
        f"{result.resource}/{result.name} {result.action}" if result.action else result.problems[0].reason
        for result in results
    ]
