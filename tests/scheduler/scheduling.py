"""A scheduler beside a Karmada's API, and what it has written there."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import msgspec

from engine.agent.kubeconfigs import Access
from engine.agent.member_api import MemberApi
from engine.bench.karmada_api import cluster, divided
from engine.log import local, port
from engine.observer.observer import Observer
from engine.process.replica import clock_ms
from engine.scheduler.decider import Decider
from engine.scheduler.election import Election, LeaseName
from engine.scheduler.scheduler import Scheduler
from engine.scheduler.writer import Writer
from events import codec, observations, topics
from tests.relay import Relay, relayed
from tests.scheduler.api import Api, Json, serving

SOURCE = "/observed/test"
NAME = "reballast"
LEASE = LeaseName("karmada-system", NAME)
HOUR_MS = 3_600_000


@asynccontextmanager
async def scheduling(
    access: Access,
    log: port.NumberedLog,
    identity: str = "a",
    clock_ms: Callable[[], int] = clock_ms,
    per_second: float = 1_000,
) -> AsyncGenerator[Scheduler]:
    """A scheduler with its observer."""
    client = MemberApi(access)
    observer = Observer(client, log, SOURCE, clock_ms, 0.001)
    decider = Decider(NAME)
    election = Election(client, LEASE, identity, clock_ms)
    writer = Writer(client, decider, election.leads, observer.history, NAME, per_second)
    scheduler = Scheduler(
        log, decider, writer, election, observed=observer.complete, source=SOURCE, clock_ms=clock_ms
    )
    parts = [asyncio.create_task(observer.run()), asyncio.create_task(scheduler.run())]
    try:
        yield scheduler
    finally:
        for part in parts:
            part.cancel()
        outcomes = await asyncio.gather(*parts, return_exceptions=True)
        await client.aclose()
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes), outcomes


@asynccontextmanager
async def scheduling_through_relay(api: Api) -> AsyncGenerator[Relay]:
    """A scheduler with its observer and an empty log, connected through the relay that is yielded."""
    async with (
        serving(api) as access,
        relayed(access.server) as relay,
        scheduling(Access(server=relay.url), local.MemoryLog()),
    ):
        yield relay


def placed(api: Api, name: str) -> dict[str, int]:
    """Replicas by cluster in a binding's spec."""
    spec = api.objects["resourcebindings", "default", f"{name}-deployment"]["spec"]
    return {target["name"]: target.get("replicas", 0) for target in spec.get("clusters", ())}


def status(api: Api, name: str) -> Json:
    return api.objects["resourcebindings", "default", f"{name}-deployment"].get("status", {})


def scheduled(api: Api, name: str) -> str:
    """The reason of the Scheduled condition."""
    return "".join(
        condition["reason"]
        for condition in status(api, name).get("conditions", ())
        if condition["type"] == "Scheduled"
    )


def writes(api: Api) -> Counter[str]:
    """The number of writes of each binding."""
    return Counter(name for plural, _, name, _ in api.writes if plural.endswith("bindings"))


async def decided(log: local.MemoryLog) -> list[observations.DecisionMade]:
    decoded = [codec.decode(record) for record in await log.read(topics.OBSERVATIONS, 0, 0, 100_000)]
    return [
        event.data
        for event in decoded
        if isinstance(event, codec.Decoded) and isinstance(event.data, observations.DecisionMade)
    ]


def karmada() -> Api:
    api = Api()
    for name in ("member1", "member2"):
        api.put("clusters", cluster(name))
    return api


def dynamic() -> Json:
    preference = {"dynamicWeight": "AvailableReplicas"}
    return {
        **divided("member1"),
        "replicaScheduling": {**divided()["replicaScheduling"], "weightPreference": preference},
    }


def observed(manifest: Json) -> observations.Observation:
    metadata = manifest["metadata"]
    return observations.ObjectObserved(
        manifest=msgspec.Raw(msgspec.json.encode(manifest)),
        kind=manifest["kind"],
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        version=int(metadata["resourceVersion"]),
    )


LEASE_PLACE = ("karmada-system", NAME)
