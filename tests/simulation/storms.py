"""Simulation profile ``storms``: clusters flap, fail together and recover; reports are late or repeated; crashes.

Its policies use failover of clusters and of applications.
"""

from engine.deciders import cluster_health
from engine.simulation import defaults, reports, specs
from events import clusters, codec, health, keys, policies, records, topics
from events.shapes import WorkloadRef
from tests.builders import inputs, manifests
from tests.builders.log_records import all_records
from tests.simulation import classes
from tests.simulation.moves import clusters as cluster_moves
from tests.simulation.moves import faults, placements, suspensions, templates
from tests.simulation.moves import policies as policy_moves
from tests.simulation.world import Move, Scope, World

MEMBERS = [
    specs.MemberSpec(
        name=f"member{index}",
        nodes=(specs.NodeGroup(count=1, allocatable={"cpu": "4", "memory": "16Gi", "pods": "30"}),),
        labels={"zone-class": "edge" if index % 2 else "core"},
        apis=defaults.APIS,
        startup_ms=2_000,
    )
    for index in range(1, 9)
]
"""Members: few failures stay below the mass-failure limit, replacements start slowly, capacity is scarce."""

SCOPE = Scope(
    policies=("p1", "p2", "p3"),
    replicas=(1, 3, 5, 8, 13),
    requests=({"cpu": "1"}, {"cpu": "2"}, {"cpu": "2"}, {}),
)
"""Two of the workloads may have their own policy, and so their own priority."""

_TAINT = "not-ready"
_POLICIES = {
    "failing": {"statuses": ["False", "Unknown"], "effect": "NoExecute"},
    "shy": {"statuses": ["False"], "effect": "NoSchedule"},
}
_SLOWNESS = 50
"""Start-up factor that makes workloads take 100 s: longer than any policy here tolerates."""


async def begin(world: World) -> None:
    """Join all members, and create a taint policy, two PriorityClasses and all policies."""
    await world.start()
    await world.settle()
    for name in ("high", "low"):
        await classes.submit_class(world, name, value=classes.CLASSES[name])
    await submit_taint_policy(world, "failing")
    for name in world.scope.policies:
        await policy_moves.submit_policy(world, name, _spec(world, name))


async def submit_taint_policy(world: World, name: str) -> None:
    condition = {"conditionType": "Ready", "operator": "In"}
    manifest = manifests.manifest(
        "policy.karmada.io/v1alpha1",
        "ClusterTaintPolicy",
        name,
        spec={
            "addOnConditions": [{**condition, "statusValues": _POLICIES[name]["statuses"]}],
            "removeOnConditions": [{**condition, "statusValues": ["True"]}],
            "taints": [{"key": _TAINT, "effect": _POLICIES[name]["effect"]}],
        },
    )
    event = inputs.configuration(manifest)
    await world.submit(event, keys.object_key("ClusterTaintPolicy", "", name), 0)


async def taint_policy(world: World) -> str:
    name = world.chance.choice(sorted(_POLICIES))
    await submit_taint_policy(world, name)
    return f"taint policy {name}"


async def no_taint_policy(world: World) -> str:
    """Delete a taint policy; clusters that fail meanwhile are tainted when it is created again."""
    name = world.chance.choice(sorted(_POLICIES))
    ref = WorkloadRef(api_version="policy.karmada.io/v1alpha1", kind="ClusterTaintPolicy", name=name)
    key = keys.object_key("ClusterTaintPolicy", "", name)
    await world.submit(policies.ConfigurationDeleted(object=ref), key, 0)
    return f"taint policy {name} deleted"


async def policy(world: World) -> str:
    return await policy_moves.submit_any_policy(world, _spec)


def _spec(world: World, name: str) -> dict[str, object]:
    chance = world.chance
    dynamic = {"dynamicWeight": "AvailableReplicas"}
    scheduling = chance.choice(
        [
            {"replicaSchedulingType": "Duplicated"},
            policy_moves.divided("Aggregated"),
            policy_moves.divided("Weighted", dynamic),
        ]
    )
    placement: dict[str, object] = {"replicaScheduling": scheduling}
    if chance.random() < 0.7:
        placement["clusterAffinity"] = {"clusterNames": chance.sample(world.names, chance.randrange(2, 6))}
    elif chance.random() < 0.5:
        placement["clusterAffinities"] = placements.groups(world)
    if chance.random() < 0.4:
        seconds = chance.choice([{}, {"tolerationSeconds": 15}, {"tolerationSeconds": 300}])
        placement["clusterTolerations"] = [{"key": _TAINT, "operator": "Exists", **seconds}]
    failover: dict[str, object] = {}
    if chance.random() < 0.7:
        mode = chance.choice(["Gracefully", "Gracefully", "Directly", "Graciously", "Immediately"])
        failover["cluster"] = {"purgeMode": mode, **policy_moves.state_preservation(world)}
    if chance.random() < 0.6:
        failover["application"] = policy_moves.failover(world)
    return {
        "resourceSelectors": _selectors(world, name),
        "placement": placement,
        "failover": failover,
        "propagateDeps": chance.random() < 0.3,
        **(classes.of_policy(world) if chance.random() < 0.8 else {}),
        **suspensions.scheduler(world),
    }


def _selectors(world: World, name: str) -> list[dict[str, object]]:
    """The first policy selects everything, each other one a single workload, to give it its own priority."""
    first, *others = world.scope.policies
    if name == first:
        return [{"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "v1", "kind": "ConfigMap"}]
    own = world.scope.workloads[others.index(name)]
    return [{"apiVersion": "apps/v1", "kind": "Deployment", "name": own}]


async def _report_health(world: World, name: str, *, ready: bool, grace_s: int = 0) -> None:
    report = clusters.ClusterHealthChanged(name=name, ready=ready, grace_seconds=grace_s)
    await world.submit(report, name, 0)


async def flap(world: World) -> str:
    """Make a cluster unready repeatedly, for durations around the confirmation time."""
    chance = world.chance
    name, times = chance.choice(world.names), chance.randrange(1, 5)
    period_ms = chance.choice(
        [1, 5_000, cluster_health.CONFIRM_MS - 1, cluster_health.CONFIRM_MS, cluster_health.CONFIRM_MS + 1]
    )
    for _ in range(times):
        await _report_health(world, name, ready=False)
        await world.pass_ms(period_ms)
        await _report_health(world, name, ready=True)
        await world.pass_ms(chance.choice([1, period_ms]))
    return f"{name} flaps {times} times by {period_ms} ms"


async def storm(world: World) -> str:
    """Fail 2, 4 or 6 of the 8 clusters in the same millisecond; 6 are a mass failure."""
    names = world.chance.sample(world.names, world.chance.choice([2, 4, 4, 6]))
    is_seen = world.chance.random() < 0.5
    for name in names:
        if is_seen:
            await _report_health(world, name, ready=False)
        else:
            await world.members.fault(name, "down")
    return f"{names} {'are not ready' if is_seen else 'are down'}"


async def calm(world: World) -> str:
    """Recover some or all clusters in the same millisecond."""
    names = world.chance.sample(world.names, world.chance.choice([1, 1, 2, len(world.names)]))
    for name in names:
        await world.members.heal(name)
        await _report_health(world, name, ready=True)
    return f"{names} are ready"


async def promise_report(world: World) -> str:
    """Report a cluster as ready with a promise of another report, which may never come."""
    name, grace_s = world.chance.choice(world.names), world.chance.choice([5, 40])
    await _report_health(world, name, ready=True, grace_s=grace_s)
    return f"{name} is ready, next in {grace_s} s"


async def slow_start(world: World) -> str:
    """Slow a cluster, so that new workloads are unhealthy for longer than some policies tolerate."""
    name = world.chance.choice(world.names)
    await world.members.fault(name, "slow", _SLOWNESS)
    return f"{name} is slow"


async def lose_reports(world: World) -> str:
    name = world.chance.choice(world.names)
    await world.members.fault(name, "losing")
    return f"{name} loses reports"


async def hold(world: World) -> str:
    """Delay the reports of some members from now on."""
    world.log.slow = set(world.chance.sample(world.names, world.chance.randrange(1, 4)))
    return f"reports of {sorted(world.log.slow)} are slow"


async def arrive(world: World) -> str:
    count = world.chance.choice([1, 3, len(world.log.held)])
    await world.log.arrive(world.chance, count)
    if world.chance.random() < 0.5:
        world.log.slow.clear()
    return f"{count} of what is on its way arrive"


async def again(world: World) -> str:
    """Repeat reports: as retries with the same id, or as new reports about outdated works."""
    stored = await all_records(world.log)
    reports = [record for record in stored if record.topic == topics.HEALTH]
    for record in world.chance.sample(reports, min(3, len(reports))):
        headers = dict(record.headers)
        if await _is_over(world, record):
            headers["ce_id"] = f"again-{world.log.last_number()}"
        await world.log.append(
            [records.record(record.topic, record.partition, record.key, headers, record.value)]
        )
    return "reports come again"


async def _is_over(world: World, record: records.StoredRecord) -> bool:
    """Whether the member knows a newer work, so that a new report about this one is outdated."""
    decoded = codec.decode(record)
    match decoded.data if isinstance(decoded, codec.Decoded) else None:
        case health.WorkloadReported(cluster=cluster, key=key, term=term, step=step):
            state = world.members.state_of(cluster)
            workload = state.workloads.get(key)
            newest = workload.known if workload else state.tombstones.get(key, (0, 0))
            return (term, step) < newest
        case _:
            return False


async def repeat_all_reports(world: World) -> str:
    """Repeat all reports of a member, as an agent without its checkpoint does."""
    name = world.chance.choice(world.names)
    state = world.members.state_of(name)
    for workload in state.workloads.values():
        if workload.reported is not None and name not in world.log.slow:
            report = reports.workload_report(state, workload)
            if reports.fingerprint(report) == workload.reported:
                await world.submit(report, workload.key, keys.shard_of(workload.key))
    return f"{name} says all of it again"


async def worker_dies(world: World) -> str:
    await world.worker_dies()
    return "the worker dies"


async def members_die(world: World) -> str:
    await world.members_die()
    return "the members die"


async def wait(world: World) -> str:
    count = world.chance.choice([1, 1_000, 9_999, 10_000, 29_999, 30_000, 61_000, 601_000])
    await world.pass_ms(count)
    return f"{count} ms pass, each timer in its time"


async def end(world: World) -> None:
    """Recover everything; or leave another share of the clusters failed at the end."""
    await faults.well(world)
    for name in world.names:
        await _report_health(world, name, ready=True)
    if world.chance.random() < 0.5:
        for name in world.chance.sample(world.names, world.chance.randrange(1, 7)):
            await _report_health(world, name, ready=False)
        await world.pass_ms(60_000)
        for _ in range(world.chance.randrange(4)):
            await world.chance.choice(
                [cluster_moves.leave, cluster_moves.depart, cluster_moves.join, cluster_moves.join]
            )(world)


WEIGHTS: dict[Move, int] = {
    templates.apply_template: 12,
    templates.delete_template: 1,
    templates.recreate: 1,
    policy: 4,
    policy_moves.delete_policy: 1,
    classes.priority_class: 2,
    classes.no_priority_class: 1,
    templates.rebalance: 2,
    templates.allow_deletion: 2,
    suspensions.suspend: 2,
    cluster_moves.taint: 1,
    cluster_moves.untaint: 2,
    taint_policy: 1,
    no_taint_policy: 1,
    flap: 3,
    storm: 4,
    calm: 5,
    promise_report: 2,
    slow_start: 2,
    lose_reports: 1,
    faults.heal: 3,
    hold: 3,
    arrive: 4,
    again: 3,
    repeat_all_reports: 1,
    cluster_moves.leave: 1,
    cluster_moves.depart: 1,
    cluster_moves.join: 2,
    faults.fail_append: 1,
    faults.crash: 1,
    faults.keep_snapshot: 2,
    faults.crash_without_the_newest_snapshot: 1,
    worker_dies: 1,
    members_die: 2,
    faults.leap: 2,
    wait: 8,
}
