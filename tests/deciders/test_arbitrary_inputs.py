"""Inputs with arbitrary values in any field: each is accepted or refused, and the engine continues."""

import asyncio
import copy
from typing import Final, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.proof import verification
from engine.reconcilers import replay
from events import clusters, codec, enums, health, keys, links, policies, records, shapes, specs
from events.json_values import as_list, list_at, object_at
from tests.builders.inputs import (
    capacity,
    deleted,
    deployment,
    health_reported,
    interpreter,
    joined,
    key,
    override,
    policy,
    policy_deleted,
    priority_class,
    quota,
    rebalancer,
    ref,
    referring,
    taint_policy,
    tainted,
    template,
)
from tests.builders.manifests import (
    AGGREGATED,
    CONFIG_MAP,
    DYNAMIC,
    FLINK,
    JOB,
    images,
    manifest,
    on,
    raw,
    selector,
)
from tests.deciders.story import Story
from tests.rounds import ROUNDS

_WEEK_S: Final = 7 * 24 * 3600
_FAILOVER: Final = {
    "application": {
        "decisionConditions": {"tolerationSeconds": 30},
        "purgeMode": "Gracefully",
        "gracePeriodSeconds": 60,
        "statePreservation": {"rules": [{"aliasLabelName": "a", "jsonPath": "{.job}"}]},
    },
    "cluster": {
        "purgeMode": "Directly",
        "statePreservation": {"rules": [{"aliasLabelName": "b", "jsonPath": ".c"}]},
    },
}
_TOLERATION: Final = {
    "key": "maintenance",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 20,
}
_SPREAD: Final = [
    {"spreadByField": "region", "minGroups": 1, "maxGroups": 2},
    {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 3},
]
_AFFINITIES: Final = [
    {"affinityName": "first", "clusterNames": ["member1"]},
    {"affinityName": "second", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
]
_WEIGHTS: Final = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"staticWeightList": [{"targetCluster": {"clusterNames": ["member1"]}, "weight": 2}]},
}
_PATCH: Final = {"subPath": "/a", "operator": "add", "value": [1]}
_OVERRIDERS: Final[dict[str, object]] = {
    "plaintext": [{"path": "/metadata/labels/a", "operator": "add", "value": "b"}],
    "imageOverrider": [
        {"component": "Tag", "operator": "replace", "value": "2", "predicate": {"path": "/spec/image"}}
    ],
    "argsOverrider": [{"containerName": "web", "operator": "remove", "value": ["-v"]}],
    "labelsOverrider": [{"operator": "replace", "value": {"a": "b"}}],
    "fieldOverrider": [{"fieldPath": "/data/a", "json": [_PATCH], "yaml": [_PATCH]}],
}
_POD: Final = {
    "priorityClassName": "high",
    "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}] * 2,
}
QUOTA: Final = ("v1", "ResourceQuota")
GROUP: Final = keys.group_key("default", "a", "b", apart=True)
EVENTS: Final[list[shapes.Event]] = [
    policy(
        "web",
        on("member1", "member2", scheduling=DYNAMIC, clusterTolerations=[_TOLERATION]),
        failover=_FAILOVER,
        propagateDeps=True,
    ),
    policy(
        "web", on("member1", scheduling=AGGREGATED, spreadConstraints=_SPREAD), selector("web"), priority=3
    ),
    policy("web", {"clusterAffinities": _AFFINITIES, "replicaScheduling": _WEIGHTS}, preemption="Always"),
    policy(
        "all",
        on("member2"),
        namespace="",
        suspension={"dispatchingOnClusters": {"clusterNames": ["member2"]}},
    ),
    taint_policy("unready", on=("member1", "member2")),
    override(
        "web",
        {"targetCluster": _AFFINITIES[1], "overriders": _OVERRIDERS},
        images("2", clusterNames=["member1"]),
        selectors=[{**selector("web"), "namespace": "default", "labelSelector": {"matchLabels": {"a": "b"}}}],
    ),
    override(
        "all", namespace="", spec={"targetCluster": {"exclude": ["member2"]}, "overriders": _OVERRIDERS}
    ),
    policy_deleted("web"),
    deleted("web"),
    msgspec.structs.replace(deleted("web"), orphans=True),
    clusters.ClusterLeft(name="member1"),
    rebalancer("again", ref("web"), ref("job"), ttl_s=60),
    interpreter(
        "spec.size",
        "spec.requests",
        health={"jsonPath": "{.job.state}", "values": ["RUNNING"]},
        statusFields=[{"jsonPath": ".job.restarts", "aggregate": "Sum"}],
        dependencies=[{"apiVersion": "v1", "kind": "ConfigMap", "namesPath": "{.spec.configs[*]}"}],
        retainedFields=["spec.paused"],
    ),
    interpreter(health={"condition": {"type": "Ready", "status": "True"}}),
    deployment("web", 4),
    referring("web", "ConfigMap/settings", "Secret/keys"),
    template("settings", CONFIG_MAP),
    links.DependencyNeeded(
        dependency=ref("settings", CONFIG_MAP), by=key("web"), number=3, clusters=("member1", "member2")
    ),
    links.DependencyDropped(dependency=ref("settings", CONFIG_MAP), by=key("web"), number=4, preserved=True),
    priority_class("high", 1_000, globalDefault=True, preemptionPolicy="Never"),
    policy(
        "ranked",
        on("member1", scheduling=DYNAMIC),
        schedulePriority={"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"},
    ),
    policies.PriorityClassDeclared(name="high", value=1_000, preemption_policy=enums.PreemptionPolicy.NEVER),
    links.CapacityRequested(
        shard=3, key=key("vital"), number=3, priority=1_000, clusters=("member1", "member2")
    ),
    links.CapacityOffered(
        key=key("web"),
        number=3,
        shard=3,
        occupants=(
            shapes.Occupant(
                key=key("small"), cluster="member1", priority=-5, replicas=3, requests={"cpu": "1"}
            ),
        ),
    ),
    links.PreemptionRequested(
        key=key("web"), cluster="member1", replicas=1, by=key("vital"), priority=5, until_ms=10**15
    ),
    specs.TemplateStatusWritten(
        template=ref("web"),
        status={"readyReplicas": raw(3)},
        managed_fields=(
            shapes.FieldsOwner(
                manager="agent",
                operation="Update",
                api_version="apps/v1",
                fields_v1=raw({"f:status": {"f:readyReplicas": {}}}),
                subresource="status",
            ),
        ),
    ),
    template("job", FLINK, fields={"spec": {"size": 3, "requests": {"cpu": "1"}}}),
    joined("member1", {"a": "b"}),
    tainted("member1", "NoExecute"),
    health_reported("member2", ready=False, grace_s=30),
    clusters.ClusterDescribed(name="member1", region="eu", zones=("eu-1",), provider="some"),
    clusters.CapacityReported(
        name="member1",
        allocatable={"cpu": "4", "memory": "8Gi", "pods": "30"},
        allocated={"cpu": "1500m"},
        modelings=(clusters.GradeCount(grade=0, count=3),),
    ),
    health.WorkloadReported(
        cluster="member1",
        key=key("web"),
        term=1,
        step=1,
        replicas=4,
        updated=4,
        ready=0,
        available=0,
        healthy=False,
        fault="OverridePolicy default/web: plaintext: operation 0: there is no /metadata/labels",
    ),
    policies.ConfigurationApplied(manifest=raw(manifest("v1", "ConfigMap", "a", "b"))),
    quota("all", member1="5"),
    health.WorkloadReported(
        cluster="member1",
        key=key("all", QUOTA),
        term=1,
        step=10**9,
        status='{"hard":{"pods":"5"},"used":{"pods":"2"}}',
    ),
    links.QuotaRequested(
        namespace="default", key=key("web"), number=3, used={"cpu": 3_000}, wanted={"cpu": 5_000}
    ),
    links.QuotaAnswered(key=key("web"), number=3, fault="too much"),
    policy("apart", {"workloadAffinity": {"antiAffinity": {"groupByLabelKey": "a"}}}, selector("web")),
    links.GroupRequested(
        group=GROUP, key=key("web"), number=3, apart=True, placed=("member1",), wanted=("member2",)
    ),
    links.GroupAnswered(
        group=GROUP, key=key("web"), number=3, granted=False, bound=True, others=("member1",)
    ),
    links.ClusterCleared(cluster="member1", uid="a", shard=3),
    specs.SuspensionWritten(template=ref("web"), scheduling=True, dispatching=False),
    specs.DeletionAllowed(template=ref("web"), cluster="member1"),
    clusters.ClusterConditionsReported(
        name="member1", conditions=(clusters.ClusterCondition(type="NetworkReady", status="False"),)
    ),
    clusters.CapacityReported(
        name="member1",
        allocatable={"cpu": "4", "pods": "30"},
        quotas=(clusters.NamespaceQuota(namespace="default", free={"pods": "3"}),),
    ),
    template("sum", JOB, fields={"spec": {"parallelism": 2, "completions": 3, "template": {"spec": _POD}}}),
]
_NAMES: Final = st.sampled_from(
    ["", "member1", "member2", "web", "default", "key", "operator", "a/b", "10m", "-1"]
)
_ANYTHING: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from([0, 1, -1, 2**31 - 1, 2**31, 2**53, 0.5, 1e300])
    | _NAMES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=2),
    max_leaves=4,
)
_GONE: Final = object()
_TWICE: Final = object()

Path = tuple[str | int, ...]


def paths(value: object, path: Path = ()) -> list[Path]:
    """Return the path of every item in a value."""
    nested = [path] if path else []
    for name, item in object_at(value).items():
        nested += paths(item, (*path, name))
    for index, item in enumerate(list_at(value)):
        nested += paths(item, (*path, index))
    return nested


def changed(value: object, path: Path, new: object) -> object:
    """Return a copy with the item at the path replaced, removed, or repeated in its list."""
    copied = copy.deepcopy(value)
    at = cast("dict[str | int, object]", copied)
    for step in path[:-1]:
        at = cast("dict[str | int, object]", at[step])
    if new is _GONE:
        del at[path[-1]]
    elif new is _TWICE:
        if (items := as_list(at)) is not None:
            items.append(copy.deepcopy(items[int(path[-1])]))
    else:
        at[path[-1]] = new
    return copied


@st.composite
def wrong(draw: st.DrawFn) -> tuple[int, bytes]:
    """One of the inputs with a wrong value at one path, or now and then a valid input."""
    which = draw(st.integers(0, len(EVENTS) - 1))
    value: object = msgspec.json.decode(msgspec.json.encode(EVENTS[which]))
    for _ in range(draw(st.integers(0, 2))):
        if item_paths := paths(value):
            new = draw(st.sampled_from([_GONE, _TWICE]) | _ANYTHING)
            value = changed(value, draw(st.sampled_from(item_paths)), new)
    return which, msgspec.json.encode(value)


async def world() -> Story:
    """Return a story with two members and workloads in them."""
    story = Story()
    await story.worker.recover()
    await story.submit(*(joined(name, {"a": "b"}) for name in ("member1", "member2", "calm")))
    await story.submit(*(capacity(name) for name in ("member1", "member2", "calm")))
    await story.submit(
        policy("web", on("member1", "member2", scheduling=DYNAMIC), failover=_FAILOVER), deployment("web", 4)
    )
    await story.submit(
        rebalancer("again", ref("web")), taint_policy("unready"), health_reported("member1", grace_s=40)
    )
    return story


async def run_inputs(inputs: list[tuple[int, bytes]]) -> None:
    """Feed these inputs to the engine among valid ones; verify its state afterwards."""
    story = await world()
    for which, value in inputs:
        right = story.record(EVENTS[which])
        await story.log.append(
            [records.record(right.topic, right.partition, right.key, right.headers, value)]
        )
        await story.settle()
    await story.pass_s(_WEEK_S)
    await story.submit(
        policy("calm", on("calm", clusterTolerations=[{"operator": "Exists"}]), selector("calm", CONFIG_MAP)),
        template("calm", CONFIG_MAP),
    )

    assert set(story.placed(key("calm", CONFIG_MAP))) == {"calm"}
    report = await verification.verify(story.log)
    assert report.findings == []
    shards = (await replay.rebuild(story.log, [fold.state.shard for fold in story.worker.folds])).shards
    for fold in story.worker.folds:
        rebuilt, _ = shards[fold.state.shard]
        assert rebuilt.state.digest == fold.state.digest


@pytest.mark.slow  # each example is an engine with a week of its own, verified and rebuilt
@settings(max_examples=100 * ROUNDS)
@given(st.lists(wrong(), min_size=1, max_size=5))
def test_engine_survives_arbitrary_values_in_inputs(inputs: list[tuple[int, bytes]]) -> None:
    asyncio.run(run_inputs(inputs))


@pytest.mark.parametrize(
    ("before", "odd"),
    [
        (b'"manifest":{', b'"spec":5,'),
        (b'"manifest":{', b'"odd":1e999,'),
        (b'"manifest":{', b'"odd":"\xff","none":null,'),
        (b'"metadata":{', b'"odd":"\xff","none":null,'),
        (b'"spec":{', b'"placement":5,"overrideRules":5,"workloads":5,"overall":5,"target":5,'),
        (b'"spec":{', b'"addOnConditions":5,"completions":1e999,"completions":3,'),
        (b'"placement":{', b'"clusterAffinity":5,'),
    ],
)
async def test_repeated_and_unreadable_fields_of_manifests_are_left_out(before: bytes, odd: bytes) -> None:
    await run_inputs(
        [
            (which, value.replace(before, before + odd, 1))
            for which, event in enumerate(EVENTS)
            if before in (value := codec.encode_data(event))
        ]
    )
