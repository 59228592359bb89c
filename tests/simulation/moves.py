"""Random moves of a simulated world; each changes the world and returns a one-line description."""

from collections.abc import Awaitable, Callable

from engine.simulation import faults
from engine.simulation import specs as member_specs
from events import clusters, keys, policies, records, specs, topics
from events.shapes import PolicyRef, WorkloadRef
from tests.builders import inputs
from tests.builders.manifests import POLICIES, manifest, raw
from tests.simulation import classes
from tests.simulation.world import START_MS, World

FAULTS: tuple[faults.Kind, ...] = ("down", "slow", "losing")
_TAINTS = ("maintenance", "gpu", "flaky")
_EFFECTS = ("NoSchedule", "NoExecute", "NoExecute", "PreferNoSchedule")

Move = Callable[[World], Awaitable[str]]


def template(world: World, kind: str, name: str) -> dict[str, object]:
    chance = world.chance
    found = manifest(
        "apps/v1" if kind == "Deployment" else "v1",
        kind,
        name,
        "default",
        metadata={"labels": {"tier": chance.choice("ab")}},
    )
    if kind == "Deployment":
        requests = chance.choice(world.scope.requests)
        container = {"name": "main", "image": "nginx", "resources": {"requests": requests}}
        found["spec"] = {
            "replicas": chance.choice(world.scope.replicas),
            "template": {
                "spec": {"containers": [container], "volumes": _volumes(world), **classes.of_pod(world)}
            },
        }
    else:
        found["data"] = {"value": str(chance.randrange(3))}
    return found


def _volumes(world: World) -> list[dict[str, object]]:
    """References to a random choice of ConfigMaps, existing or not."""
    if "ConfigMap" not in world.scope.kinds:
        return []
    wanted = world.chance.sample(world.scope.workloads, world.chance.randrange(3))
    return [{"name": name, "configMap": {"name": name}} for name in wanted]


async def apply_template(world: World) -> str:
    kind, name = (
        world.chance.choice(world.scope.kinds),
        world.chance.choice(world.scope.workloads),
    )
    key = keys.binding_key(kind, "default", name)
    written = template(world, kind, name)
    await world.submit(inputs.applied(written), key, keys.shard_of(key))
    return f"apply {key} {written.get('spec', '')}"


async def delete_template(world: World) -> str:
    kind, name = (
        world.chance.choice(sorted(set(world.scope.kinds))),
        world.chance.choice(world.scope.workloads),
    )
    key = keys.binding_key(kind, "default", name)
    ref = WorkloadRef(
        api_version="apps/v1" if kind == "Deployment" else "v1", kind=kind, name=name, namespace="default"
    )
    await world.submit(specs.TemplateDeleted(template=ref), key, keys.shard_of(key))
    return f"delete {key}"


def _affinity(world: World) -> dict[str, object]:
    """Nothing, or that workloads with the same label are kept together or apart."""
    kind = world.chance.choice(("", "affinity", "antiAffinity"))
    return {"workloadAffinity": {kind: {"groupByLabelKey": "tier"}}} if kind else {}


def placement(world: World) -> dict[str, object]:
    chance = world.chance
    found: dict[str, object] = _affinity(world) if world.scope.is_grouped else {}
    names = chance.sample(world.names, chance.randrange(1, 1 + len(world.names)))
    found |= chance.choice(
        [
            {},
            {"clusterAffinity": {"clusterNames": names}},
            {"clusterAffinity": {"exclude": names[:2]}},
            {"clusterAffinity": {"labelSelector": {"matchLabels": {"zone-class": "edge"}}}},
            {
                "clusterAffinities": [
                    {"affinityName": "primary", "clusterNames": names[:1]},
                    {"affinityName": "backup", "clusterNames": list(world.names)},
                ]
            },
        ]
    )
    found |= chance.choice(
        [
            {},
            {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
            {"replicaScheduling": divided("Aggregated")},
            {"replicaScheduling": divided("Weighted")},
            {"replicaScheduling": divided("Weighted", {"dynamicWeight": "AvailableReplicas"})},
            {"replicaScheduling": divided("Weighted", {"dynamicWeight": "AvailableReplicas"})},
        ]
    )
    if chance.random() < 0.5:
        seconds = chance.choice([{}, {"tolerationSeconds": 0}, {"tolerationSeconds": 30}])
        found["clusterTolerations"] = [{"key": chance.choice(_TAINTS), "operator": "Exists", **seconds}]
    return found


def divided(preference: str, weights: dict[str, str] | None = None) -> dict[str, object]:
    strategy: dict[str, object] = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": preference,
    }
    return strategy if weights is None else strategy | {"weightPreference": weights}


def failover(world: World) -> dict[str, object]:
    """Failover settings that tolerate at least the start-up time; shorter ones would move workloads forever."""
    chance = world.chance
    mode = chance.choice(["Gracefully", "Directly", "Never"])
    found: dict[str, object] = {
        "decisionConditions": {"tolerationSeconds": chance.choice([5, 30, 60])},
        "purgeMode": mode,
    }
    return found | {"gracePeriodSeconds": chance.choice([1, 30])} if mode == "Gracefully" else found


async def apply_policy(world: World) -> str:
    chance = world.chance
    name = chance.choice(world.scope.policies)
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "v1", "kind": "ConfigMap"}]
    if chance.random() < 0.3:
        selectors = [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": chance.choice(world.scope.workloads)}
        ]
    spec: dict[str, object] = {
        "resourceSelectors": selectors,
        "placement": placement(world),
        "priority": chance.randrange(3),
        "preemption": chance.choice(["Always", "Never"]),
    }
    if chance.random() < 0.15:
        spec["suspension"] = {"dispatching": True}
    if chance.random() < 0.5:
        spec["propagateDeps"] = True
    if chance.random() < 0.1:
        spec["activationPreference"] = "Lazy"
    if chance.random() < 0.3:
        spec["failover"] = {"application": failover(world)}
    await submit_policy(world, name, spec)
    return f"policy {name} {spec}"


async def submit_policy(world: World, name: str, spec: dict[str, object]) -> None:
    written = manifest(POLICIES, "PropagationPolicy", name, "default", spec=spec)
    key = keys.object_key("PropagationPolicy", "default", name)
    await world.submit(policies.PolicyApplied(manifest=raw(written)), key, 0)


async def submit_any_policy(world: World, make: Callable[[World, str], dict[str, object]]) -> str:
    """Write one of the policies with a spec from ``make``."""
    name = world.chance.choice(world.scope.policies)
    spec = make(world, name)
    await submit_policy(world, name, spec)
    return f"policy {name} {spec}"


async def delete_policy(world: World) -> str:
    name = world.chance.choice(world.scope.policies)
    ref = PolicyRef(kind="PropagationPolicy", name=name, namespace="default")
    await world.submit(
        policies.PolicyDeleted(policy=ref), keys.object_key("PropagationPolicy", "default", name), 0
    )
    return f"policy {name} deleted"


async def taint(world: World) -> str:
    chance = world.chance
    name = chance.choice(world.names)
    mark = clusters.Taint(key=chance.choice(_TAINTS), effect=chance.choice(_EFFECTS))
    await world.submit(clusters.ClusterTainted(name=name, taint=mark), name, 0)
    return f"taint {name} {mark.key}:{mark.effect}"


async def untaint(world: World) -> str:
    name, key = world.chance.choice(world.names), world.chance.choice(_TAINTS)
    await world.submit(clusters.ClusterUntainted(name=name, key=key), name, 0)
    return f"untaint {name} {key}"


async def label(world: World) -> str:
    name = world.chance.choice(world.names)
    labels = world.chance.choice([{"zone-class": "edge"}, {"zone-class": "core"}, {}])
    await world.submit(clusters.ClusterLabelled(name=name, labels=labels), name, 0)
    return f"label {name} {labels}"


async def leave(world: World) -> str:
    name = world.chance.choice(world.names)
    await world.submit(clusters.ClusterLeft(name=name), name, 0)
    return f"{name} leaves at once"


async def depart(world: World) -> str:
    name = world.chance.choice(world.names)
    await world.submit(clusters.ClusterLeaving(name=name), name, 0)
    return f"{name} is to leave"


async def join(world: World) -> str:
    spec = world.chance.choice(world.specs)
    await world.submit(member_specs.joined_event(spec), spec.name, 0)
    return f"{spec.name} joins"


async def rebalance(world: World) -> str:
    chance = world.chance
    workloads = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name}
        for name in chance.choices([*world.scope.workloads, "nobody"], k=chance.randrange(1, 5))
    ]
    spec: dict[str, object] = {"workloads": workloads}
    if chance.random() < 0.4:
        spec["ttlSecondsAfterFinished"] = chance.choice([0, 60])
    name = chance.choice(["r1", "r2"])
    written = manifest("apps.karmada.io/v1alpha1", "WorkloadRebalancer", name, spec=spec)
    key = keys.rebalancer_key(name)
    await world.submit(specs.RebalancerApplied(manifest=raw(written)), key, keys.shard_of(key))
    return f"rebalance {name} {spec}"


async def delete_rebalancer(world: World) -> str:
    name = world.chance.choice(["r1", "r2"])
    key = keys.rebalancer_key(name)
    await world.submit(specs.RebalancerDeleted(name=name), key, keys.shard_of(key))
    return f"rebalancer {name} deleted"


async def hostile(world: World) -> str:
    """Append a record that must be rejected or skipped without stopping anything."""
    chance = world.chance
    kind = chance.choice(["garbage", "misplaced", "repeated", "late", "unknown", "forged"])
    partition = chance.randrange(topics.SHARDS)
    headers = {"ce_specversion": "1.0", "ce_id": f"h{world.log.last_number()}", "ce_source": "/hostile"}
    if kind in ("garbage", "unknown"):
        event = "io.reballast.template-applied.v1" if kind == "garbage" else "io.reballast.template-sung.v9"
        value = chance.choice(
            [b"", b"{", b"\xff\xfe", b"[" * 5_000, b'{"manifest": 7}', b'{"manifest": {"kind": "X"}}']
        )
        await world.log.append(
            [records.record(topics.SPECS, partition, "k", {**headers, "ce_type": event}, value)]
        )
    elif kind == "forged":
        await world.log.append(
            [records.record(topics.CLUSTERS, 0, "x", chance.choice([{}, {"ce_id": ""}]), b"{}")]
        )
    else:
        written = raw(template(world, "Deployment", "api"))
        key = keys.binding_key("Deployment", "default", "api")
        home = keys.shard_of(key)
        wrong = (home + 1) % topics.SHARDS if kind == "misplaced" else home
        expects = 999_999 if kind == "late" else None
        repeated = "said-1" if kind == "repeated" else ""
        await world.submit(
            specs.TemplateApplied(manifest=written, expects=expects), key, wrong, event_id=repeated
        )
    return f"hostile: {kind}"


async def report_health(world: World) -> str:
    """Report a cluster's health as an external observer, sometimes with a promise to report again."""
    name, ready = world.chance.choice(world.names), world.chance.random() < 0.6
    grace = world.chance.choice([0, 0, 5, 40])
    said = clusters.ClusterHealthChanged(name=name, ready=ready, grace_seconds=grace)
    await world.submit(said, name, 0)
    return f"{name} is {'ready' if ready else 'not ready'}, next in {grace} s"


async def report_conditions(world: World) -> str:
    """Report a cluster's other conditions as a client does, or that there are none."""
    chance = world.chance
    name, status = chance.choice(world.names), chance.choice(["True", "False", "Unknown", ""])
    reported = {"NetworkReady": status} if status else {}
    await world.submit(inputs.conditions_reported(name, **reported), name, 0)
    return f"{name} has the conditions {reported}"


async def apply_taint_policy(world: World) -> str:
    chance = world.chance
    name = chance.choice(["t1", "t2"])
    condition = chance.choice(["Ready", "Ready", "NetworkReady"])
    conditions = [
        {"conditionType": condition, "operator": operator, "statusValues": values}
        for operator, values in (("In", ["False", "Unknown"]), ("In", ["Unknown"]), ("In", ["True"]))
    ]
    spec = {
        "addOnConditions": [chance.choice(conditions[:2])],
        "removeOnConditions": chance.choice([[], conditions[2:]]),
        "taints": [
            {"key": chance.choice(["a", "b"]), "effect": chance.choice(["NoExecute", "NoSchedule"])},
        ],
    }
    written = manifest(POLICIES, "ClusterTaintPolicy", name, spec=spec)
    key = keys.object_key("ClusterTaintPolicy", "", name)
    await world.submit(inputs.configuration(written), key, 0)
    return f"taint policy {name} {spec}"


def overriders(world: World) -> dict[str, object]:
    """Overriders that apply to every kind, to Deployments only, or to none."""
    chance = world.chance
    mark = {"site": chance.choice("ab")}
    return chance.choice(
        [
            {"labelsOverrider": [{"operator": chance.choice(["add", "replace", "remove"]), "value": mark}]},
            {"imageOverrider": [{"component": "Tag", "operator": "replace", "value": chance.choice("12")}]},
            {"argsOverrider": [{"containerName": "main", "operator": "add", "value": ["-v"]}]},
            {"plaintext": [{"path": "/metadata/annotations", "operator": "add", "value": mark}]},
            {"plaintext": [{"path": "/spec/replicas", "operator": "replace", "value": chance.randrange(4)}]},
            {"plaintext": [{"path": "/spec/nowhere", "operator": "remove"}]},
        ]
    )


def _override(world: World) -> tuple[str, str, str]:
    kind, namespace = world.chance.choice(
        [("OverridePolicy", "default"), ("OverridePolicy", "default"), ("ClusterOverridePolicy", "")]
    )
    return kind, namespace, world.chance.choice(["o1", "o2"])


async def apply_override(world: World) -> str:
    chance = world.chance
    kind, namespace, name = _override(world)
    targets: list[dict[str, object]] = [
        {},
        {"targetCluster": {"clusterNames": chance.sample(world.names, 2)}},
        {"targetCluster": {"labelSelector": {"matchLabels": {"zone-class": "edge"}}}},
    ]
    rules = [
        {**chance.choice(targets), "overriders": overriders(world)} for _ in range(chance.randrange(1, 3))
    ]
    selectors = chance.choice(
        [
            [],
            [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            [{"apiVersion": "apps/v1", "kind": "Deployment", "name": chance.choice(world.scope.workloads)}],
            [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "labelSelector": {"matchLabels": {"tier": chance.choice("ab")}},
                }
            ],
        ]
    )
    spec = {"resourceSelectors": selectors, "overrideRules": rules}
    written = manifest(POLICIES, kind, name, namespace, spec=spec)
    key = keys.object_key(kind, namespace, name)
    await world.submit(inputs.configuration(written), key, 0)
    return f"{kind} {name} {spec}"


async def delete_override(world: World) -> str:
    kind, namespace, name = _override(world)
    ref = WorkloadRef(api_version="policy.karmada.io/v1alpha1", kind=kind, name=name, namespace=namespace)
    await world.submit(policies.ConfigurationDeleted(object=ref), keys.object_key(kind, namespace, name), 0)
    return f"{kind} {name} deleted"


async def fault(world: World) -> str:
    name, kind = world.chance.choice(world.names), world.chance.choice(FAULTS)
    await world.members.fault(name, kind)
    return f"{name} is {kind}"


async def heal(world: World) -> str:
    name = world.chance.choice(world.names)
    await world.members.heal(name)
    return f"{name} is healed"


async def allow_deletion(world: World) -> str:
    """Allow the deletion of an evicted workload, sometimes of one that was not evicted, or not yet."""
    chance = world.chance
    left = [
        (binding.template.ref, task.cluster)
        for fold in world.worker.folds
        for _, binding in sorted(fold.state.bindings.items())
        for task in binding.tasks
        if binding.template is not None
    ]
    if left and chance.random() < 0.8:
        ref, cluster = chance.choice(left)
    else:
        name, cluster = chance.choice(world.scope.workloads), chance.choice(world.names)
        ref = WorkloadRef(api_version="apps/v1", kind="Deployment", name=name, namespace="default")
    key = ref.binding_key
    await world.submit(specs.DeletionAllowed(template=ref, cluster=cluster), key, keys.shard_of(key))
    return f"{key} may be deleted in {cluster}"


async def fail_append(world: World) -> str:
    world.log.failing = world.chance.choice(["before", "after"])
    try:
        await world.worker.turn()
    except Exception as error:  # noqa: BLE001  # whatever it is, the worker must come back from it
        await world.worker.recover()
        return f"append failed: {error}"
    finally:
        world.log.failing = ""
    return "nothing was appended"


async def crash(world: World) -> str:
    await world.crash()
    return "crash"


async def keep_snapshot(world: World) -> str:
    await world.worker.keep()
    return f"snapshot {world.kept.numbers()[0]}"


async def crash_without_the_newest_snapshot(world: World) -> str:
    """Crash with the newest snapshot deleted or damaged (or none written yet)."""
    numbers = world.kept.numbers()
    if numbers and world.chance.random() < 0.5:
        world.kept.drop(numbers[0])
    elif numbers:
        world.kept.damage(numbers[0], world.chance.randrange(1_000_000))
    await world.crash()
    return f"crash without the newest snapshot of {numbers}"


async def leap(world: World) -> str:
    step_ms = world.chance.choice([1, 100, 10_000, 40_000, 700_000])
    world.now_ms += step_ms
    return f"{step_ms} ms pass"


async def well(world: World) -> None:
    """Heal all members and deliver all delayed reports."""
    world.log.slow.clear()
    await world.log.arrive(world.chance, len(world.log.held))
    for name in world.names:
        await world.members.heal(name)


WEIGHTS: dict[Move, int] = {
    apply_template: 8,
    delete_template: 2,
    apply_policy: 6,
    delete_policy: 1,
    taint: 4,
    untaint: 4,
    label: 2,
    leave: 1,
    depart: 2,
    join: 2,
    rebalance: 4,
    allow_deletion: 1,
    delete_rebalancer: 1,
    hostile: 2,
    report_health: 2,
    report_conditions: 1,
    apply_taint_policy: 1,
    apply_override: 3,
    delete_override: 1,
    fault: 1,
    heal: 2,
    fail_append: 2,
    crash: 2,
    keep_snapshot: 3,
    crash_without_the_newest_snapshot: 1,
    leap: 5,
}


async def play(
    world: World,
    count: int,
    told: list[str] | None = None,
    weights: dict[Move, int] = WEIGHTS,
    end: Callable[[World], Awaitable[None]] = well,
) -> None:
    """Make ``count`` random moves with turns between, ``end``, and run until at rest; describe them in ``told``."""
    for _ in range(count):
        (move,) = world.chance.choices(list(weights), list(weights.values()))
        at_s = (world.now_ms - START_MS) / 1_000
        line = await move(world)
        if told is not None:
            told.append(f"{at_s:11.3f} s  {line}")
        for _ in range(world.chance.randrange(4)):
            await world.turn()
    await end(world)
    await world.settle()
