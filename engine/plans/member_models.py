"""Models of the members of a fork: the simulated members as configured, and the others as they last reported.

A cluster that an agent serves becomes one simulated node with the reported capacity. What runs there without us
is kept as a load of its own, so that the model reports the free capacity that the cluster has.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.kubeapi.values import quantity
from engine.log import port
from engine.simulation import member_fleet, specs
from events import clusters, codec, topics

_READ: Final = 1_000
_ASSUMED: Final = (
    "{} not simulated: assumed to start replicas in {} ms, in the capacity that was last reported, "
    "and to end no Job"
)


class Models(Struct, frozen=True, kw_only=True):
    """The members of a fork; ``reported`` holds the last report on the capacity of those that are not simulated."""

    specs: tuple[specs.MemberSpec, ...]
    reported: dict[str, clusters.CapacityReported] = {}
    assumptions: tuple[str, ...] = ()


class _Known(Struct):
    """A cluster as the log describes it."""

    joined: clusters.ClusterJoined
    capacity: clusters.CapacityReported | None = None
    apis: tuple[clusters.ApiKind, ...] = ()


async def read(log: port.Log, simulated: Sequence[specs.MemberSpec]) -> Models:
    """Return models of all clusters of a log; raises the log's errors."""
    names = {spec.name for spec in simulated}
    others = {name: each for name, each in (await _clusters(log)).items() if name not in names}
    models = [_model(name, each) for name, each in sorted(others.items())]
    return Models(
        specs=(*simulated, *models),
        reported={name: each.capacity for name, each in others.items() if each.capacity is not None},
        assumptions=_assumptions([spec.name for spec in models]),
    )


def _assumptions(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    text = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
    return (_ASSUMED.format(text, specs.STARTUP_MS),)


def load(models: Models, members: member_fleet.Members) -> None:
    """Load the rebuilt models with what their clusters last reported as used, so that they report the same."""
    for name, report in models.reported.items():
        capacity = members.state_of(name).capacity
        for texts, used in ((report.allocated, capacity.running), (report.allocating, capacity.starting)):
            used.clear()
            used.update({resource: quantity.nano_units(text) for resource, text in texts.items()})


async def _clusters(log: port.Log) -> dict[str, _Known]:
    known: dict[str, _Known] = {}
    offset, end = 0, log.ends().get((topics.CLUSTERS, 0), 0)
    while offset < end:
        batch = await log.read(topics.CLUSTERS, 0, offset, min(_READ, end - offset))
        for record in batch:
            if isinstance(decoded := codec.decode(record), codec.Decoded):
                _take(known, decoded.data)
        offset = port.behind(batch, end)
    return known


def _take(known: dict[str, _Known], data: object) -> None:
    match data:
        case clusters.ClusterJoined(name=name):
            # An edit of a member is recorded as another join, and says nothing about its capacity.
            capacity = known[name].capacity if name in known else None
            known[name] = _Known(data, capacity, data.apis)
        case clusters.ClusterLeft(name=name):
            known.pop(name, None)
        case clusters.CapacityReported(name=name) if name in known:
            known[name].capacity = data
        case clusters.ClusterApisReported(name=name, apis=apis) if name in known:
            known[name].apis = apis
        case _:
            pass


def _model(name: str, known: _Known) -> specs.MemberSpec:
    allocatable = {} if known.capacity is None else known.capacity.allocatable
    return specs.MemberSpec(
        name=name,
        nodes=(specs.NodeGroup(count=1, allocatable=allocatable),),
        labels=known.joined.labels,
        provider=known.joined.provider,
        region=known.joined.region,
        zones=known.joined.zones,
        apis=known.apis,
        modelled=True,
    )
